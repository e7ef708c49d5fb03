// @ts-check
// What can be chosen with one tap: a sentence and a change of the model, and what one may
// believe from then on.

import { h } from "./draw.js";
import { button, together, when_changed } from "./kit.js";
import { choice_of, is_asked, is_current } from "./state.js";

/** @import { App } from "./app.js" */
/** @import { State } from "./types.d.ts" */

/** @param {App} app */
export function choices(app) {
  const all = app.state.choices.map((choice) => ({ choice, made: button(choice.label,
    () => app.choose(choice), { "aria-pressed": "false" }) }));
  const row = h("div", { class: "machine-choices", role: "group", "aria-label": "One tap" },
    all.map(({ made }) => made));
  const says = h("p", { class: "machine-belief", role: "status", hidden: true });
  row.hidden = !all.length;

  const draw_row = when_changed(({ asked }) => [asked.choice], ({ asked }) => {
    for (const { choice, made } of all) made.ariaPressed = String(choice.name === asked.choice);
  });
  const draw_says = when_changed((state) => [state.asked.choice, state.view, is_asked(state)], (state) => {
    const chosen = choice_of(state);
    says.hidden = !chosen || is_asked(state);
    if (!chosen) return;
    const { was, now } = is_current(state) ? // the same, as a test holds
      { was: state.untouched.text, now: state.view.text } : chosen;
    const is_changed = Object.keys(chosen.edits).length > 0;
    const writes = was === now && is_changed ? "It still writes" : "It writes";
    says.replaceChildren(was === now ? `${writes} ` : `“${was}” becomes `,
      h("b", {}, `“${now}”`), ` ${chosen.says} `, h("a", { href: chosen.why.to }, chosen.why.words));
  });
  return { elements: [row, says], draw: together(draw_row, draw_says) };
}
