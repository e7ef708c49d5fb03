// The four levels of the picture, without a page: where things are, and what they say.

import assert from "node:assert/strict";
import { test } from "node:test";

import { markup, percent } from "../draw.js";
import { draw, keys_of, level_of, looked_at, meanings_of, middle_layer, most, none_of, numbers, path_of, place_of, table,
  WHOLE } from "../levels.js";
import { CONFIG, small_tasks, stored_view } from "./model.js";

/** @import { Token, View } from "../types.d.ts" */

const view = stored_view();
const HEAD = "/decoder/1/cross_attn/1", PATHS = ["", "/decoder/1", HEAD, `${HEAD}/2`, "/encoder/0"];

// ---- Places

test("a path leads to its place and back, at every level", () => {
  for (const [level, path] of PATHS.slice(0, 4).entries()) {
    const place = place_of(path, CONFIG), up = Math.max(0, level - 1);
    assert.equal(level_of(place), level);
    assert.equal(path_of(place), path);
    assert.equal(path_of(place, up), PATHS[up]);
  }
});

for (const path of ["/decoder/9", "/encoder/0/cross_attn/1", "/decoder/0/self_attn/8", "/x%", "/encoder"]) {
  test(`${path} is no place of the model: it leads to the whole machine`, () => {
    assert.equal(place_of(path, CONFIG), WHOLE);
  });
}

// ---- Meanings

for (const [labels, means] of /** @type {[string, string][]} */ ([
  ["▁Ein ▁Hund . <eos>", "a dog - -"],
  ["▁Ein ▁Hu nd , ▁Ein <eos>", "a dog - - - -"], // a word that isn't in the gloss has none
  ["▁Ein ▁Schlitten hund", "a - -"], // nor what comes after it
])) {
  test(`the pieces of a word share its meaning: ${labels}`, () => {
    /** @type {[string, string][]} */
    const gloss = [["Ein", "a"], ["Hund", "dog"]];
    const found = meanings_of({ ...view, src_labels: labels.split(" "), gloss });
    assert.equal(found.map((word) => word || "-").join(" "), means);
  });
}

// ---- Pictures

/** @param {View} of @param {string} path */
function drawn(of, path, { row = 1, tall = false, before = /** @type {View|null} */ (null) } = {}) {
  const place = place_of(path, CONFIG), found = of.heads?.["decoder.layers.1.cross_attn"] || null;
  return markup(draw(of, place, level_of(place) < 2 ? null : found, { row, tall, before }));
}

for (const path of PATHS) {
  for (const tall of [false, true]) {
    test(`${path || "the whole"}, ${tall ? "upright" : "wide"}: all numbers are numbers, nothing is left of it`, () => {
      const svg = drawn(view, path, { tall });
      assert.ok(!/NaN|undefined|Infinity/.test(svg));
      const [, width] = svg.match(/viewBox="0 0 ([\d.]+) [\d.]+"/) || [];
      assert.ok(Number(width) >= 400);
      for (const [, x] of svg.matchAll(/ cx="([-\d.]+)"/g)) {
        assert.ok(Number(x) >= 0 && Number(x) <= Number(width), x);
      }
    });
  }
}

