// @ts-check
// Beam search, step by step, as a tree beside the path that greedy search takes; below,
// the hypotheses that it found, ranked again under another length penalty.

import { h, shown } from "./draw.js";
import { scroller } from "./kit.js";

export function search(app, say) {
  const FATES = { beam: "kept", ended: "ended", dropped: "dropped" };
  const WIDE = 130, HIGH = 44, BOX = { width: 98, height: 34 }; // 16 units are 1rem
  const TOP = 26, TREE = TOP + HIGH + 14; // the lane of greedy search, then the beams
  let columns = [], path = {}, at = app.options.search_step;
  const known = {};
  let busy = false, of_source = "";

  const number = (x, digits = 2) => x.toFixed(digits).replace("-", "−");
  const of = (fate, nodes) => nodes.filter((each) => each.fate === fate);
  const field = (label, input, output = null) =>
    h("label", { class: "machine-field" }, h("span", {}, label), input, output);

  // ---- Controls: they stay, only what they show is drawn anew

  const back = h("button", { type: "button", onclick: () => press(at - 1) }, "Back");
  const forward = h("button", { type: "button", onclick: () => press(at + 1) },
    "Forward");
  const step_number = h("output", {});
  const slider = h("input", { type: "range", min: 1, max: 1, step: 1,
    oninput: () => go(Number(slider.value) - 1) });
  const dropped = h("input", { type: "checkbox", onchange: () => draw_step() });
  const about_step = h("p", {}), about_path = h("p", { class: "machine-path" });
  const region = (label, inside) =>
    scroller({ role: "region", "aria-label": label }, inside);
  const drawing = h("div"), tree = region("Search tree", drawing);
  const key = h("p", { class: "machine-note" });
  const candidates = h("table", {}), hypotheses = h("table", {});
  const searched = h("p", {});
  const alpha_number = h("output", {});
  const alpha = h("input", { type: "range", min: -1, max: 2, step: 0.05,
    oninput: () => draw_hypotheses(), onchange: () => say(first_hypothesis()) });
  const n_beams = h("select", { disabled: true }, Array.from({ length: 8 }, (_, i) =>
    h("option", { value: i + 1 }, String(i + 1))));
  const again = h("button", { type: "button", disabled: true, onclick: search_again },
    "Search again with these settings");
  const hint = h("small", {}, "Load the model first.");
  const body = h("div", {},
    h("div", { class: "machine-row" }, back, forward, field("Step", slider, step_number),
      h("label", { class: "machine-field" }, dropped, "Show what was dropped earlier")),
    about_step, tree, key, about_path, region("Candidates", candidates),
    h("h3", {}, "At the end of the search"), searched,
    h("div", { class: "machine-row" }, field("Length penalty α", alpha, alpha_number)),
    region("Hypotheses", hypotheses),
    h("p", { class: "machine-note" }, "Score: log-probability divided by length",
      h("sup", {}, "α"), ". The slider only reranks the hypotheses of this search; " +
      "with a different α, the search itself might find or keep others."),
    h("div", { class: "machine-row" }, field("Number of beams", n_beams), again, hint));
  const element = h("div", { class: "machine-search" }, body, h("p", { class: "machine-note machine-none" },
    "The search comes with the model: load it with a sentence."));

  // ---- The tree: every candidate knows its parent, its row, and whether the
  // translation goes through it

  function grow() {
    const { search, tgt } = app.view, root = { t: -1, row: 0, on_path: true };
    let beams = [];
    columns = search.steps.map((step, t) => {
      const nodes = step.candidates.map((each, rank) => {
        const parent = t ? beams[each.parent] : root;
        return { ...each, t, rank, parent, parent_row: each.parent,
          on_path: parent && parent.on_path && each.token === tgt[t] };
      }).filter((each) => each.log_prob !== null && each.log_prob > -Infinity);
      beams = beams_of(step, nodes);
      const rest = [...of("ended", nodes), ...of("dropped", nodes)];
      beams.forEach((each, row) => { if (each) each.row = row; });
      rest.forEach((each, i) => { each.row = beams.length + i; });
      return nodes;
    });
  }

  // The beams of a step, in the order in which the next step counts its parents
  function beams_of(step, nodes) {
    return step.beams.map(({ parent, labels }) => nodes.find((each) =>
      each.fate === "beam" && each.parent_row === parent &&
      each.label === labels[labels.length - 1]));
  }

  // The translation is greedy unless somebody asked for another: its name in sentences
  function name_path() {
    const { method, forced } = app.state;
    path = !app.engine || (method === "greedy" && !forced.length)
      ? { mark: "G", name: "greedy search", whose: "Greedy search’s translation" }
      : { mark: "T", name: "the translation", whose: "The current translation" };
    const sums = [];
    for (const x of app.view.log_probs) sums.push((sums[sums.length - 1] || 0) + x);
    path.log_probs = sums;
  }

  function fate_of_path() {
    const { tgt, text, search } = app.view, start = `${path.whose}, “${text}”, `;
    for (let t = 0; t < Math.min(tgt.length, columns.length); t++) {
      const node = columns[t].find((each) => each.on_path), step = `at step ${t + 1}`;
      if (!node) return `${start}left the beam ${step}; it wasn’t among the candidates.`;
      if (node.fate === "dropped") return `${start}dropped out of the beam ${step}.`;
      if (node.fate === "ended") {
        const kept = search.hypotheses.some((each) => is_target(each.ids));
        return `${start}stayed in the beam and ended ${step}` +
          (kept ? "." : "; better hypotheses pushed it out later.");
      }
    }
    return `${start}stayed in the beam until the search stopped.`;
  }

  const is_target = (ids) => String(ids) === String(app.view.tgt);

  function svg(tag, attributes, ...children) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) {
      made.setAttribute(name, value);
    }
    made.append(...children.flat());
    return made;
  }

  const left = (t) => 4 + (t + 1) * WIDE;
  const top_of = (row) => TREE + row * HIGH;

  // A box: kept ones are round, ended ones have a double line, dropped ones are dashed
  function box(t, y, kind, label, note, mark = "") {
    const x = left(t), { width, height } = BOX, middle = x + width / 2;
    const outline = (inset) => svg("rect", { x: x + inset, y: y + inset,
      width: width - 2 * inset, height: height - 2 * inset,
      rx: kind === "beam" ? height / 2 : 2 });
    const word = svg("text", { x: middle, y: y + 15, class: "word" }, label);
    if (label.length > 11) { // squeezed, where it would not fit
      word.setAttribute("textLength", width - 10);
      word.setAttribute("lengthAdjust", "spacingAndGlyphs");
    }
    return svg("g", { class: `machine-node ${kind}` }, outline(0),
      kind === "ended" ? outline(3) : [], word,
      svg("text", { x: middle, y: y + 28, class: "small" }, note),
      mark ? [svg("circle", { cx: x + 5, cy: y + 4, r: 8 }),
        svg("text", { x: x + 5, y: y + 8, class: "mark" }, mark)] : []);
  }

  function line({ t, row, parent, on_path, fate }) {
    const [x, y] = [left(parent.t) + BOX.width, top_of(parent.row) + BOX.height / 2];
    const [to, down] = [left(t), top_of(row) + BOX.height / 2], half = (x + to) / 2;
    return svg("path", { class: `machine-edge ${fate} ${on_path ? "on-path" : ""}`,
      d: `M${x},${y} C${half},${y} ${half},${down} ${to},${down}` });
  }

  function draw_tree() {
    const { search, tgt_labels } = app.view;
    const nodes = columns.slice(0, at + 1).flat().filter((each) =>
      each.t === at || each.fate !== "dropped" || dropped.checked);
    const width = left(at) + BOX.width + 12, height = top_of(2 * search.n_beams);
    const steps = Array.from({ length: at + 1 }, (_, t) => t);
    const lane = path.mark === "G" ? "Greedy" : "Translation";
    drawing.replaceChildren(svg("svg", {
      class: "machine-tree", viewBox: `0 0 ${width} ${height}`, role: "img",
      style: `width: ${width / 16}rem; height: ${height / 16}rem`,
      "aria-label": `The tree up to step ${at + 1} of ${columns.length}. The table ` +
        "below lists the candidates at this step.",
    },
    svg("rect", { class: "now", x: left(at) - 10, y: 2, width: BOX.width + 20,
      height: height - 4, rx: 6 }),
    nodes.map(line),
    svg("text", { x: 4, y: TOP + 22, class: "lane" }, lane),
    steps.map((t) => svg("text", { x: left(t) + BOX.width / 2, y: 18,
      class: t === at ? "word now" : "word" }, `step ${t + 1}`)),
    steps.filter((t) => t < path.log_probs.length).map((t) => box(t, TOP, "lane",
      shown(tgt_labels[t]), number(path.log_probs[t]))),
    box(-1, top_of(0), "beam", "<bos>", "start"),
    nodes.map((each) => box(each.t, top_of(each.row), each.fate, shown(each.label),
      `${FATES[each.fate]} ${number(each.log_prob)}`, each.on_path ? path.mark : ""))));
    tree.scrollLeft = tree.scrollWidth; // the current step stands at the right
  }

  // ---- What the step says

  function summary() {
    const nodes = columns[at], on_path = nodes.find((each) => each.on_path);
    const counts = Object.entries(FATES)
      .map(([fate, word]) => [of(fate, nodes).length, word])
      .filter(([count]) => count).map(([count, word]) => `${count} ${word}`);
    return `Step ${at + 1} of ${columns.length}: ${counts.join(", ")}.` +
      (on_path ? ` The path of ${path.name} takes candidate ${on_path.rank + 1}.` : "") +
      (at === columns.length - 1 ? ` ${why_it_stops()}` : "");
  }

  function why_it_stops() {
    return of("beam", columns[at]).length
      ? "The search stops here: no beam scores higher than the worst hypothesis found."
      : "The search stops here, at the maximum length allowed.";
  }

  const cell = (...content) => h("td", {}, content);
  const figure = (text) => h("td", { class: "machine-number" }, text);
  const row = (rank, on_path, ...cells) => h("tr", { class: on_path ? "chosen" : null },
    h("th", { scope: "row" }, String(rank)), cells);
  const head = (names) => h("thead", {}, h("tr", {}, ["#", ...names].map((name) =>
    h("th", { scope: "col" }, name))));
  const text_of = (text) =>
    h("span", { lang: "en", class: "machine-text" }, text || "(nothing yet)");

  const also = (on_path) => (on_path ? h("small", {}, ` ${path.name}`) : "");

  function draw_candidates() {
    candidates.replaceChildren(
      h("caption", {}, `Candidates at step ${at + 1}, likeliest first (ln p: log-probability, in nats)`),
      head(["Token", "Text so far", "ln p", "Fate"]),
      h("tbody", {}, columns[at].map(({ rank, label, text, log_prob, fate, on_path }) =>
        row(rank + 1, on_path, cell(shown(label)), cell(text_of(text)),
          figure(number(log_prob)),
          cell(h("span", { class: `machine-fate ${fate}` }, FATES[fate]), also(on_path))))));
  }

  function draw_step() {
    const n = columns.length;
    at = Math.max(0, Math.min(at, n - 1));
    slider.max = n;
    slider.value = at + 1;
    slider.setAttribute("aria-valuetext", summary());
    step_number.textContent = `${at + 1} of ${n}`;
    back.setAttribute("aria-disabled", String(at === 0)); // it keeps the focus
    forward.setAttribute("aria-disabled", String(at === n - 1));
    about_step.textContent = summary();
    draw_tree();
    draw_candidates();
  }

  function go(to) {
    at = to;
    draw_step();
  }

  function press(to) {
    if (to < 0 || to >= columns.length) return;
    go(to);
    const kept = of("beam", columns[at]).map(({ text }) => text).join("; ");
    say(`${summary()} Kept: ${kept || "none"}.`);
  }

  // ---- Hypotheses

  function ranked() {
    const power = Number(alpha.value);
    return app.view.search.hypotheses.map(({ ids, text, log_prob, finished }) => ({
      ids, text, log_prob, finished, score: log_prob / ids.length ** power,
    })).sort((a, b) => b.score - a.score);
  }

  function first_hypothesis() {
    const [{ text, score }] = ranked();
    return `First with α = ${number(Number(alpha.value))}: “${text}”, score ` +
      `${number(score, 3)}.`;
  }

  function draw_hypotheses() {
    alpha_number.textContent = number(Number(alpha.value));
    hypotheses.replaceChildren(
      h("caption", {}, `Best score first, with α = ${alpha_number.textContent}`),
      head(["Translation", "Length", "ln p", "Score"]),
      h("tbody", {}, ranked().map(({ ids, text, log_prob, finished, score }, i) =>
        row(i + 1, is_target(ids), cell(text_of(text), also(is_target(ids)),
          finished === false ? h("small", {}, " stopped at the maximum length") : ""),
          figure(String(ids.length)), figure(number(log_prob)),
          figure(number(score, 3))))));
  }

  async function search_again() {
    if (busy) return;
    busy = true;
    const before = app.view.search;
    ready("Searching…");
    await app.set({
      n_beams: Number(n_beams.value), length_penalty: Number(alpha.value) });
    busy = false;
    ready("");
    if (app.view.search === before) return; // it failed, or something came in between
    say(`${searched.textContent} ${first_hypothesis()}`);
  }

  function ready(text) {
    n_beams.disabled = again.disabled = !app.engine;
    again.setAttribute("aria-disabled", String(busy));
    hint.textContent = text;
  }

  // The settings follow the state, but only where it has changed: a slider that was
  // moved and not used yet stays where it is.
  function follow() {
    for (const [name, input] of [["n_beams", n_beams], ["length_penalty", alpha]]) {
      if (app.state[name] === known[name]) continue;
      input.value = known[name] = app.state[name];
      if (!input.value) input.value = app.view.search.n_beams;
    }
  }

  function draw() {
    ready(app.engine ? "" : "Load the model first.");
    body.hidden = !app.view.search;
    if (!app.view.search) return;
    const { search, source } = app.view;
    if (of_source && of_source !== source) at = 0; // a new sentence starts at step 1
    of_source = source;
    name_path();
    grow();
    follow();
    key.textContent = "Each box shows a token, what became of it, and the log-probability " +
      "of the text up to it, in nats. Among those kept, the likeliest continuation of a " +
      `text stays in that text’s row. ${path.mark} marks the path of ${path.name}. A text that ` +
      `ends becomes a hypothesis only if it’s ${search.n_beams === 1 ? "the first candidate"
        : `among the first ${search.n_beams} candidates`} ` +
      `and there aren’t already ${search.n_beams} hypotheses with a better score; better ` +
      "ones may push it out later.";
    about_path.textContent = fate_of_path();
    searched.textContent = `${search.hypotheses.length} hypotheses found by a search with ` +
      `${search.n_beams === 1 ? "1 beam" : `${search.n_beams} beams`} and ` +
      `α = ${number(search.length_penalty)}.`;
    draw_step();
    draw_hypotheses();
  }

  const refresh = () => { if (app.panel === "search") draw(); };
  app.on("search", refresh);
  app.on("place", refresh);

  return { place: element };
}
