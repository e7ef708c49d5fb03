// What the page asks of the model, and when an answer comes too late.

import assert from "node:assert/strict";
import { test } from "node:test";

import { App } from "../app.js";
import { asks_of_worker } from "../model.js";
import { caption_of } from "../share.js";
import { asks_of, is_current, needs_model } from "../state.js";
import { small_engine, small_state } from "./model.js";

/** @import { Ask, State } from "../types.d.ts" */

/** An app whose model is there; it notes what is asked @param {Parameters<typeof small_state>[0]} page */
function ready_app(page = {}) {
  const app = new App(small_state(page), { addresses: [] }), engine = small_engine();
  const asked = /** @type {string[]} */ ([]);
  /** @type {Ask} */
  app.engine = (task, question) => {
    asked.push(task);
    return engine(task, question);
  };
  app.dispatch({ type: "ready" });
  return { app, asked };
}

/** @param {App} app @param {(state: State) => unknown} condition */
async function until(app, condition) {
  for (let n = 0; !condition(app.state); n++) {
    assert.ok(n < 1000, `${condition}`);
    await new Promise(setImmediate);
  }
}

test("a sentence is translated, and what is shown answers what is asked", async () => {
  const { app, asked } = ready_app();
  await app.ask({ text: "9 6", edits: { causal: false } });
  assert.equal(app.state.view.source, "9 6");
  assert.ok(is_current(app.state));
  assert.deepEqual(asked, ["tokens", "write", "look", "write", "look"]); // the untouched model first
  assert.deepEqual(app.state.untouched.edits, {});
  await app.ask({ edits: { hide: [0] } });
  assert.equal(asked.length, 8); // the untouched model is known
});

test("only the last of several questions is answered", async () => {
  const { app } = ready_app(), seen = /** @type {string[]} */ ([]);
  app.on(({ view }, _, { type }) => { if (type === "seen") seen.push(view.source); });
  await Promise.all(["9", "8", "6 6"].map((text) => app.ask({ text })));
  assert.deepEqual(seen, ["6 6"]);
  assert.equal(app.state.is_busy, false);
});

test("a sentence that is too long is told with both numbers, and the old one stays", async () => {
  const { app } = ready_app();
  await app.ask({ text: Array(21).fill(5).join(" ") });
  assert.equal(app.state.status,
    "This has 22 tokens, and the model reads 20 at most. Take a part of it.");
  assert.equal(app.state.view.source, "5 7 4");
  assert.equal(app.state.asked.text, "5 7 4"); // nothing is waited for
  assert.equal(app.state.is_busy, false);
});

test("a search is asked for once a view, where it is to be seen", async () => {
  const { app, asked } = ready_app();
  await app.ask({ text: "9 6" });
  assert.ok(!asked.includes("search"));
  app.dispatch({ type: "go", path: "/search" });
  app.dispatch({ type: "go", path: "/cache" });
  await until(app, ({ search }) => search);
  app.dispatch({ type: "go", path: "/search" });
  assert.equal(asked.filter((task) => task === "search").length, 1);
  await app.ask({ n_beams: 2 });
  assert.equal(app.state.search?.n_beams, 2);
});

test("numbers of a head that was left are not shown with another one", async () => {
  const { app } = ready_app(), heads = /** @type {number[]} */ ([]);
  await app.ask({ text: "9 6" });
  app.on(({ found }, _, { type }) => { if (type === "found") heads.push(found ? found.head : -1); });
  for (const head of [0, 1]) app.dispatch({ type: "go", path: `/decoder/0/cross_attn/${head}` });
  await until(app, ({ found }) => found);
  assert.deepEqual(heads, [1]);
});

test("a question that failed is asked again when the reader acts, and not by itself", async () => {
  const { app } = ready_app(), engine = app.engine;
  await app.ask({ text: "9 6" });
  let n_asked = 0;
  app.engine = async () => {
    n_asked++;
    throw new Error("out of memory");
  };
  app.dispatch({ type: "go", path: "/search" });
  await until(app, ({ status }) => status.includes("out of memory"));
  app.status(""); // as any answer that comes
  assert.equal(n_asked, 1);
  app.engine = engine;
  app.dispatch({ type: "go", path: "/cache" });
  await until(app, ({ search }) => search);
});

test("a model that didn’t come is told of once, and what was asked for is done when it comes", async () => {
  const app = new App(small_state(), { addresses: [] }), engine = small_engine();
  app.start = async () => { throw new Error("it is gone"); };
  await app.edit({ causal: false });
  assert.equal(app.state.status, "That didn’t work: it is gone.");
  assert.ok(app.state.is_lost && app.state.loading === null);
  app.start = async () => {
    app.dispatch({ type: "load", share: 0 });
    assert.equal(app.state.status, ""); // it isn’t true any more
    app.engine = engine;
    app.dispatch({ type: "ready" });
    await app.update();
  };
  await app.load();
  assert.deepEqual(app.state.view.edits, { causal: false });
  assert.equal(app.state.is_lost, false);
});

