// One state and what each action makes of it.

import assert from "node:assert/strict";
import { test } from "node:test";

import { beside, changes_of, is_current, labels_of, reduce, row_of, toggled, waits, where_to } from "../state.js";
import { small_state, stored_view } from "./model.js";

/** @import { Action, State, View } from "../types.d.ts" */

/** @param {State} state @param {Action[]} actions */
const after = (state, ...actions) => actions.reduce(reduce, state);
const CUT = { "decoder.layers.0.cross_attn": [0, 1], "encoder.layers.0.self_attn": [1] };

/** A view as the model gives it @param {Partial<View>} more @returns {View} */
const live = (more = {}, asks = "") => ({ ...stored_view(more.source), heads: undefined,
  live: { asks, n_forced: 0, read: { text: "", src: [], src_labels: [], pieces: 1, too_long: false } },
  ...more });

test("an action changes nothing of the state before it", () => {
  const state = small_state(), text = JSON.stringify(state);
  after(state, { type: "ask", changes: { text: "9", edits: { hide: [0] } } }, { type: "step", changes: { step: 2 } },
    { type: "go", path: "/decoder/1" }, { type: "predict" }, { type: "seen", view: live(), untouched: live() });
  assert.equal(JSON.stringify(state), text);
});

test("another sentence takes away what was of the old one, and keeps the rest", () => {
  const state = after(small_state({ step: 2 }), { type: "bring", offer: { text: "6" } },
    { type: "ask", changes: { forced: [4], reference: "8", edits: { hide: [1], causal: false } } });
  const { asked, offer, draft } = after(state, { type: "ask", changes: { text: "9 9" } });
  const { text, step, forced, reference, edits } = asked;
  assert.deepEqual({ text, step, forced, reference, draft, offer },
    { text: "9 9", step: 0, forced: [], reference: "", draft: "9 9", offer: null });
  assert.deepEqual(edits, { hide: undefined, causal: false });
  const { offer: kept } = after(state, { type: "ask", changes: { seed: 3 } });
  assert.deepEqual(kept, { text: "6" });
});

test("a choice lasts until something else is asked of the model", () => {
  const state = after(small_state(), { type: "ask", changes: { text: "6", choice: "six", edits: { causal: false } } });
  const is = (/** @type {Action[]} */ ...actions) => after(state, ...actions).asked.choice;
  assert.equal(is(), "six");
  assert.equal(is({ type: "step", changes: { step: 1 } }), "six");
  assert.equal(is({ type: "ask", changes: { n_beams: 2 } }), "six");
  assert.equal(is({ type: "ask", changes: { edits: { causal: true } } }), "");
  assert.equal(is({ type: "ask", changes: { text: "7" } }), "");
});

test("after what can’t be read, what is shown is asked for, and what was typed stays", () => {
  const state = after(small_state(), { type: "draft", text: "6 6" },
    { type: "ask", changes: { text: "6 6", choice: "six", english: "6" } },
    { type: "return", text: "too long" });
  const { asked: { text, choice, english }, draft, status } = state;
  assert.deepEqual([text, choice, english, draft, status], ["5 7 4", "", "", "6 6", "too long"]);
});

test("an offer brings its changes along, and what is changed here is kept", () => {
  const offer = { text: "6", edits: { hide: [0], src_positions: false } };
  const state = after(small_state({ at: "/decoder/1" }), { type: "ask", changes: { edits: { without: CUT } } },
    { type: "bring", offer }, { type: "take" });
  assert.equal(where_to(state), "");
  assert.deepEqual(state.asked.edits, { without: CUT, hide: [0], src_positions: false });
  assert.equal(state.offer, null);
});

test("steps go along the translation, the source in the encoder, the search in its views", () => {
  const state = after(small_state(), { type: "step", changes: { step: 1, word: 2 } });
  for (const [path, row, labels] of /** @type {[string, number, string[]][]} */ ([
    ["/decoder/0", 1, state.view.tgt_labels], ["/encoder/0", 2, state.view.src_labels],
    ["/search", 0, []], ["/operate", 1, state.view.tgt_labels],
  ])) {
    const there = after(state, { type: "go", path });
    assert.equal(where_to(there), path);
    assert.equal(row_of(there), row);
    assert.deepEqual(labels_of(there), labels);
  }
  assert.equal(row_of(after(state, { type: "step", changes: { step: 99 } })), state.view.tgt.length - 1);
});

test("numbers of a head are stored, to be had nowhere, or to be asked of the model", () => {
  const state = small_state();
  const found = (/** @type {string} */ path, from = state) => after(from, { type: "go", path }).found;
  assert.equal(found("/decoder/1/cross_attn/1")?.head, 1);
  assert.equal(found("/decoder/1/cross_attn/0"), null);
  assert.equal(found("/decoder/1"), null);
  const seen = after(state, { type: "seen", view: live(), untouched: live() });
  assert.equal(found("/decoder/1/cross_attn/0", seen), undefined);
});

test("without a causal mask, each step has other numbers", () => {
  const numbers = { head: 0, q: [1], k: [1], v: [1] };
  for (const [causal, found] of /** @type {const} */ ([[false, undefined], [true, numbers]])) {
    const view = live({ edits: { causal } });
    const state = after(small_state({ at: "/decoder/0/self_attn/0" }), { type: "seen", view, untouched: view },
      { type: "found", found: numbers, found_before: null }, { type: "step", changes: { step: 1 } });
    assert.equal(state.found, found);
  }
});

// ---- The film

