// @ts-check
// What is changed, what came of it, and what the reader brings along from another page.

import { h, short } from "./draw.js";
import { button, together, when_changed } from "./kit.js";
import { beside, changes_of, choice_of, is_alone, is_asked, is_current, ran_in_words, waits, yours_of } from "./state.js";

/** @import { App } from "./app.js" */
/** @import { State } from "./types.d.ts" */

/** @param {App} app @param {() => void} leave before a button goes that has the focus */
export function changes(app, leave) {
  const undo = button("Undo all", () => {
    leave(); // first, since what has the focus stays where it is seen
    app.undo_all();
  });
  const news = h("span"), changed = h("p", { class: "machine-changes", hidden: true }, news, undo);
  const offer = h("p", { class: "machine-offer", hidden: true });

  const draw_offer = when_changed((state) => [state.offer], ({ offer: brought }) => {
    offer.hidden = !brought;
    if (!brought) return;
    const edits = Object.keys(brought.edits || {}).length ? " and changes" : "";
    offer.replaceChildren(`You came with a sentence${edits} of your own: `,
      button(`“${brought.text}”`, () => {
        leave();
        app.take_offer();
      }));
  });

  /** @param {State} state */
  function draw_waiting(state) {
    const { asked: { text }, view } = state;
    const other = text === view.source ? "" : `the sentence “${short(text, 80)}”`;
    const what = [other, changes_of(state)].filter(Boolean).join("; ");
    if (state.is_lost) {
      news.replaceChildren(`${state.status} Not done: ${what}. `, button("Try again", () => app.load()));
    } else {
      const whom = state.is_ready && yours_of(state) ? "Python" : "the model";
      news.replaceChildren(`Waiting for ${whom} (${what}). `,
        h("span", {}, "Until then, you see a stored sentence."));
    }
  }

  const draw_changes = when_changed((state) => [state.asked, state.view, state.untouched,
    state.is_lost, state.is_ready, state.panel, state.is_busy, is_asked(state)], (state) => {
    const has_failed = state.is_ready && !state.is_busy && Boolean(yours_of(state)); // and why is told
    const words = changes_of(state), is_waiting = waits(state) && !has_failed, is_operated = state.panel === "operate";
    const is_told = app.is_second && words === yours_of(state); // where the code stands
    changed.hidden = is_told || !(words || is_waiting || is_operated);
    undo.hidden = is_waiting || !words;
    if (is_waiting) return draw_waiting(state);
    if (!words) return news.replaceChildren(`Nothing is changed: “${state.view.text}”`);
    if (yours_of(state)) return draw_yours(state, words);
    if (choice_of(state)) return news.replaceChildren(`Changed: ${words}. `); // it tells the rest
    const now = is_current(state) ? `Now: “${state.view.text}” ${beside(state)} `
      : state.is_busy ? "Now: …" : "";
    news.textContent = `Changed: ${words}. ${is_asked(state) ? "" : now}`;
  });
  /** Whose it is; all of the reader's is no change, but an achievement
   *  @param {State} state @param {string} words */
  function draw_yours(state, words) {
    const { view, asked: { edits: { yours }, trying }, is_busy, is_ready } = state;
    const done = is_current(state), ran = ran_in_words(state);
    const is_all = done && is_alone(yours) && !trying;
    const now = done ? `Now: ${view.text ? `“${view.text}”` : "nothing"} ${beside(state)} ${is_all ? "" : ran}`
      : is_busy || !is_ready ? "Now: …" : "Not done: what you see is from before.";
    const says = is_all && ran ? ran : `Changed: ${words}.`;
    news.textContent = `${says} ${is_asked(state) ? "" : now} `;
  }

  return { offer, changed, draw: together(draw_offer, draw_changes) };
}
