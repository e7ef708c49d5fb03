// The desk without a page: what is kept, what is said, and what each action makes of it.

import assert from "node:assert/strict";
import { test } from "node:test";

import { first_state, is_current, is_draft, is_older, kept_of, made_with, reduce,
  spoken } from "../yours/state.js";
import { FORBIDDEN, FULL, parsed, Store } from "../yours/store.js";
import { file_of, is_same, loading_words, notebook_of, outcome, seconds, slow_words, tidied,
  try_words } from "../yours/text.js";

/** @import { Action, Answer, Desk, Kept, Part, Translated } from "../yours/types.d.ts" */

/** @type {Part} */
const PART = { name: "attention", title: "Attention", names: "attend", owned: "your attention",
  stub: "def attend(q):\n    ...\n", solution: "def attend(q):\n    return q\n", sentence: "Ein Hund.",
  tries: [{ label: "leave out √d", source: "def attend(q):\n    return 2 * q\n", why: "They grow.", changed: 9 }],
  edition: "2", preamble: "import torch\n", setup: "%pip install x" };
const OWN = "def attend(q):\n    return q + 0\n";
/** @type {Answer} */
const RIGHT = { status: "right", message: "Well.", printed: "", line: null, runs: true, ms: 3 };
/** @type {Answer} */
const WRONG = { ...RIGHT, status: "wrong", message: "Divide by `d`." };

/** @param {Kept|null} kept @param {Action[]} actions */
const after = (kept, ...actions) => actions.reduce(reduce, first_state(PART, kept));
/** @param {string} text @returns {Action} */
const type = (text) => ({ type: "type", text });
/** @param {string} text @param {Answer} answer @returns {Action[]} */
const checked = (text, answer) => [type(text), { type: "start", what: "check" }, { type: "answer", answer, text }];
/** @param {Partial<Kept>} more @returns {Kept} */
const kept = (more = {}) => ({ text: OWN, edition: "2", best: "", attempts: 0, away: null, ...more });

/** A browser's storage that can be full or forbidden @param {string} [refuses] */
function storage(refuses = "") {
  const held = /** @type {{ [key: string]: string }} */ ({});
  const methods = { getItem: (/** @type {string} */ key) => held[key] ?? null,
    removeItem: (/** @type {string} */ key) => { delete held[key]; },
    setItem(/** @type {string} */ key, /** @type {string} */ value) {
      if (refuses === "full") throw new DOMException("", "QuotaExceededError");
      held[key] = value;
    } };
  for (const [name, act] of Object.entries(methods)) Object.defineProperty(held, name, { value: act });
  return () => {
    if (refuses === "forbidden") throw new DOMException("", "SecurityError");
    return /** @type {Storage} */ (/** @type {unknown} */ (held));
  };
}
globalThis.window ??= /** @type {any} */ (new EventTarget());

// ---- What the browser keeps

test("nothing is kept until something is written, and then all of it", () => {
  assert.equal(kept_of(after(null)), null);
  assert.deepEqual(kept_of(after(null, type(OWN))), kept());
  const { text, best, attempts } = after(kept({ best: "x", attempts: 3 }));
  assert.deepEqual({ text, best, attempts }, { text: OWN, best: "x", attempts: 3 });
});

test("the store gives back what it was given, and of all parts those that are right", () => {
  const store = new Store(storage());
  assert.equal(store.read("attention"), null);
  assert.equal(store.write("attention", kept({ best: OWN })), "");
  store.write("masks", kept());
  assert.deepEqual(store.read("attention"), kept({ best: OWN }));
  assert.deepEqual(store.sources(), { attention: OWN });
  store.write("attention", null);
  assert.equal(store.read("attention"), null);
});

test("a storage that is full or forbidden throws nothing, and is told of", () => {
  for (const [refuses, words] of [["full", FULL], ["forbidden", FORBIDDEN]]) {
    const store = new Store(storage(refuses));
    assert.equal(store.write("attention", kept()), words);
    assert.equal(store.read("attention"), null);
    assert.deepEqual(store.sources(), {});
  }
});

test("a spoiled entry is a text all the same", () => {
  for (const stored of ["{", "[1]", "null", '"x"', '{"text": 3}']) {
    assert.deepEqual(parsed(stored), kept({ text: stored, edition: "" }));
  }
});

// ---- What becomes of a text

test("the text is put away, never lost, by what takes its place", () => {
  const tried = after(null, ...checked("a", WRONG), ...checked("b", WRONG));
  for (const action of /** @type {Action[]} */ ([{ type: "again" }, { type: "solution" }])) {
    const state = reduce(tried, action);
    assert.notEqual(state.text, "b");
    assert.equal(state.away, "b");
    assert.equal(kept_of(state)?.away, "b");
    const back = reduce(state, { type: "back" });
    assert.equal(back.text, "b");
  }
  const there = after(null, type("mine"), { type: "enter" }, { type: "elsewhere", kept: kept() });
  assert.equal(there.text, "mine");
  const taken = reduce(there, { type: "take" });
  assert.deepEqual([taken.text, taken.away, taken.other], [OWN, "mine", null]);
  const mine = reduce(there, { type: "keep" });
  assert.deepEqual([mine.text, mine.other], ["mine", null]);
  const untouched = after(null, { type: "elsewhere", kept: kept() });
  assert.equal(untouched.text, OWN);
});

