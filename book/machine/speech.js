// @ts-check
// What is said to those who listen: where we are, at which step, and what came of a change.

import { h, shown } from "./draw.js";
import { where_of } from "./crumbs.js";
import { work_in_words, worries_of } from "./form.js";
import { losses_in_words } from "./operate.js";
import { PACE } from "./player.js";
import { asks_of, axis_of, beside, changes_of, is_asked, is_drafted, labels_of, notes_of, ran_in_words, row_of,
  searches, where_to } from "./state.js";
import { TOUR } from "./tour.js";

/** @import { App } from "./app.js" */
/** @import { Draw, State } from "./types.d.ts" */

/** @param {App} app @param {HTMLElement} root */
export function speech(app, root) {
  const live = h("p", { class: "machine-spoken", role: "status", "aria-live": "polite" });
  const told = { path: where_to(app.state), row: row_of(app.state), asks: asks_of(app.state.home) };
  let timer = 0, has_acted = false; // on the model, where its losses are to be seen

  /** What stays for a moment, not each of many steps @param {string} words */
  function say(words) {
    clearTimeout(timer);
    timer = setTimeout(() => { live.textContent = words; }, 150);
  }

  /** What counts as told @param {State} state */
  const pass_over = (state) => Object.assign(told, { path: where_to(state), row: row_of(state) });

  /** @param {string} selector */
  const words_of = (selector) => root.querySelector(selector)?.textContent || "";

  /** Where we are, if that is another place, and at which step @param {State} state */
  function say_place(state) {
    const path = where_to(state), row = row_of(state), has_moved = path !== told.path;
    const is_early = state.film || (searches(state) && state.is_ready && !state.search);
    if (is_early || (!has_moved && row === told.row)) return;
    pass_over(state);
    const is_slider = document.activeElement?.matches(".machine-controls input");
    if (!has_moved && !state.is_predicting && is_slider) return; // it speaks
    const labels = labels_of(state), open = ".machine-live > :not([hidden])";
    const step = !searches(state) && `${axis_of(state) === "word" ? "Word" : "Step"} ${row + 1} of ` +
      `${labels.length}${is_asked(state) ? "" : `: ${shown(labels[row])}`}.`;
    const words = [has_moved && `${where_of(state)}.`, step, (!path || !step || is_asked(state))
      && words_of(`${open} .machine-predict p, ${open} .machine-says`)];
    say(words.filter(Boolean).join(" "));
  }

  /** @param {State} state */
  function say_translation(state) {
    const { view, panel } = state, asks = view.live?.asks || "", changes = changes_of(state);
    const is_news = asks !== told.asks && !is_asked(state) && !is_drafted(state);
    told.asks = asks;
    if (!is_news || panel === "operate") return; // there it is told with its loss
    say([changes && `Changed: ${changes}.`, `Translation: ${view.text}`, beside(state), ran_in_words(state),
      worries_of(state)].filter(Boolean).join(" "));
  }

  /** @param {State} state */
  function say_losses(state) {
    const { losses, view } = state;
    if (has_acted && losses && typeof losses !== "string") {
      say(`Translation: ${view.text} ${beside(state)} Loss of ${losses.whose} translation: ` +
        losses_in_words(losses));
    }
    has_acted = false;
  }

  /** @type {Draw} */
  function draw(state, before, action) {
    const is_operated = state.is_ready && state.panel === "operate";
    switch (action.type) {
      case "load":
        if (action.share === 0 && !state.is_ready) say("The model is being loaded.");
        break;
      case "work":
        if (!app.is_second && state.work && state.work.what !== before.work?.what) say(work_in_words(state.work, state.asked.trying));
        break;
      case "sister":
        if (action.text) say("A sister model writes the sentence in German first.");
        break;
      case "lost":
        say(words_of(".machine-changes:not([hidden]) > span"));
        break;
      case "ready":
        say("The model is loaded.");
        has_acted = is_operated;
        break;
      case "ask":
        has_acted = is_operated;
        break;
      case "jump": // its translation is told
        pass_over(state);
        break;
      case "take": // what it becomes is told, not where we were
        has_acted = is_operated;
        pass_over(state);
        break;
      case "go": case "step": case "searched": case "draw":
        say_place(state);
        break;
      case "predict":
        told.row = -1; // told again, even if it is the same step
        say_place(state);
        break;
      case "play":
        if (action.pace === PACE.step) say(`Playing ${state.view.tgt.length} steps.`);
        else pass_over(state); // its translation is told
        break;
      case "finish": case "tick":
        if (state.film) break;
        if (state.view.live && before.film?.then !== "stop") pass_over(state);
        else say_place(state);
        break;
      case "guess":
        say(words_of(".machine-predict p"));
        break;
      case "lead":
        if (action.to >= 0) {
          pass_over(state);
          say(`${action.to + 1}: ${where_of(state)}, “${shown(labels_of(state)[row_of(state)])}”. ` +
            TOUR[action.to].words);
        }
        break;
      case "seen":
        if (!app.is_second) say_translation(state);
        else say(notes_of(state)); // the rest is told where the code stands
        break;
      case "measured":
        say_losses(state);
        break;
      default: // is seen, and not told
    }
  }
  return { live, say, draw };
}
