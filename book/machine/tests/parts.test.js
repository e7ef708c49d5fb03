// Parts of the reader's in the machine: who is asked, what is told, and what can't leave the page.

import assert from "node:assert/strict";
import { test } from "node:test";

import { address_of, asked_in, checked } from "../address.js";
import { App } from "../app.js";
import { markup } from "../draw.js";
import { draw, middle_layer, place_of } from "../levels.js";
import { caption_of } from "../share.js";
import { what_it_shows } from "../sentences.js";
import { beside, changes_of, is_current, ran_in_words } from "../state.js";
import { NAMES } from "../yours/parts.js";
import { completed, Shared } from "../yours/shared.js";
import { CONFIG, small_engine, small_state, small_tasks } from "./model.js";

/** @import { Edits, Packed, Python, Sources, State, Work } from "../types.d.ts" */

const PACKED = /** @type {Packed} */ ({ config: CONFIG, tokens: [], merges: [], tensors: [], data: "AAAA" });
const WRONG = "def scaled_dot_product_attention(): ...";

/** A Python that computes with the small model; what is used of a part switches its positions off
 *  @param {{ [task: string]: (question: any) => unknown }} [others] answers of its own */
function fake_python(others = {}) {
  const tasks = /** @type {{ [task: string]: Function }} */ ({ ...small_tasks(), load: () => ({}), use: () => ({}) });
  const asked = /** @type {[string, any][]} */ ([]);
  const python = {
    worker: 1, asked, n_stopped: 0,
    async start(/** @type {(came: { loaded: number, total: number }) => void} */ on_progress) {
      on_progress({ loaded: 3e6, total: 6e6 });
    },
    /** @type {Python["ask"]} */
    async ask(task, question, { on_progress } = {}) {
      asked.push([task, question]);
      await null;
      on_progress?.(0.5);
      if (others[task]) return others[task](question);
      const { edits, ...rest } = /** @type {{ edits?: Edits }} */ (question);
      return tasks[task](edits ? { ...rest, edits: { src_positions: false } } : rest);
    },
    stop() { python.n_stopped++; },
  };
  return python;
}

/** @param {string} name @param {string} message */
const error_of = (name, message) => Object.assign(new Error(message), { name });

/** An app whose model is there, with a Python, and what the reader has written
 *  @param {Sources} sources @param {Parameters<typeof fake_python>[0]} [others] */
function app_with(sources, others = {}, at = "") {
  const python = fake_python(others), yours = { python: () => python, shared: new Shared(() => python), completed };
  const app = new App(small_state({ at }), { addresses: [], find_python: async () => yours, stored: () => sources });
  const engine = small_engine(), told = /** @type {string[]} */ ([]);
  app.engine = (task, question) => {
    told.push(task);
    return engine(task, question);
  };
  app.packed = PACKED;
  app.dispatch({ type: "ready" });
  app.know(Object.keys(sources));
  return { app, python, told, names: () => python.asked.map(([task]) => task) };
}

/** @param {App} app @param {(state: State) => unknown} condition */
async function until(app, condition) {
  for (let n = 0; !condition(app.state); n++) {
    assert.ok(n < 1000, `${condition}`);
    await new Promise(setImmediate);
  }
}

// ---- Who answers

test("a question of the reader’s parts goes to Python, and all others to the engine", async () => {
  const { app, told, names, python } = app_with({ attention: "a", masks: "m" });
  await app.ask({ text: "9 6", edits: { causal: false } });
  assert.deepEqual(names(), []);
  told.length = 0;
  await app.switch_yours(true);
  assert.deepEqual(told, ["tokens"]); // the untouched sentence is known
  assert.deepEqual(names(), ["load", "use", "write", "look"]);
  const [[, { packed }], [, { parts }], [, write], [, look]] = python.asked;
  assert.deepEqual(Object.keys(look), ["src", "tgt", "edits"]); // Python takes nothing that it isn't asked
  assert.deepEqual([...packed.data], [0, 0, 0]); // bytes
  assert.deepEqual(parts, { attention: "a", masks: "m" });
  assert.deepEqual(write.edits, { causal: false, yours: ["attention", "masks"] });
  assert.deepEqual(app.state.untouched.edits, {});
  assert.ok(is_current(app.state) && !app.state.is_busy && !app.state.work);
  await app.undo_all();
  assert.deepEqual(names().length, 4);
  assert.equal(app.state.view.edits.yours, undefined);
});

