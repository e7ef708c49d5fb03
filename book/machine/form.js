// @ts-check
// The sentence: where it is typed, how much of the model has come, and what is worth a warning.

import { h, mean_of } from "./draw.js";
import { button, id_of, together, when_changed } from "./kit.js";
import { changes_of, waits } from "./state.js";
import { foresee, is_far, worry } from "./worry.js";

/** @import { App } from "./app.js" */
/** @import { State, Work } from "./types.d.ts" */

/** The reader's own English, where its German is shown
 *  @param {{ asked: State["asked"], view: { source: string } }} state */
const asked_of = ({ asked, view }) => asked.text === view.source && asked.english;

/** What to tell about the sentence in the field, or "": while it is typed what is to be expected,
 *  and then what the model has made of it; of a stored one, nothing
 *  @param {State} state */
export function worries_of(state) {
  const { draft, pieces, view: { live, log_probs, source } } = state;
  if (draft !== source) return draft.trim() && foresee(draft, pieces[draft]); // of what is to come
  const english = asked_of(state);
  if (english && is_far(english, pieces[english])) return foresee(english, pieces[english]);
  const sure = changes_of(state) ? 1 : Math.exp(mean_of(log_probs)); // else it isn't the model's doubt
  return live ? worry(live.read, sure) : "";
}

/** What stands above the field: what the German means, or whose it is @param {State} state */
function origin_of({ asked, draft, is_predicting, meanings, view: { source } }) {
  if (asked_of({ asked, view: { source } })) {
    return ["You wrote: ", h("b", {}, `“${asked.english}”`),
      " The German is by the sister model, and the small words are what it looked at. " +
        "Now watch it being read."];
  }
  const known = !is_predicting && meanings[draft.trim()]; // of a stored sentence, or one that is asked for
  return known && known.whole ? ["By hand, in English: ", h("b", {}, `“${known.whole}”`)] : [];
}

/** What Python is at @param {Work} work @param {string} [trying] */
export const work_in_words = ({ what, size }, trying) => (what === "code" ? `${trying ? "The changed" : "Your"} code is running.`
  : `Python is being loaded, to run your code (${size}, once). It runs in this page, and nothing leaves it.`);

/** @param {App} app */
export function form(app) {
  const id = id_of("machine-field");
  const field = h("input", { type: "text", id, lang: "de", maxlength: 5000,
    spellcheck: "false", autocomplete: "off", value: app.state.draft,
    onfocus: () => app.load(),
    oninput: () => { app.dispatch({ type: "draft", text: field.value }); } });
  const go = h("button", { class: "machine-go", "aria-label": "Translate" }, "Translate");
  const say = h("form", { class: "machine-say", onsubmit: translate },
    h("label", { for: id, class: "machine-spoken" }, "A German sentence, or an English one"), field, go);
  const origin = h("p");
  const world = h("small", { class: "machine-world" },
    "German or English. It knows captions of photos: people, animals, sports, streets.");
  const bar = h("progress", { max: 1, hidden: true, "aria-label": "The model is being loaded" });
  const status = h("p", { class: "machine-status", role: "alert" });
  const warning = h("p", { class: "machine-warning", hidden: true });
  const doing = h("span"), stop = button("Stop", () => app.yours?.shared.stop());
  const at_work = h("p", { class: "machine-note", hidden: true }, doing, " ", stop);
  let clock = 0; // what is soon over needs no line

  const draw_work = when_changed(({ work, asked }) => [work?.what, asked.trying], ({ work, asked }) => {
    clearTimeout(clock);
    if (!work) at_work.hidden = true;
    else {
      doing.textContent = work_in_words(work, asked.trying);
      stop.hidden = work.what === "python";
      clock = setTimeout(() => { at_work.hidden = false; }, work.what === "python" ? 0 : 1500);
    }
  });

  /** @param {Event} event */
  function translate(event) {
    event.preventDefault();
    app.say(field.value);
  }

  const draw_warning = when_changed(
    ({ view, draft, pieces, asked, is_predicting }) => [view, draft, pieces, asked, is_predicting],
    (state) => {
      warning.textContent = worries_of(state);
      warning.hidden = !warning.textContent;
      origin.replaceChildren(...origin_of(state));
      world.hidden = Boolean(asked_of(state)); // its line is taken
    });
  const draw_rest = when_changed((state) => [state.draft, state.loading, state.status, state.is_lost,
    state.sister, state.work, waits(state)], (state) => {
      const { draft, loading, work, sister, is_lost, asked } = state, share = loading ?? work?.share ?? null;
      const size = loading === null ? work?.size : state.size;
      const text = is_lost && waits(state) ? "" : state.status; // it is told with what isn't done
      if (field.value !== draft) field.value = draft;
      bar.hidden = share === null;
      bar.value = share || 0;
      bar.ariaLabel = loading === null && work ? work_in_words(work, asked.trying) : "The model is being loaded";
      const whose = sister && state.is_ready ? "sister: " : "";
      go.textContent = share !== null ? `${whose}${Math.round(100 * share)}%${size ? ` of ${size}` : ""}`
        : sister ? "Into German…" : "Translate";
      if (status.textContent === text && !is_lost) return; // and isn't told again
      status.replaceChildren(text, ...(is_lost && text ? [" ", button("Try again", () => app.load())] : []));
    });
  return { elements: [h("div", { class: "machine-origin" }, origin, world), say, bar, at_work, status, warning], bar,
    draw: together(draw_warning, draw_work, draw_rest) };
}
