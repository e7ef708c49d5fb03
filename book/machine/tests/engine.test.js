// The engine's parts by hand; against PyTorch it is tested in tests/test_browser_engine.py.

import assert from "node:assert/strict";
import { test } from "node:test";

import { CONFIG, E, shipped_tokenizer, small_model, small_tasks } from "./model.js";

const SRC = [5, 7, 4, 2], LIMITS = { bos_id: 1, eos_id: 2, max_len: 12 };

/** @param {ArrayLike<number>} found @param {ArrayLike<number>} expected */
function assert_close(found, expected, gap = 1e-5) {
  assert.equal(found.length, expected.length);
  Array.from(found, (x, i) => assert.ok(Math.abs(x - expected[i]) < gap, `${i}: ${x}, ${expected[i]}`));
}

// ---- Numbers

for (const n_in of [1, 2, 3, 4, 5, 6, 7, 8, 9]) {
  test(`a linear layer reads exactly its ${n_in} inputs`, () => {
    const range = (/** @type {number} */ n) => Float32Array.from({ length: n }, (_, i) => i + 1);
    const layer = new E.Linear({ data: range(2 * n_in), shape: [2, n_in] }, Float32Array.of(10, 20));
    const rows = [range(n_in), range(n_in).map((x) => -x)];
    const x = new E.Tensor(1, 2, n_in, Float32Array.from(rows.flatMap((row) => [...row])));
    const expected = rows.flatMap((row) => [0, 1].map((o) =>
      row.reduce((sum, number, i) => sum + number * (o * n_in + i + 1), 10 * (o + 1))));
    assert_close(layer.forward(x).data, expected);
  });
}

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

test("decoding with a cache gives what reading all tokens again gives", () => {
  const model = small_model(), tgt = [1, 6, 9, 3, 8];
  const again = new E.RecomputingDecoder(model);
  again.prefill(SRC);
  const all = model.forward(SRC, tgt);
  for (const [i, id] of tgt.entries()) {
    assert_close(again.step([[id]])[0], all.data.subarray(11 * i, 11 * (i + 1)));
  }
  const found = E.greedy_decode(model, SRC, LIMITS); // with a cache
  const logits = model.forward(SRC, [1, ...found.ids.slice(0, -1)]);
  const sum = found.ids.reduce((total, id, i) => {
    const scores = logits.data.slice(11 * i, 11 * (i + 1));
    scores[CONFIG.pad_id] = -Infinity;
    assert.equal(E.top_tokens(scores, 1)[0][1], id);
    scores[CONFIG.pad_id] = logits.data[11 * i];
    return total + E.log_softmax(scores)[id];
  }, 0);
  assert.ok(Math.abs(sum - found.log_prob) < 1e-4);
});

test("one beam finds what greedy search finds, and more never less", () => {
  const model = small_model(), greedy = E.greedy_decode(model, SRC, LIMITS);
  assert.deepEqual(E.beam_search(model, SRC, LIMITS, 1, 0)[0].ids, greedy.ids);
  assert.ok(E.beam_search(model, SRC, LIMITS, 4, 0)[0].log_prob >= greedy.log_prob - 1e-6);
});

test("a hidden source token changes nothing by being another one", () => {
  const model = small_model(), others = [5, 10, 4, 2], tgt = [1, 6, 9];
  const gap = () => model.forward(SRC, tgt).data.map((x, i) => Math.abs(x - model.forward(others, tgt).data[i]));
  assert.ok(Math.max(...gap()) > 1e-4);
  E.intervene(model, { hide: [1] });
  // its own strand is another one, but nobody looks at it
  assert_close(model.forward(SRC, tgt).data, model.forward(others, tgt).data, 1e-7);
  E.intervene(model);
  assert.ok(Math.max(...gap()) > 1e-4);
});

test("weights that are missing are named", () => {
  assert.throws(() => new E.Transformer(CONFIG, new Map()), /there are no weights encoder\.layers\.0/);
});

// ---- Texts

const PLAIN = "Zwei Mädchen spielen über dem Schnee.";
const SAME = {
  "decomposed umlauts": PLAIN.normalize("NFD"),
  "a doubled space": PLAIN.replace(" ", "  "),
  "a tab": PLAIN.replace(" ", "\t"),
  "a line break": PLAIN.replace(" ", "\r\n"),
  "a no-break space": PLAIN.replace(" ", "\u00a0"),
  "a narrow no-break space": PLAIN.replace(" ", "\u202f"),
  "an ideographic space": PLAIN.replace(" ", "\u3000"),
  "a next line sign": PLAIN.replace(" ", "\u0085"),
  "a zero-width space": PLAIN.replace("ch", "c\u200bh"),
  "a soft hyphen": PLAIN.replace("dchen", "d\u00adchen"),
  "a word joiner": PLAIN.replace("ch", "c\u2060h"),
  "marks of direction": `\u200e${PLAIN}\u200f`,
  "a byte order mark": `\ufeff${PLAIN}`,
  "a mark before a space": `\ufeff  ${PLAIN} \u200b`,
  "margins of white space": `\n ${PLAIN}\u2029`,
  "all of it at once": `\ufeff ${PLAIN.normalize("NFD").replaceAll(" ", " \u00a0\t")}\u00ad`,
};
const tokenizer = shipped_tokenizer();

for (const [what, text] of Object.entries(SAME)) {
  test(`${what} makes no other tokens`, () => {
    assert.notEqual(text, PLAIN);
    assert.equal(E.normalized(text), PLAIN);
    assert.deepEqual(tokenizer.encode(text), tokenizer.encode(PLAIN));
  });
}

test("what a page is told of a text is of the form that is read", () => {
  const { text, src, pieces } = small_tasks().tokens({ text: "\ufeff 5 \u00a0 7.\u200b" });
  assert.deepEqual({ text, pieces, n: src.length }, { text: "5 7.", pieces: 1, n: 3 });
});

for (const text of ["naïve", "ﬁn ①", "👩‍👩‍👧", "l’été", "a_b-c"]) {
  test(`“${text}” stays as it is: no more is joined than letter and mark`, () => {
    assert.equal(E.normalized(text), text);
    assert.equal(tokenizer.decode(tokenizer.encode(text)), text);
  });
}

for (const text of ["", "   ", "\ufeff", "\u200b \u00ad", "\u3000\u2028"]) {
  test(`${JSON.stringify(text)} is no sentence`, () => {
    assert.throws(() => tokenizer.encode(text), /a sentence needs at least 1 word/);
  });
}

test("half a character is refused", () => {
  assert.throws(() => tokenizer.encode("Hund \ud83d"), /half a character/);
});
