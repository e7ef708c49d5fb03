// @ts-check
// Texts of a desk: what is pasted, what is saved, and numbers in words.

/** @import { Part, Progress, Translated, Try } from "./types.d.ts" */

const SENTENCES = 40; // that the mistakes were tried on
const LONG = 15_000; // ms: good code takes a third of it on a slow phone

/** A text as Python wants it: four spaces for a tab, plain spaces, one kind of line end; what
 *  nobody sees is taken out @param {string} text */
export const tidied = (text) => text.replace(/\r\n?|\u2028|\u2029/g, "\n").replaceAll("\t", "    ")
  .replace(/[\u00a0\u2000-\u200a\u202f\u3000]/g, " ").replace(/[\u200b-\u200d\u2060\ufeff\u00ad]/g, "");

/** Whether two texts are the same program, up to white space at the ends of lines
 *  @param {string} one @param {string} other */
export function is_same(one, other) {
  const plain = (/** @type {string} */ text) => tidied(text).replace(/[ ]+$/gm, "").trim();
  return plain(one) === plain(other);
}

const megabytes = (/** @type {number} */ bytes) => (bytes / 1e6).toFixed(1);

/** @param {Progress} progress */
export function loading_words({ loaded, total }) {
  if (loaded >= total) return "Python is starting. It runs in this page and sends nothing.";
  return `Python is loading: ${megabytes(loaded)} of ${megabytes(total)} MB, once. ` +
    "It runs in this page and sends nothing.";
}

/** @param {number} ms */
export const seconds = (ms) => (ms < 9950 ? `${(Math.max(ms, 10) / 1000).toFixed(ms < 1000 ? 2 : 1)} s`
  : `${Math.round(ms / 1000)} s`);

/** Beside a translation, for one who sees them; what went wrong has its own place @param {Translated} found */
export function outcome(found) {
  return found.text === found.before && !found.cut ? "The same as the book’s." : "";
}

/** What would make it faster, if it was slow @param {number} ms */
export const slow_words = (ms) => (ms < LONG ? "" : "Loops over single numbers take long in the " +
  "page’s Python; what a whole tensor does at once is fast.");

/** @param {string} words */
export const capital = (words) => words.charAt(0).toUpperCase() + words.slice(1);

/** What a mistake did to this sentence and to others, and why
 *  @param {Try} tried @param {Translated} found */
export function try_words({ label, changed, why }, found) {
  const here = found.text === found.before ? "this sentence stays as it was" : "this sentence changes";
  if (changed === null) return `${capital(label)}: ${here}. ${why}`;
  const count = changed === 0 ? "none changes" : changed === 1 ? "1 changes" : `${changed} change`;
  const rest = `of ${SENTENCES} translations, ${count}`;
  return `${capital(label)}: ${here}; ${rest}. ${why}`;
}

/** A name for a file @param {Part} part @param {string} ending */
export const file_name = (part, ending) => `my_${part.name}.${ending}`;

/** The text as a file of Python with PyTorch @param {Part} part @param {string} text */
export const file_of = ({ preamble }, text) => `${preamble.trim()}\n\n\n${text.trim()}\n`;

/** The text as a notebook of one cell, below the one that fetches the library
 *  @param {Part} part @param {string} text */
export function notebook_of(part, text) {
  const cells = [part.setup, file_of(part, text)].filter(Boolean).map((source, i) => ({
    cell_type: "code", execution_count: null, id: `yours-${i}`, metadata: {}, outputs: [],
    source: source.trimEnd().split(/(?<=\n)/),
  }));
  const kernelspec = { display_name: "Python 3", language: "python", name: "python3" };
  return `${JSON.stringify({ cells, metadata: { kernelspec, language_info: { name: "python" } },
    nbformat: 4, nbformat_minor: 5 }, null, 1)}\n`;
}

/** The first "..." that stands alone in a line: the place to write at @param {string} text */
export function open_place(text) {
  const found = /^[ ]*\.\.\.[ ]*$/m.exec(text);
  if (!found) return null;
  const from = found.index + found[0].indexOf(".");
  return { from, to: from + 3 };
}
