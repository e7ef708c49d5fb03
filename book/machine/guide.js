// @ts-check
// The guide: one caption of the tour at a time, and the light on what it speaks of.

import { kept } from "./app.js";
import { e, h } from "./draw.js";
import { button, find, focus, when_changed } from "./kit.js";
import { where_to } from "./state.js";
import { path_on_tour, TOUR } from "./tour.js";

/** @import { App } from "./app.js" */
/** @import { State } from "./types.d.ts" */

/** @param {App} app @param {{ alive: HTMLElement, stage: HTMLElement, beneath: HTMLElement,
 *    forward: HTMLElement }} places  */
export function guide(app, { alive, stage, beneath, forward }) {
  const caption = h("div", { class: "machine-guide", hidden: true });
  const toggle = button("Guide", () =>
    lead(app.state.guide < 0 ? (Number(kept("machine-guide")) || 1) - 1 : -1),
  { "aria-expanded": "false" });

  /** To a caption; -1 for the end @param {number} to */
  function lead(to) {
    const path = to < 0 ? app.path : path_on_tour(app.state, to);
    kept("machine-guide", String(to + 1)); // a link to a chapter leaves it
    app.push(path);
    app.dispatch({ type: "lead", to, path });
    app.enter();
  }

  const draw = when_changed((state) => [state.guide, state.place, state.panel, state.found],
    (state, before) => {
      const { guide, panel } = state, path = guide >= 0 && TOUR[guide].path;
      caption.hidden = guide < 0 || (Boolean(panel) && where_to(state) !== path);
      if (guide !== before.guide) draw_caption(guide);
      if (guide >= 0 && is_dark && state.found !== undefined) light(state);
    });
  let is_dark = false; // until the picture is there that the caption speaks of

  /** @param {number} number */
  function draw_caption(number) {
    toggle.ariaExpanded = String(number >= 0);
    alive.querySelector(".machine-lit")?.classList.remove("machine-lit");
    is_dark = number >= 0;
    if (number < 0) { // and to where it is seen
      [toggle, forward].find((each) => each.checkVisibility())?.focus();
      return;
    }
    const { words, chapter, href } = TOUR[number], is_last = number === TOUR.length - 1;
    caption.replaceChildren(
      h("p", {}, e("b", {}, `${number + 1} of ${TOUR.length} `), `${words} `, e("a", { href }, chapter)),
      h("div", { class: "machine-row" },
        button("Back", () => lead(number - 1), { disabled: number === 0 }),
        !is_last && button("Next", () => lead(number + 1)),
        button(is_last ? "Done" : "End", () => lead(-1))));
    focus(find(caption, "button:nth-child(2)"));
  }

  /** @param {State} state */
  function light({ guide: number }) {
    const lit = find(alive, TOUR[number].control);
    is_dark = false;
    lit.classList.add("machine-lit");
    document.documentElement.style.setProperty("--guide", `${caption.offsetHeight + 8}px`);
    const room = innerHeight - caption.offsetHeight - 60; // above the caption, below the bar
    for (const seen of [beneath, stage, lit.closest(".machine-stage") || lit]) {
      const long = seen instanceof HTMLElement ? seen.offsetHeight : 0;
      seen.scrollIntoView({ block: long > room ? "start" : "nearest", behavior: "instant" });
    }
  }

  return { toggle, caption, lead, draw };
}
