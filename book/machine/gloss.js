// @ts-check
// What stands under the German of a sister model: the English word that it looked at most as it
// wrote the German one. That is a look, not a dictionary.

import { looked_at } from "./levels.js";

/** @import { Look, View } from "./types.d.ts" */

const letters_of = (/** @type {string} */ label) => label.replace(/[^\p{L}]/gu, "");

/** Words of labels, each with its first and its last piece
 *  @param {string[]} labels @returns {{ word: string, first: number, last: number }[]} */
function words_of(labels) {
  /** @type {{ word: string, first: number, last: number }[]} */
  const words = [];
  for (const [i, label] of labels.entries()) {
    const letters = label.startsWith("<") ? "" : letters_of(label), left = words.at(-1);
    if (!letters) continue;
    if (label.startsWith("▁") || !left) words.push({ word: letters, first: i, last: i });
    else Object.assign(left, { word: left.word + letters, last: i });
  }
  return words;
}

/** Each word that was written, and the word that was looked at most for its first piece
 *  @param {Look} look of the model that wrote it @returns {[string, string][]} */
export function looked_words(look) {
  const view = /** @type {View} */ ({ ...look, edits: {} }), read = words_of(look.src_labels);
  return words_of(look.tgt_labels).map(({ word, first }) => {
    const best = looked_at(view, first, look.src_labels.length).map(([, key]) =>
      read.find((each) => each.first <= key && key <= each.last)).find((each) => each);
    return [word, best ? best.word : ""];
  });
}
