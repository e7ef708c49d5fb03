// @ts-check
// The address of a view, #machine/decoder/1?…: the place, and what of the state isn't as at first.
// An address can be anybody's: what it holds is checked.

import { START, SWITCHES, where_to } from "./state.js";

/** @import { Asked, Config, State } from "./types.d.ts" */
/** @typedef {{ config: Config, attentions: string[] }} Model what it has, by names and numbers */

/** @param {State} state */
export function address_of(state) {
  const { attempt, trying } = START, edits = { ...state.asked.edits, yours: undefined }; // no code of a reader's
  const changed = Object.entries({ ...state.asked, edits, attempt, trying }).filter(([name, value]) =>
    JSON.stringify(value) !== JSON.stringify(START[/** @type {keyof Asked} */ (name)]));
  const text = JSON.stringify(Object.fromEntries(changed));
  return `#machine${where_to(state)}${changed.length ? `?${encodeURIComponent(text)}` : ""}`;
}

/** What an address says: the path and the text of a state, which is "" for none; null where it
 *  says nothing of the machine @param {string} hash */
export function read_address(hash) {
  const [is_own, path = "", text = ""] = hash.match(/^#machine(\/[^?]*)?(?:\?(.*))?$/) || [];
  if (is_own) return { path, text };
  return hash.startsWith("#machine") ? { path: "", text: "" } : null;
}

/** A text that an address brings @param {string} text @param {Model} model @returns {Partial<Asked>} */
export const asked_in = (text, model) => checked(JSON.parse(decodeURIComponent(text)), model);

/** What the state may become, if all of it makes sense; code of the reader's comes from the tab alone
 *  @param {object} values @param {Model} model @param {string[]} [parts] that the reader has written
 *  @returns {Partial<Asked>} */
export function checked(values, model, parts = []) {
  for (const [name, value] of Object.entries(values)) {
    if (!Object.hasOwn(ALLOWED, name) || !ALLOWED[name](value, model, parts)) {
      throw new Error(`${name} can’t be ${JSON.stringify(value).slice(0, 80)}`);
    }
  }
  return values;
}

/** @param {number} least @param {number} most @returns {(x: unknown) => boolean} */
const whole = (least, most) => (x) => Number.isInteger(x) && between(least, most)(x);
/** @param {number} least @param {number} most @returns {(x: unknown) => boolean} */
const between = (least, most) => (x) => typeof x === "number" && least <= x && x <= most;
const is_text = (/** @type {unknown} */ x) => typeof x === "string" && x.length <= 5000;
/** @param {unknown} list @param {number} end */
const ids = (list, end) => Array.isArray(list)
  && list.every((id) => Number.isInteger(id) && id >= 0 && id < end);

/** @param {unknown} edits @param {Model} model @param {string[]} parts */
function is_edits(edits, { config, attentions }, parts) {
  if (!(edits instanceof Object) || Array.isArray(edits)) return false;
  return Object.entries(edits).every(([name, value]) => {
    if (name === "hide") return ids(value, config.max_len);
    if (name === "yours") return Array.isArray(value) && value.length > 0 && value.every((part) => parts.includes(part));
    if (name !== "without") return typeof value === "boolean" && Object.hasOwn(SWITCHES, name);
    return value && Object.entries(value).every(([attention, heads]) =>
      attentions.includes(attention) && ids(heads, config.n_heads));
  });
}

/** @type {{ [name: string]: (value: unknown, model: Model, parts: string[]) => boolean }} */
const ALLOWED = {
  step: whole(0, 200), word: whole(0, 200), text: is_text, reference: is_text, english: is_text,
  choice: is_text, edits: is_edits,
  forced: (x, { config }) => ids(x, config.tgt_vocab_size),
  method: (x) => x === "greedy" || x === "sample", n_beams: whole(1, 8),
  length_penalty: between(-1, 2), temperature: between(0.1, 3), top_p: between(0.05, 1),
  seed: whole(0, 2 ** 31),
};
