import assert from "node:assert/strict";
import { test } from "node:test";

import { level_of, path_of, place_of, WHOLE } from "../levels.js";

const CONFIG = { n_heads: 8, n_encoder_layers: 3, n_decoder_layers: 3 };

test("a path leads to its place and back, at every level", () => {
  const paths = ["", "/decoder/1", "/decoder/1/cross_attn/0", "/decoder/1/cross_attn/0/12"];
  for (const [level, path] of paths.entries()) {
    const place = place_of(path, CONFIG);
    assert.equal(level_of(place), level);
    assert.equal(path_of(place), path);
    assert.equal(path_of(place, Math.max(0, level - 1)), paths[Math.max(0, level - 1)]);
  }
});

for (const path of ["/decoder/9", "/encoder/0/cross_attn/1", "/decoder/0/self_attn/8", "/x%"]) {
  test(`${path} is no place of the model: it leads to the whole machine`, () => {
    assert.equal(place_of(path, CONFIG), WHOLE);
  });
}
