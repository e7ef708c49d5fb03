// @ts-check
// What several parts of the page need.

import { h, table_of } from "./draw.js";
import { row_of } from "./state.js";

/** @import { Attributes, Draw, Found, Inside, State, Table } from "./types.d.ts" */

/** Draw only where one of these has changed, of all that a part of the page shows
 *  @param {(state: State) => unknown[]} shows @param {Draw} draw @returns {Draw} */
export function when_changed(shows, draw) {
  let drawn = /** @type {unknown[]|null} */ (null);
  return (state, ...more) => {
    const old = drawn, now = drawn = shows(state);
    if (!old || now.some((x, i) => x !== old[i])) draw(state, ...more);
  };
}

/** @param {Draw[]} draws @returns {Draw} */
export const together = (...draws) => (...now) => draws.forEach((draw) => draw(...now));

/** An element that has to be there
 *  @param {Element} inside @param {string} selector @returns {HTMLElement} */
export function find(inside, selector) {
  const found = inside.querySelector(selector);
  if (!found) throw new Error(`there is no ${selector}`);
  return /** @type {HTMLElement} */ (found);
}

/** An id that no other machine of the page has @param {string} name */
export function id_of(name) {
  const n = (N_IDS.get(name) || 0) + 1;
  N_IDS.set(name, n);
  return n > 1 ? `${name}-${n}` : name;
}
const N_IDS = /** @type {Map<string, number>} */ (new Map());

/** The focus, on the first of these that is to be seen @param {HTMLElement[]} places */
export const focus = (...places) =>
  places.find((place) => place.checkVisibility())?.focus({ preventScroll: true });

/** A region that may be too small for what is in it.
 *  @param {string} label @param {Inside[]} inside */
export const scroller = (label, ...inside) => h("div", { class: "machine-scroll", tabindex: 0,
  role: "region", "aria-label": label }, ...inside);

/** What is new stands at the right: seen when it is laid out. @param {HTMLElement} region */
export const show_end = (region) => requestAnimationFrame(() => {
  region.scrollLeft = region.scrollWidth;
});

/** @param {Inside} words @param {(event: Event) => unknown} onclick @param {Attributes} more */
export const button = (words, onclick, more = {}) =>
  h("button", { type: "button", onclick, ...more }, words);

/** Buttons in a row, made anew: [words, act, attributes] for each. A focus in it stays in it.
 *  @param {HTMLElement} row @param {[string, () => unknown, Attributes][]} items */
export function refill(row, items, current = -1) {
  const at = [...row.querySelectorAll("button")].findIndex((each) => each === document.activeElement);
  const made = items.map(([words, act, more], i) => button(words, act,
    { ...(current >= 0 && { "aria-pressed": String(i === current),
      tabindex: i === current ? 0 : -1 }), ...more }));
  row.replaceChildren();
  for (const each of made) { // no line breaks before what is joined
    if (each.matches(".joined") && row.lastChild) row.lastChild.appendChild(each);
    else row.append(h("span", {}, each));
  }
  const heir = at >= 0 && made[current < 0 ? Math.min(at, items.length - 1) : current];
  if (heir) heir.focus({ preventScroll: true });
}

/** @param {Inside} words @param {Inside[]} inside */
export const labeled = (words, ...inside) => h("label", { class: "machine-switch" }, words, inside);

export const is_still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/** New contents for a table that stays; each row can have a class.
 *  @param {HTMLTableElement} table @param {Table} found @param {(string|false|undefined)[]} classes */
export function fill(table, found, classes) {
  table.replaceChildren(...h("table", {}, table_of(found).children).children);
  [...table.tBodies[0].rows].forEach((row, i) => { row.className = classes[i] || ""; });
}

/** A view of the search, at the page's step: draw draws it and returns its sentence.
 *  @param {string} name
 *  @param {(state: State, search: Found, at: number) => string} draw @param {Inside[]} inside */
export function view_of_search(name, draw, ...inside) {
  const says = h("p", { class: "machine-says" }), body = h("div", {}, says, inside);
  const none = h("p", { class: "machine-note" });
  const element = h("div", { class: `machine-${name}` }, body, none);
  const redraw = when_changed((state) => [state.panel === name, state.search, state.view,
    state.is_ready, row_of(state)], (state) => {
    if (state.panel !== name) return;
    none.hidden = Boolean(state.search);
    body.hidden = !none.hidden;
    none.textContent = state.is_ready ? "Searching…" : "The search comes with the model.";
    says.textContent = state.search ? draw(state, state.search, row_of(state)) : "";
  });
  return { element, draw: redraw };
}
