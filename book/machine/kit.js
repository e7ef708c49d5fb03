// @ts-check
// What several views need.

import { element, h, table_of } from "./draw.js";

/** A region that may be too small for what is in it. @param {string} label */
export const scroller = (label, ...inside) => h("div", { class: "machine-scroll", tabindex: 0,
  role: "region", "aria-label": label }, ...inside);

/** What is new stands at the right: seen when it is laid out. */
export const show_end = (region) => requestAnimationFrame(() => {
  region.scrollLeft = region.scrollWidth;
});

export const button = (words, onclick, more = {}) =>
  h("button", { type: "button", onclick, ...more }, words);

export const toolbar = (label, more = "") => h("div",
  { class: `machine-words${more}`, role: "toolbar", "aria-label": label });

/** Buttons in a row, made anew: [words, act, attributes] for each. A focus that was in the row
 *  goes to the current one, else it keeps its place; false if there is no place for it. */
export function refill(row, items, current = -1) {
  const at = [...row.children].indexOf(document.activeElement);
  row.replaceChildren(...items.map(([words, act, more], i) => button(words, act,
    { ...(current >= 0 && { "aria-pressed": String(i === current),
      tabindex: i === current ? 0 : -1 }), ...more })));
  if (at < 0) return true;
  const heir = row.children[current < 0 ? Math.min(at, items.length - 1) : current];
  heir?.focus({ preventScroll: true });
  return Boolean(heir);
}

export const labeled = (words, ...inside) =>
  h("label", { class: "machine-switch" }, words, ...inside);

export const is_still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

export const load_button = (app, words = "Load the model") =>
  button(`${words} (${app.size})`, () => app.load());

/** A view of the search, step by step: buttons, a slider, a sentence, and what is inside.
 *  @param {any} app @param {(words: string) => void} say @param {string} name of the panel
 *  @param {(at: number) => string} draw draws a step and returns its sentence */
export function stepped(app, say, name, draw, ...inside) {
  let at = app.options.search_step, of_source = app.view.source;
  const back = button("Back", () => press(-1)), forward = button("Forward", () => press(1));
  const slider = h("input", { type: "range", min: 1, max: 1,
    oninput: () => go(slider.valueAsNumber - 1) });
  const number = h("span", { class: "machine-number" }), says = h("p", { class: "machine-says" });
  const body = h("div", {}, h("div", { class: "machine-row" }, back, forward,
    labeled("Step", slider), number), says, inside);
  const none = h("p", { class: "machine-note" },
    "The search comes with the model: load it with a sentence.");
  const place = h("div", { onkeydown: keys }, body, none);

  function go(to) {
    const n = app.view.search.steps.length;
    at = Math.max(0, Math.min(to, n - 1));
    says.textContent = draw(at);
    slider.max = n;
    slider.value = at + 1;
    slider.setAttribute("aria-valuetext", says.textContent);
    number.textContent = `${at + 1} of ${n}`;
    back.setAttribute("aria-disabled", String(at === 0)); // not disabled: keeps the focus
    forward.setAttribute("aria-disabled", String(at === n - 1));
  }

  function press(by) {
    if (!app.view.search.steps[at + by]) return;
    go(at + by);
    say(says.textContent);
  }

  function keys(event) { // here they are steps of the search, not of the translation
    event.stopPropagation();
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (by && [back, forward].includes(event.target)) press(by);
  }

  function refresh() {
    const { search, source } = app.view;
    if (app.panel !== name) return;
    body.hidden = !search;
    none.hidden = Boolean(search);
    if (of_source !== source) at = 0; // a new sentence starts at step 1
    of_source = source;
    if (search) go(at);
  }

  app.on("search", refresh);
  app.on("place", refresh); // and now, since a panel is made on the way to its place
  return place;
}

/** New contents for a table that stays; each row can have a class.
 *  @param {any} table @param {any} found @param {(string|false)[]} classes */
export function fill(table, found, classes) {
  table.replaceChildren(...element(table_of(found)).children);
  [...table.tBodies[0].rows].forEach((row, i) => { row.className = classes[i] || ""; });
}