test("while another tab's text is asked about, this tab's is put away", () => {
  const asked = after(null, type("mine"), { type: "enter" }, { type: "elsewhere", kept: kept() },
    type("mine, and more"));
  assert.deepEqual(kept_of(asked), kept({ away: "mine, and more" }));
  assert.equal(reduce(first_state(PART, kept_of(asked)), { type: "back" }).text, "mine, and more");
  const there = after(kept(), { type: "enter" }, type("typed on"),
    { type: "elsewhere", kept: kept_of(asked), is_known: true });
  assert.deepEqual([there.text, there.away, there.other], ["typed on", "mine, and more", null]);
});

test("two texts change places: none is lost by having the other back", () => {
  const state = after(kept({ away: "x" }), { type: "back" });
  assert.deepEqual([state.text, state.away], ["x", OWN]);
});

test("what has been put away isn't written over by what is nobody's", () => {
  const state = after(kept({ attempts: 2 }), { type: "solution" }, { type: "again" });
  assert.deepEqual([state.text, state.away], [PART.stub, OWN]);
});

test("the solution asks before it takes the place of the reader's text", () => {
  const ask = /** @type {Action} */ ({ type: "ask", what: "solution" });
  const own = after(kept({ attempts: 2 }), ask);
  assert.deepEqual([own.text, own.asks], [OWN, "solution"]);
  assert.equal(after(kept({ attempts: 2, text: PART.stub }), ask).text, PART.solution);
  const early = after(kept({ attempts: 1 }), ask);
  assert.deepEqual([early.text, early.asks], [OWN, null]);
  assert.match(early.note, /1 to go/);
});

test("the solution comes after two attempts, of different texts", () => {
  let state = after(null, { type: "solution" });
  assert.match(state.note, /after 2 attempts: 2 to go/);
  state = [...checked("a", WRONG), ...checked("a", WRONG)].reduce(reduce, state);
  assert.equal(state.attempts, 1);
  assert.equal(reduce(state, { type: "solution" }).text, "a");
  state = checked("b", { ...WRONG, status: "error" }).reduce(reduce, state);
  assert.equal(reduce(state, { type: "solution" }).text, PART.solution);
  const open = after(null, ...checked("c", { ...WRONG, status: "open" }));
  assert.equal(open.attempts, 0);
});

test("a part is the reader's by a right text of their own, not by the book's", () => {
  assert.equal(after(null, ...checked(OWN, WRONG)).best, "");
  assert.equal(after(null, ...checked(`${PART.solution}\n  `, RIGHT)).best, "");
  const state = after(null, ...checked(OWN, RIGHT));
  assert.equal(state.best, OWN);
  assert.equal(reduce(state, type("spoiled")).best, OWN);
});

test("an answer is about the text that was checked", () => {
  const state = after(null, ...checked(OWN, RIGHT));
  assert.ok(is_current(state));
  assert.ok(!is_current(reduce(state, type("more"))));
});

test("an older edition's text stays, and is said to be one until it is right", () => {
  const state = after(kept({ edition: "1" }));
  assert.equal(state.text, OWN);
  assert.ok(is_older(state));
  assert.ok(is_older(reduce(state, type("more"))));
  assert.ok(!is_older(checked(OWN, RIGHT).reduce(reduce, state)));
  assert.ok(!is_older(reduce(state, { type: "again" })));
});

test("a draft beside the right text is told of, until it is checked", () => {
  const state = after(kept({ text: "draft", best: OWN }));
  assert.ok(is_draft(state));
  assert.ok(!is_draft(checked("draft", WRONG).reduce(reduce, state)));
  assert.ok(!is_draft(after(kept({ best: OWN }))));
  assert.ok(!is_draft(after(kept())));
});

test("forgotten is all but what the page itself knows", () => {
  const state = after(kept({ best: OWN, away: "x", attempts: 4 }), { type: "enter" }, { type: "forget" });
  assert.equal(kept_of(state), null);
  assert.ok(state.is_entered);
});

test("what fails is told, and lets go", () => {
  const state = after(null, type(OWN), { type: "start", what: "check" },
    { type: "failed", name: "Error", message: "no." });
  assert.deepEqual([state.doing, state.trouble, state.text], [null, "That didn’t work: no.", OWN]);
  const lost = reduce(state, { type: "failed", name: "Lost", message: "Python didn’t come." });
  assert.equal(lost.trouble, "Python didn’t come. Try again.");
  assert.equal(reduce(lost, { type: "start", what: "run" }).trouble, "");
  const told = reduce(state, { type: "failed", name: "Told", message: "That didn’t work: no." });
  assert.equal(told.trouble, "That didn’t work: no."); // once
});

