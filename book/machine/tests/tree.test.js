// Beam search as a tree, and what the cache has saved, of a real search in the small model.

import assert from "node:assert/strict";
import { test } from "node:test";

import { counts_after } from "../cache.js";
import { markup } from "../draw.js";
import { ranked } from "../search.js";
import { draw_tree, grow, sentence } from "../tree.js";
import { small_tasks, stored_view } from "./model.js";

const view = stored_view(), tasks = small_tasks();
const found = tasks.search({ src: view.src, edits: {}, n_beams: 3 }), columns = grow(found, view.tgt);

test("each candidate grows from the beam that it continues", () => {
  for (const node of columns.flat()) {
    const from = columns[node.t - 1]?.find((each) => each === node.from);
    assert.equal(node.t === 0, !from);
    if (from) assert.ok(from.fate === "beam" && node.text.startsWith(from.text));
  }
});

test("beams stand above all others of their step, each in a row of its own", () => {
  for (const nodes of columns) {
    assert.deepEqual(nodes.map(({ row }) => row).sort((a, b) => a - b), [...nodes.keys()]);
    const beams = nodes.filter(({ fate }) => fate === "beam").map(({ row }) => row);
    assert.equal(Math.max(-1, ...beams) + 1, beams.length);
  }
});

test("the path of the translation has one candidate a step, as long as it is in the beam", () => {
  const on_path = columns.map((nodes) => nodes.filter((each) => each.on_path));
  assert.equal(on_path[0].length, 1);
  const n_left = on_path.findIndex((nodes) => nodes.length !== 1);
  assert.ok(on_path.slice(n_left < 0 ? on_path.length : n_left).every((nodes) => !nodes.length));
});

test("a step says how many are kept, and the last one why the search ends", () => {
  assert.match(sentence(columns, 0, "greedy search"), /^Step 1: 3 kept, \d dropped\. The path of greedy search/);
  assert.match(sentence(columns, columns.length - 1, "greedy search"), /The search ends: /);
});

test("the drawing has the nodes of its step, and of those before it what was kept", () => {
  const svg = markup(draw_tree(columns, 1, view, "Greedy"));
  const n_nodes = columns[1].length + columns[0].filter(({ fate }) => fate !== "dropped").length;
  assert.equal(svg.split("<path").length - 1, n_nodes); // one edge each
  assert.ok(!svg.includes("NaN"));
});

test("another length penalty ranks the same hypotheses anew", () => {
  const hypotheses = [[-2, 4], [-1, 1], [-3, 8]].map(([log_prob, n]) =>
    ({ ids: Array(n).fill(5), log_prob, score: 0, finished: true, labels: [], text: "" }));
  const lengths = (/** @type {number} */ alpha) =>
    ranked({ ...found, hypotheses }, alpha).map(({ ids }) => ids.length);
  assert.deepEqual(lengths(0), [1, 4, 8]);
  assert.deepEqual(lengths(1), [8, 4, 1]);
});

test("the cache saves multiplications from the second step on", () => {
  const { steps } = found;
  assert.deepEqual(Object.values(counts_after(steps, -1)), [0, 0, 0, 0]);
  const { multiplications, without, n_bytes } = counts_after(steps, steps.length - 1);
  assert.ok(multiplications < without && n_bytes > counts_after(steps, 0).n_bytes);
});
