// @ts-check
// The view "Cache": the key/value cache during a beam search, step by step: what is kept, what is new,
// which rows are copied when beams change parents, and what all that saves.

import { decimal, e, h, shown, sum_of } from "./draw.js";
import { fill, scroller, show_end, view_of_search } from "./kit.js";

/** @import { Found, State } from "./types.d.ts" */
/** @typedef {Found["steps"]} Steps */
/** @typedef {typeof NOTHING} Counts */

const NOTHING = { n_bytes: 0, source_bytes: 0, multiplications: 0, without: 0 };
const NAMES = /** @type {(keyof Counts)[]} */ (Object.keys(NOTHING));
/** @param {Steps[number]} step */
const parents_of = ({ beams }) => beams.map(({ parent }) => parent);
const head = (/** @type {string[]} */ tokens) => ["position", ...tokens.map((_, i) => i + 1)]; // columns are positions

/** All that was kept and multiplied up to a step @param {Steps} steps @param {number} i */
export function counts_after(steps, i) {
  if (i < 0) return NOTHING;
  const without = sum_of(steps.slice(0, i + 1).flatMap((each) => Object.values(each.recomputed)));
  return { ...NOTHING, ...steps[i].cache, without };
}

export function cache() {
  const source = h("table", { class: "machine-cells source" });
  const own = h("table", { class: "machine-cells" });
  const counters = h("table", { class: "machine-figures" });
  const own_region = scroller("Self-attention cache", own);
  const contents = h("div", {}, h("h3", {}, "The cache of one decoder layer"),
    h("p", { class: "machine-note" }, "Each cell is a key and a value, labeled with the token " +
      "that they were computed from. The tokens themselves aren’t stored."),
    scroller("Cross-attention cache", source), own_region, scroller("Counters", counters),
    h("p", { class: "machine-note" }, "Multiplications include those of the encoder and of the " +
      "output layer. Without a cache, each step runs the encoder and reads all tokens again."));
  return view_of_search("cache", draw, contents);

  /** @param {State} state @param {Found} found @param {number} at */
  function draw({ view }, { steps }, at) {
    const step = steps[at], n = at + 1, is_last = n === steps.length;
    contents.hidden = !step.cache;
    if (!step.cache && view.edits.yours) {
      return `Step ${n} reads all tokens of each beam: with ${view.trying ? "a mistake" : "code of yours"}, there’s no cache.`;
    }
    if (!step.cache) {
      return `Step ${n} reads all tokens of each beam. With the causal mask off, there’s no cache: ` +
        "a new token changes the keys and values of earlier ones in deeper layers.";
    }
    const tokens = view.src_labels.map(shown);
    fill(source, { caption: "Cross-attention: the source",
      head: head(tokens), rows: [["all beams", ...tokens]] }, [at === 0 && "new"]);
    draw_own(steps, at, is_last);
    draw_counters(steps, at);
    const copies = parents_of(step).map((parent, beam) =>
      parent !== beam && `${parent + 1} to ${beam + 1}`).filter(Boolean);
    const made = at ? `Step ${n} adds one column to each beam; the source’s block stays.`
      : "Step 1 fills the source’s block, once for all beams, and each beam’s first column.";
    if (is_last) return `${made} Then the search ends.`;
    return `${made} Then ` + (copies.length ? `beams are copied: ${copies.join(", ")}.`
      : "each beam goes on from its own row: nothing is copied.");
  }

  /** What each beam has read, and its rows after the copies, as the engine has them
   *  @param {Steps} steps @param {number} at @param {boolean} is_last */
  function draw_own(steps, at, is_last) {
    const parents = parents_of(steps[at]), rows = parents.map((_, beam) =>
      ["<bos>", ...(at ? steps[at - 1].beams[beam].labels : [])].map(shown));
    const after = is_last ? [] : parents.map((parent, beam) =>
      [`beam ${beam + 1}${parent === beam ? "" : `, from ${parent + 1}`}`, ...rows[parent]]);
    fill(own, { caption: "Self-attention: the target", head: head(rows[0]),
      rows: [...rows.map((row, beam) => [`beam ${beam + 1}`, ...row]),
        ...(is_last ? [] : [[e("b", {}, `For step ${at + 2}`)]]), ...after] },
    [...rows.map(() => "grown"), "",
      ...parents.map((parent, beam) => parent !== beam && "copied")]);
    show_end(own_region);
  }

  /** @param {Steps} steps @param {number} at */
  function draw_counters(steps, at) {
    const before = counts_after(steps, at - 1), after = counts_after(steps, at);
    const now = { ...NOTHING };
    for (const name of NAMES) now[name] = after[name] - before[name];
    /** @type {(label: string, write: (of: Counts) => string) => string[]} */
    const row = (label, write) => [label, write(now), write(after)];
    const bytes = (/** @type {number} */ n) => n.toLocaleString("en-US");
    const millions = (/** @type {number} */ n) => decimal(n / 1e6, 1);
    fill(counters, { caption: "All layers and beams together",
      head: ["", `Step ${at + 1}`, "So far"],
      rows: [
        row("Bytes for the target", (of) => bytes(of.n_bytes)),
        row("Bytes for the source", (of) => bytes(of.source_bytes)),
        row("Million multiplications", (of) => millions(of.multiplications)),
        row("The same without a cache", (of) => millions(of.without)),
      ] }, []);
  }
}
