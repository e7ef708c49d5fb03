// @ts-check
// Pictures for readers without a script, for paper, and for other frontends: the same
// drawings as in the page, as text. Runs in a bare engine, without a page.

import { e, is_joined, markup, shown, table_of } from "./draw.js";
import * as levels from "./levels.js";

/** @import { Inside, Vectors } from "./types.d.ts" */

/** JSON of { svg, words, table }, of what is stored as in the page and JSON of the sizes
 *  @param {string} stored @param {string} sizes
 *  @param {{ at: string, step: number, word: number, tall: boolean }} how */
export function machine_still(stored, sizes, { at, step, word, tall }) {
  const { trace, edited } = JSON.parse(stored), view = edited || trace;
  const place = levels.place_of(at, JSON.parse(sizes)), level = levels.level_of(place);
  const row = place.stack === "encoder" ? word : step;
  const how = { row, tall, before: edited ? trace : null };
  /** @type {Vectors|null} */
  const found = level < 2 ? null : view.heads[levels.name_of(place)];
  if (found ? found.head !== place.head : level === 3) {
    throw new Error(`head ${place.head} is not stored at ${at}`);
  }
  const name = tall ? "machine-tall" : "machine-wide";
  /** @type {(label: string, i: number) => Inside} */
  const word_of = (label, i) => [!is_joined(label) && " ", // where a line may end
    e("label", { class: is_joined(label) && "joined" }, e("input", { type: "radio", name,
      class: "machine-spoken", checked: i === step }), shown(label))];
  const numbers = levels.table(view, place, found, row);
  return JSON.stringify({
    svg: markup(levels.draw(view, place, found, how)),
    words: level ? "" : markup(e("p", { class: "machine-words", role: "radiogroup",
      "aria-label": "The translation, word by word" }, view.tgt_labels.map(word_of))),
    table: numbers ? markup(table_of(numbers)) : "",
  });
}

Object.assign(globalThis, { machine_still });