test("a film goes to its end, and then to the step that looks most at one word", () => {
  let state = after(small_state({ at: "/search" }), { type: "play", pace: 800, from: 0, then: "surest" });
  assert.equal(where_to(state), "");
  const seen = [];
  while (state.film) {
    const { film } = state;
    seen.push(state.asked.step);
    state = after(state, { type: "tick" });
    assert.notEqual(state.film, film); // each step is one that the clock sees
  }
  assert.deepEqual(seen, [...state.view.tgt.keys()].slice(0, -1));
  assert.equal(state.asked.step, after(state, { type: "finish" }).asked.step);
});

for (const action of /** @type {Action[]} */ ([{ type: "step", changes: { step: 1 } }, { type: "go", path: "/decoder/1" },
  { type: "predict" }, { type: "stop", by_hand: true }, { type: "lead", to: 0, path: "" }])) {
  test(`“${action.type}” ends a film; only a stop by hand lets it go on from there`, () => {
    const state = after(small_state(), { type: "play", pace: 800, from: 0, then: "stop" }, action);
    assert.equal(state.film, null);
    assert.equal(state.is_stopped, action.type === "stop");
    assert.deepEqual(after(state, { type: "tick" }).asked, state.asked); // one that was on its way
  });
}

test("a film that is stopped to go elsewhere begins anew", () => {
  const state = after(small_state(), { type: "play", pace: 800, from: 0, then: "stop" }, { type: "stop" });
  assert.equal(state.is_stopped, false);
});

// ---- Predict first

test("a guess is of one word, and is over with it", () => {
  const token = { id: 4, label: "▁4", p: 0.5 };
  const state = after(small_state(), { type: "predict" }, { type: "guess", token });
  assert.equal(state.guess, token);
  assert.equal(after(state, { type: "go", path: "/decoder/1" }).guess, token); // the same word
  assert.equal(after(state, { type: "step", changes: { step: 1 } }).guess, null);
  assert.equal(after(state, { type: "seen", view: live(), untouched: live() }).guess, null);
});

test("a view that shows what comes, and another sentence, end the question", () => {
  const state = after(small_state(), { type: "predict" });
  const there = after(state, { type: "go", path: "/cache" });
  assert.equal(there.is_predicting, false);
  assert.match(there.status, /^Predict first is over/);
  const seen = (/** @type {string} */ source) =>
    after(state, { type: "seen", view: live({ source }), untouched: live({ source }) }).is_predicting;
  assert.equal(seen("5 7 4"), true);
  assert.equal(seen("9"), false);
});

test("a search stays until there is a new one, if it is of the same sentence and edits", () => {
  const search = { n_beams: 4, length_penalty: 1, steps: [], hypotheses: [] };
  for (const [view, kept] of /** @type {[View, boolean][]} */ ([
    [live(), true], [live({ source: "9" }), false], [live({ edits: { hide: [0] } }), false]])) {
    const state = after(small_state(), { type: "searched", search }, { type: "seen", view, untouched: view });
    assert.equal(state.search, kept ? search : null);
  }
});

// ---- What is changed, in words

for (const [words, edits, more] of /** @type {[string, State["asked"]["edits"], object?][]} */ ([
  ["", {}], ["", { hide: [] }],
  ["head 2 of encoder layer 1, self-attention cut", { without: { "encoder.layers.0.self_attn": [1] } }],
  ["head 2 of encoder layer 1, self-attention cut, cross-attention cut in layer 1", { without: CUT }],
  ["cross-attention cut in all layers", { without: { "decoder.layers.0.cross_attn": [0, 1],
    "decoder.layers.1.cross_attn": [0, 1] } }],
  ["hidden: “5”, “4”, the causal mask off", { hide: [0, 2], causal: false }],
  ["a word chosen by hand", {}, { forced: [4] }],
  ["target positions off, a word chosen by hand, and those before it kept, sampled tokens",
    { tgt_positions: false }, { forced: [4, 5], method: "sample" }],
])) {
  test(`the changes are: “${words}”`, () => {
    const state = after(small_state(), { type: "ask", changes: { edits, ...more } });
    assert.equal(changes_of(state), words);
    assert.equal(is_current(state), words === "" && !edits.hide);
    assert.equal(waits(state), !is_current(state));
  });
}

test("beside a changed translation stands the untouched one, if it is of the same sentence", () => {
  const edits = { causal: false }, asked = after(small_state(), { type: "ask", changes: { edits } });
  const asks = JSON.stringify(["5 7 4", edits, [], "greedy", 1, 1, 1]);
  const says = (/** @type {View} */ view, /** @type {View} */ untouched) =>
    beside(after(asked, { type: "seen", view, untouched }));
  assert.equal(says(live({ edits, text: "6" }, asks), live({ text: "7" })), "Without changes: “7”");
  assert.equal(says(live({ edits, text: "6" }, asks), live({ text: "6" })), "The same words as without changes.");
  assert.equal(says(live({ edits, text: "6" }, asks), live({ source: "9" })), "");
  assert.equal(says(live({ edits, text: "6" }, "older"), live({ text: "7" })), "");
  const drawn = after(small_state(), { type: "ask", changes: { method: "sample" } });
  const same = live({ text: "6" }, JSON.stringify(["5 7 4", {}, [], "sample", 1, 1, 1]));
  assert.match(beside(after(drawn, { type: "seen", view: same, untouched: live({ text: "6" }) })), /^Drawn: the same words/);
});

test("an item is put into a list, in order, or taken out", () => {
  assert.deepEqual(toggled([1, 5], 3), [1, 3, 5]);
  assert.deepEqual(toggled([1, 3, 5], 3), [1, 5]);
});
