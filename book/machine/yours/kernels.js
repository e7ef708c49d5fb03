// @ts-check
// The loops of the page's torch that plain Python is too slow for: `Kernels` in
// transformer_book/yours/page_torch.py says what each does. All numbers are float32 and stay
// in Python's memory. An array comes as its address, so nothing is copied; starts and strides
// count numbers, not bytes. Sums are float64.

/** @import { Memory } from "./python_types.d.ts" */

/** Their text goes into the worker, so nothing is used here that isn't defined here
 *  @param {Memory} memory */
export function kernels(memory) {
  // The views are asked for anew in each call: memory may have grown.

  /** Products of n_pairs pairs of matrices: out[i, j] is the sum over l of a[i, l] * b[l, j]
   *  @param {number} a @param {number} starts_a @param {number} row_a @param {number} step_a
   *  @param {number} b @param {number} starts_b @param {number} step_b @param {number} column_b
   *  @param {number} out @param {number} m @param {number} k @param {number} n @param {number} n_pairs */
  function multiply(a, starts_a, row_a, step_a, b, starts_b, step_b, column_b, out, m, k, n, n_pairs) {
    const x = memory.HEAPF32, starts = memory.HEAP32;
    for (let pair = 0; pair < n_pairs; pair++) {
      const from_a = a / 4 + starts[starts_a / 4 + pair];
      const from_b = b / 4 + starts[starts_b / 4 + pair];
      product(x, from_a, row_a, step_a, from_b, step_b, column_b, out / 4 + pair * m * n, m, k, n);
    }
  }

  /** out[i, j] = bias[j] + the sum over l of x[i, l] * weight[j, l]; the bias may be 0, for none
   *  @param {number} rows @param {number} start_x @param {number} weight @param {number} start_w
   *  @param {number} bias @param {number} start_b
   *  @param {number} out @param {number} m @param {number} k @param {number} n */
  function linear(rows, start_x, weight, start_w, bias, start_b, out, m, k, n) {
    const x = memory.HEAPF32;
    product(x, rows / 4 + start_x, k, 1, weight / 4 + start_w, 1, k, out / 4, m, k, n);
    if (!bias) return;
    const from = bias / 4 + start_b;
    for (let i = 0, to = out / 4; i < m; i++) {
      for (let j = 0; j < n; j++, to++) x[to] += x[from + j];
    }
  }

  /** One product; two rows and four columns at once, so that each number is read less often
   *  @param {Float32Array} x @param {number} a @param {number} row_a @param {number} step_a
   *  @param {number} b @param {number} step_b @param {number} column_b
   *  @param {number} to @param {number} m @param {number} k @param {number} n */
  function product(x, a, row_a, step_a, b, step_b, column_b, to, m, k, n) {
    for (let i = 0; i < m; i += 2, to += 2 * n) {
      const first = a + i * row_a, both = i + 1 < m;
      const second = both ? first + row_a : first; // a last row alone is reckoned twice
      let j = 0;
      for (; j + 4 <= n; j += 4) {
        let s00 = 0, s01 = 0, s02 = 0, s03 = 0, s10 = 0, s11 = 0, s12 = 0, s13 = 0;
        let a0 = first, a1 = second, b0 = b + j * column_b;
        for (let l = 0; l < k; l++, a0 += step_a, a1 += step_a, b0 += step_b) {
          const v0 = x[a0], v1 = x[a1], w0 = x[b0], w1 = x[b0 + column_b];
          const w2 = x[b0 + 2 * column_b], w3 = x[b0 + 3 * column_b];
          s00 += v0 * w0; s01 += v0 * w1; s02 += v0 * w2; s03 += v0 * w3;
          s10 += v1 * w0; s11 += v1 * w1; s12 += v1 * w2; s13 += v1 * w3;
        }
        const at = to + j;
        x[at] = s00; x[at + 1] = s01; x[at + 2] = s02; x[at + 3] = s03;
        if (both) { x[at + n] = s10; x[at + n + 1] = s11; x[at + n + 2] = s12; x[at + n + 3] = s13; }
      }
      for (; j < n; j++) {
        let s0 = 0, s1 = 0, a0 = first, a1 = second, b0 = b + j * column_b;
        for (let l = 0; l < k; l++, a0 += step_a, a1 += step_a, b0 += step_b) {
          s0 += x[a0] * x[b0];
          s1 += x[a1] * x[b0];
        }
        x[to + j] = s0;
        if (both) x[to + n + j] = s1;
      }
    }
  }

  /** out[i] = a[i] + b[i % size_b]
   *  @param {number} a @param {number} start_a @param {number} b @param {number} start_b @param {number} size_b
   *  @param {number} out @param {number} n */
  function add(a, start_a, b, start_b, size_b, out, n) {
    const x = memory.HEAPF32, from_b = b / 4 + start_b;
    let from_a = a / 4 + start_a, to = out / 4;
    for (const end = to + n; to < end;) {
      for (let j = 0; j < size_b; j++) x[to++] = x[from_a++] + x[from_b + j];
    }
  }

  /** Softmax of rows of n numbers
   *  @param {number} rows @param {number} start @param {number} out @param {number} n_rows @param {number} n */
  function softmax(rows, start, out, n_rows, n) {
    const x = memory.HEAPF32;
    let from = rows / 4 + start, to = out / 4;
    for (let row = 0; row < n_rows; row++, from += n, to += n) {
      let top = -Infinity, total = 0;
      for (let i = 0; i < n; i++) top = Math.max(top, x[from + i]);
      for (let i = 0; i < n; i++) total += Math.exp(x[from + i] - top);
      for (let i = 0; i < n; i++) x[to + i] = Math.exp(x[from + i] - top) / total;
    }
  }

  /** (x - mean) / sqrt(variance + eps) * gain + bias, of rows of n numbers
   *  @param {number} rows @param {number} start @param {number} gain @param {number} start_g
   *  @param {number} bias @param {number} start_b
   *  @param {number} out @param {number} n_rows @param {number} n @param {number} eps */
  function layer_norm(rows, start, gain, start_g, bias, start_b, out, n_rows, n, eps) {
    const x = memory.HEAPF32, from_g = gain / 4 + start_g, from_b = bias / 4 + start_b;
    let from = rows / 4 + start, to = out / 4;
    for (let row = 0; row < n_rows; row++, from += n, to += n) {
      let mean = 0, squares = 0;
      for (let i = 0; i < n; i++) mean += x[from + i];
      mean /= n;
      for (let i = 0; i < n; i++) squares += (x[from + i] - mean) ** 2;
      const scale = 1 / Math.sqrt(squares / n + eps);
      for (let i = 0; i < n; i++) {
        x[to + i] = (x[from + i] - mean) * scale * x[from_g + i] + x[from_b + i];
      }
    }
  }

  /** Negative numbers become 0; NaN stays
   *  @param {number} row @param {number} start @param {number} out @param {number} n */
  function relu(row, start, out, n) {
    const x = memory.HEAPF32, from = row / 4 + start, to = out / 4;
    for (let i = 0; i < n; i++) x[to + i] = x[from + i] < 0 ? 0 : x[from + i];
  }

  /** Rows of 8-bit numbers times the scale of each row
   *  @param {number} bytes @param {number} start @param {number} scales @param {number} start_s
   *  @param {number} out @param {number} n_rows @param {number} n */
  function widen(bytes, start, scales, start_s, out, n_rows, n) {
    const x = memory.HEAPF32, numbers = memory.HEAP8;
    let from = bytes + start, to = out / 4;
    for (let row = 0; row < n_rows; row++) {
      const scale = x[scales / 4 + start_s + row];
      for (const end = to + n; to < end; to++) x[to] = numbers[from++] * scale;
    }
  }

  return { multiply, linear, add, softmax, layer_norm, relu, widen };
}
