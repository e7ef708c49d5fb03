// @ts-check
// Beam search, step by step, as a tree beside the path that greedy search takes; below,
// the hypotheses that it found, ranked again under another length penalty.

import { box, COLOR, curve, decimal, e, h, markup, picture, short, shown, text } from "./draw.js";
import { button, fill, labeled, scroller, show_end, view_of_search } from "./kit.js";

const WORDS = { beam: "kept", ended: "ended", dropped: "dropped" };
const OUTLINES = {
  beam: { stroke: COLOR.source, rx: 17 },
  ended: { stroke: COLOR.ink, "stroke-width": 3 },
  dropped: { stroke: COLOR.soft, "stroke-dasharray": "4 3" },
};
const PATH = { stroke: COLOR.target, "stroke-width": 4 };
const WIDE = 130, HIGH = 44, BOX = { width: 98, height: 34 }; // 16 units are 1rem
const TOP = 26, TREE = TOP + HIGH + 14; // the lane of greedy search, then the beams
const left = (t) => 4 + (t + 1) * WIDE;
const top_of = (row) => TREE + row * HIGH;
const middle = (t) => left(t) + BOX.width / 2;

function draw_box(t, y, label, note, outline, fill = "ink") {
  const centered = { anchor: "middle", fill, stroke: "none" };
  return [box(left(t), y, BOX.width, BOX.height, "page", 1, outline),
    text(middle(t), y + 15, short(label, 12), { size: 13, ...centered }),
    text(middle(t), y + 29, note, { size: 12, ...centered })];
}

function draw_node({ t, row, label, fate, log_prob, on_path }) {
  return draw_box(t, top_of(row), shown(label), `${WORDS[fate]} ${decimal(log_prob)}`,
    { ...OUTLINES[fate], ...(on_path && PATH) }, fate === "dropped" ? "soft" : "ink");
}

function draw_edge({ t, row, from, on_path, fate }) {
  const x = left(from.t) + BOX.width, to = left(t), half = (x + to) / 2;
  const [y, down] = [from.row, row].map((each) => top_of(each) + BOX.height / 2);
  return curve([[x, y], [half, y], [half, down], [to, down]], "source", 1.3, 1,
    { ...OUTLINES[fate], "stroke-width": 1.3, ...(on_path && PATH) });
}

/** The candidates of each step: each knows its parent, its row, and whether the
 *  translation goes through it. */
function grow({ search, tgt }) {
  let beams = [{ t: -1, row: 0, on_path: true }];
  return search.steps.map((step, t) => {
    const nodes = step.candidates.map((each, i) => {
      const from = beams[each.parent];
      return { ...each, t, i, from, on_path: from.on_path && each.token === tgt[t] };
    });
    beams = step.beams.map(({ parent, labels }) => nodes.find((each) => each.fate === "beam"
      && each.parent === parent && each.label === labels[labels.length - 1]));
    const others = nodes.filter((each) => !beams.includes(each));
    [...beams, ...others].forEach((each, row) => { each.row = row; });
    return nodes;
  });
}

