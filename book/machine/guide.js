// @ts-check
// The guided tour: eight captions. Each goes to a place, says one thing, and hands over one
// control; its chapter is where the reader writes that part.

import { most, n_layers, path_of } from "./levels.js";

const clearest = (app) => { // a head of the middle cross-attention, and what it looks at
  const { view, row } = app, layer = n_layers(view, "decoder") >> 1;
  const name = `decoder.layers.${layer}.cross_attn`, n = view.src_labels.length;
  const kept = (view.heads || {})[name];
  const head = kept ? kept.head : 0;
  const [[, key]] = most(view.maps[name][head], row, n, 1);
  return { stack: "decoder", layer, kind: "cross_attn", head, key };
};
const step = 0.75; // of the way through the translation

/** @type {{ go: (app: any) => string, words: string, control: string, chapter: string,
 *  href: string, step?: number }[]} */
export const GUIDE = [
  { go: () => "", words: "A German sentence goes in on the left, and English comes out on the right, one word at a time: press Play.",
    control: ".machine-controls button", chapter: "Chapter 8 builds it all.", href: "08_full_transformer.html", step: 0 },
  { go: () => "", words: "Each German word is a strand that keeps its lane, and where strands cross, words look at one another: point at a word to see where it looks.",
    control: ".lanes", chapter: "Chapter 6 writes the encoder.", href: "06_encoder.html", step },
  { go: () => "", words: "The green band is all that the right side ever learns of the German: follow the green strands to the words that were looked at.",
    control: ".machine-stage", chapter: "Chapter 7 connects the two sides.", href: "07_decoder_and_cross_attention.html", step },
  { go: () => "", words: "The future does not exist yet: a row appears only when its word is written, so move the slider back and watch rows go.",
    control: ".machine-controls input", chapter: "Chapter 4 explains the mask.", href: "04_masks.html", step },
  { go: (app) => path_of({ ...clearest(app), kind: "", head: -1, key: -1 }), words: "A layer looks twice and then thinks: eight heads at its own words, eight at the German ones, and a small network: open a head.",
    control: ".machine-stage", chapter: "Chapter 3 writes the heads.", href: "03_multi_head_attention.html", step },
  { go: (app) => path_of({ ...clearest(app), key: -1 }), words: "A head asks with a query, every German word holds out a key, and the better the match, the more of its value is handed on: open a row.",
    control: ".machine-stage", chapter: "Chapter 2 writes this function.", href: "02_scaled_dot_product_attention.html", step },
  { go: (app) => path_of(clearest(app)), words: "And this is one weight: multiply number by number, add up, divide, compare; there is nothing below this, so go back up.",
    control: ".machine-up", chapter: "Chapter 2 does it by hand.", href: "02_scaled_dot_product_attention.html", step },
  { go: () => "/operate", words: "Now break it: hide a word, cut a layer, switch off the order of the words, and see which numbers move.",
    control: ".machine-operate", chapter: "Chapter 14 asks what that proves.", href: "14_reading_attention.html", step },
];
