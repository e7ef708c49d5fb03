// @ts-check
// The book's Transformer in plain JavaScript: no framework, nothing to build. Classes,
// methods and weights have the names of transformer_lib, so whoever knows chapter 8
// knows this file. It reads one sentence at a time, in evaluation mode. Everything stands
// in one function, whose text is also the text of the worker that runs it.

/** @import { Config, Edits, Hypothesis, Limits, Mask, Packed, Sampling, SearchStep } from "./types.d.ts" */

export function transformer_engine() {
  // ---- Tensors: (batch, length, width) in a flat array, row after row

  class Tensor {
    /** @param {number} batch @param {number} length @param {number} width @param {Float32Array} data */
    constructor(batch, length, width, data = new Float32Array(batch * length * width)) {
      this.batch = batch;
      this.length = length;
      this.width = width;
      this.data = data;
    }

    /** @param {number} i */
    row(i) { // of the batch: (length, width)
      const n = this.length * this.width;
      return this.data.subarray(i * n, (i + 1) * n);
    }
  }

  const work = { multiplications: 0 }; // counted wherever numbers are multiplied

  /** @typedef {{ data: Float32Array, shape: number[] }} Matrix */

  class Linear { // weight: (n_out, n_in), row after row
    /** @param {Matrix} weight @param {Float32Array|null} bias */
    constructor({ data, shape: [n_out, n_in] }, bias = null) {
      this.weight = data;
      this.bias = bias;
      this.n_out = n_out;
      this.n_in = n_in;
    }

    /** @param {Tensor} x */
    forward({ batch, length, data: from }) {
      const { n_in, n_out, weight } = this, n_rows = batch * length;
      const out = new Tensor(batch, length, n_out), n_fours = n_in - n_in % 4;
      work.multiplications += n_rows * n_in * n_out;
      for (let o = 0; o < n_out; o++) { // each row of the weight is read once
        const w = o * n_in, shift = this.bias ? this.bias[o] : 0;
        for (let row = 0; row < n_rows; row++) {
          const x = row * n_in;
          let s = 0, t = 0, u = 0, v = 0; // four sums at a time: none waits for another
          for (let i = 0; i < n_fours; i += 4) {
            s += weight[w + i] * from[x + i];
            t += weight[w + i + 1] * from[x + i + 1];
            u += weight[w + i + 2] * from[x + i + 2];
            v += weight[w + i + 3] * from[x + i + 3];
          }
          for (let i = n_fours; i < n_in; i++) s += weight[w + i] * from[x + i];
          out.data[row * n_out + o] = s + t + u + v + shift;
        }
      }
      return out;
    }

    /** @param {number} o */
    row(o) { // the vector of a token
      return this.weight.subarray(o * this.n_in, (o + 1) * this.n_in);
    }
  }

  /** @param {Float32Array} logits */
  function log_softmax(logits) {
    const top = Math.max(...logits);
    const total = logits.reduce((sum, logit) => sum + Math.exp(logit - top), 0);
    const shift = top + Math.log(total);
    return logits.map((logit) => logit - shift);
  }

  /** The n highest scores, best first: [[score, index], ...]
   *  @param {Float32Array} scores @param {number} n */
  function top_tokens(scores, n) {
    const best = /** @type {[number, number][]} */ ([]);
    for (let i = 0; i < scores.length; i++) {
      if (best.length === n && scores[i] <= best[n - 1][0]) continue;
      let at = best.length;
      while (at && best[at - 1][0] < scores[i]) at--;
      best.splice(at, 0, [scores[i], i]);
      best.length = Math.min(best.length, n);
    }
    return best;
  }

  // ---- Attention. mask(q, k) says whether query q may attend to key k.

  /** @type {Mask} */
  const causal_mask = (q, k) => k <= q;

  /** softmax(Q K^T / sqrt(d_head)) V for one head of one row, equation 1 of the paper.
   *  Returns weights: (q_len, k_len). A query with no key left gets zeros.
   *  @param {Tensor} q @param {Tensor} k @param {Tensor} v @param {Mask|null} mask
   *  @param {number} head @param {number} d_head @param {number} row @param {Tensor} out */
  function scaled_dot_product_attention(q, k, v, mask, head, d_head, row, out) {
    const first = head * d_head, source = k.batch === 1 ? 0 : row; // all rows share one source
    const [queries, keys, values, to] = [q.row(row), k.row(source), v.row(source), out.row(row)];
    const weights = new Float32Array(q.length * k.length);
    work.multiplications += 2 * q.length * k.length * d_head;
    for (let i = 0; i < q.length; i++) {
      const at = i * q.width + first, own = weights.subarray(i * k.length, (i + 1) * k.length);
      for (let j = 0; j < k.length; j++) {
        let score = 0;
        for (let f = 0, key = j * k.width + first; f < d_head; f++) {
          score += queries[at + f] * keys[key + f];
        }
        own[j] = !mask || mask(i, j) ? score / Math.sqrt(d_head) : -Infinity;
      }
      own.set(log_softmax(own).map((x) => Math.exp(x) || 0)); // 0 for NaN: no key is left
      for (let j = 0; j < k.length; j++) {
        for (let f = 0, value = j * v.width + first; f < d_head; f++) {
          to[at + f] += own[j] * values[value + f];
        }
      }
    }
    return weights;
  }

  class MultiHeadAttention {
    without = /** @type {Set<number>} */ (new Set()); // heads that are removed
    /** In the last pass: q, k, v of all heads, and the weights of each, by row
     *  @type {{ q: Tensor, k: Tensor, v: Tensor, weights: Float32Array[] }|null} */
    seen = null;

    /** @param {number} n_heads @param {Linear} q_proj @param {Linear} k_proj
     *  @param {Linear} v_proj @param {Linear} out_proj */
    constructor(n_heads, q_proj, k_proj, v_proj, out_proj) {
      this.n_heads = n_heads;
      this.q_proj = q_proj;
      this.k_proj = k_proj;
      this.v_proj = v_proj;
      this.out_proj = out_proj;
    }

    /** @param {Tensor} query @param {Tensor} key @param {Tensor} value
     *  @param {Mask|null} mask @param {KeyValueCache|null} cache */
    forward(query, key, value, mask = null, cache = null) {
      const q = this.q_proj.forward(query), d_head = q.width / this.n_heads;
      let k = this.k_proj.forward(key), v = this.v_proj.forward(value);
      if (cache) [k, v] = cache.update(this, k, v);
      const seen = this.seen = { q, k, v, weights: /** @type {Float32Array[]} */ ([]) };
      const output = new Tensor(q.batch, q.length, q.width);
      const nowhere = new Tensor(q.batch, q.length, q.width); // for heads that are removed
      for (let row = 0; row < q.batch; row++) {
        for (let head = 0; head < this.n_heads; head++) {
          const is_removed = this.without.has(head), to = is_removed ? nowhere : output;
          const weights = scaled_dot_product_attention(q, k, v, mask, head, d_head, row, to);
          if (is_removed) weights.fill(0);
          seen.weights.push(weights);
        }
      }
      return this.out_proj.forward(output);
    }
  }

  // ---- Layers

  class LayerNorm {
    /** @param {Float32Array} gain @param {Float32Array} bias @param {number} eps */
    constructor(gain, bias, eps) {
      this.gain = gain;
      this.bias = bias;
      this.eps = eps;
    }

    /** @param {Tensor} x */
    forward(x) {
      const out = new Tensor(x.batch, x.length, x.width), n = x.width;
      for (let at = 0; at < x.data.length; at += n) {
        let mean = 0, variance = 0;
        for (let i = 0; i < n; i++) mean += x.data[at + i] / n;
        for (let i = 0; i < n; i++) variance += (x.data[at + i] - mean) ** 2 / n;
        const factor = 1 / Math.sqrt(variance + this.eps);
        for (let i = 0; i < n; i++) {
          const normed = (x.data[at + i] - mean) * factor;
          out.data[at + i] = normed * this.gain[i] + this.bias[i];
        }
      }
      return out;
    }
  }

  class SublayerConnection { // norm first: x + sublayer(norm(x))
    /** @param {LayerNorm} norm */
    constructor(norm) {
      this.norm = norm;
    }

    /** @param {Tensor} x @param {(x: Tensor) => Tensor} sublayer */
    forward(x, sublayer) {
      const added = sublayer(this.norm.forward(x)).data;
      return new Tensor(x.batch, x.length, x.width, x.data.map((number, i) => number + added[i]));
    }
  }

  class FeedForward {
    /** @param {Linear} expand @param {Linear} contract */
    constructor(expand, contract) {
      this.expand = expand;
      this.contract = contract;
    }

    /** @param {Tensor} x */
    forward(x) {
      const hidden = this.expand.forward(x);
      hidden.data.forEach((number, i) => { hidden.data[i] = Math.max(0, number); }); // relu
      return this.contract.forward(hidden);
    }
  }

  class EncoderLayer {
    /** @param {MultiHeadAttention} self_attn @param {SublayerConnection} self_attn_connection
     *  @param {FeedForward} feed_forward @param {SublayerConnection} feed_forward_connection */
    constructor(self_attn, self_attn_connection, feed_forward, feed_forward_connection) {
      this.self_attn = self_attn;
      this.self_attn_connection = self_attn_connection;
      this.feed_forward = feed_forward;
      this.feed_forward_connection = feed_forward_connection;
    }

    /** @param {Tensor} x @param {Mask|null} src_mask */
    forward(x, src_mask) {
      x = this.self_attn_connection.forward(x, (x) => this.self_attn.forward(x, x, x, src_mask));
      return this.feed_forward_connection.forward(x, (x) => this.feed_forward.forward(x));
    }
  }

  class DecoderLayer {
    /** @param {MultiHeadAttention} self_attn @param {SublayerConnection} self_attn_connection
     *  @param {MultiHeadAttention} cross_attn @param {SublayerConnection} cross_attn_connection
     *  @param {FeedForward} feed_forward @param {SublayerConnection} feed_forward_connection */
    constructor(self_attn, self_attn_connection, cross_attn, cross_attn_connection,
      feed_forward, feed_forward_connection) {
      this.self_attn = self_attn;
      this.self_attn_connection = self_attn_connection;
      this.cross_attn = cross_attn;
      this.cross_attn_connection = cross_attn_connection;
      this.feed_forward = feed_forward;
      this.feed_forward_connection = feed_forward_connection;
    }

    /** @param {Tensor} x @param {Tensor} memory @param {Mask|null} src_mask
     *  @param {Mask|null} tgt_mask @param {DecoderCache|null} cache */
    forward(x, memory, src_mask, tgt_mask, cache) {
      x = this.self_attn_connection.forward(
        x, (x) => this.self_attn.forward(x, x, x, tgt_mask, cache && cache.own));
      x = this.cross_attn_connection.forward(
        x, (x) => this.cross_attn.forward(x, memory, memory, src_mask, cache && cache.source));
      return this.feed_forward_connection.forward(x, (x) => this.feed_forward.forward(x));
    }
  }

  // ---- The model

  class Embeddings {
    with_positions = true;

    /** @param {Linear} tokens @param {number} d_model */
    constructor(tokens, d_model) {
      this.tokens = tokens;
      this.d_model = d_model;
    }

    /** @param {number[][]} ids rows of equal length @param {number} first position of ids[..][0] */
    forward(ids, first = 0) {
      const x = new Tensor(ids.length, ids[0].length, this.d_model);
      ids.flat().forEach((id, n) => {
        const vector = this.tokens.row(id), position = first + (n % x.length);
        for (let i = 0; i < this.d_model; i++) {
          const angle = position / 10000 ** ((i - (i % 2)) / this.d_model);
          const wave = i % 2 ? Math.cos(angle) : Math.sin(angle);
          x.data[n * this.d_model + i] =
            vector[i] * Math.sqrt(this.d_model) + (this.with_positions ? wave : 0);
        }
      });
      return x;
    }
  }

  /** The encoder, or the decoder. @template {EncoderLayer|DecoderLayer} Layer */
  class Stack {
    stream = /** @type {Tensor[]} */ ([]); // before and after each layer, in the last pass

    /** @param {Layer[]} layers @param {LayerNorm} norm */
    constructor(layers, norm) {
      this.layers = layers;
      this.norm = norm;
    }

    /** @param {Tensor} x @param {(layer: Layer, x: Tensor) => Tensor} read */
    forward(x, read) {
      this.stream = [x];
      for (const layer of this.layers) {
        x = read(layer, x);
        this.stream.push(x);
      }
      return this.norm.forward(x);
    }
  }

  class Transformer {
    src_mask = /** @type {Mask|null} */ (null); // hides source tokens, if it is set
    causal = true;

    /** @param {Config} config @param {Map<string, Matrix>} weights */
    constructor(config, weights) {
      this.config = config;
      const { n_heads, norm_eps, d_model, n_encoder_layers, n_decoder_layers } = config;
      const matrix = (/** @type {string} */ name) => {
        const found = weights.get(name);
        if (!found) throw new Error(`there are no weights ${name}`);
        return found;
      };
      const linear = (/** @type {string} */ name) =>
        new Linear(matrix(`${name}.weight`), weights.get(`${name}.bias`)?.data);
      const norm = (/** @type {string} */ name) =>
        new LayerNorm(matrix(`${name}.gain`).data, matrix(`${name}.bias`).data, norm_eps);
      const attention = (/** @type {string} */ name) => new MultiHeadAttention(n_heads,
        linear(`${name}.q_proj`), linear(`${name}.k_proj`), linear(`${name}.v_proj`),
        linear(`${name}.out_proj`));
      const feed_forward = (/** @type {string} */ name) =>
        new FeedForward(linear(`${name}.expand`), linear(`${name}.contract`));
      const connection = (/** @type {string} */ name) =>
        new SublayerConnection(norm(`${name}_connection.norm`));
      const names = (/** @type {string} */ stack, /** @type {number} */ n_layers) =>
        Array.from({ length: n_layers }, (_, i) => `${stack}.layers.${i}`);
      this.encoder = new Stack(names("encoder", n_encoder_layers).map((name) => new EncoderLayer(
        attention(`${name}.self_attn`), connection(`${name}.self_attn`),
        feed_forward(`${name}.feed_forward`), connection(`${name}.feed_forward`),
      )), norm("encoder.norm"));
      this.decoder = new Stack(names("decoder", n_decoder_layers).map((name) => new DecoderLayer(
        attention(`${name}.self_attn`), connection(`${name}.self_attn`),
        attention(`${name}.cross_attn`), connection(`${name}.cross_attn`),
        feed_forward(`${name}.feed_forward`), connection(`${name}.feed_forward`),
      )), norm("decoder.norm"));
      this.lm_head = linear("lm_head");
      this.src_embeddings = new Embeddings(this.lm_head, d_model); // tied
      this.tgt_embeddings = new Embeddings(this.lm_head, d_model);
    }

    /** @param {number[]} src */
    encode(src) {
      return this.encoder.forward(this.src_embeddings.forward([src]),
        (layer, x) => layer.forward(x, this.src_mask));
    }

    /** @param {number[][]} tgt_in @param {Tensor} memory @param {Mask|null} tgt_mask
     *  @param {DecoderCache|null} cache */
    decode(tgt_in, memory, tgt_mask = null, cache = null) {
      const x = this.tgt_embeddings.forward(tgt_in, cache ? cache.length : 0);
      return this.decoder.forward(x,
        (layer, x) => layer.forward(x, memory, this.src_mask, tgt_mask, cache));
    }

    /** Logits of all positions of one target, as in training: (1, tgt_len, vocab_size)
     *  @param {number[]} src @param {number[]} tgt_in */
    forward(src, tgt_in) {
      const mask = this.causal ? causal_mask : null;
      return this.lm_head.forward(this.decode([tgt_in], this.encode(src), mask));
    }

    /** Those of the encoder, then those of the decoder, layer by layer, by their names */
    named_attentions() {
      return new Map([
        ...this.encoder.layers.flatMap(({ self_attn }, i) => named(`encoder.layers.${i}`, { self_attn })),
        ...this.decoder.layers.flatMap(({ self_attn, cross_attn }, i) =>
          named(`decoder.layers.${i}`, { self_attn, cross_attn })),
      ]);
    }
  }

  /** @param {string} layer @param {{ [kind: string]: MultiHeadAttention }} attentions
   *  @returns {[string, MultiHeadAttention][]} */
  const named = (layer, attentions) => Object.entries(attentions).map(([kind, attention]) =>
    [`${layer}.${kind}`, attention]);

  /** Reach into the model: whatever is not named is as it was trained.
   *    without: {name of an attention: [heads]}; cutting it means all its heads
   *    hide: [source positions]; src_positions, tgt_positions, causal: false for off
   *  @param {Transformer} model @param {Edits} edits */
  function intervene(model, edits = {}) {
    for (const [name, attention] of model.named_attentions()) {
      attention.without = new Set((edits.without || {})[name] || []);
    }
    const hidden = new Set(edits.hide || []);
    model.src_mask = hidden.size ? (q, k) => !hidden.has(k) : null;
    model.src_embeddings.with_positions = edits.src_positions !== false;
    model.tgt_embeddings.with_positions = edits.tgt_positions !== false;
    model.causal = edits.causal !== false;
  }

  // ---- Decoding: prefill, step, reorder

  class KeyValueCache { // keys and values of each attention, of all that was read
    kept = /** @type {Map<MultiHeadAttention, [Tensor, Tensor]>} */ (new Map());

    get n_bytes() {
      return [...this.kept.values()].flat().reduce((sum, { data }) => sum + data.byteLength, 0);
    }

    /** What is new joins what is kept; all of it is returned.
     *  @param {MultiHeadAttention} attention @param {Tensor} k @param {Tensor} v */
    update(attention, k, v) {
      const old = this.kept.get(attention);
      const both = /** @type {[Tensor, Tensor]} */ (
        old ? [joined(old[0], k), joined(old[1], v)] : [k, v]);
      this.kept.set(attention, both);
      return both;
    }

    /** Every row goes on from another one's keys and values. @param {number[]} parents */
    reorder(parents) {
      const rows_of = (/** @type {Tensor} */ x) => {
        const next = new Tensor(parents.length, x.length, x.width);
        parents.forEach((parent, row) => next.row(row).set(x.row(parent)));
        return next;
      };
      for (const [attention, [k, v]] of this.kept) this.kept.set(attention, [rows_of(k), rows_of(v)]);
    }
  }

  /** What a decoder keeps: of its own rows, and of the source, which all rows share */
  class DecoderCache {
    own = new KeyValueCache();
    source = new KeyValueCache(); // filled in the first step
    length = 0; // of what was read
  }

  /** Each row, and what is new of it. @param {Tensor} old @param {Tensor} fresh */
  function joined(old, fresh) {
    if (!fresh.length) return old;
    const both = new Tensor(old.batch, old.length + fresh.length, old.width);
    for (let row = 0; row < both.batch; row++) {
      both.row(row).set(old.row(row));
      both.row(row).set(fresh.row(row), old.length * old.width);
    }
    return both;
  }

  class IncrementalDecoder {
    cache = new DecoderCache();
    new_memory = new Tensor(1, 0, 0); // what of the source is not in the cache yet

    /** @param {Transformer} model */
    constructor(model) {
      this.model = model;
    }

    /** @param {number[]} src */
    prefill(src) {
      this.cache = new DecoderCache();
      this.new_memory = this.model.encode(src);
    }

    /** The logits after the last of these tokens, by row. @param {number[][]} ids */
    step(ids) {
      const first = this.cache.length;
      const tgt_mask = ids[0].length > 1
        ? (/** @type {number} */ q, /** @type {number} */ k) => k <= first + q : null;
      const x = this.model.decode(ids, this.new_memory, tgt_mask, this.cache);
      this.cache.length += ids[0].length;
      this.new_memory = new Tensor(1, 0, x.width); // nothing of it is new any more
      return next_logits(this.model, x);
    }

    /** @param {number[]} parents */
    reorder(parents) {
      this.cache.own.reorder(parents);
    }
  }

  class RecomputingDecoder { // reads all tokens again in every step
    cache = null;
    rows = /** @type {number[][]} */ ([]);
    memory = new Tensor(1, 0, 0);

    /** @param {Transformer} model */
    constructor(model) {
      this.model = model;
    }

    /** @param {number[]} src */
    prefill(src) {
      this.rows = [];
      this.memory = this.model.encode(src);
    }

    /** @param {number[][]} ids */
    step(ids) {
      this.rows = ids.map((fresh, i) => [...this.rows[i] || [], ...fresh]);
      const mask = this.model.causal ? causal_mask : null;
      return next_logits(this.model, this.model.decode(this.rows, this.memory, mask));
    }

    /** @param {number[]} parents */
    reorder(parents) {
      this.rows = parents.map((parent) => this.rows[parent]);
    }
  }

  /** @param {Transformer} model @param {Tensor} x */
  function next_logits(model, x) {
    const last = new Tensor(x.batch, 1, x.width);
    for (let i = 0; i < x.batch; i++) last.row(i).set(x.row(i).subarray(-x.width));
    const logits = model.lm_head.forward(last);
    return Array.from({ length: x.batch }, (_, i) => logits.row(i));
  }

  /** Without its causal mask, a model's earlier rows change with every new token.
   *  @param {Transformer} model */
  const make_decoder = (model) => (model.causal ? new IncrementalDecoder(model)
    : new RecomputingDecoder(model));

  // ---- Searches. limits: bos_id, eos_id, max_len, and prefix, tokens to begin with.
  // They return hypotheses; beam search tells what it does, step by step.

  /** @param {Transformer} model @param {Float32Array} logits */
  function next_log_probs(model, logits) {
    const log_probs = log_softmax(logits);
    if (Number.isNaN(log_probs[0])) throw new Error("the model's logits are not finite");
    log_probs[model.config.pad_id] = -Infinity;
    return log_probs;
  }

  /** @param {Transformer} model @param {number[]} src @param {Limits} limits
   *  @param {(log_probs: Float32Array) => number} choose a token @returns {Hypothesis} */
  function decode(model, src, limits, choose) {
    const decoder = make_decoder(model), start = [limits.bos_id, ...limits.prefix || []];
    decoder.prefill(src);
    let ids = start, fresh = start, log_prob = 0, finished = false;
    do {
      const log_probs = next_log_probs(model, decoder.step([fresh])[0]);
      const token = choose(log_probs);
      log_prob += log_probs[token];
      fresh = [token];
      ids = [...ids, token];
      finished = token === limits.eos_id;
    } while (!finished && ids.length <= limits.max_len);
    return { ids: ids.slice(1), log_prob, score: log_prob, finished };
  }

  /** @param {Transformer} model @param {number[]} src @param {Limits} limits */
  const greedy_decode = (model, src, limits) =>
    decode(model, src, limits, (scores) => top_tokens(scores, 1)[0][1]);

  /** Temperature first, then top-p: the fewest tokens with probability top_p together.
   *  @param {Float32Array} log_probs @param {Sampling} sampling */
  function probabilities(log_probs, { temperature = 1, top_p = 1 }) {
    const p = log_softmax(log_probs.map((x) => x / temperature)).map(Math.exp);
    if (top_p >= 1) return p;
    const order = Array.from(p.keys()).sort((a, b) => p[b] - p[a]);
    let likelier = 0;
    for (const token of order) {
      if (likelier >= top_p) p[token] = 0;
      likelier += p[token];
    }
    const total = p.reduce((sum, x) => sum + x, 0);
    return p.map((x) => x / total);
  }

  /** The generator "mulberry32": the same seed, the same numbers. @param {number} seed */
  function random(seed) {
    return () => {
      seed = (seed + 0x6d2b79f5) | 0;
      let t = Math.imul(seed ^ (seed >>> 15), seed | 1);
      t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
      return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
    };
  }

  /** @param {Transformer} model @param {number[]} src @param {Limits} limits
   *  @param {Sampling} sampling @param {number} seed */
  function sample(model, src, limits, sampling, seed) {
    const draw = random(seed);
    return decode(model, src, limits, (log_probs) => {
      const p = probabilities(log_probs, sampling);
      let left = draw();
      const token = p.findIndex((share) => (left -= share) < 0);
      return token < 0 ? top_tokens(p, 1)[0][1] : token; // shares are rounded
    });
  }

  /** @typedef {{ ids: number[], log_prob: number, parent: number }} Beam */

  /** The best ways to go on, best first
   *  @param {Float32Array[]} log_probs_of_rows @param {Beam[]} beams @param {number} n_candidates */
  function best_candidates(log_probs_of_rows, beams, n_candidates) {
    const all = log_probs_of_rows.flatMap((log_probs, parent) =>
      top_tokens(log_probs, n_candidates).map(([log_prob, token]) =>
        ({ log_prob: log_prob + beams[parent].log_prob, parent, token })));
    return all.sort((a, b) => b.log_prob - a.log_prob).slice(0, n_candidates);
  }

  /** Each beam its row: the best child of a parent takes the parent's row, siblings take
   *  the rows of beams without children. So only siblings are copied in the cache.
   *  @param {Beam[]} children @returns {Beam[]} */
  function settle(children) {
    const heirs = /** @type {Map<number, Beam>} */ (new Map());
    for (const child of [...children].reverse()) heirs.set(child.parent, child);
    const siblings = children.filter((child) => heirs.get(child.parent) !== child);
    return children.map((_, row) => heirs.get(row) || /** @type {Beam} */ (siblings.shift()));
  }

  class BeamHypotheses {
    hypotheses = /** @type {Hypothesis[]} */ ([]);
    done = false;

    /** @param {number[]} start @param {Limits} limits
     *  @param {number} n_beams @param {number} length_penalty */
    constructor(start, limits, n_beams, length_penalty) {
      this.n_forced = start.length - 1;
      this.limits = limits;
      this.n_beams = n_beams;
      this.length_penalty = length_penalty;
      this.beams = Array.from({ length: n_beams }, (_, parent) =>
        ({ ids: start, log_prob: parent ? -Infinity : 0, parent }));
    }

    /** Go on with the best candidates and keep those that end.
     *  @param {ReturnType<typeof best_candidates>} candidates @param {number} position
     *  @returns {SearchStep["fates"]} what became of each */
    advance(candidates, position) {
      const last = position === this.limits.max_len;
      const children = /** @type {Beam[]} */ ([]), fates = /** @type {SearchStep["fates"]} */ ([]);
      candidates.forEach(({ log_prob, parent, token }, rank) => {
        const { ids } = this.beams[parent], ends = last || token === this.limits.eos_id;
        const is_full = children.length === this.n_beams;
        const counts = !is_full && rank < this.n_beams && log_prob > -Infinity;
        let fate = /** @type {"beam"|"ended"|"dropped"} */ ("dropped");
        if (!ends && !is_full) {
          children.push({ ids: [...ids, token], log_prob, parent });
          fate = "beam";
        } else if (counts && this.keep([...ids.slice(1), token], log_prob)) fate = "ended";
        fates.push({ log_prob, parent, token, fate });
      });
      this.beams = settle(children);
      this.done = last || this.has_no_hope(position);
      return fates;
    }

    /** Among the best n_beams; false if it isn't one of them.
     *  @param {number[]} ids @param {number} log_prob */
    keep(ids, log_prob) {
      const finished = ids[ids.length - 1] === this.limits.eos_id;
      const found = { ids, log_prob, score: this.score(log_prob, ids.length), finished };
      this.hypotheses = [...this.hypotheses, found].sort((a, b) => b.score - a.score)
        .slice(0, this.n_beams);
      return this.hypotheses.includes(found);
    }

    /** @param {number} position */
    has_no_hope(position) {
      if (this.hypotheses.length < this.n_beams) return false;
      const best = Math.max(...this.beams.map((beam) => beam.log_prob));
      return this.score(best, position) <= this.hypotheses[this.n_beams - 1].score;
    }

    /** @param {number} log_prob @param {number} length */
    score(log_prob, length) {
      return log_prob / Math.max(length - this.n_forced, 1) ** this.length_penalty;
    }
  }

  /** @param {Transformer} model @param {number[]} src @param {Limits} limits @param {number} n_beams
   *  @param {number} length_penalty @param {(step: SearchStep) => void} tell */
  function beam_search(model, src, limits, n_beams = 4, length_penalty = 1, tell = () => {}) {
    const start = [limits.bos_id, ...limits.prefix || []];
    const search = new BeamHypotheses(start, limits, n_beams, length_penalty);
    const decoder = make_decoder(model);
    decoder.prefill(src);
    let ids = search.beams.map(() => start);
    for (let position = start.length; !search.done; position++) {
      const log_probs = decoder.step(ids).map((logits) => next_log_probs(model, logits));
      const before = search.beams;
      const fates = search.advance(best_candidates(log_probs, before, 2 * n_beams), position);
      tell({ position, before, fates, beams: search.beams, cache: decoder.cache });
      decoder.reorder(search.beams.map((beam) => beam.parent));
      ids = search.beams.map((beam) => beam.ids.slice(-1));
    }
    return search.hypotheses;
  }

  // ---- Text to ids and back: bytes, joined by byte-pair encoding

  // White space as Unicode defines it; \s of JavaScript is not the same. Then signs that nobody sees.
  const SPACE = "\\t-\\r \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
  const SPACES = new RegExp(`[${SPACE}]+`, "g");
  const UNSEEN = /[\xad\u200b\u200e\u200f\u2060\ufeff]/g;
  // What Python's str.strip takes away, as Translator.translate does
  const MARGINS = new RegExp(`^[${SPACE}\\x1c-\\x1f]+|[${SPACE}\\x1c-\\x1f]+$`, "g");

  /** The one form of a text that the model reads: texts that look the same are the same.
   *  @param {string} text */
  const normalized = (text) => text.replace(MARGINS, "").normalize("NFC").replace(UNSEEN, "")
    .replace(SPACES, " ").replace(/^ | $/g, "");

  const WORDS = /'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^ \p{L}\p{N}]+/gu;

  class Tokenizer {
    pad_id = 0; bos_id = 1; eos_id = 2; unk_id = 3;

    /** @param {string[]} tokens @param {number[]} merges ids a, b, a, b, ... in the order learned */
    constructor(tokens, merges) {
      this.tokens = tokens;
      // A letter for each byte: itself if it prints, else one from U+0100 on.
      const prints = (/** @type {number} */ b) => (b > 32 && b < 127) || (b > 160 && b !== 173);
      let next = 256;
      this.letters = Array.from({ length: 256 }, (_, byte) =>
        String.fromCodePoint(prints(byte) ? byte : next++));
      this.bytes = new Map(this.letters.map((letter, byte) => [letter, byte]));
      this.ids = new Map(tokens.map((token, id) => [token, id]));
      this.ranks = /** @type {Map<string, number>} */ (new Map());
      for (let i = 0; i < merges.length; i += 2) {
        this.ranks.set(`${tokens[merges[i]]} ${tokens[merges[i + 1]]}`, i);
      }
    }

    /** With <eos> at its end. @param {string} text */
    encode(text) {
      text = normalized(text);
      if (!text) throw new Error("a sentence needs at least 1 word");
      if (/\p{Surrogate}/u.test(text)) throw new Error("half a character: no valid Unicode");
      const ids = /** @type {number[]} */ ([]);
      for (const word of ` ${text}`.match(WORDS) || []) {
        const bytes = new TextEncoder().encode(word);
        for (const piece of this.join(Array.from(bytes, (byte) => this.letters[byte]))) {
          ids.push(this.ids.get(piece) ?? this.unk_id);
        }
      }
      return [...ids, this.eos_id];
    }

    /** The pair that was learned first, the leftmost of them, and again. @param {string[]} pieces */
    join(pieces) {
      while (true) {
        let best = Infinity, at = -1;
        for (let i = 0; i + 1 < pieces.length; i++) {
          const rank = this.ranks.get(`${pieces[i]} ${pieces[i + 1]}`);
          if (rank !== undefined && rank < best) [best, at] = [rank, i];
        }
        if (at < 0) return pieces;
        pieces.splice(at, 2, pieces[at] + pieces[at + 1]);
      }
    }

    /** @param {number[]} ids */
    bytes_of(ids) {
      const letters = ids.map((id) => this.tokens[id]).join("");
      return Uint8Array.from([...letters].map((letter) => this.bytes.get(letter) ?? 0));
    }

    /** Without special tokens. @param {number[]} ids */
    decode(ids) {
      return utf8(this.bytes_of(ids.filter((id) => id > 3))).replace(/^ /, "");
    }

    /** Readable, for the axes of a picture. @param {number} id */
    label(id, space = "▁") {
      if (id <= 3) return this.tokens[id];
      const raw = this.bytes_of([id]);
      try {
        return utf8(raw, true).replace(/^ /, space);
      } catch { // a part of a character
        const hex = (/** @type {number} */ byte) => byte.toString(16).toUpperCase().padStart(2, "0");
        return Array.from(raw, (byte) => `<${hex(byte)}>`).join("");
      }
    }
  }

  /** @param {Uint8Array} bytes */
  const utf8 = (bytes, fatal = false) =>
    new TextDecoder("utf-8", { fatal, ignoreBOM: true }).decode(bytes);

  // ---- Loading: what book/_ext/browser_model.py has written

  /** @param {Packed} packed */
  function load({ config, tokens, merges, tensors, data }) {
    const letters = atob(data), bytes = new Uint8Array(letters.length);
    for (let i = 0; i < bytes.length; i++) bytes[i] = letters.charCodeAt(i);
    const floats = (/** @type {number} */ at, /** @type {number} */ count) =>
      new Float32Array(bytes.buffer, at, count);
    const weights = new Map(tensors.map(({ name, shape, offset, scale }) => {
      const n = shape.reduce((product, size) => product * size, 1);
      if (scale === undefined) return [name, { shape, data: floats(offset, n) }];
      // A matrix in 8 bits, with one scale for each row
      const eights = new Int8Array(bytes.buffer, offset, n), scales = floats(scale, shape[0]);
      const data = new Float32Array(eights).map((w, i) => w * scales[Math.floor(i / shape[1])]);
      return [name, { shape, data }];
    }));
    return { model: new Transformer(config, weights), tokenizer: new Tokenizer(tokens, merges) };
  }

  return {
    work, load, intervene, causal_mask, log_softmax, top_tokens, probabilities, greedy_decode,
    sample, beam_search, normalized, Linear, RecomputingDecoder, Tensor, Tokenizer, Transformer,
  };
}
