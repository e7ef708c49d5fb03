// @ts-check
// When a sentence is one that the model can't be trusted with, and what is told about it.

import { percent } from "./draw.js";

const MANY = 1.9; // pieces a word: more than nearly every caption has
// Mean probability of the tokens: a tenth of the captions has less, and is translated much worse
const SURE = 0.55;
const ENGLISH = /\b(a|the|is|are|and|of|with|this)\b/i; // no German words

/** What to tell about a sentence of so many pieces a word, and of how sure it was; or ""
 *  @param {import("./types.d.ts").Reading} read @param {number} sure */
export function worry({ text, pieces }, sure) {
  if (ENGLISH.test(text)) return "This looks like English, and the model reads German.";
  if (pieces > MANY) {
    return `This has ${pieces.toFixed(1)} pieces per word, more than nearly all captions that the ` +
      "model learned from: don’t trust what it writes.";
  }
  if (/[.!?] \S/.test(text)) return "Several sentences: the model may leave some of them out.";
  if (sure >= SURE) return "";
  const advice = " German nouns begin with a capital letter, and it has learned them like that.";
  return `The model is unsure: its tokens have a probability of ${percent(sure)}, on (geometric) ` +
    `average. It knows captions of photos.${/.\p{Lu}|^\p{Lu}\S*$/u.test(text) ? "" : advice}`;
}
