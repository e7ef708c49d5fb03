import assert from "node:assert/strict";
import { test } from "node:test";

import { E } from "./model.js";
import { worry } from "../worry.js";

for (const [text, pieces, sure, told] of /** @type {[string, number, number, RegExp][]} */ ([
  ["Ein Hund spielt.", 1.2, 0.9, /^$/],
  ["A dog runs.", 1.2, 0.9, /^English: a sister model/],
  ["I love you.", 1.2, 0.9, /^English: .* expect nonsense/],
  ["Ich liebe dich.", 1.2, 0.9, /^Photo captions hardly ever say “I”/],
  ["Xyzzy qwrtz", 3.25, 0.9, /^Some of these words are rare/],
  ["Der dog spielt and runs im Park.", 1.2, 0.9, /^German and English mixed/],
  ["Un chien joue dans la neige.", 1.2, 0.9, /^This looks like neither/],
  ["Ein Hund. Ein Ball.", 1.2, 0.9, /^Several sentences/],
  ["Ein Hund spielt. ", 1.2, 0.9, /^$/],
  ["Ein Hund spielt", 1.2, 0.3, /unsure.*probability of 30%.*photos\.$/],
  ["ein hund spielt", 1.2, 0.3, /photos\. German nouns begin with a capital letter/],
  ["Hund", 1.2, 0.3, /photos\.$/],
  ["\ufeffein hund", 1.2, 0.3, /German nouns/],
  ["u\u0308ber \u00a0 den See.\u200b", 1.2, 0.3, /photos\.$/],
])) {
  test(`“${text}”, ${pieces} pieces a word, ${sure}: ${told}`, () => {
    const read = { text: E.normalized(text), src: [], src_labels: [], pieces, too_long: false };
    assert.match(worry(read, sure), told);
  });
}