test("lanes are as narrow as a long sentence needs, and never wider than at their best", () => {
  for (const [n, tall, expected] of /** @type {[number, boolean, number][]} */ (
    [[2, false, 34], [10, false, 34], [20, false, 440 / 19], [60, false, 17], [3, true, 60], [30, true, 12]])) {
    const labels = Array(n).fill("▁5"), norms = { ...view.norms, encoder: view.norms.encoder.map(() => Array(n).fill(1)) };
    const weights = Array(CONFIG.n_heads).fill(new Float32Array(n * n));
    const cross = Array(CONFIG.n_heads).fill(new Float32Array(view.tgt.length * n));
    const maps = { ...view.maps, "encoder.layers.0.self_attn": weights,
      "decoder.layers.0.cross_attn": cross, "decoder.layers.1.cross_attn": cross };
    const svg = drawn({ ...view, src_labels: labels, norms, maps }, "", { tall });
    const lanes = svg.split('class="lanes"')[1].split('class="rows"')[0];
    const at = [...lanes.matchAll(/<circle cx="([\d.]+)" cy="([\d.]+)" r="3" fill="var\(--machine-source/g)]
      .map(([, x, y]) => Number(tall ? x : y));
    const places = [...new Set(at)].sort((a, b) => a - b);
    assert.equal(places.length, n);
    assert.ok(Math.abs(places[1] - places[0] - expected) < 0.11, `${n}: ${places[1] - places[0]}`);
  }
});

test("what is yet to come is marked as that", () => {
  const rows = [...drawn(view, "", { row: 1 }).matchAll(/class="row ([\w-]+)" data-row="(\d+)"/g)]
    .map(([, kind, row]) => `${row} ${kind}`);
  const n = view.tgt.length;
  assert.deepEqual(rows.reverse(), ["0 past", "1 now", ...Array.from({ length: n - 2 }, (_, i) => `${i + 2} to-come`)]);
});

test("a change is shown beside what was, where the same words were read", () => {
  const halved = (/** @type {Token[]} */ tokens) => tokens.map((each) => ({ ...each, p: each.p / 2 }));
  const changed = { ...view, next: view.next.map(halved), layers: view.layers.map((stage) => stage.map(halved)) };
  const others = { ...view, tgt_labels: view.tgt_labels.map(() => "▁other") };
  const says = (/** @type {View} */ before, row = 1) =>
    drawn(changed, "/decoder/1", { before, row }).includes('class="changed"');
  assert.deepEqual([says(changed), says(view), says(others)], [false, true, false]);
  assert.ok(says(others, 0)); // the first word has read none
});

test("what a page gets is text, whatever a token is", () => {
  const labels = ["▁<img src=x>", "▁&\"", "▁4", "<eos>"];
  const svg = drawn({ ...view, src_labels: labels }, HEAD);
  assert.ok(!svg.includes("<img") && svg.includes("&#60;img src=x&#62;"));
});

// ---- Numbers

for (const name of Object.keys(view.maps)) {
  test(`in a head of ${name}, the weights of every word add up to 1`, () => {
    const [, stack, layer, kind] = name.match(/^(\w+)\.layers\.(\d+)\.(\w+)$/) || [];
    const place = place_of(`/${stack}/${layer}/${kind}/0`, CONFIG);
    const rows = stack === "encoder" ? view.src_labels : view.tgt_labels;
    for (const row of rows.keys()) {
      const sum = numbers(view, place, null, row).lines.reduce((all, { weight }) => all + weight, 0);
      assert.ok(Math.abs(sum - 1) < 1e-4, `${row}: ${sum}`);
    }
  });
}

test("the weights of a head are the softmax of its scores, and its sum is of its values", () => {
  const place = place_of(HEAD, CONFIG), found = view.heads?.["decoder.layers.1.cross_attn"] || null;
  const { lines, output, q } = numbers(view, place, found, 1);
  const total = lines.reduce((sum, { score }) => sum + Math.exp(score), 0);
  for (const { score, weight, k, sum } of lines) {
    assert.ok(Math.abs(weight - Math.exp(score) / total) < 1e-5);
    assert.ok(Math.abs(sum - k.reduce((dot, x, f) => dot + x * q[f], 0)) < 1e-6);
  }
  output.forEach((x, f) => assert.ok(
    Math.abs(x - lines.reduce((sum, { weight, v }) => sum + weight * v[f], 0)) < 1e-6));
});

test("a word of the decoder looks at no word that comes later", () => {
  const place = place_of("/decoder/0/self_attn/0", CONFIG);
  assert.deepEqual(keys_of(place, view, 1), ["<bos>", view.tgt_labels[0]]);
  assert.deepEqual(keys_of(place_of(HEAD, CONFIG), view, 0), view.src_labels);
});

test("a head that is cut doesn’t count in what all heads look at", () => {
  const name = `decoder.layers.${middle_layer(view)}.cross_attn`, { src } = view;
  const alone = { ...view, edits: { without: { [name]: [0] } } };
  for (const [share, key] of looked_at(alone, 0, src.length)) {
    assert.ok(Math.abs(share - view.maps[name][1][key]) < 1e-6);
  }
});

test("every level has a table with a row for each of what it shows", () => {
  const found = view.heads?.["decoder.layers.1.cross_attn"] || null;
  const n_rows = PATHS.map((path) => table(view, place_of(path, CONFIG), found, 1)?.rows.length);
  assert.deepEqual(n_rows, [view.tgt.length, 2 * 2 + 2, view.src.length, 3, 2 + 2]);
  assert.equal(table(view, place_of(`${HEAD}/2`, CONFIG), null, 1), null); // without its numbers
});

test("without a causal mask each step is a pass of its own", () => {
  const tasks = small_tasks(), edits = { causal: false }, { src } = view;
  const look = tasks.look({ src, tgt: view.tgt, edits });
  const [of_one] = tasks.look({ src, tgt: view.tgt.slice(0, 1), edits }).log_probs;
  assert.ok(Math.abs(look.log_probs[0] - of_one) < 1e-6);
  assert.deepEqual(look.ahead["decoder.layers.0.self_attn"].map((row) => row.length), view.tgt.map((_, i) => (i + 1) ** 2));
});

// ---- What code of a reader's may make of it

const NAMES = Object.keys(view.maps), LEVELS = [...PATHS, "/encoder/0/self_attn/0", `${HEAD}/0`];

/** Another view: all weights, and what else is a number, by this @param {(x: number) => number} of */
function made_up(of) {
  const token = (/** @type {Token} */ each) => ({ ...each, p: of(each.p) });
  const { head, ...vectors } = view.heads?.["decoder.layers.1.cross_attn"] || { head: 1, q: [], k: [], v: [] };
  const [q, k, v] = [vectors.q, vectors.k, vectors.v].map((x) => /** @type {number[]} */ (x).map(of));
  return { ...view, edits: { yours: ["attention"] },
    maps: Object.fromEntries(NAMES.map((name) => [name, view.maps[name].map((head) => Array.from(head, of))])),
    ahead: { "decoder.layers.0.self_attn": view.tgt.map((_, i) => Array((i + 1) ** 2).fill(of(0.5))) },
    norms: Object.fromEntries(Object.entries(view.norms).map(([name, all]) => [name, all.map((row) => row.map(of))])),
    log_probs: view.log_probs.map(of), next: view.next.map((all) => all.map(token)),
    layers: view.layers.map((all) => all.map((each) => each.map(token))),
    heads: { "decoder.layers.1.cross_attn": { head, q, k, v } } };
}
const none = { ...view, edits: { yours: ["heads"] }, maps: Object.fromEntries(NAMES.map((name) => [name, [[], []]])) };

for (const [what, of] of /** @type {[string, View][]} */ ([
  ["NaN", made_up(() => NaN)], ["∞", made_up(() => Infinity)], ["−∞", made_up(() => -Infinity)],
  ["weights up to 40", made_up((x) => 40 * x)], ["weights below 0", made_up((x) => -x)],
  ["1e30", made_up(() => 1e30)], ["0", made_up(() => 0)], ["weights that aren’t shown", none],
])) {
  test(`${what}: every level is drawn, in the picture’s bounds, and has its table`, () => {
    for (const path of LEVELS) {
      for (const tall of [false, true]) {
        for (const before of [null, view]) {
          const svg = drawn(of, path, { tall, before });
          for (const [, name, value] of svg.matchAll(/ ([\w-]+)="([^"]*)"/g)) {
            if (name !== "aria-label") assert.ok(!/NaN|undefined|Infinity/.test(value), `${path} ${name}: ${value}`);
            if (name === "stroke-width") assert.ok(Number(value) <= 20, `${path}: ${value}`);
          }
          const [, width, height] = svg.match(/viewBox="0 0 ([\d.]+) ([\d.]+)"/) || [];
          for (const [, x, y] of svg.matchAll(/<(?:rect|text|circle) c?x="([^"]*)" c?y="([^"]*)"/g)) {
            assert.ok(-5 <= Number(x) && Number(x) <= Number(width) && Number(y) <= Number(height), `${path}: ${x} ${y}`);
          }
          assert.ok(!svg.includes("undefined") && !svg.includes("NaN%"));
        }
      }
      const place = place_of(path, CONFIG), found = of.heads?.["decoder.layers.1.cross_attn"] || null;
      const rows = table(of, place, level_of(place) < 2 ? null : found, 1)?.rows;
      assert.ok(rows?.length && !JSON.stringify(rows).includes("%NaN"));
    }
  });
}

test("NaN is told as NaN and never as 0%, and weights that aren’t shown as that", () => {
  const all_nan = made_up(() => NaN);
  assert.match(drawn(all_nan, HEAD), /weight NaN/);
  assert.match(drawn(all_nan, "/decoder/1"), /Open head 1 of cross-attention: NaN/);
  assert.match(drawn(none, "/decoder/1"), /Open head 1 of cross-attention: not shown/);
  assert.match(drawn(none, HEAD), /weight \?/);
  for (const of of [all_nan, none]) assert.ok(!/\b0%/.test(drawn(of, HEAD).replace(/was 0%/g, "")));
  const rows = JSON.stringify(table(all_nan, WHOLE, null, 0)?.rows);
  assert.match(rows, /NaN/);
});

test("one weight that is NaN doesn’t hide the others", () => {
  assert.deepEqual(most([NaN, 0.2, NaN, 0.8], 0, 4), [[0.8, 3], [0.2, 1], [NaN, 0]]);
  assert.equal(none_of(most([NaN, NaN], 0, 2)[0][0]), "NaN");
  assert.equal(none_of(most([], 0, 2)[0][0]), "not shown");
});

test("at one weight, the formula’s softmax and what the code gave stand side by side", () => {
  const place = place_of(`${HEAD}/0`, CONFIG), halved = made_up((x) => x);
  halved.maps = Object.fromEntries(NAMES.map((name) => [name, halved.maps[name].map((head) => Array.from(head, (x) => x / 2))]));
  const found = view.heads?.["decoder.layers.1.cross_attn"] || null, { weight } = numbers(view, place, found, 1).one;
  const svg = drawn({ ...halved, heads: view.heads }, `${HEAD}/0`).replace(/<[^>]*>/g, "");
  assert.ok(svg.includes(` = ${percent(weight)}`) && svg.includes(`What your code gave: ${percent(weight / 2)}`), svg);
  assert.ok(drawn(view, `${HEAD}/0`).includes("Weight: "));
});

// ---- Whose it is

test("what the reader’s parts compute is framed, and said; the rest isn’t", () => {
  const doors = (/** @type {string[]} */ yours, path = "") =>
    [...drawn({ ...view, edits: { yours } }, path).matchAll(/aria-label="(Open [^"]*)"/g)].map(([, label]) => label);
  assert.deepEqual(doors([]), ["Open encoder layer 1", "Open decoder layer 1", "Open decoder layer 2"]);
  assert.deepEqual(doors(["masks", "search"]), ["Open encoder layer 1: your masks", "Open decoder layer 1: your masks",
    "Open decoder layer 2: your masks"]);
  assert.deepEqual(doors(["encoder"]), ["Open encoder layer 1: your encoder layer", "Open decoder layer 1", "Open decoder layer 2"]);
  for (const [yours, says] of /** @type {[string[], string][]} */ ([[["positions"], "yours: positions"],
    [["model"], "yours: model"], [["search", "model"], "yours: model, search"], [["heads", "attention"], "your attention, your heads"]])) {
    for (const tall of [false, true]) {
      const svg = drawn({ ...view, edits: { yours } }, "", { tall });
      assert.ok(svg.includes(says), says);
    }
  }
  const signs = (/** @type {string[]} */ yours, path = "/decoder/1") =>
    [...drawn({ ...view, edits: { yours } }, path).replace(/<tspan[^>]*>/g, "").matchAll(/([\w:, -]+)(?: · yours)/g)].map(([, words]) => words);
  assert.deepEqual(signs(["attention"]), ["self-attention: its own sentence", "cross-attention: the memory"]);
  const [own, cross] = ["self-attention: its own sentence", "cross-attention: the memory"];
  assert.deepEqual(signs(["masks"]), [own, cross]);
  assert.deepEqual(signs(["masks"], "/encoder/0"), [own]);
  const changed = (/** @type {string} */ trying, /** @type {string} */ path) => [...drawn({ ...view, trying,
    edits: { yours: ["masks"] } }, path).replace(/<tspan[^>]*>/g, "").matchAll(/([\w:, -]+)(?: · changed)/g)].map(([, words]) => words);
  assert.deepEqual(["/encoder/0", "/decoder/1"].map((path) => changed("padding is seen", path)), [[own], [cross]]);
  assert.deepEqual(["/encoder/0", "/decoder/1"].map((path) => changed("no causal mask", path)), [[], [own]]);
  assert.deepEqual(signs(["sublayers"]), ["norm", "norm", "norm", "feed-forward: alone"]);
});