export function search(app, say) {
  let columns = [], name = "", drawn = null;
  const drawing = h("div"), key = h("p", { class: "machine-note" });
  const candidates = h("table"), hypotheses = h("table", { class: "machine-figures" });
  const tree = scroller("Search tree", drawing), alpha_number = h("span");
  const alpha = h("input", { type: "range", min: -1, max: 2, step: 0.05,
    oninput: draw_hypotheses, onchange: () => say(first()) });
  const n_beams = h("select", {}, Array.from({ length: 8 }, (_, i) => e("option", {}, i + 1)));
  const again = button("", search_again);
  const is_target = ({ ids }) => String(ids) === String(app.view.tgt);
  const marked = (is) => is && e("small", {}, ` ${name}`);
  const ranked = () => app.view.search.hypotheses.map((each) => ({ ...each,
    score: each.log_prob / each.ids.length ** alpha.valueAsNumber,
  })).sort((a, b) => b.score - a.score);
  const ready = () => `Search again${app.engine ? "" : ` (loads the model, ${app.size})`}`;

  return view_of_search(app, "search", draw, tree, key,
    scroller("Candidates", candidates),
    h("h3", {}, "At the end of the search"),
    labeled("Length penalty α", alpha), alpha_number,
    scroller("Hypotheses", hypotheses),
    h("p", { class: "machine-note" }, "Score: ln p divided by length", e("sup", {}, "α"),
      ". The slider reranks what this search found; a search with another α may find others."),
    h("div", { class: "machine-row" }, labeled("Beams", n_beams), again));

  function draw_tree(at) {
    const { log_probs, tgt_labels } = app.view, n_rows = 2 * app.view.search.n_beams;
    const width = middle(at) + WIDE / 2, height = top_of(n_rows);
    const nodes = columns.slice(0, at + 1).flat().filter((each) =>
      each.t === at || each.fate !== "dropped");
    let sum = 0;
    const lane = log_probs.slice(0, at + 1).map((log_prob, t) => {
      sum += log_prob;
      return draw_box(t, TOP, shown(tgt_labels[t]), decimal(sum), { ...PATH, "stroke-width": 2 });
    });
    drawing.innerHTML = markup(picture(width, height, `The tree up to step ${at + 1}. The table ` +
      "of candidates says its last step in words.",
    box(left(at) - 10, 2, BOX.width + 20, height - 4, "hair", 0.5, { rx: 6 }),
    nodes.map(draw_edge), lane,
    text(4, TOP + 22, name === "greedy search" ? "Greedy" : "Translation",
      { size: 13, weight: 700 }),
    columns.slice(0, at + 1).map((_, t) => text(middle(t), 18, `step ${t + 1}`,
      { size: 13, anchor: "middle", weight: t === at ? 700 : 400, stroke: "none" })),
    draw_box(-1, top_of(0), "<bos>", "start", OUTLINES.beam), nodes.map(draw_node)));
    Object.assign(drawing.firstChild, { role: "img" }).style.width = `${width / 16}rem`;
    show_end(tree);
  }

  function sentence(at) {
    const count = (fate) => columns[at].filter((each) => each.fate === fate).length;
    const counts = Object.keys(WORDS).filter(count).map((fate) => `${count(fate)} ${WORDS[fate]}`);
    const end = count("beam") ? "no beam scores higher than the worst hypothesis"
      : "the text has its maximum length";
    return `Step ${at + 1}: ${counts.join(", ")}. ${where_path_is(at)}` +
      (at === columns.length - 1 ? ` The search ends: ${end}.` : "");
  }

  function where_path_is(at) { // the last of its tokens among the candidates
    const last = columns.slice(0, at + 1).flat().filter((each) => each.on_path).pop();
    const { i = 0, t = -1, fate = "dropped" } = last || {}, start = `The path of ${name}`;
    if (t === at) return `${start}: candidate ${i + 1}, ${WORDS[fate]}.`;
    if (fate === "ended") return `${start} ended at step ${t + 1}.`;
    return `${start} left the beam at step ${fate === "dropped" && last ? t + 1 : t + 2}.`;
  }

  function draw(at) {
    const { state, view } = app, { n_beams: n, length_penalty } = view.search;
    const changed = app.engine && (state.method !== "greedy" || state.forced.length);
    name = changed ? "the translation" : "greedy search";
    columns = grow(view);
    if (drawn !== view.search) { // a slider that was moved stays until there is a new search
      alpha.value = length_penalty;
      n_beams.value = n;
    }
    drawn = view.search;
    again.textContent = ready();
    draw_tree(at);
    key.textContent = "Each box: a token, and ln p, the log-probability of the text up to it, " +
      `in nats. Thick lines: the path of ${name}. With n beams, a text that ends among the ` +
      "first n candidates is a hypothesis if it’s one of the best n so far.";
    fill(candidates, { caption: `Candidates at step ${at + 1}, likeliest first`,
      head: ["Token", "Text so far", "Fate", "ln p"],
      rows: columns[at].map(({ i, label, text: words, fate, log_prob, on_path }) =>
        [`${i + 1}. ${shown(label)}`, words, [WORDS[fate], marked(on_path)], decimal(log_prob)]) },
    columns[at].map(({ on_path }) => on_path && "chosen"));
    draw_hypotheses();
    return sentence(at);
  }

  function first() {
    const { length, 0: { text: words, score } } = ranked();
    return `First of ${length}, α = ${alpha_number.textContent}: “${words}”, ${decimal(score, 3)}.`;
  }

  function draw_hypotheses() {
    const found = ranked(), { n_beams: n, length_penalty } = app.view.search;
    alpha_number.textContent = decimal(alpha.valueAsNumber);
    const beams = n === 1 ? "1 beam" : `${n} beams`;
    const caption = `Found with ${beams} and α = ${decimal(length_penalty)}, best score with ` +
      `α = ${alpha_number.textContent} first`;
    fill(hypotheses, { caption,
      head: ["Translation", "Length", "ln p", "Score"],
      rows: found.map((each, i) => [[`${i + 1}. ${each.text}`, marked(is_target(each)),
        each.finished === false && e("small", {}, " cut at the maximum length")],
      each.ids.length, decimal(each.log_prob), decimal(each.score, 3)]) },
    found.map((each) => is_target(each) && "chosen"));
  }

  async function search_again() {
    const before = app.view.search;
    const done = app.set({ n_beams: Number(n_beams.value), length_penalty: alpha.valueAsNumber });
    again.textContent = "Searching…";
    await (app.engine ? done : app.load()); // which says what went wrong
    again.textContent = ready();
    if (app.view.search !== before) say(first());
  }
}
