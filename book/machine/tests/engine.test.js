// The engine's parts by hand; against PyTorch it is tested in tests/test_browser_engine.py.

import assert from "node:assert/strict";
import { test } from "node:test";

import { translator_tasks } from "../tasks.js";
import { CONFIG, E, shipped_tokenizer } from "./model.js";

/** @param {ArrayLike<number>} found @param {ArrayLike<number>} expected */
function assert_close(found, expected, gap = 1e-5) {
  assert.equal(found.length, expected.length);
  Array.from(found, (x, i) => assert.ok(Math.abs(x - expected[i]) < gap, `${i}: ${x}, ${expected[i]}`));
}

// ---- Numbers

test("log-probabilities add up to 1, however large the logits are", () => {
  const p = E.log_softmax(Float32Array.of(1000, 1001, -1000)).map(Math.exp);
  assert_close(p, [1 / (1 + Math.E), Math.E / (1 + Math.E), 0]);
});

test("the best tokens come in order, the first of equal ones first", () => {
  const scores = Float32Array.of(1, 5, 3, 5, 4);
  assert.deepEqual(E.top_tokens(scores, 3), [[5, 1], [5, 3], [4, 4]]);
});

test("top-p keeps the fewest tokens that have it together", () => {
  const log_probs = Float32Array.of(0.5, 0.3, 0.2).map(Math.log);
  assert_close(E.probabilities(log_probs, { top_p: 0.6 }), [0.625, 0.375, 0]);
  assert_close(E.probabilities(log_probs, { temperature: 0.5 }), [25 / 38, 9 / 38, 4 / 38]);
});

// ---- The model

test("weights that are missing are named", () => {
  assert.throws(() => new E.Transformer(CONFIG, new Map()), /there are no weights encoder\.layers\.0/);
});

test("a task before the model is there says so", () => {
  const { tasks } = translator_tasks(E);
  assert.throws(() => tasks.tokens({ text: "Hund" }), /isn’t loaded/);
});

// ---- Texts

const tokenizer = shipped_tokenizer();

test("half a character is refused", () => {
  assert.throws(() => tokenizer.encode("Hund \ud83d"), /half a character/);
});