test("sources are handed over once, and again where they or the worker are others", async () => {
  const { app, python, names } = app_with({ attention: "a" });
  const count = (/** @type {string} */ task) => names().filter((name) => name === task).length;
  await app.run({ attention: "b" }, "");
  await app.run({ attention: "b" }, "");
  assert.deepEqual([count("load"), count("use"), count("write")], [1, 1, 2]);
  await app.run({ attention: WRONG }, "leave out √d");
  assert.deepEqual([count("load"), count("use")], [1, 2]);
  python.worker++;
  await app.run({ attention: WRONG }, "leave out √d");
  assert.deepEqual([count("load"), count("use")], [2, 3]);
});

test("a run tells what came out, and another machine’s sources don’t mix with it", async () => {
  const { app, python } = app_with({});
  const other = new App(small_state(), { addresses: [], find_python: app.find_python, stored: () => ({ masks: "m" }) });
  Object.assign(other, { engine: app.engine, packed: PACKED });
  other.dispatch({ type: "ready" });
  other.know(["masks"]);
  const [ran] = await Promise.all([app.run({ attention: WRONG }, "leave out √d", "9 6"), other.switch_yours(true)]);
  assert.equal(ran.text, app.state.view.text);
  assert.equal(ran.before, app.state.untouched.text);
  assert.equal(ran.words, "the book’s attention with a mistake: “leave out √d”");
  assert.ok(ran.ms >= 0 && ran.cut === (app.state.view.tgt.at(-1) !== 2)); // <eos>
  assert.equal(app.state.view.trying, "leave out √d");
  assert.ok(!app.state.untouched.trying && !other.state.view.trying);
  const drawn = ["", "/encoder/0", "/decoder/1", "/decoder/1/cross_attn/1"].map((path) =>
    markup(draw(app.state.view, place_of(path, CONFIG), null, { row: 0, tall: false, before: null }))).join();
  assert.ok(!/yours?\b/.test(drawn) && /changed: attention/.test(drawn) && / · changed/.test(drawn)); // it isn't the reader's
  assert.match(drawn, /Open encoder layer 1: the book’s attention with a mistake: “leave out √d”/);
  let used = "";
  for (const [task, { parts, edits }] of python.asked) { // each with its own
    if (task === "use") used = Object.keys(parts).join();
    if (edits) assert.equal(used, edits.yours.join());
  }
  assert.equal(python.asked.filter(([task]) => task === "load").length, 1);
});

test("numbers, searches and losses are Python’s, too", async () => {
  const { app, python } = app_with({ heads: "h" }, {}, "/operate");
  await app.switch_yours(true);
  await until(app, ({ losses }) => losses);
  app.dispatch({ type: "go", path: "/search" });
  await until(app, ({ search }) => search);
  app.dispatch({ type: "go", path: "/decoder/0/cross_attn/1" });
  await until(app, ({ found }) => found);
  const asked = python.asked.slice(2).map(([task, { edits }]) => `${task} ${edits.yours}`);
  assert.deepEqual(asked, ["write heads", "look heads", "loss heads", "search heads", "head heads"]);
});

test("a question that nobody waits for is not asked", async () => {
  const { app, names } = app_with({ attention: "a" });
  await Promise.all(["9", "8", "6 6"].map((text) => app.ask({ text, edits: { yours: ["attention"] } })));
  assert.equal(app.state.view.source, "6 6");
  assert.ok(names().filter((name) => name === "write").length <= 2);
});

// ---- What goes wrong

for (const [name, message, says] of /** @type {[string, string, RegExp][]} */ ([
  ["Problem", "Your attention returns a list.", /^Your attention returns a list\.$/],
  ["TooLong", "For ten seconds nothing came.", /^For ten seconds nothing came\.$/],
  ["Stopped", "You’ve stopped it.", /^You’ve stopped it\.$/],
  ["Lost", "Python didn’t come.", /^Python didn’t come\.$/],
  ["RangeError", "too deep", /^That didn’t work: too deep\.$/],
])) {
  test(`what goes wrong is told: ${name}`, async () => {
    const { app } = app_with({ attention: "a" }, { use: () => { throw error_of(name, message); } });
    await app.switch_yours(true);
    assert.match(app.state.status, says);
    assert.ok(!app.state.is_busy && !app.state.work && !is_current(app.state));
    await assert.rejects(app.run({ attention: "b" }, ""), { message: says });
    await app.undo_all(); // and all is as it was
    assert.ok(is_current(app.state) && app.state.status === "");
  });
}

