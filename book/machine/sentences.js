// @ts-check
// What a step shows, in words.

import { percent, piece } from "./draw.js";
import { dealt, looked_at, middle_layer, none_of } from "./levels.js";
import { changes_of, row_of, surest } from "./state.js";

/** @import { State, View } from "./types.d.ts" */

/** @param {{ label: string, p: number }} token */
export const quoted = ({ label, p }) => `“${piece(label)}” (${percent(p)})`;

/** @type {{ [none: string]: string }} */
const LOOKS = { nothing: "couldn’t look at the German", NaN: "gave NaN for weights, which is no number",
  "not shown": "doesn’t show where it looked" };
const LITTLE = 0.05; // a second look is told from there on
const WHOLE = 0.03; // a sum of weights is 1 up to there: stored ones are rounded

/** What a step looked at most, if it could @param {View} view @param {number} step */
export const looks_of = (view, step) => looked_at(view, step, 2)
  .map(([p, key], i) => p > (i && LITTLE) && quoted({ label: view.src_labels[key], p }));

/** What the step shows, in a sentence. @param {State} state */
export function what_it_shows(state) {
  const { view, film, tall, panel } = state, row = row_of(state);
  const [first, second] = looks_of(view, row);
  const looks = [first, second].filter(Boolean).join(" and ");
  const { total, padded } = dealt(view, row), is_whole = (/** @type {number} */ sum) => Math.abs(sum - 1) < WHOLE;
  const how = row === surest(view) && view.tgt.every((_, i) => is_whole(dealt(view, i).total))
    ? ", and no other step is as sure where to look" : "";
  const [top_weight] = looked_at(view, row, 1)[0];
  const most = !is_whole(total) // what has no whole has no largest part
    ? `gave the German weights that sum to ${percent(total)}, not to 100%`
    : `looked most at ${padded > top_weight ? "padding; of the words, at " : ""}${looks}`;
  const found = first ? `${most}${padded >= LITTLE / 5 ? `; ${percent(padded)} went to padding` : ""}${how}`
    : LOOKS[none_of(top_weight)];
  const written = { label: view.tgt_labels[row], p: Math.exp(view.log_probs[row]) };
  const whole = tall && changes_of(state) && !panel ? ` The whole translation: “${view.text}”` : "";
  const layer = `the decoder’s middle layer (${middle_layer(view) + 1} of ${view.norms.decoder.length - 1})`;
  const first_of_all = film && !row ? "The German side has read: each word has looked at the others. " : "";
  return `${first_of_all}Writing ${quoted(written)}: ${layer} ${found}.${whole}`;
}
