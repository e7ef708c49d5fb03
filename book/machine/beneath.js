// @ts-check
// Beneath the picture: what it shows, in a sentence, or the question for the next word; and the
// heads of a layer, which can be cut.

import { h, percent, piece, shown } from "./draw.js";
import { button, when_changed } from "./kit.js";
import { is_cut, level_of, name_of, path_of } from "./levels.js";
import { quoted, what_it_shows } from "./sentences.js";
import { COUNTED, signs_of } from "./signs.js";
import { beside, cut_of, is_asked, is_current, labels_of, row_of, searches } from "./state.js";

/** @import { App } from "./app.js" */
/** @import { State, Token } from "./types.d.ts" */

const HINTS = [
  "", // of the whole machine, its step is told
  "Each part that isn’t cut adds what it finds to the word’s strand. Open a head.",
  "The closer a key matches the query, the more of its word’s value goes on. Open a row.",
  "Multiply feature by feature, add up, divide, and compare with the other keys.",
];
const CUT = "This head is cut: its weights count as 0, and it hands on nothing.";

/** @param {App} app */
export function beneath(app) {
  const element = h("div", { class: "machine-beneath" });

  const draw = when_changed((state) => [state.place, state.panel, state.view, state.untouched,
    row_of(state), state.found, state.is_ready, state.film, state.tall, state.is_predicting,
    state.guess], (state) => {
    const level = level_of(state.place);
    if (state.found === undefined) return; // it comes
    if (searches(state)) element.replaceChildren();
    else element.replaceChildren(says(state, level), level < 2 ? "" : heads(state), note(state, level));
  });

  /** @param {State} state @param {number} level */
  function says(state, level) {
    if (is_asked(state)) return question(state);
    const hint = level > 1 && is_cut(state.view, state.place) ? CUT : HINTS[level];
    const is_unknown = level === 3 && !state.found;
    return h("p", { class: "machine-says" }, is_unknown ? "" : hint || what_it_shows(state));
  }

  /** How it is counted, and what its signs are @param {State} state @param {number} level */
  function note({ view }, level) {
    const signs = level < 3 ? signs_of(view) : [];
    return h("p", { class: "machine-note" }, [level ? "" : COUNTED, ...signs].join(" ").trim());
  }

  /** @param {State} state */
  function heads(state) {
    const { place, view } = state, name = name_of(place), cut = cut_of(state, name);
    const links = view.maps[name].map((_, head) => h("a", {
      href: `#machine${path_of({ ...place, head })}`,
      "aria-current": head === place.head && "true", class: cut.includes(head) && "removed",
      "aria-label": cut.includes(head) && `${head + 1}, cut`,
    }, head + 1));
    const words = cut.includes(place.head) ? "Put this head back" : "Cut this head";
    const is_told = cut.length > 0 && is_current(state) && !is_asked(state);
    return h("div", { class: "machine-row machine-heads", role: "group",
      "aria-label": "The heads of this layer" }, links,
      button(words, () => app.cut_head(name, place.head)),
      h("small", {}, is_told && [`Now: “${view.text}” `, beside(state)]));
  }

  // ---- Predict first

  /** @param {State} state */
  function question(state) {
    const { view, guess } = state, row = row_of(state), [best] = view.next[row];
    if (guess) return h("div", { class: "machine-predict" }, reply(state, guess, best, row));
    const choices = view.next[row].slice(0, 5)
      .sort((a, b) => shown(a.label).localeCompare(shown(b.label), "en"));
    return h("div", { class: "machine-predict" }, h("p", {}, "What is likeliest next? "),
      choices.map((token) => button(piece(token.label), () => app.dispatch({ type: "guess", token }))));
  }

  /** @param {State} state @param {Token} guess @param {Token} best @param {number} row */
  function reply(state, guess, best, row) {
    const labels = labels_of(state);
    const verdict = guess.id === best.id ? `Yes: “${shown(best.label)}”, ${percent(best.p)}. `
      : `You said ${quoted(guess)}; the model says ${quoted(best)}. `;
    const other = best.id !== state.view.tgt[row] && `The text goes on with “${shown(labels[row])}”. `;
    return [h("p", {}, verdict, other),
      labels[row + 1] && button("Next word", () => app.show({ step: row + 1 }))];
  }

  return { element, draw };
}
