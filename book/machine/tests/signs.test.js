// What the signs of a picture mean is told where they are, and nowhere else.

import assert from "node:assert/strict";
import { test } from "node:test";

import { signs_of } from "../signs.js";

for (const [labels, told] of /** @type {[string, RegExp[]][]} */ ([
  ["▁Ein ▁Hund .", []],
  ["▁Ein ▁Hund <eos>", [/^<eos> ends/]],
  ["▁Hu nd", [/“…nd” goes on/]],
  ["▁ <E4> <eos>", [/^<eos> ends/, /^<E4> is a byte/, /^␣ is a space/]],
  ["<20><C3>", [/^<C3> is a byte/]],
])) {
  test(`signs of ${labels}`, () => {
    const found = signs_of({ src_labels: labels.split(" "), tgt_labels: ["▁A"] });
    assert.equal(found.length, told.length);
    told.forEach((each, i) => assert.match(found[i], each));
  });
}
