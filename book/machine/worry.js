// @ts-check
// When a sentence is one that the model can't be trusted with, and what is told about it.

import { percent } from "./draw.js";
import { is_talk, language } from "./language.js";

const MANY = 1.9; // pieces a word: more than nearly every caption has
// Mean probability of the tokens: a tenth of the captions has less, and is translated much worse
const SURE = 0.55;

/** Whether no caption is like this text, of so many pieces a word, as far as that is known
 *  @param {string} text @param {number} [pieces] */
export const is_far = (text, pieces = 0) => is_talk(text) || pieces > MANY;

/** What to expect of a text that isn't translated yet; "" for nothing in particular
 *  @param {string} text @param {number} [pieces] */
export function foresee(text, pieces) {
  const found = language(text);
  const german = found === "English" ? "English: a sister model writes it in German first. " : "";
  if (found === "none") return "";
  if (found === "other") {
    return "This looks like neither German nor English, and the models know nothing else: " +
      "what they write will be made up. Type one of the two.";
  }
  if (is_talk(text)) {
    return `${german}Photo captions hardly ever say “I” or “you”, greet or ask, and the model has ` +
      "read nothing else: expect nonsense. What somebody does in a photo works.";
  }
  if (is_far(text, pieces)) {
    return `${german}Some of these words are rare in photo captions, or missing: what is written ` +
      "for them may be made up.";
  }
  if (found === "mixed") return "German and English mixed: the model reads all of it as German. " +
    "One language at a time works.";
  return /[.!?] \S/.test(text) ? `${german}Several sentences: some may be left out.` : german;
}

/** What to tell about a sentence of so many pieces a word, and of how sure it was; or ""
 *  @param {import("./types.d.ts").Reading} read @param {number} sure */
export function worry({ text, pieces }, sure) {
  const before = foresee(text, pieces);
  if (before) return before;
  if (sure >= SURE) return "";
  const advice = " German nouns begin with a capital letter, and it has learned them like that.";
  return `The model is unsure: its tokens have a probability of ${percent(sure)}, on (geometric) ` +
    `average. It knows captions of photos.${/.\p{Lu}|^\p{Lu}\S*$/u.test(text) ? "" : advice}`;
}
