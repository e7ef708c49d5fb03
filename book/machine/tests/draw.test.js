import assert from "node:assert/strict";
import { test } from "node:test";

import { decimal, e, is_joined, markup, percent, piece, short, shown } from "../draw.js";

test("a tree becomes text: lists are opened, what is nothing falls out, signs are escaped", () => {
  const tree = e("p", { class: null, id: "a\"b", hidden: true, title: false }, ["<", [null, [false, ""]]], 0, e("b"));
  assert.equal(markup(tree), '<p id="a&#34;b" hidden="">&#60;0<b></b></p>');
});

for (const [found, expected] of [
  [shown("▁Hund"), "Hund"], [shown("▁"), "␣"], [shown("<eos>"), "<eos>"],
  [piece("er"), "…er"], [piece("▁er"), "er"], [piece("."), "."],
  [is_joined("er"), true], [is_joined("▁er"), false], [is_joined("<eos>"), false],
  [percent(0), "0%"], [percent(0.001), "<1%"], [percent(0.005), "1%"], [percent(1), "100%"],
  [decimal(-1.234), "−1.23"], [decimal(-0.001), "0.00"], [decimal(-Infinity), "−∞"], [decimal(2, 0), "2"],
  [short("Schneeball", 6), "Schne…"], [short("Schnee", 6), "Schnee"],
]) {
  test(`“${expected}”`, () => assert.equal(found, expected));
}
