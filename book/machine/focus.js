// @ts-check
// What has the focus keeps it, or hands it on, and stays where it is seen, while all is drawn anew.

import { level_of, path_of } from "./levels.js";
import { searches } from "./state.js";

/** @import { Action, State } from "./types.d.ts" */

// After these, lines come and go above the controls by which they were asked for.
const STEADY = new Set(["ask", "take", "ready", "seen", "failed"]);

/** Call it before all is drawn, and what it returns, after
 *  @param {{ root: HTMLElement, stage: HTMLElement, beneath: HTMLElement, views: HTMLElement,
 *    way: HTMLElement }} places @param {State} first */
export function focus_keeper({ root, stage, beneath, views, way }, first) {
  let came = first.place; // whose picture was drawn last

  /** @param {Action} action */
  return ({ type }) => {
    const had = /** @type {HTMLElement} */ (document.activeElement || document.body);
    const had_focus = root.contains(had), was_beneath = beneath.contains(had);
    const part = had.closest(".machine-live > *");
    const href = had.getAttribute("href"), { top } = had.getBoundingClientRect();
    return (/** @type {State} */ state) => {
      if (had_focus) hand_on(state);
      if (!searches(state) && state.found !== undefined) came = state.place;
      if (!STEADY.has(type)) return;
      const by = had.isConnected && had.getBoundingClientRect().top - top;
      if (by) scrollBy({ top: by, behavior: "instant" });
      root.querySelector(".machine-operate :focus")?.scrollIntoView({ block: "nearest" });
    };

    /** @param {State} state */
    function hand_on(state) {
      const { place } = state, has_moved = came !== place;
      if (part && !part.checkVisibility()) { // it went with its view
        /** @type {HTMLElement|null} */ (views.querySelector("[aria-current]"))?.focus();
      }
      const at = document.activeElement;
      if (searches(state) || state.found === undefined) return;
      const is_left = has_moved && at === stage && type !== "take"; // which goes to the stage
      if (root.contains(at) && !is_left) return;
      const [same, back_down] = [href, `#machine${path_of(came, level_of(place) + 1)}`].map((to) =>
        (was_beneath ? beneath : stage).querySelector(`[href="${to}"]`));
      const act = was_beneath && !has_moved && beneath.querySelector("button");
      const heir = /** @type {HTMLElement|null} */ (same || act || back_down);
      (heir || stage).focus({ preventScroll: !heir }); // what had the focus is gone
      if (has_moved && !heir) way.scrollIntoView({ block: "nearest" });
    }
  };
}
