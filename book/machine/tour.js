// @ts-check
// The guided tour: each caption goes to a place, says one thing, and hands over one control.

import { middle_layer, most, path_of } from "./levels.js";
import { row_of } from "./state.js";

/** @import { State } from "./types.d.ts" */

/** The path of the machine, of a layer in the middle of the decoder, of a head, or a weight.
 *  @param {State} state @param {number} level */
function clearest(state, level) {
  const { view } = state, layer = middle_layer(view), name = `decoder.layers.${layer}.cross_attn`;
  const cut = view.edits.without?.[name] || [], stored = view.heads?.[name]?.head ?? 0;
  const head = [stored, ...view.maps[name].keys()].find((each) => !cut.includes(each)) ?? 0;
  const [[, key]] = most(view.maps[name][head], row_of(state), view.src_labels.length, 1);
  return path_of({ stack: "decoder", layer, kind: "cross_attn", head, key }, level);
}

/** Where a caption goes @param {State} state @param {number} number */
export function path_on_tour(state, number) {
  const { path, level = 0 } = TOUR[number];
  return path || clearest(state, level);
}

/** @type {{ level?: number, path?: string, control: string, words: string, chapter: string,
 *    href: string }[]} */
export const TOUR = [
  { level: 0, control: ".machine-controls button",
    words: "German goes in, in blue, and English comes out, in brown, word by word: press Play.",
    chapter: "Chapter 8 builds it all.", href: "08_full_transformer.html" },
  { level: 0, control: ".machine-stage",
    words: "Each German word, or piece of one, is a strand, and where strands cross, words " +
      "look at one another: open a layer.",
    chapter: "Chapter 6 writes the encoder.", href: "06_encoder.html" },
  { level: 0, control: ".machine-stage",
    words: "The green band is all that the brown side ever learns of the German: follow the " +
      "green strands to the words that were looked at.",
    chapter: "Chapter 7 connects the two sides.", href: "07_decoder_and_cross_attention.html" },
  { level: 0, control: ".machine-controls input",
    words: "The future does not exist yet: a brown strand appears only when its word is written, " +
      "so move the slider back and watch strands go.",
    chapter: "Chapter 4 explains the mask.", href: "04_masks.html" },
  { level: 1, control: ".machine-stage",
    words: "A layer looks twice and then thinks: eight heads at its own words, eight at the " +
      "German ones, and a small network: open a head.",
    chapter: "Chapter 3 writes the heads.", href: "03_multi_head_attention.html" },
  { level: 2, control: ".machine-stage",
    words: "A head asks with a query, every German word holds out a key, and the better the " +
      "match, the more of its value is handed on: open a row.",
    chapter: "Chapter 2 writes this function.", href: "02_scaled_dot_product_attention.html" },
  { level: 3, control: ".machine-up",
    words: "And this is one weight: multiply number by number, add up, divide, compare; there " +
      "is nothing below this, so go back up.",
    chapter: "Chapter 2 does it by hand.", href: "02_scaled_dot_product_attention.html" },
  { path: "/operate", control: ".machine-operate",
    words: "Now break it: hide a word, remove a head, cut a layer, and see what moves below.",
    chapter: "Chapter 14 asks what that proves.", href: "14_reading_attention.html" },
];
