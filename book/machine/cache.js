// @ts-check
// The key/value cache during a beam search, step by step: what is kept, what is new,
// which rows are copied when beams change parents, and what all that saves.

import { h, shown } from "./draw.js";
import { scroller } from "./kit.js";

export function cache(app, say) {
  const element = h("div", { class: "machine-cache" });
  const number = new Intl.NumberFormat("en-US");
  const millions = (n) => (n / 1e6).toFixed(1);
  let at = app.options.search_step; // the step shown
  let of_source = "";
  let rows = []; // rows[i][beam]: tokens whose keys and values step i has in its cache

  // ---- What stays: only what is inside changes, so the focus stays where it is

  const back = h("button", { type: "button", onclick: () => press(at - 1) }, "Back");
  const forward = h("button", { type: "button", onclick: () => press(at + 1) },
    "Forward");
  const place = h("span", { class: "machine-number" });
  const slider = h("input", { type: "range", min: 1, max: 1, step: 1,
    oninput: () => go(slider.valueAsNumber - 1),
    onchange: () => say(says.textContent) });
  const says = h("p", { class: "machine-says" });
  const source = h("table", { class: "machine-cache source" });
  const own = h("table", { class: "machine-cache own",
    "aria-label": "Self-attention: the target, one row for each beam" });
  const region = (label, table) =>
    scroller({ role: "region", "aria-label": label }, table);
  const own_region = region("Self-attention cache", own);
  const counters = h("div", {});
  const about_source = h("p", {});
  const nothing = h("p", { class: "machine-warning", hidden: true },
    "The causal mask is switched off, so there’s no cache: each new token also " +
    "changes what deeper layers compute for the earlier tokens, so their old keys and " +
    "values can’t be reused. Each step of this search reads all target tokens again.");
  const body = h("div", {},
    h("div", { class: "machine-row" }, back, forward,
      h("label", { class: "machine-field" }, h("span", {}, "Step"), slider, place)),
    says,
    h("h3", {}, "The cache of one decoder layer"),
    h("p", { class: "machine-note" },
      "Each cell is a key (what a query is compared with) and a value (what the position " +
      "then gives), labeled with its token. The tokens themselves aren’t stored."),
    about_source, region("Cross-attention cache", source),
    h("p", {}, "Self-attention: the target, one row for each beam"), own_region,
    h("h3", {}, "Bytes and multiplications"), counters,
    h("p", { class: "machine-note" },
      "All layers and beams together. Multiplications include those of the encoder and " +
      "the output layer. Without a cache, each step would run the encoder and read all " +
      "target tokens again."));
  element.append(nothing, body);

  // ---- Words

  function several(numbers) { // beam 2; beams 0, 1, and 3
    const text = numbers.length < 3 ? numbers.join(" and ")
      : `${numbers.slice(0, -1).join(", ")}, and ${numbers[numbers.length - 1]}`;
    return `${numbers.length === 1 ? "beam" : "beams"} ${text}`;
  }

  function moves(parents) { // "beams 1 and 3 go on from beam 0"
    return [...new Set(parents)].map((parent) => {
      const moved = [...parents.keys()].filter((beam) =>
        parents[beam] === parent && beam !== parent);
      const verb = moved.length === 1 ? "continues" : "continue";
      return moved.length ? `${several(moved)} ${verb} from beam ${parent}` : null;
    }).filter(Boolean);
  }

  function sentence(step, is_last) {
    const { n_beams } = app.view.search, n_source = app.view.src_labels.length;
    const each = n_beams === 1 ? "a key and a value" : "a key and a value for each beam";
    const made = at === 0
      ? `Step 1 fills the source block: ${n_source} columns` +
        `${n_beams === 1 ? "" : ", once for all beams"}. It also adds the first column ` +
        `of self-attention, ${each}.`
      : `Step ${at + 1} adds one new column, ${each}. Nothing for the source is ` +
        "computed again.";
    if (is_last) return `${made} Then the search ends, so no row is copied.`;
    const moved = moves(step.parents);
    if (!moved.length) {
      return made + (n_beams === 1 ? " There’s no other beam to copy from."
        : " Then each beam continues from its own row, so none is copied.");
    }
    const n = step.parents.filter((parent, beam) => parent !== beam).length;
    const copied = moved.length > 1 ? `${n} rows are` : "its row is";
    return `${made} Then ${moved.join(", ")}: ${copied} copied` +
      `${n > 1 && moved.length === 1 ? ` ${n} times` : ""}.`;
  }

  // ---- Pictures: tables whose columns are positions

  const head = (label, note) => h("th", { scope: "row" }, label,
    note ? h("small", {}, note) : null);
  const cell = (token, kind) => h("td", { class: kind }, h("span", {}, shown(token)));
  const position = (j, note) => h("th", { scope: "col" }, String(j),
    note ? h("small", {}, note) : null);
  const corner = () => h("th", { scope: "col" }, "position");

  function draw_source() {
    const { src_labels } = app.view, fresh = at === 0;
    about_source.textContent = "Cross-attention: the source, one block for all beams, " +
      (fresh ? "filled at this step" : "filled at step 1 and not touched since");
    source.setAttribute("aria-label", about_source.textContent);
    source.replaceChildren(
      h("thead", {}, h("tr", {}, corner(),
        src_labels.map((_, j) => position(j, fresh ? "new" : null)))),
      h("tbody", {}, h("tr", {}, head("all beams", fresh ? "new" : "kept"),
        src_labels.map((label) => cell(label, fresh ? "new" : null)))));
  }

  function draw_own(step, is_last) {
    const now = rows[at], next = rows[at + 1], { length } = now[0];
    const group = (text) => h("tr", {}, h("th", { scope: "rowgroup", class: "group",
      colspan: length + (is_last ? 1 : 2) }, h("span", {}, text)));
    const kept = now.map((tokens, beam) => h("tr", {},
      head(`beam ${beam}`,
        is_last || step.parents.includes(beam) ? null : "not continued"),
      tokens.map((token, j) => cell(token, j === length - 1 ? "new" : null)),
      is_last ? null : h("td")));
    const reordered = is_last ? [] : next.map((tokens, beam) => {
      const parent = step.parents[beam], copied = parent !== beam;
      return h("tr", { class: copied ? "copied" : null },
        head(`beam ${beam}`, copied ? `copy of beam ${parent}` : "stays"),
        tokens.map((token, j) => cell(token, j === length ? "open" : null)));
    });
    own.replaceChildren(
      h("thead", {}, h("tr", {}, corner(),
        now[0].map((_, j) => position(j, j === length - 1 ? "new" : null)),
        is_last ? null : position(length, "to come"))),
      h("tbody", {}, group(`In step ${at + 1}`), kept),
      is_last ? h("tbody", {}, group("The search ends: no reorder"))
        : h("tbody", {}, group(`After the reorder, for step ${at + 2}`), reordered));
    own_region.scrollLeft = own_region.scrollWidth; // the new column is the last one
  }

  // ---- Numbers

  // The totals after a step and the reorder that follows it: that one is counted in
  // what the next step reports.
  function totals(i) {
    const { steps } = app.view.search;
    if (i < 0) {
      return { n_bytes: 0, source_bytes: 0, copied: 0, multiplications: 0, without: 0 };
    }
    const { copied } = (steps[i + 1] || steps[i]).cache;
    const without = steps.slice(0, i + 1).reduce((sum, { recomputed: r }) =>
      sum + r.encoder + r.decoder + r.head, 0);
    return { ...steps[i].cache, copied, without };
  }

  function draw_counters() {
    const before = totals(at - 1), after = totals(at);
    const row = (label, name, write) => [label,
      write(after[name] - before[name]), write(after[name])];
    const bytes = (n) => number.format(n);
    const ratio = (without, cached) => (without / cached).toFixed(1);
    const lines = [
      row("Self-attention, bytes", "n_bytes", bytes),
      row("Source, bytes", "source_bytes", bytes),
      row("Copied by reorders, bytes", "copied", bytes),
      row("Multiplications with the cache, millions", "multiplications", millions),
      row("Multiplications without it, millions", "without", millions),
      ["Times as many without it",
        ratio(after.without - before.without,
          after.multiplications - before.multiplications),
        ratio(after.without, after.multiplications)],
    ];
    counters.replaceChildren(h("table", {
      class: "machine-counters", "aria-label": "Bytes and multiplications" },
      h("thead", {}, h("tr", {}, h("td"),
        h("th", { scope: "col" }, `step ${at + 1}`),
        h("th", { scope: "col" }, "so far"))),
      h("tbody", {}, lines.map(([label, ...numbers]) => h("tr", {},
        h("th", { scope: "row" }, label),
        numbers.map((text) => h("td", { class: "machine-number" }, text)))))));
  }

  // ---- From step to step

  // What each beam reads in each step, and after the last one. The engine says which
  // beam stands in which row: it is not the order of the candidates.
  function rows_of({ steps, n_beams }) {
    return [Array.from({ length: n_beams }, () => ["<bos>"]),
      ...steps.map(({ beams }) => beams.map(({ labels }) => ["<bos>", ...labels]))];
  }

  function draw() {
    const { steps } = app.view.search, step = steps[at];
    const is_last = at === steps.length - 1;
    back.setAttribute("aria-disabled", String(at === 0)); // not disabled: keeps the focus
    forward.setAttribute("aria-disabled", String(is_last));
    slider.max = steps.length;
    slider.value = at + 1;
    place.textContent = `${at + 1} of ${steps.length}`;
    slider.setAttribute("aria-valuetext", `step ${place.textContent}`);
    says.textContent = sentence(step, is_last);
    draw_source();
    draw_own(step, is_last);
    draw_counters();
  }

  function go(to) {
    at = to;
    draw();
  }

  function press(to) {
    if (to < 0 || to >= app.view.search.steps.length) return;
    go(to);
    say(says.textContent);
  }

  function refresh() {
    const { search, source } = app.view;
    if (app.panel !== "cache") return;
    if (of_source && of_source !== source) at = 0; // a new sentence starts at step 1
    of_source = source;
    body.hidden = !search;
    if (!search) return;
    const has_cache = search.steps[0].cache !== null;
    nothing.hidden = has_cache;
    body.hidden = !has_cache;
    if (!has_cache) return;
    rows = rows_of(search);
    at = Math.max(0, Math.min(at, search.steps.length - 1));
    draw();
  }
  app.on("search", refresh);
  app.on("place", refresh);

  return { place: element };
}
