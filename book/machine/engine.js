// The book's Transformer in plain JavaScript: no framework, nothing to build. Classes,
// methods and weights have the names of transformer_lib, so whoever knows chapter 8
// knows this file. It reads one sentence at a time, in evaluation mode.
//
// What takes long is a generator: each `yield` is a place to pause. A worker runs it
// through (`finish`); on the main thread others get their turn in between. Everything
// stands in one function, whose text is also the text of the worker.

export function transformer_engine() {
  // ---- Tensors: (batch, length, width) in a flat array, row after row

  class Tensor {
    constructor(batch, length, width, data = null, stride = length * width) {
      Object.assign(this, { batch, length, width, stride }); // stride: from row to row
      this.data = data || new Float32Array(batch * length * width);
    }
  }

  const work = { multiplications: 0 }; // counted wherever numbers are multiplied

  // A matrix in 8 bits with one scale for each row, or in 32 bits without.
  class Linear {
    constructor({ data, shape, scale }, bias = null) {
      Object.assign(this, { data, scale, bias });
      [this.n_out, this.n_in] = shape;
    }

    forward(x) {
      const { n_in, n_out, data: w, scale, bias } = this;
      const out = new Tensor(x.batch, x.length, n_out);
      const n_rows = x.batch * x.length, from = x.data, to = out.data;
      work.multiplications += n_rows * n_in * n_out;
      for (let o = 0; o < n_out; o++) {
        const start = o * n_in, factor = scale ? scale[o] : 1;
        const shift = bias ? bias[o] : 0;
        let row = 0;
        for (; row + 4 <= n_rows; row += 4) { // four rows for each weight that is read
          const a = row * n_in, b = a + n_in, c = b + n_in, d = c + n_in;
          let s = 0, t = 0, u = 0, v = 0;
          for (let i = 0; i < n_in; i += 2) {
            const weight = w[start + i], other = w[start + i + 1];
            s += weight * from[a + i] + other * from[a + i + 1];
            t += weight * from[b + i] + other * from[b + i + 1];
            u += weight * from[c + i] + other * from[c + i + 1];
            v += weight * from[d + i] + other * from[d + i + 1];
          }
          to[row * n_out + o] = s * factor + shift;
          to[(row + 1) * n_out + o] = t * factor + shift;
          to[(row + 2) * n_out + o] = u * factor + shift;
          to[(row + 3) * n_out + o] = v * factor + shift;
        }
        for (; row < n_rows; row++) {
          const a = row * n_in;
          let s = 0, t = 0, u = 0, v = 0;
          for (let i = 0; i < n_in; i += 4) {
            s += w[start + i] * from[a + i];
            t += w[start + i + 1] * from[a + i + 1];
            u += w[start + i + 2] * from[a + i + 2];
            v += w[start + i + 3] * from[a + i + 3];
          }
          to[row * n_out + o] = (s + t + u + v) * factor + shift;
        }
      }
      return out;
    }

    row(o) { // one row as numbers: the vector of a token
      const numbers = this.data.subarray(o * this.n_in, (o + 1) * this.n_in);
      return Float32Array.from(numbers, (w) => w * (this.scale ? this.scale[o] : 1));
    }
  }

  function log_softmax(logits) {
    let top = -Infinity, total = 0;
    for (let i = 0; i < logits.length; i++) if (logits[i] > top) top = logits[i];
    for (let i = 0; i < logits.length; i++) total += Math.exp(logits[i] - top);
    const shift = top + Math.log(total), found = new Float32Array(logits.length);
    for (let i = 0; i < found.length; i++) found[i] = logits[i] - shift;
    return found;
  }

  // The n highest scores, best first: [[score, index], ...]
  function top_tokens(scores, n) {
    const best = [];
    for (let i = 0; i < scores.length; i++) {
      if (best.length === n && scores[i] <= best[n - 1][0]) continue;
      let at = best.length;
      while (at && best[at - 1][0] < scores[i]) at--;
      best.splice(at, 0, [scores[i], i]);
      best.length = Math.min(best.length, n);
    }
    return best;
  }

  // ---- Masks: mask(q, k) says whether query q may attend to key k

  const causal_mask = (q, k) => k <= q;

  // ---- Attention

  // softmax(Q K^T / sqrt(d_head)) V for one head of one row, equation 1 of the paper.
  // weights: (q_len, k_len). A query with no key left gets zeros.
  function scaled_dot_product_attention(q, k, v, mask, head, d_head, row, out) {
    const krow = (k.batch === 1 ? 0 : row) * k.stride + head * d_head;
    const weights = new Float32Array(q.length * k.length);
    work.multiplications += 2 * q.length * k.length * d_head;
    for (let i = 0; i < q.length; i++) {
      const at = row * q.stride + i * q.width + head * d_head, w = i * k.length;
      let top = -Infinity, total = 0;
      for (let j = 0; j < k.length; j++) {
        let score = 0;
        for (let f = 0; f < d_head; f++) {
          score += q.data[at + f] * k.data[krow + j * k.width + f];
        }
        score = !mask || mask(i, j) ? score / Math.sqrt(d_head) : -Infinity;
        weights[w + j] = score;
        if (score > top) top = score;
      }
      for (let j = 0; j < k.length; j++) {
        const weight = weights[w + j] === -Infinity ? 0 : Math.exp(weights[w + j] - top);
        weights[w + j] = weight;
        total += weight;
      }
      for (let j = 0; j < k.length && total > 0; j++) {
        weights[w + j] /= total;
        for (let f = 0; f < d_head; f++) {
          out.data[at + f] += weights[w + j] * v.data[krow + j * v.width + f];
        }
      }
    }
    return weights;
  }

  class MultiHeadAttention {
    constructor(n_heads, parts) {
      Object.assign(this, parts); // q_proj, k_proj, v_proj, out_proj
      this.n_heads = n_heads;
      this.d_head = this.q_proj.n_out / n_heads;
      this.without = new Set(); // heads that are removed
      this.watch = null; // gets the weights: (head, row, weights)
      this.spy = null; // gets queries, keys and values of all heads
    }

    forward(query, key, value, mask = null, cache = null) {
      const q = this.q_proj.forward(query);
      let k = this.k_proj.forward(key), v = this.v_proj.forward(value);
      if (cache) [k, v] = cache.update(this, k, v);
      if (this.spy) this.spy(q, k, v);
      const output = new Tensor(q.batch, q.length, q.width);
      for (let row = 0; row < q.batch; row++) {
        for (let head = 0; head < this.n_heads; head++) {
          let to = output;
          if (this.without.has(head)) to = new Tensor(q.batch, q.length, q.width);
          const weights = scaled_dot_product_attention(
            q, k, v, mask, head, this.d_head, row, to);
          if (this.without.has(head)) weights.fill(0);
          if (this.watch) this.watch(head, row, weights);
        }
      }
      return this.out_proj.forward(output);
    }
  }

  // ---- Layers

  class LayerNorm {
    constructor(gain, bias, eps) {
      Object.assign(this, { gain, bias, eps });
    }

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

  class SublayerConnection { // pre-norm: x + sublayer(norm(x))
    constructor(norm) {
      this.norm = norm;
    }

    forward(x, sublayer) {
      const added = sublayer(this.norm.forward(x));
      const out = new Tensor(x.batch, x.length, x.width);
      for (let i = 0; i < out.data.length; i++) out.data[i] = x.data[i] + added.data[i];
      return out;
    }
  }

  class FeedForward {
    constructor(parts) {
      Object.assign(this, parts); // expand, contract
    }

    forward(x) {
      const hidden = this.expand.forward(x);
      for (let i = 0; i < hidden.data.length; i++) {
        if (hidden.data[i] < 0) hidden.data[i] = 0; // relu
      }
      return this.contract.forward(hidden);
    }
  }

  class EncoderLayer {
    constructor(parts) {
      Object.assign(this, parts);
    }

    *forward(x, src_mask) {
      x = this.self_attn_connection.forward(
        x, (x) => this.self_attn.forward(x, x, x, src_mask));
      yield;
      return this.feed_forward_connection.forward(
        x, (x) => this.feed_forward.forward(x));
    }
  }

  class DecoderLayer {
    constructor(parts) {
      Object.assign(this, parts);
    }

    *forward(x, memory, src_mask, tgt_mask, cache) {
      x = this.self_attn_connection.forward(
        x, (x) => this.self_attn.forward(x, x, x, tgt_mask, cache));
      yield;
      const source = cache && cache.source;
      x = this.cross_attn_connection.forward(
        x, (x) => this.cross_attn.forward(x, memory, memory, src_mask, source));
      yield;
      return this.feed_forward_connection.forward(
        x, (x) => this.feed_forward.forward(x));
    }
  }

  // ---- The model

  class Embeddings {
    constructor(tokens, d_model) {
      Object.assign(this, { tokens, d_model, with_positions: true });
    }

    forward(ids, first = 0) { // ids: rows of equal length; first: position of ids[..][0]
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

  class Encoder {
    constructor(layers, norm) {
      Object.assign(this, { layers, norm });
      this.watch = null; // gets the residual stream before and after each layer
    }

    *forward(x, src_mask) {
      if (this.watch) this.watch(x);
      for (const layer of this.layers) {
        x = yield* layer.forward(x, src_mask);
        if (this.watch) this.watch(x);
        yield;
      }
      return this.norm.forward(x);
    }
  }

  class Decoder {
    constructor(layers, norm) {
      Object.assign(this, { layers, norm });
      this.watch = null; // likewise
    }

    *forward(x, memory, src_mask, tgt_mask, cache) {
      if (this.watch) this.watch(x);
      for (const layer of this.layers) {
        x = yield* layer.forward(x, memory, src_mask, tgt_mask, cache);
        if (this.watch) this.watch(x);
        yield;
      }
      return this.norm.forward(x);
    }
  }

  class Transformer {
    constructor(config, weights) {
      this.config = config;
      const part = (name) => weights.get(name);
      const linear = (name) => new Linear(part(`${name}.weight`), part(`${name}.bias`));
      const norm = (name) =>
        new LayerNorm(part(`${name}.gain`), part(`${name}.bias`), config.norm_eps);
      const attention = (name) => new MultiHeadAttention(config.n_heads, {
        q_proj: linear(`${name}.q_proj`),
        k_proj: linear(`${name}.k_proj`),
        v_proj: linear(`${name}.v_proj`),
        out_proj: linear(`${name}.out_proj`),
      });
      const layer = (name, attentions) => {
        const parts = { feed_forward: new FeedForward({
          expand: linear(`${name}.feed_forward.expand`),
          contract: linear(`${name}.feed_forward.contract`),
        }) };
        for (const each of attentions) parts[each] = attention(`${name}.${each}`);
        for (const each of [...attentions, "feed_forward"]) {
          const connection = `${each}_connection`;
          parts[connection] = new SublayerConnection(norm(`${name}.${connection}.norm`));
        }
        return parts;
      };
      const numbers = (n) => [...Array(n).keys()];
      this.encoder = new Encoder(
        numbers(config.n_encoder_layers).map((i) => new EncoderLayer(
          layer(`encoder.layers.${i}`, ["self_attn"]))),
        norm("encoder.norm"));
      this.decoder = new Decoder(
        numbers(config.n_decoder_layers).map((i) => new DecoderLayer(
          layer(`decoder.layers.${i}`, ["self_attn", "cross_attn"]))),
        norm("decoder.norm"));
      this.lm_head = linear("lm_head");
      this.src_embeddings = new Embeddings(this.lm_head, config.d_model); // tied
      this.tgt_embeddings = new Embeddings(this.lm_head, config.d_model);
      this.src_mask = null; // hides source tokens, if it is set
      this.causal = true;
    }

    *encode(src) {
      return yield* this.encoder.forward(
        this.src_embeddings.forward([src]), this.src_mask);
    }

    *decode(tgt_in, memory, tgt_mask = null, cache = null) {
      const x = this.tgt_embeddings.forward(tgt_in, cache ? cache.length : 0);
      return yield* this.decoder.forward(x, memory, this.src_mask, tgt_mask, cache);
    }

    // Logits of all positions of one target, as in training: (1, tgt_len, vocab_size)
    *forward(src, tgt_in) {
      const memory = yield* this.encode(src);
      const mask = this.causal ? causal_mask : null;
      return yield* this.score(yield* this.decode([tgt_in], memory, mask));
    }

    // The output layer, four rows at a time: (batch, length, vocab_size)
    *score(x) {
      const { n_in, n_out } = this.lm_head, n_rows = x.batch * x.length;
      const logits = new Tensor(x.batch, x.length, n_out);
      for (let row = 0; row < n_rows; row += 4) {
        const some = x.data.subarray(row * n_in, (row + 4) * n_in);
        const part = this.lm_head.forward(new Tensor(1, some.length / n_in, n_in, some));
        logits.data.set(part.data, row * n_out);
        yield;
      }
      return logits;
    }

    *named_attentions() {
      for (const [i, layer] of this.encoder.layers.entries()) {
        yield [`encoder.layers.${i}.self_attn`, layer.self_attn];
      }
      for (const [i, layer] of this.decoder.layers.entries()) {
        yield [`decoder.layers.${i}.self_attn`, layer.self_attn];
        yield [`decoder.layers.${i}.cross_attn`, layer.cross_attn];
      }
    }
  }

  // Reach into the model: whatever is not named is as it was trained.
  //   without: {name of an attention: [heads]}; cutting it means all its heads
  //   hide: [source positions]; src_positions, tgt_positions, causal: false for off
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

  class KeyValueCache {
    constructor(capacity = 32) {
      Object.assign(this, { capacity, length: 0, copied: 0 });
      this.source = new SourceCache();
      this.rooms = new Map(); // attention -> [keys, values], with room to grow
    }

    get n_bytes() { // in use; source_bytes: of the memory's keys and values
      const rooms = [...this.rooms.values()].flat();
      return rooms.reduce((sum, r) => sum + 4 * r.batch * this.length * r.width, 0);
    }

    get source_bytes() {
      const kept = [...this.source.kept.values()].flat();
      return kept.reduce((sum, each) => sum + each.data.byteLength, 0);
    }

    update(attention, key, value) {
      const { batch, length, width } = key, end = this.length + length;
      let rooms = this.rooms.get(attention);
      if (!rooms) rooms = [0, 1].map(() => new Tensor(batch, this.capacity, width));
      rooms = rooms.map((room) => (room.length < end ? grown(room, end) : room));
      this.rooms.set(attention, rooms);
      return [key, value].map((fresh, which) => {
        const room = rooms[which];
        for (let row = 0; row < batch; row++) {
          const from = fresh.data.subarray(row * fresh.stride, (row + 1) * fresh.stride);
          room.data.set(from, row * room.stride + this.length * width);
        }
        return new Tensor(batch, end, width, room.data, room.stride);
      });
    }

    reorder(rows) { // every row goes on from another one's keys and values
      const used = this.length;
      for (const [attention, rooms] of this.rooms) {
        this.rooms.set(attention, rooms.map((room) => {
          const next = new Tensor(rows.length, room.length, room.width);
          rows.forEach((parent, row) => {
            const start = parent * room.stride;
            const kept = room.data.subarray(start, start + used * room.width);
            next.data.set(kept, row * next.stride);
            if (parent !== row) this.copied += 4 * kept.length;
          });
          return next;
        }));
      }
    }
  }

  function grown(room, end) { // twice the room, until it is enough
    let capacity = room.length;
    while (capacity < end) capacity *= 2;
    const larger = new Tensor(room.batch, capacity, room.width);
    for (let row = 0; row < room.batch; row++) {
      const from = room.data.subarray(row * room.stride, (row + 1) * room.stride);
      larger.data.set(from, row * larger.stride);
    }
    return larger;
  }

  class SourceCache { // filled in the first step; all beams share it
    constructor() {
      this.kept = new Map();
    }

    update(attention, key, value) {
      if (key.length) this.kept.set(attention, [key, value]);
      return this.kept.get(attention);
    }
  }

  class IncrementalDecoder {
    constructor(model) {
      this.model = model;
    }

    *prefill(src, n_beams = 1) {
      this.cache = new KeyValueCache();
      this.n_beams = n_beams;
      this.new_memory = yield* this.model.encode(src);
    }

    // ids: the next tokens of each row. Returns the logits after the last one, by row.
    *step(ids) {
      const first = this.cache.length;
      const tgt_mask = ids[0].length > 1 ? (q, k) => k <= first + q : null;
      const x = yield* this.model.decode(ids, this.new_memory, tgt_mask, this.cache);
      this.cache.length += ids[0].length;
      this.new_memory = new Tensor(1, 0, x.width); // nothing of it is new any more
      return yield* next_logits(this.model, x);
    }

    reorder(parents) {
      this.cache.reorder(parents);
    }
  }

  class RecomputingDecoder { // reads all tokens again in every step
    constructor(model) {
      this.model = model;
    }

    *prefill(src, n_beams = 1) {
      this.ids = Array.from({ length: n_beams }, () => []);
      this.memory = yield* this.model.encode(src);
    }

    *step(ids) {
      this.ids = this.ids.map((row, i) => [...row, ...ids[i]]);
      const mask = this.model.causal ? causal_mask : null;
      return yield* next_logits(
        this.model, yield* this.model.decode(this.ids, this.memory, mask));
    }

    reorder(parents) {
      this.ids = parents.map((parent) => this.ids[parent]);
    }
  }

  function* next_logits(model, x) {
    const last = new Tensor(x.batch, 1, x.width);
    for (let row = 0; row < x.batch; row++) {
      const end = (row + 1) * x.stride;
      last.data.set(x.data.subarray(end - x.width, end), row * x.width);
    }
    const { data } = yield* model.score(last), n = model.lm_head.n_out;
    return Array.from({ length: x.batch }, (_, row) => data.subarray(row * n, (row + 1) * n));
  }

  // Without its causal mask, a model's earlier rows change with every new token.
  function make_decoder(model) {
    return model.causal ? new IncrementalDecoder(model) : new RecomputingDecoder(model);
  }

  // ---- Searches. config: bos_id, eos_id, max_len, and prefix, tokens to begin with.
  // They yield what they did, step by step, and return hypotheses.

  function next_log_probs(model, logits) {
    const log_probs = log_softmax(logits);
    if (Number.isNaN(log_probs[0])) throw new Error("the model's logits are not finite");
    log_probs[model.config.pad_id] = -Infinity;
    return log_probs;
  }

  // choose(log_probs) -> token
  function* decode(model, src, config, choose, decoder = make_decoder(model)) {
    const prefix = config.prefix || [];
    yield* decoder.prefill(src);
    let ids = [config.bos_id, ...prefix], fresh = ids, log_prob = 0;
    while (true) {
      const [logits] = yield* decoder.step([fresh]);
      const log_probs = next_log_probs(model, logits);
      const token = choose(log_probs);
      log_prob += log_probs[token];
      fresh = [token];
      ids = [...ids, token];
      const finished = token === config.eos_id;
      yield { token, log_prob: log_probs[token], ids: ids.slice(1), decoder };
      if (finished || ids.length > config.max_len) {
        return { ids: ids.slice(1), log_prob, score: log_prob, finished };
      }
    }
  }

  function greedy_decode(model, src, config, decoder) {
    return decode(model, src, config, (scores) => top_tokens(scores, 1)[0][1], decoder);
  }

  // Temperature first, then top-p: the fewest tokens with probability top_p together.
  function probabilities(log_probs, { temperature = 1, top_p = 1 }) {
    const p = log_softmax(log_probs.map((x) => x / temperature)).map(Math.exp);
    if (top_p >= 1) return p;
    const order = Array.from(p.keys()).sort((a, b) => p[b] - p[a]);
    let likelier = 0;
    for (const token of order) {
      const own = p[token];
      if (likelier >= top_p) p[token] = 0;
      likelier += own;
    }
    const total = p.reduce((sum, x) => sum + x, 0);
    return p.map((x) => x / total);
  }

  function random(seed) { // the generator "mulberry32": the same seed, the same numbers
    return () => {
      seed = (seed + 0x6d2b79f5) | 0;
      let t = Math.imul(seed ^ (seed >>> 15), seed | 1);
      t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
      return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
    };
  }

  function sample(model, src, config, sampling, seed, decoder) {
    const draw = random(seed);
    return decode(model, src, config, (log_probs) => {
      const p = probabilities(log_probs, sampling);
      let left = draw(), token = 0;
      for (let i = 0; i < p.length; i++) {
        if (p[i] > 0) {
          token = i;
          left -= p[i];
          if (left < 0) break;
        }
      }
      return token;
    }, decoder);
  }

  // The best ways to go on: [[log_prob, parent, token], ...], best first.
  function best_candidates(log_probs_of_rows, beams, n_candidates) {
    const all = log_probs_of_rows.flatMap((log_probs, parent) =>
      top_tokens(log_probs, n_candidates).map(([log_prob, token]) =>
        [log_prob + beams[parent].log_prob, parent, token]));
    return all.sort((a, b) => b[0] - a[0]).slice(0, n_candidates);
  }

  // Each beam its row: the best child of a parent takes the parent's row, siblings take
  // the rows of beams without children. So only siblings are copied in the cache.
  function settle(children) {
    const heirs = new Map();
    for (const child of [...children].reverse()) heirs.set(child.parent, child);
    const siblings = children.filter((child) => heirs.get(child.parent) !== child);
    return children.map((_, row) => heirs.get(row) || siblings.shift());
  }

  class BeamHypotheses {
    constructor(start, n_forced, config, n_beams, length_penalty) {
      Object.assign(this, { n_forced, config, n_beams, length_penalty });
      this.beams = Array.from({ length: n_beams }, (_, parent) =>
        ({ ids: start, log_prob: parent ? -Infinity : 0, parent }));
      this.hypotheses = [];
      this.done = false;
    }

    // Go on with the best candidates and keep those that end. Returns what became of
    // each: "beam", "ended", or "dropped".
    advance(candidates, position) {
      const last = position === this.config.max_len, children = [], fates = [];
      candidates.forEach(([log_prob, parent, token], rank) => {
        const { ids } = this.beams[parent], ends = last || token === this.config.eos_id;
        let fate = "dropped";
        if (!ends && children.length < this.n_beams) {
          children.push({ ids: [...ids, token], log_prob, parent });
          fate = "beam";
        } else if (
          ends && rank < this.n_beams && log_prob > -Infinity &&
          children.length < this.n_beams
        ) {
          if (this.keep([...ids.slice(1), token], log_prob)) fate = "ended";
        }
        fates.push({ log_prob, parent, token, fate });
      });
      this.beams = settle(children);
      this.done = last || this.has_no_hope(position);
      return fates;
    }

    keep(ids, log_prob) { // among the best n_beams; false if it isn't one of them
      const finished = ids[ids.length - 1] === this.config.eos_id;
      const found = { ids, log_prob, score: this.score(log_prob, ids.length), finished };
      this.hypotheses.push(found);
      this.hypotheses.sort((a, b) => b.score - a.score);
      this.hypotheses.length = Math.min(this.hypotheses.length, this.n_beams);
      return this.hypotheses.includes(found);
    }

    has_no_hope(position) {
      if (this.hypotheses.length < this.n_beams) return false;
      const best = Math.max(...this.beams.map((beam) => beam.log_prob));
      return this.score(best, position) <= this.hypotheses[this.n_beams - 1].score;
    }

    score(log_prob, length) {
      return log_prob / Math.max(length - this.n_forced, 1) ** this.length_penalty;
    }
  }

  function* beam_search(
    model, src, config, n_beams = 4, length_penalty = 1, decoder = make_decoder(model)
  ) {
    const prefix = config.prefix || [], start = [config.bos_id, ...prefix];
    const search = new BeamHypotheses(
      start, prefix.length, config, n_beams, length_penalty);
    yield* decoder.prefill(src, n_beams);
    let ids = search.beams.map(() => start);
    for (let position = start.length; !search.done; position++) {
      const logits = yield* decoder.step(ids);
      const log_probs = [];
      for (const row of logits) {
        log_probs.push(next_log_probs(model, row));
        yield;
      }
      const before = search.beams;
      const candidates = best_candidates(log_probs, before, 2 * n_beams);
      const fates = search.advance(candidates, position);
      yield { position, before, fates, beams: search.beams, decoder };
      if (!search.done) {
        decoder.reorder(search.beams.map((beam) => beam.parent));
        ids = search.beams.map((beam) => beam.ids.slice(-1));
      }
    }
    return search.hypotheses;
  }

  // ---- Text to ids and back: bytes, joined by byte-pair encoding

  class Tokenizer {
    constructor(tokens, merges) { // merges: ids a, b, a, b, ... in the order learned
      Object.assign(this, { pad_id: 0, bos_id: 1, eos_id: 2, unk_id: 3, tokens });
      // A letter for each byte: itself if it prints, else one from U+0100 on.
      const prints = (b) => (b > 32 && b < 127) || (b > 160 && b !== 173);
      let next = 256;
      this.letters = Array.from({ length: 256 }, (_, byte) =>
        String.fromCodePoint(prints(byte) ? byte : next++));
      this.bytes = new Map(this.letters.map((letter, byte) => [letter, byte]));
      this.ids = new Map(tokens.map((token, id) => [token, id]));
      this.ranks = new Map();
      for (let i = 0; i < merges.length; i += 2) {
        this.ranks.set(`${tokens[merges[i]]} ${tokens[merges[i + 1]]}`, i);
      }
      // White space as Unicode defines it; \s of JavaScript is not the same.
      const s = "\\t-\\r \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
      this.words = new RegExp(
        "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+|" +
        ` ?[^${s}\\p{L}\\p{N}]+|[${s}]+(?![^${s}])|[${s}]+`, "gu");
      // What Python's str.strip takes away
      const space = `[${s}\\x1c-\\x1f]+`;
      this.margins = new RegExp(`^${space}|${space}$`, "g");
    }

    encode(text) { // with eos. Text is stripped first, as by Translator.translate.
      text = text.replace(this.margins, "");
      if (!text) throw new Error("a sentence needs at least 1 word");
      if (/\p{Surrogate}/u.test(text)) throw new Error("half a character: no valid Unicode");
      const ids = [];
      for (const word of ` ${text}`.match(this.words)) {
        const bytes = new TextEncoder().encode(word);
        for (const piece of this.join(Array.from(bytes, (byte) => this.letters[byte]))) {
          ids.push(this.ids.get(piece));
        }
      }
      return [...ids, this.eos_id];
    }

    join(pieces) { // the pair that was learned first, the leftmost of them, and again
      while (true) {
        let best = Infinity, at = -1;
        for (let i = 0; i + 1 < pieces.length; i++) {
          const rank = this.ranks.get(`${pieces[i]} ${pieces[i + 1]}`);
          if (rank < best) [best, at] = [rank, i];
        }
        if (at < 0) return pieces;
        pieces.splice(at, 2, pieces[at] + pieces[at + 1]);
      }
    }

    decode(ids) { // without special tokens
      const letters = ids.filter((id) => id > 3).map((id) => this.tokens[id]).join("");
      return utf8(Uint8Array.from(letters, (c) => this.bytes.get(c))).replace(/^ /, "");
    }

    label(id, space = "▁") { // readable, for the axes of a picture
      if (id <= 3) return this.tokens[id];
      const raw = Uint8Array.from(this.tokens[id], (c) => this.bytes.get(c));
      try {
        return utf8(raw, true).replace(/^ /, space);
      } catch { // a part of a character
        const hex = (byte) => byte.toString(16).toUpperCase().padStart(2, "0");
        return Array.from(raw, (byte) => `<${hex(byte)}>`).join("");
      }
    }
  }

  function utf8(bytes, fatal = false) {
    return new TextDecoder("utf-8", { fatal, ignoreBOM: true }).decode(bytes);
  }

  // ---- Loading: what book_tools.browser_model has written

  function* load({ config, tokens, merges, tensors, data }) {
    const bytes = new Uint8Array((data.length / 4) * 3);
    let end = 0;
    for (let start = 0; start < data.length; start += 1 << 16) { // base64, by pieces
      const piece = atob(data.slice(start, start + (1 << 16)));
      for (let i = 0; i < piece.length; i++) bytes[end++] = piece.charCodeAt(i);
      yield;
    }
    const weights = new Map();
    for (const { name, shape, offset, scale } of tensors) {
      const n = shape.reduce((product, size) => product * size, 1);
      const floats = (at, count) => new Float32Array(bytes.buffer, at, count);
      weights.set(name, scale === undefined ? floats(offset, n) : {
        shape, data: new Int8Array(bytes.buffer, offset, n), scale: floats(scale, shape[0]),
      });
    }
    return {
      model: new Transformer(config, weights), tokenizer: new Tokenizer(tokens, merges),
    };
  }

  function finish(generator) { // run to the end, without a pause
    for (;;) {
      const { done, value } = generator.next();
      if (done) return value;
    }
  }

  return {
    work, load, finish, intervene, causal_mask, log_softmax, next_log_probs, top_tokens,
    probabilities, random, decode, greedy_decode, sample, beam_search, Tokenizer, Transformer,
    IncrementalDecoder, RecomputingDecoder,
  };
}