test("sources that failed are handed over again", async () => {
  let n_used = 0;
  const { app } = app_with({ attention: "a" }, { use: () => {
    if (!n_used++) throw error_of("Problem", "No.");
    return {};
  } });
  await app.switch_yours(true);
  assert.equal(app.state.status, "No.");
  await app.ask({});
  assert.ok(n_used === 2 && is_current(app.state));
});

test("a translation without a token is a sentence, one that was cut says so", async () => {
  const { app } = app_with({ search: "s" }, { write: () => ({ ids: [], text: "" }) });
  await app.switch_yours(true);
  assert.equal(app.state.status, "Your code wrote nothing, not even the end of a sentence.");
  for (const [ids, cut, says] of /** @type {[number[], boolean, string][]} */ ([[[5, 5, 5], true, "It was cut after 3 tokens"],
    [[5, 5], false, "It was cut after 2 tokens"], [[5, 2], false, ""], [[5, 2], true, "It was cut after 2 tokens"]])) {
    const long = app_with({ search: "s" }, { write: () => ({ ids, text: "5", cut, ms: 1500 }) }).app;
    await long.switch_yours(true);
    assert.equal(ran_in_words(long.state), says && `${says}, since it never ended by itself.`);
    const ran = await long.run({ search: "t" }, ""); // apart from the translation
    assert.deepEqual([ran.cut, ran.problem, ran.text.includes("cut")], [Boolean(says), ran_in_words(long.state), false]);
  }
});

test("a part that was forgotten is switched off, and one that isn’t there is named", async () => {
  const { app } = app_with({ attention: "a", masks: "m" });
  await app.switch_yours(true);
  app.know(["masks"]);
  assert.deepEqual(app.state.asked.edits.yours, ["masks"]);
  await app.ask({ edits: { yours: ["heads"] } });
  assert.match(app.state.status, /^There is no heads of yours any more/);
});

test("a model that shows less is drawn as far as it goes", async () => {
  const { app } = app_with({ model: "m" }, { look: ({ src, tgt }) => ({ src, tgt, src_labels: src.map(String),
    tgt_labels: tgt.map(String), text: "5", maps: {}, norms: {}, log_probs: [NaN], next: [] }) });
  await app.switch_yours(true);
  const { view } = app.state;
  assert.deepEqual(Object.keys(view.maps), app.state.attentions);
  assert.equal(view.norms.decoder.length, CONFIG.n_decoder_layers + 1);
  assert.equal(view.layers[1][0][0].label, "?");
  assert.ok(view.next.every(([{ p }]) => p === undefined) && view.log_probs.every(Number.isNaN));
  for (const path of ["", "/decoder/1", "/decoder/1/cross_attn/1", "/encoder/0"]) {
    const place = place_of(path, CONFIG), svg = markup(draw(view, place, null, { row: 0, tall: false, before: null }));
    assert.ok(svg.includes("?") && !/="[^"]*(NaN|undefined)/.test(svg));
  }
});

test("Python’s progress is the machine’s: first bytes, then one run of writing and looking", async () => {
  const { app } = app_with({ attention: "a" }), works = /** @type {(Work|null)[]} */ ([]);
  app.on(({ work }, before) => { if (work !== before.work) works.push(work); });
  await app.switch_yours(true);
  assert.deepEqual(works[0], { what: "python", share: 0.5, size: "6.0 MB" });
  const shares = works.filter((work) => work?.what === "code").map((work) => work?.share);
  assert.ok([0.35, 0.7, 0.85].every((share) => shares.some((x) => x && Math.abs(x - share) < 1e-9)), `${shares}`);
  assert.equal(works.at(-1), null);
});

// ---- What is told

test("padding behind the sentence is told where there is any", async () => {
  const { app } = app_with({ masks: "m" }, { write: () => ({ ids: [5, 2], text: "5", padding: 4 }) });
  const { problem } = await app.run({ masks: "n" }, "padding is seen");
  assert.equal(problem, "Four padding tokens stand behind the sentence, as in a batch.");
});

