// What stands under the German of the sister model.

import assert from "node:assert/strict";
import { test } from "node:test";

import { looked_words } from "../gloss.js";

/** @import { Look } from "../types.d.ts" */

test("a word has the word that was looked at most as its first piece was written", () => {
  const src_labels = ["▁two", "▁dan", "cers", ".", "<eos>"];
  const tgt_labels = ["▁Zwei", "▁Tän", "zerinnen", ".", "<eos>"];
  // Rows write, columns are read; a full stop and the end are no words.
  const weights = [[0.6, 0.1, 0.1, 0.1, 0.1], [0.1, 0.1, 0.3, 0.4, 0.1], [1, 0, 0, 0, 0],
    [0, 0, 0, 1, 0], [0, 0, 0, 0, 1]].flat();
  const look = /** @type {Look} */ (/** @type {unknown} */ ({ src_labels, tgt_labels,
    norms: { decoder: [[], [], [], []] }, maps: { "decoder.layers.1.cross_attn": [weights, weights] } }));
  assert.deepEqual(looked_words(look), [["Zwei", "two"], ["Tänzerinnen", "dancers"]]);
});
