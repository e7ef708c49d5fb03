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
    const part = root.contains(had) && had.closest(".machine-live > *");
    const { top } = had.getBoundingClientRect(), href = had.getAttribute("href");
    const was_beneath = beneath.contains(had);

    return (/** @type {State} */ state) => {
      const is_drawn = !searches(state) && state.found !== undefined;
      if (part && !part.checkVisibility()) leave(part);
      if (part && is_drawn) hand_on(state);
      if (is_drawn) came = state.place;
      if (STEADY.has(type)) stay();
    };

    /** From a part that is hidden now, to the view that we are in @param {Element} part */
    function leave(part) {
      const at = document.activeElement, is_elsewhere = root.contains(at) && !part.contains(at);
      const view = /** @type {HTMLElement|null} */ (views.querySelector("[aria-current]"));
      if (!is_elsewhere) view?.focus();
    }

    /** From a link or a button that is gone: to the one that is the same, or that leads back
     *  @param {State} state */
    function hand_on({ place }) {
      const at = document.activeElement, has_moved = came !== place;
      const is_left = has_moved && at === stage && type !== "take"; // which goes to the stage
      if (root.contains(at) && !is_left) return;
      const [same, back_down] = [href, `#machine${path_of(came, level_of(place) + 1)}`].map((to) =>
        (was_beneath ? beneath : stage).querySelector(`[href="${to}"]`));
      const act = was_beneath && !has_moved && beneath.querySelector("button");
      const heir = /** @type {HTMLElement|null} */ (same || act || back_down);
      (heir || stage).focus({ preventScroll: !heir });
      if (has_moved && !heir) way.scrollIntoView({ block: "nearest" });
    }

    function stay() {
      const by = had.isConnected && had.getBoundingClientRect().top - top;
      if (by) scrollBy({ top: by, behavior: "instant" });
      root.querySelector(".machine-operate :focus")?.scrollIntoView({ block: "nearest" });
    }
  };
}
