// @ts-check
// Beam search as a tree, beside the path that greedy search takes: its nodes, its drawing, and
// what a step of it says. Nothing here reads the page.

import { box, COLOR, curve, decimal, picture, short, shown, text } from "./draw.js";

/** @import { Attributes, Fate, Found, Inside, View } from "./types.d.ts" */
/** @import { Color } from "./draw.js" */

/** Where a node grows from @typedef {{ t: number, row: number, on_path: boolean }} Origin */
/** A candidate of step t, in a row of its column
 *  @typedef {Found["steps"][number]["candidates"][number] & Origin & { i: number, from: Origin }} Node */

/** @type {{ [fate in Fate]: string }} */
export const WORDS = { beam: "kept", ended: "ended", dropped: "dropped" };
const FATES = /** @type {Fate[]} */ (Object.keys(WORDS));
const OUTLINES = {
  beam: { stroke: COLOR.source, rx: 17 },
  ended: { stroke: COLOR.ink, "stroke-width": 3 },
  dropped: { stroke: COLOR.soft, "stroke-dasharray": "4 3" },
};
const PATH = { stroke: COLOR.target, "stroke-width": 4 };
const WIDE = 130, HIGH = 44, BOX = { width: 98, height: 34 }; // 16 units are 1rem
const TOP = 26, TREE = TOP + HIGH + 14; // the lane of greedy search, then the beams
const left = (/** @type {number} */ t) => 4 + (t + 1) * WIDE;
const top_of = (/** @type {number} */ row) => TREE + row * HIGH;
const middle = (/** @type {number} */ t) => left(t) + BOX.width / 2;

/** The candidates of each step: each knows its parent, its row, and whether the
 *  translation goes through it.
 *  @param {Found} search @param {number[]} tgt */
export function grow(search, tgt) {
  let beams = /** @type {Origin[]} */ ([{ t: -1, row: 0, on_path: true }]);
  return search.steps.map((step, t) => {
    const nodes = step.candidates.map((each, i) => {
      const from = beams[each.parent];
      /** @type {Node} */
      const node = { ...each, t, i, row: 0, from, on_path: from.on_path && each.token === tgt[t] };
      return node;
    });
    const kept = step.beams.map(({ parent, labels }) => {
      const found = nodes.find((each) => each.fate === "beam" && each.parent === parent
        && each.label === labels[labels.length - 1]);
      if (!found) throw new Error(`beam ${parent} is no candidate of step ${t + 1}`);
      return found;
    });
    const others = nodes.filter((each) => !kept.includes(each));
    [...kept, ...others].forEach((each, row) => { each.row = row; });
    beams = kept;
    return nodes;
  });
}

/** @param {number} t @param {number} y @param {string} label @param {string} note
 *  @param {Attributes} outline @param {Color} fill */
function draw_box(t, y, label, note, outline, fill = "ink") {
  const centered = { anchor: "middle", fill, stroke: "none" };
  return [box(left(t), y, BOX.width, BOX.height, "page", 1, outline),
    text(middle(t), y + 15, short(label, 12), { size: 13, ...centered }),
    text(middle(t), y + 29, note, { size: 12, ...centered })];
}

/** @param {Node} node */
function draw_node({ t, row, label, fate, log_prob, on_path }) {
  return draw_box(t, top_of(row), shown(label), `${WORDS[fate]} ${decimal(log_prob)}`,
    { ...OUTLINES[fate], ...(on_path && PATH) }, fate === "dropped" ? "soft" : "ink");
}

/** @param {Node} node */
function draw_edge({ t, row, from, on_path, fate }) {
  const x = left(from.t) + BOX.width, to = left(t), half = (x + to) / 2;
  const [y, down] = [from.row, row].map((each) => top_of(each) + BOX.height / 2);
  return curve([[x, y], [half, y], [half, down], [to, down]], "source", 1.3, 1,
    { ...OUTLINES[fate], "stroke-width": 1.3, ...(on_path && PATH) });
}

/** The tree up to a step, and above it the lane of the translation that is shown
 *  @param {Node[][]} columns @param {number} at @param {View} view @param {string} lane_name */
export function draw_tree(columns, at, { log_probs, tgt_labels }, lane_name) {
  const n_rows = Math.max(...columns.map((nodes) => nodes.length));
  const width = width_of(at), height = top_of(n_rows);
  const nodes = columns.slice(0, at + 1).flat().filter((each) =>
    each.t === at || each.fate !== "dropped");
  let sum = 0;
  const lane = log_probs.slice(0, at + 1).map((log_prob, t) => {
    sum += log_prob;
    return draw_box(t, TOP, shown(tgt_labels[t]), decimal(sum), { ...PATH, "stroke-width": 2 });
  });
  return picture(width, height, `The tree up to step ${at + 1}. The table ` +
    "of candidates says its last step in words.",
  box(left(at) - 10, 2, BOX.width + 20, height - 4, "hair", 0.5, { rx: 6 }),
  nodes.map(draw_edge), lane,
  text(4, TOP + 22, lane_name, { size: 13, weight: 700 }),
  columns.slice(0, at + 1).map((_, t) => text(middle(t), 18, `step ${t + 1}`,
    { size: 13, anchor: "middle", weight: t === at ? 700 : 400, stroke: "none" })),
  draw_box(-1, top_of(0), "<bos>", "start", OUTLINES.beam), nodes.map(draw_node));
}

/** @param {number} at */
export const width_of = (at) => middle(at) + WIDE / 2;

/** What a step says; name: of the path that is followed
 *  @param {Node[][]} columns @param {number} at @param {string} name */
export function sentence(columns, at, name) {
  const count = (/** @type {Fate} */ fate) => columns[at].filter((each) => each.fate === fate).length;
  const counts = FATES.filter(count).map((fate) => `${count(fate)} ${WORDS[fate]}`);
  const end = count("beam") ? "no beam scores higher than the worst hypothesis"
    : "the text has its maximum length";
  return `Step ${at + 1}: ${counts.join(", ")}. ${where_path_is(columns, at, name)}` +
    (at === columns.length - 1 ? ` The search ends: ${end}.` : "");
}

/** The last of its tokens among the candidates
 *  @param {Node[][]} columns @param {number} at @param {string} name */
function where_path_is(columns, at, name) {
  const last = columns.slice(0, at + 1).flat().filter((each) => each.on_path).pop();
  const { i = 0, t = -1, fate = "dropped" } = last || {}, start = `The path of ${name}`;
  if (t === at) return `${start}: candidate ${i + 1}, ${WORDS[fate]}.`;
  if (fate === "ended") return `${start} ended at step ${t + 1}.`;
  return `${start} left the beam at step ${fate === "dropped" && last ? t + 1 : t + 2}.`;
}
