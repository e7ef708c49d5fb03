// @ts-check
// Where we are in the machine: its views, and the way down to a weight.

import { h, shown } from "./draw.js";
import { find, when_changed } from "./kit.js";
import { ATTENTIONS, keys_of, level_of, path_of } from "./levels.js";
import { row_of, VIEWS } from "./state.js";

/** @import { Attributes, Place, State } from "./types.d.ts" */

/** What each level on the way is called @param {State} state */
function names_of(state) {
  const { place, view } = state, { stack, layer, kind, head } = place;
  const keys = keys_of(place, view, row_of(state)), at = Math.min(place.key, keys.length - 1);
  return ["the machine", `${stack}, layer ${layer + 1}`, `${ATTENTIONS[kind]}, head ${head + 1}`,
    `its weight for “${shown(keys[at] || "")}”`].slice(0, level_of(place) + 1);
}

/** The same for those who listen @param {State} state */
export const where_of = (state) =>
  VIEWS[state.panel] || names_of(state).slice(Math.min(1, level_of(state.place))).join(", ");

export function crumbs() {
  const views = h("nav", { class: "machine-views", "aria-label": "Views of the machine" },
    Object.entries({ "": "The machine", ...VIEWS }).map(([view, name]) =>
      h("a", { href: `#machine${view && `/${view}`}`, "data-view": view }, name)));
  const way = h("nav", { class: "machine-crumbs", "aria-label": "Where we are in the machine" });

  /** @param {Place} place @param {number} level @param {string} words @param {Attributes} [more] */
  const link = (place, level, words, more) =>
    h("a", { href: `#machine${path_of(place, level)}`, ...more }, words);

  const draw = when_changed((state) => [state.place, state.panel, state.view, row_of(state)], (state) => {
    const { place, panel } = state, level = level_of(place);
    way.replaceChildren(...names_of(state).flatMap((name, i) => [i ? " › " : "",
      link(place, i, name, { "aria-current": i === level && "true" })]),
    link(place, Math.max(0, level - 1), "Up", { class: "machine-up" }));
    way.hidden = !level;
    for (const view of views.querySelectorAll("a")) {
      view.ariaCurrent = view.dataset.view === panel ? "page" : null;
    }
  });
  return { views, way, up: () => find(way, ".machine-up").click(), draw };
}
