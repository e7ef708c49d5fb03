// Addresses: what a state becomes and comes back from, and what is refused.

import assert from "node:assert/strict";
import { test } from "node:test";

import { address_of, asked_in, read_address } from "../address.js";
import { reduce } from "../state.js";
import { CONFIG, small_state } from "./model.js";

const { attentions } = small_state(), MODEL = { config: CONFIG, attentions };

test("a state comes back from its address", () => {
  const changes = { text: "6 ü?#&%", edits: { hide: [1], without: { [attentions[0]]: [1] } }, forced: [4] };
  const state = reduce(reduce(small_state(), { type: "ask", changes }), { type: "go", path: "/decoder/1/cross_attn/0" });
  const address = address_of(state), found = read_address(address);
  assert.match(address, /^#machine\/decoder\/1\/cross_attn\/0\?[\w%().!~*'-]+$/);
  assert.equal(found?.path, "/decoder/1/cross_attn/0");
  assert.deepEqual(asked_in(found?.text || "", MODEL), changes);
});

for (const [hash, found] of /** @type {const} */ ([
  ["", null], ["#else", null], ["#machine", { path: "", text: "" }],
  ["#machine/search", { path: "/search", text: "" }],
  ["#machine?%7B%7D", { path: "", text: "%7B%7D" }],
  ["#machine/decoder/1?x", { path: "/decoder/1", text: "x" }],
  ["#machinery", { path: "", text: "" }],
])) {
  test(`“${hash}” is read`, () => assert.deepEqual(read_address(hash), found));
}

for (const values of [
  { n_beams: 99 }, { n_beams: "4" }, { forced: [11] }, { forced: [0.5] }, { forced: "4" }, { method: "beam" },
  { other: 1 }, { constructor: 1 }, { text: "x".repeat(5001) }, { text: 5 }, { step: -1 }, { step: 1.5 },
  { n_beams: 2.5 }, { word: 0.5 }, { seed: 0.1 }, { top_p: 0 },
  { edits: [] }, { edits: null }, { edits: { causal: 1 } }, { edits: { other: true } }, { edits: { hide: [20] } },
  { edits: { without: { encoder: [1] } } }, { edits: { without: { [attentions[0]]: [2] } } },
]) {
  const text = JSON.stringify(values);
  test(`${text.slice(0, 50)} is refused by its name`, () => {
    const name = new RegExp(`^${Object.keys(values)[0]} can’t be `);
    assert.throws(() => asked_in(encodeURIComponent(text), MODEL), { message: name });
  });
}

for (const text of ["nothing", "%", "%3Cb%3E"]) {
  test(`“${text}” is no state`, () => assert.throws(() => asked_in(text, MODEL)));
}
