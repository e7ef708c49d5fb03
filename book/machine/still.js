// @ts-check
// Pictures for readers without a script, for paper, and for other frontends: the same
// drawings as in the page, as text. Runs in a bare engine, without a page.

import { e, markup, shown, table_of } from "./draw.js";
import * as levels from "./levels.js";
import { unpack } from "./trace.js";

/** @param {string} stored as in the page @param {string} config of the model
 *  @param {{ at: string, step: number, word: number, tall: boolean }} how
 *  @returns {string} JSON of { svg, words, table } */
export function machine_still(stored, config, { at, step, word, tall }) {
  const sizes = JSON.parse(config), { trace, edited } = JSON.parse(stored);
  for (const each of [trace, edited]) if (each) unpack(each);
  const view = edited || trace, before = edited ? trace : null;
  const place = levels.place_of(at, sizes), level = levels.level_of(place);
  const row = place.stack === "encoder" ? word : step, how = { row, step, tall, before: null };
  const found = level < 2 ? null : view.heads[levels.name_of(place)];
  if (found && found.head !== place.head) throw new Error(`head ${place.head} is not stored at ${at}`);
  const svg = [() => levels.whole(view, { ...how, before, ids: true }), () => levels.layer(view, place, how),
    () => levels.head(view, place, found, how), () => levels.weight(view, place, found, how)][level]();
  const words = level ? "" : e("p", { class: "machine-words" }, view.tgt_labels.map((label, i) =>
    e("a", { href: `#${levels.row_id(i, tall)}`, class: i === row ? "now" : null }, shown(label))));
  return JSON.stringify({ svg: markup(svg), words: words && markup(words), table: markup(table_of(levels.table(view, place, found, how))) });
}

globalThis.machine_still = machine_still;
