// Kernels against plain loops, in a memory of their own.

import assert from "node:assert/strict";
import { test } from "node:test";

import { kernels } from "../yours/kernels.js";

const buffer = new ArrayBuffer(2 ** 16), x = new Float32Array(buffer);
const memory = { HEAP8: new Int8Array(buffer), HEAP32: new Int32Array(buffer),
  HEAPF32: x, HEAPF64: new Float64Array(buffer) };
const K = kernels(memory);

// Places of arrays in it, in numbers; the address of one is four times that.
const A = 16, B = 1024, C = 2048, OUT = 4096, STARTS = 8192;

/** Numbers that look as if they were drawn @param {number} i */
const number = (i) => Math.sin(12.9898 * (i + 1));

/** What a kernel writes is what plain code gives, and nothing is written behind it
 *  @param {() => void} run @param {number[]} expected */
function assert_writes(run, expected) {
  run();
  expected.forEach((y, i) => {
    const found = x[OUT + i];
    assert.ok(Object.is(found, y) || Math.abs(found - y) < 1e-6, `${i}: ${found}, ${y}`);
  });
  assert.equal(x[OUT + expected.length], x[0]); // which nothing touches
}

test.beforeEach(() => {
  for (let i = 1; i < OUT; i++) x[i] = number(i);
  x.fill(x[0] = 0.25, OUT, STARTS);
});

const range = (/** @type {number} */ n) => [...Array(n).keys()];
const sum = (/** @type {number[]} */ numbers) => numbers.reduce((total, y) => total + y, 0);

for (const [m, k, n] of [[1, 1, 1], [2, 3, 4], [3, 5, 7], [5, 2, 11], [1, 7, 9], [4, 0, 3], [0, 2, 3], [2, 2, 0]]) {
  for (const [row_a, step_a] of [[k, 1], [1, m]]) { // as it is, or transposed; b has gaps
    test(`three products: ${m} × ${k} times ${k} × ${n}, strides ${row_a}, ${step_a}`, () => {
      const starts_a = [0, 1, m * k], starts_b = [2, 2, 0], step_b = 3 * n + 1, column_b = 3;
      memory.HEAP32.set([...starts_a, ...starts_b], STARTS);
      assert_writes(
        () => K.multiply(4 * A, 4 * STARTS, row_a, step_a, 4 * B, 4 * STARTS + 12, step_b, column_b,
          4 * OUT, m, k, n, 3),
        range(3 * m * n).map((at) => {
          const p = Math.floor(at / (m * n)), i = Math.floor(at / n) % m, j = at % n;
          return sum(range(k).map((l) => x[A + starts_a[p] + i * row_a + l * step_a]
            * x[B + starts_b[p] + l * step_b + j * column_b]));
        }));
    });
  }

  test(`a linear layer: ${m} rows of ${k} become rows of ${n}`, () => {
    for (const bias of [C, 0]) {
      assert_writes(() => K.linear(4 * A, 5, 4 * B, 7, 4 * bias, 3, 4 * OUT, m, k, n),
        range(m * n).map((at) => {
          const i = Math.floor(at / n), j = at % n;
          return (bias && x[C + 3 + j]) + sum(range(k).map((l) => x[A + 5 + i * k + l] * x[B + 7 + j * k + l]));
        }));
    }
  });
}

test("numbers are added, a row again and again", () => {
  for (const size of [1, 3, 6]) {
    assert_writes(() => K.add(4 * A, 2, 4 * B, 5, size, 4 * OUT, 6),
      range(6).map((i) => x[A + 2 + i] + x[B + 5 + i % size]));
  }
});

test("softmax of rows, however large they are; NaN takes its row, and no more", () => {
  x.set([1000, 1001, -Infinity, 2, NaN, 3, -Infinity, -Infinity, -Infinity], A + 1);
  const p = 1 / (1 + Math.E);
  assert_writes(() => K.softmax(4 * A, 1, 4 * OUT, 3, 3), [p, 1 - p, 0, NaN, NaN, NaN, NaN, NaN, NaN]);
});

test("rows are normed", () => {
  const n = 5, eps = 0.1;
  assert_writes(() => K.layer_norm(4 * A, 1, 4 * B, 2, 4 * C, 3, 4 * OUT, 3, n, eps), range(3 * n).map((at) => {
    const row = [...x.subarray(A + 1 + at - at % n, A + 1 + at - at % n + n)], mean = sum(row) / n;
    const variance = sum(row.map((y) => (y - mean) ** 2)) / n;
    return (row[at % n] - mean) / Math.sqrt(variance + eps) * x[B + 2 + at % n] + x[C + 3 + at % n];
  }));
});

test("negative numbers become 0, and NaN stays", () => {
  x.set([1, -1, NaN, 0, Infinity, -Infinity], A + 4);
  assert_writes(() => K.relu(4 * A, 4, 4 * OUT, 6), [1, 0, NaN, 0, Infinity, 0]);
});

test("8-bit numbers become rows with their scales", () => {
  memory.HEAP8.set([127, -128, 3, 0, 1, -1], 4 * A + 5);
  x.set([0.5, 2], B + 3);
  assert_writes(() => K.widen(4 * A, 5, 4 * B, 3, 4 * OUT, 2, 3), [63.5, -64, 1.5, 0, 2, -2]);
});