test("a translation is of the text that made it", () => {
  /** @type {Action[]} */
  const run = [{ type: "start", what: "run" },
    { type: "found", found: { text: "A.", before: "A.", ms: 1, words: "", cut: false } }];
  const state = after(null, ...checked(OWN, RIGHT), ...run);
  assert.equal(made_with(state).words, "with yours");
  const spoiled = checked("spoiled", WRONG).reduce(reduce, state);
  assert.deepEqual(made_with(spoiled), { is_past: true, words: "from your last right text" });
  const anyway = run.reduce(reduce, spoiled);
  assert.equal(made_with(anyway).words, "with yours, not right yet");
  const failed = reduce(reduce(spoiled, run[0]), { type: "failed", name: "Problem", message: "no" });
  assert.equal(made_with(failed).words, "from your last right text");
  assert.equal(made_with(reduce(anyway, type("more"))).words, "from an earlier text");
});

// ---- What is said

test("results are spoken, once", () => {
  /** @type {Desk} */
  let state = after(null, type(OWN), { type: "start", what: "check" });
  /** @param {Action} action */
  const next = (action) => {
    const before = state;
    state = reduce(state, action);
    return spoken(state, before);
  };
  assert.equal(next({ type: "load", progress: { loaded: 0, total: 6.3e6 } }),
    "Python is loading: 0.0 of 6.3 MB, once. It runs in this page and sends nothing.");
  assert.equal(next({ type: "load", progress: { loaded: 3.1e6, total: 6.3e6 } }), "");
  assert.equal(next({ type: "answer", answer: { ...WRONG, printed: "x" }, text: OWN }),
    "Not yet: Divide by d. Your code printed something, below.");
  assert.equal(next({ type: "start", what: "run", tried: PART.tries[0] }), "Translating.");
  const found = { text: "A.", before: "B.", ms: 1, words: "", cut: false };
  assert.equal(next({ type: "found", found }), "Leave out √d: this sentence changes; of 40 " +
    "translations, 9 change. They grow. Translation: A. The book’s: B.");
  assert.equal(next({ type: "off" }), "The book’s own again: B.");
  assert.equal(next({ type: "lacks", text: "No words." }), "No words.");
  assert.equal(next({ type: "sentence", text: "Zwei." }), "");
  next({ type: "start", what: "check" });
  assert.equal(next({ type: "answer", answer: RIGHT, text: OWN }), "Right: Well.");
  assert.equal(next({ type: "start", what: "run" }), "");
  assert.equal(next({ type: "found", found: { ...found, before: "A." } }),
    "Translation: A. The same as the book’s.");
});

test("numbers and outcomes in words", () => {
  assert.equal(loading_words({ loaded: 3_100_000, total: 6_300_000 }),
    "Python is loading: 3.1 of 6.3 MB, once. It runs in this page and sends nothing.");
  assert.match(loading_words({ loaded: 5, total: 5 }), /^Python is starting/);
  assert.deepEqual([3, 412, 2345, 12_600].map(seconds), ["0.01 s", "0.41 s", "2.3 s", "13 s"]);
  assert.equal(slow_words(900), "");
  assert.match(slow_words(16_000), /Loops over single numbers/);
  /** @type {Translated} */
  const found = { text: "A.", before: "A.", ms: 1, words: "", cut: false };
  const mask = { label: "no mask", source: "", why: "It sees all." };
  assert.equal(outcome(found), "The same as the book’s.");
  assert.equal(outcome({ ...found, cut: true }), "");
  assert.equal(try_words({ ...mask, changed: 1 }, found),
    "No mask: this sentence stays as it was; of 40 translations, 1 changes. It sees all.");
  assert.match(try_words({ ...mask, changed: 0 }, found), /of 40 translations, none changes\. It sees all\.$/);
  assert.equal(try_words({ ...mask, changed: null }, found),
    "No mask: this sentence stays as it was. It sees all.");
});

// ---- Texts

test("what is pasted becomes what Python reads", () => {
  assert.equal(tidied("def f(x):\r\n\treturn\u00a0x\u200b\r"), "def f(x):\n    return x\n");
  assert.ok(is_same("a  \nb\n\n", "a\r\nb"));
  assert.ok(!is_same("a\n  b", "a\nb"));
});

test("a saved text has its imports, as a file and as a notebook", () => {
  assert.equal(file_of(PART, OWN), `import torch\n\n\n${OWN}`);
  const { cells, nbformat } = JSON.parse(notebook_of(PART, OWN));
  assert.equal(nbformat, 4);
  assert.deepEqual(cells.map((/** @type {{ source: string[] }} */ { source }) => source.join("")),
    ["%pip install x", `import torch\n\n\n${OWN}`.trimEnd()]);
  assert.equal(JSON.parse(notebook_of({ ...PART, setup: "" }, OWN)).cells.length, 1);
});
