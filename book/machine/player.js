// @ts-check
// Steps: the words to choose one by, the slider, the buttons, and the film that plays them.

import { h, is_joined, percent, shown } from "./draw.js";
import { button, is_still, refill, together, when_changed } from "./kit.js";
import { row_class } from "./levels.js";
import { looks_of } from "./sentences.js";
import { axis_of, is_asked, labels_of, row_of, searches } from "./state.js";

/** @import { App } from "./app.js" */
/** @import { Attributes, Draw, State } from "./types.d.ts" */

export const PACE = { first: 1300, step: 800, own: 330 }; // ms: before the first word, for each

/** @param {App} app */
export function player(app) {
  const words = h("div", { class: "machine-words", role: "toolbar" });
  const play_button = button("Play", () => {
    const { film, is_stopped, asked } = app.state;
    if (film) app.dispatch({ type: "stop", by_hand: true });
    else app.play(PACE.step, "stop", is_stopped ? asked.step : 0);
  });
  const back = button("Previous", () => app.step_by(-1));
  const forward = button("Next", () => app.step_by(1));
  const slider = h("input", { type: "range", min: 1, max: 1,
    oninput: () => { app.step_to(slider.valueAsNumber - 1); } });
  const row = h("div", { class: "machine-row machine-controls" }, play_button, back, forward, slider);

  /** The words of the sentence, inside the encoder @param {State} state */
  function draw_source(state) {
    const at = row_of(state);
    words.ariaLabel = "The words of the sentence";
    refill(words, labels_of(state).map((label, i) => [shown(label), () => app.step_to(i),
      { class: `machine-word ${i === at ? "now" : ""}` }]), at);
  }

  /** @param {State} state */
  function draw_translation(state) {
    const { view: { tgt_labels, log_probs, live }, film, guess } = state, asks = is_asked(state);
    const at = Math.min(row_of(state), tgt_labels.length - 1), n_forced = live?.n_forced || 0;
    words.ariaLabel = "The translation, word by word";
    refill(words, tgt_labels.map((label, i) => {
      const hidden = (film || asks) && (i > at || (asks && !guess && i === at));
      const kinds = ["machine-word", row_class(i, at), is_joined(label) && "joined",
        i < n_forced && "forced", hidden && !asks && "unseen"];
      const share = percent(Math.exp(log_probs[i]));
      const kept = `${i < n_forced ? ", kept" : ""}${i === n_forced - 1 ? ", chosen by hand" : ""}`;
      /** @type {Attributes} */
      const more = { class: kinds.filter(Boolean).join(" "), title: !hidden && share,
        "aria-label": hidden ? `word ${i + 1}, to come` : `${shown(label)}, ${share}${kept}` };
      return [hidden && asks ? "·" : shown(label), () => app.step_to(i), more];
    }), at);
  }

  /** @param {State} state */
  function draw_slider(state) {
    const labels = labels_of(state), at = row_of(state), where = `${at + 1} of ${labels.length}`;
    const is_word = axis_of(state) === "word", [looks] = is_word || searches(state) ? []
      : looks_of(state.view, at);
    slider.max = String(labels.length);
    slider.value = String(at + 1);
    slider.ariaLabel = is_word ? "Word of the sentence"
      : `Step of the ${searches(state) ? "search" : "translation"}`;
    slider.ariaValueText = (is_asked(state) && !state.guess) || !labels[at] ? where
      : `${shown(labels[at])}, ${where}${looks ? `; looked most at ${looks}` : ""}`;
    back.ariaDisabled = String(!labels[at - 1]);
    forward.ariaDisabled = String(!labels[at + 1]);
  }

  const draw_all = when_changed((state) => [state.view, state.search, state.place, state.panel,
    row_of(state), state.film, state.is_predicting, state.guess], (state) => {
    const is_word = axis_of(state) === "word";
    words.classList.toggle("source", is_word);
    if (is_word) draw_source(state);
    else draw_translation(state);
    draw_slider(state);
    play_button.textContent = state.film ? "Pause" : "Play";
    play_button.hidden = searches(state);
    back.hidden = forward.hidden = !searches(state);
  });

  /** What goes on by itself: the film, and a sentence that was typed, once it is translated
   *  @type {Draw} */
  function go_on(state, before, { type }) {
    const { film, view, place, panel } = state;
    if (film !== before.film) {
      clearTimeout(clock);
      const is_first = type === "play" && film && film.pace >= PACE.step;
      if (film) clock = setTimeout(tick, is_first ? PACE.first : film.pace);
    }
    if (type !== "seen" || !before.is_typed || view.source === before.view.source) return;
    if (place.stack || panel) return;
    if (is_still()) app.dispatch({ type: "finish" });
    else app.play(PACE.own, "surest");
  }

  let clock = 0;
  function tick() {
    if (document.hidden) clock = setTimeout(tick, PACE.step);
    else app.dispatch({ type: "tick" });
  }

  return { words, row, forward, draw: together(draw_all, go_on) };
}
