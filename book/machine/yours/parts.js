// @ts-check
// The nine parts that a reader can write: whose they are, in words, and what in the picture they
// compute. Of each, transformer_book/yours/parts.py has the same two, as a test holds.

/** short: in the picture, after “yours:” @typedef {{ owned: string, boxes: string[], short: string }} Part */

/** @type {{ [name: string]: Part }} */
export const PARTS = {
  positions: { owned: "your positions", boxes: ["positions"], short: "positions" },
  attention: { owned: "your attention", boxes: ["self_attn", "cross_attn"], short: "attention" },
  heads: { owned: "your heads", boxes: ["self_attn", "cross_attn"], short: "heads" },
  masks: { owned: "your masks", boxes: ["masks"], short: "masks" },
  sublayers: { owned: "your norm, feed-forward network and residual connections",
    boxes: ["norm", "feed_forward", "residual"], short: "norm, network" },
  encoder: { owned: "your encoder layer", boxes: ["encoder"], short: "layer" },
  decoder: { owned: "your decoder layer", boxes: ["decoder"], short: "layer" },
  model: { owned: "your model", boxes: ["lm_head", "encoder", "decoder"], short: "model" },
  search: { owned: "your search", boxes: ["search"], short: "search" },
};
export const NAMES = Object.keys(PARTS);

/** @param {string[]} names */
export const in_order = (names) => NAMES.filter((name) => names.includes(name));

/** “your attention, your masks” @param {string[]} names */
export const owned = (names) => in_order(names).map((name) => PARTS[name].owned).join(", ");

/** The same parts of the book's, with one of its mistakes @param {string[]} names @param {string} trying */
export const mistaken = (names, trying) => `the book’s ${owned(names).replaceAll("your ", "")} with a mistake: “${trying}”`;

/** Whose the code is that computes something in a view: the reader's, or the book's with a mistake
 *  @param {{ trying?: string }} view @param {string[]} names */
export const whose = ({ trying }, names) => (trying ? mistaken(names, trying) : owned(names));

/** The same in a word, at its place @param {{ trying?: string }} view */
export const mark = ({ trying }) => (trying ? "changed" : "yours");

/** Those of the reader's parts in a view that compute one of these boxes
 *  @param {{ edits?: import("../types.d.ts").Edits }} view @param {string[]} boxes */
export const yours_in = ({ edits }, ...boxes) => in_order(edits?.yours || []).filter((name) =>
  PARTS[name].boxes.some((box) => boxes.includes(box)));
