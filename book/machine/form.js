// @ts-check
// The sentence: where it is typed, how much of the model has come, and what is worth a warning.

import { h, mean_of } from "./draw.js";
import { together, when_changed } from "./kit.js";
import { changes_of } from "./state.js";
import { worry } from "./worry.js";

/** @import { App } from "./app.js" */
/** @import { State } from "./types.d.ts" */

/** What to tell about the sentence that is shown, or ""; of a stored one, nothing
 *  @param {State} state */
export function worries_of(state) {
  const { live, log_probs } = state.view;
  const sure = changes_of(state) ? 1 : Math.exp(mean_of(log_probs)); // else it isn't the model's doubt
  return live ? worry(live.read, sure) : "";
}

/** @param {App} app */
export function form(app) {
  const field = h("input", { type: "text", id: "machine-field", lang: "de", maxlength: 5000,
    spellcheck: "false", autocomplete: "off", value: app.state.draft, required: true,
    onfocus: () => app.load(),
    oninput: () => { app.dispatch({ type: "draft", text: field.value }); } });
  const go = h("button", { class: "machine-go", "aria-label": "Translate" }, "Translate");
  const say = h("form", { class: "machine-say", onsubmit: translate },
    h("label", { for: "machine-field", class: "machine-spoken" }, "A German sentence"), field, go);
  const bar = h("progress", { max: 1, hidden: true, "aria-label": "The model is being loaded" });
  const status = h("p", { class: "machine-status", role: "alert" });
  const warning = h("p", { class: "machine-warning", hidden: true });

  /** @param {Event} event */
  function translate(event) {
    event.preventDefault();
    app.dispatch({ type: "stop" });
    app.ask({ text: field.value }, true);
    app.load();
  }

  const draw_warning = when_changed(({ view }) => [view], (state) => {
    warning.textContent = worries_of(state);
    warning.hidden = !warning.textContent;
  });
  const draw_rest = when_changed((state) => [state.draft, state.loading, state.status],
    ({ draft, loading, size, status: text }) => {
      if (field.value !== draft) field.value = draft;
      bar.hidden = loading === null;
      bar.value = loading || 0;
      go.textContent = loading === null ? "Translate" : `${Math.round(100 * loading)}% of ${size}`;
      if (status.textContent !== text) status.textContent = text;
    });
  return { elements: [say, bar, status, warning], draw: together(draw_warning, draw_rest) };
}