for (const [path, needs] of /** @type {[string, boolean][]} */ ([
  ["", false], ["/decoder/1", false], ["/operate", true], ["/search", true], ["/cache", true],
  ["/decoder/1/cross_attn/1/0", false], ["/decoder/1/cross_attn/0/0", true], // one head is stored
])) {
  test(`${path || "the whole"} ${needs ? "needs" : "doesn’t need"} the model`, () => {
    const app = new App(small_state(), { addresses: [] });
    app.dispatch({ type: "go", path });
    assert.equal(needs_model(app.state), needs);
    assert.equal(needs_model({ ...app.state, is_ready: true }), false);
  });
}

test("a worker that fails fails all that wait, an error in an answer only its question", async () => {
  const ports = /** @type {MessagePort[]} */ ([]);
  const worker = /** @type {Worker} */ (/** @type {unknown} */ (
    { postMessage: (/** @type {unknown} */ _, /** @type {MessagePort[]} */ [port]) => ports.push(port) }));
  const ask = asks_of_worker(worker), told = ["a", "b", "c", "d"].map((text) => ask("tokens", { text }).then(
    () => `${text} answered`, ({ message }) => `${text}: ${message}`));
  ports[0].postMessage({ answer: 1 });
  ports[1].postMessage({ error: "no" });
  assert.deepEqual(await Promise.all(told.slice(0, 2)), ["a answered", "b: no"]);
  worker.onerror?.(/** @type {ErrorEvent} */ (new Event("error")));
  const broken = "this browser can’t run the model";
  assert.deepEqual(await Promise.all(told.slice(2)), [`c: ${broken}`, `d: ${broken}`]);
});

test("a caption says what was changed and what came out", async () => {
  const { app } = ready_app();
  assert.match(caption_of(app.state), /^A Transformer translates “5 7 4” into “.*”$/);
  await app.edit({ src_positions: false });
  assert.match(caption_of(app.state), /^I changed a Transformer \(source positions off\): “5 7 4” (still )?becomes “.*”$/);
});

test("the loss is the untouched model’s and the changed one’s, of the same translation", async () => {
  const { app } = ready_app({ at: "/operate" });
  await app.ask({ edits: { src_positions: false } });
  await until(app, ({ losses }) => losses);
  const { losses, untouched } = app.state;
  assert.ok(losses && typeof losses !== "string" && losses.now);
  assert.deepEqual(losses.labels, untouched.tgt_labels);
  losses.before.forEach((nats, i) => assert.ok(Math.abs(nats + untouched.log_probs[i]) < 1e-5));
  assert.notDeepEqual(losses.now, losses.before);
  await app.ask({ reference: Array(30).fill(5).join(" ") });
  await until(app, ({ losses }) => typeof losses === "string");
  assert.match(String(app.state.losses), /31 tokens, more than 20/);
});

test("nothing is asked of an old view while there will be another one", async () => {
  const { app, asked } = ready_app({ at: "/operate" });
  await app.ask({ text: "9 6" });
  await until(app, ({ losses }) => losses);
  asked.length = 0;
  const done = app.ask({ edits: { src_positions: false } });
  app.dispatch({ type: "step", changes: { step: 1 } });
  await done;
  await until(app, ({ is_measuring }) => !is_measuring);
  assert.deepEqual(asked, ["tokens", "write", "look", "loss", "loss"]);
});

test("what comes while all is drawn has its turn after it", () => {
  const { app } = ready_app(), order = /** @type {string[]} */ ([]);
  app.on(({ status }, _, { type }) => {
    order.push(`${type}: ${status}`);
    if (type === "draw") app.status("later");
  });
  app.on(({ status }) => { order.push(status); });
  app.dispatch({ type: "draw" });
  assert.deepEqual(order, ["draw: ", "", "status: later", "later"]);
});

test("an edit, a head and all of it undone: what is asked", () => {
  const { app } = ready_app(), name = "decoder.layers.0.cross_attn", at_first = asks_of(app.state.asked);
  app.cut_head(name, 1);
  app.cut_head(name, 0);
  app.edit({ causal: false });
  assert.deepEqual(app.state.asked.edits, { without: { [name]: [0, 1] }, causal: false });
  app.cut_head(name, 1);
  assert.deepEqual(app.state.asked.edits.without, { [name]: [0] });
  app.undo_all();
  assert.equal(asks_of(app.state.asked), at_first);
});

test("a change leads to the first word that it changes, and its end to none", async () => {
  const { app } = ready_app();
  await app.ask({ text: "9 6" });
  await app.cut({ "decoder.layers.0.cross_attn": [0, 1], "decoder.layers.1.cross_attn": [0, 1] });
  const { view, untouched, asked: { step } } = app.state;
  assert.deepEqual(view.tgt.slice(0, step), untouched.tgt.slice(0, step));
  assert.notEqual(view.tgt[step], untouched.tgt[step]);
  app.show({ step: step + 1 });
  await app.edit({ without: {} });
  assert.equal(app.state.asked.step, step + 1);
});
