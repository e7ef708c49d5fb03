// @ts-check
// What several views need.

import { element, h, table_of } from "./draw.js";

/** A region that may be too small for what is in it. */
export const scroller = (label, ...inside) => h("div", { class: "machine-scroll", tabindex: 0,
  role: "region", "aria-label": label }, ...inside);

/** What is new stands at the right: seen when it is laid out. */
export const show_end = (region) => requestAnimationFrame(() => {
  region.scrollLeft = region.scrollWidth;
});

export const button = (words, onclick, more = {}) =>
  h("button", { type: "button", onclick, ...more }, words);

/** Buttons in a row, made anew: [words, act, attributes] for each. A focus in it stays in it. */
export function refill(row, items, current = -1) {
  const at = [...row.querySelectorAll("button")].indexOf(document.activeElement);
  const made = items.map(([words, act, more], i) => button(words, act,
    { ...(current >= 0 && { "aria-pressed": String(i === current),
      tabindex: i === current ? 0 : -1 }), ...more }));
  row.replaceChildren();
  for (const each of made) { // no line breaks before what is joined
    if (each.matches(".joined") && row.lastChild) row.lastChild.append(each);
    else row.append(h("span", {}, each));
  }
  const heir = at >= 0 && made[current < 0 ? Math.min(at, items.length - 1) : current];
  if (heir) heir.focus({ preventScroll: true });
}

export const labeled = (words, ...inside) => h("label", { class: "machine-switch" }, words, inside);

export const is_still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

export const load_button = (app) => button(`Load the model (${app.size})`, () => app.load());

/** A view of the search, at the page's step: draw(at) draws it and returns its sentence. */
export function view_of_search(app, name, draw, ...inside) {
  const says = h("p", { class: "machine-says" }), body = h("div", {}, says, inside);
  const none = h("p", { class: "machine-note" });
  const refresh = () => {
    if (app.panel !== name) return;
    none.hidden = Boolean(app.view.search);
    body.hidden = !none.hidden;
    none.textContent = app.engine ? "Searching…"
      : "The search comes with the model: load it with a sentence.";
    says.textContent = none.hidden ? draw(app.row) : "";
  };
  app.on("place", refresh); // and now, since a panel is made on the way to its place
  return h("div", { class: `machine-${name}` }, body, none);
}

/** New contents for a table that stays; each row can have a class. */
export function fill(table, found, classes) {
  table.replaceChildren(...element(table_of(found)).children);
  [...table.tBodies[0].rows].forEach((row, i) => { row.className = classes[i] || ""; });
}