for (const [what, factor, padding, says, never] of /** @type {[string, number, number, RegExp, RegExp][]} */ ([
  ["a row that sums to 1", 1, 0, /layer \(.*\) looked most at/, /padding|sum to/],
  ["padding that gets a quarter", 0.75, 0.25, /looked most at .*; 25% went to padding/, /sum to/],
  ["padding that gets most", 0.2, 0.8, /looked most at padding; of the words, at .*; 80% went to padding/, /sum to/],
  ["rows that don’t sum to 1", 2.3, 0, /gave the German weights that sum to 230%, not to 100%\./, /as sure|looked/],
])) {
  test(`what a step looked at: ${what}`, () => {
    const { app: { state } } = app_with({}), { view } = state;
    const name = `decoder.layers.${middle_layer(view)}.cross_attn`, n = view.src.length;
    const heads = view.maps[name].map((head) => Array.from(head)).map((head) => head.map((x, i) => {
      const at = i - i % n, sum = head.slice(at, at + n).reduce((a, b) => a + b);
      return factor * x / sum;
    }));
    const padded = { [name]: heads.map(() => view.tgt.map(() => padding)) };
    for (const step of view.tgt.keys()) {
      const told = what_it_shows({ ...state, asked: { ...state.asked, step },
        view: { ...view, maps: { ...view.maps, [name]: heads }, padded } });
      assert.match(told, says);
      assert.doesNotMatch(told, never);
    }
  });
}

test("the whole translation isn’t told as what is written so far", async () => {
  const { app } = app_with({ search: "s" });
  await app.switch_yours(true);
  app.dispatch({ type: "size", tall: true });
  assert.ok(what_it_shows(app.state).endsWith(` The whole translation: “${app.state.view.text}”`));
});

for (const [words, yours, more] of /** @type {[string, string[], object?][]} */ ([
  ["your attention, your masks; the rest is the book’s", ["masks", "attention"]],
  ["source positions off, a word chosen by hand, your search; the rest is the book’s", ["search"],
    { forced: [4], edits: { yours: ["search"], src_positions: false } }],
  ["all nine parts are yours", NAMES],
  ["the book’s masks with a mistake: “upside down”", ["masks"], { trying: "upside down" }],
])) {
  test(`whose it is: “${words}”`, () => {
    const { app } = app_with(Object.fromEntries(yours.map((name) => [name, "x"])));
    app.dispatch({ type: "ask", changes: { edits: { yours }, ...more } });
    assert.equal(changes_of(app.state), words);
  });
}

test("code of the reader’s alone: how many lines, how long", async () => {
  const { app } = app_with(Object.fromEntries(NAMES.map((name) => [name, 'one\n  """A\n\n  text."""\n\n# a note\n  two\n'])),
    { write: () => ({ ids: [5, 2], text: "5", ms: 849 }) });
  await app.switch_yours(true);
  assert.equal(ran_in_words(app.state), "This sentence was translated by your code alone: 18 lines, 0.8 s.");
  const others = app.state.untouched.text;
  assert.equal(beside(app.state), `instead of “${others}”`);
  assert.match(caption_of(app.state), /^I changed a Transformer \(all nine parts are mine\)/);
});

// ---- What can't leave the page

test("an address never holds code of the reader’s, or that it is on", async () => {
  const { app } = app_with({ attention: "a" });
  const without = address_of(app.state);
  await app.switch_yours(true);
  assert.equal(address_of(app.state), without);
  await app.run({ attention: WRONG }, "leave out √d");
  assert.equal(address_of(app.state), without);
});

test("an address that holds it is refused, and the tab’s own memory is taken", () => {
  const { config, attentions } = small_state(), model = { config, attentions, parts: ["attention"] };
  const values = { edits: { yours: ["attention"] } }, text = encodeURIComponent(JSON.stringify(values));
  assert.throws(() => asked_in(text, model), { message: /^edits can’t be / });
  for (const name of ["attempt", "trying"]) {
    assert.throws(() => asked_in(`{"${name}":1}`, model), { message: new RegExp(`^${name} can’t be `) });
  }
  assert.deepEqual(checked(values, model, ["attention"]), values);
  for (const yours of [["masks"], [], "attention", ["attention", 5]]) {
    assert.throws(() => checked({ edits: { yours } }, model, ["attention"]));
  }
});
