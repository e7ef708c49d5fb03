// The book's Transformer in plain JavaScript: no framework, nothing to build. Classes,
// methods and weights have the names of transformer_lib, so whoever knows chapter 8
// knows this file. It reads one sentence at a time, in evaluation mode. Everything stands
// in one function, whose text is also the text of the worker that runs it.

export function transformer_engine() {
  // ---- Tensors: (batch, length, width) in a flat array, row after row

  class Tensor {
    constructor(batch, length, width, data = new Float32Array(batch * length * width)) {
      Object.assign(this, { batch, length, width, data });
    }

    row(i) { // of the batch: (length, width)
      const n = this.length * this.width;
      return this.data.subarray(i * n, (i + 1) * n);
    }
  }

  class Module { // its parts and numbers have the names that they have in the library
    constructor(parts) {
      Object.assign(this, parts);
    }
  }

  const work = { multiplications: 0 }; // counted wherever numbers are multiplied

  class Linear { // weight: (n_out, n_in), row after row
    constructor({ data, shape }, bias = null) {
      Object.assign(this, { weight: data, bias });
      [this.n_out, this.n_in] = shape;
    }

    forward({ batch, length, data: from }) {
      const { n_in, n_out, weight } = this, n_rows = batch * length;
      const out = new Tensor(batch, length, n_out);
      work.multiplications += n_rows * n_in * n_out;
      for (let o = 0; o < n_out; o++) { // each row of the weight is read once
        const w = o * n_in, shift = this.bias ? this.bias[o] : 0;
        for (let row = 0; row < n_rows; row++) {
          const x = row * n_in;
          let s = 0, t = 0, u = 0, v = 0; // four sums at a time: none waits for another
          for (let i = 0; i < n_in; i += 4) {
            s += weight[w + i] * from[x + i];
            t += weight[w + i + 1] * from[x + i + 1];
            u += weight[w + i + 2] * from[x + i + 2];
            v += weight[w + i + 3] * from[x + i + 3];
          }
          out.data[row * n_out + o] = s + t + u + v + shift;
        }
      }
      return out;
    }

    row(o) { // the vector of a token
      return this.weight.subarray(o * this.n_in, (o + 1) * this.n_in);
    }
  }

  function log_softmax(logits) {
    const top = Math.max(...logits);
    const total = logits.reduce((sum, logit) => sum + Math.exp(logit - top), 0);
    const shift = top + Math.log(total);
    return logits.map((logit) => logit - shift);
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

  // ---- Attention. mask(q, k) says whether query q may attend to key k.

  const causal_mask = (q, k) => k <= q;

  // softmax(Q K^T / sqrt(d_head)) V for one head of one row, equation 1 of the paper.
  // weights: (q_len, k_len). A query with no key left gets zeros.
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

  class MultiHeadAttention extends Module { // n_heads, q_proj, k_proj, v_proj, out_proj
    without = new Set(); // heads that are removed
    seen = null; // in the last pass: q, k, v of all heads, and the weights of each, by row

    forward(query, key, value, mask = null, cache = null) {
      const q = this.q_proj.forward(query), d_head = q.width / this.n_heads;
      let k = this.k_proj.forward(key), v = this.v_proj.forward(value);
      if (cache) [k, v] = cache.update(this, k, v);
      this.seen = { q, k, v, weights: [] };
      const output = new Tensor(q.batch, q.length, q.width);
      const nowhere = new Tensor(q.batch, q.length, q.width); // for heads that are removed
      for (let row = 0; row < q.batch; row++) {
        for (let head = 0; head < this.n_heads; head++) {
          const is_removed = this.without.has(head), to = is_removed ? nowhere : output;
          const weights = scaled_dot_product_attention(q, k, v, mask, head, d_head, row, to);
          if (is_removed) weights.fill(0);
          this.seen.weights.push(weights);
        }
      }
      return this.out_proj.forward(output);
    }
  }

  // ---- Layers

  class LayerNorm extends Module { // gain, bias, eps
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

  class SublayerConnection extends Module { // norm first: x + sublayer(norm(x))
    forward(x, sublayer) {
      const added = sublayer(this.norm.forward(x)).data;
      return new Tensor(x.batch, x.length, x.width, x.data.map((number, i) => number + added[i]));
    }
  }

  class FeedForward extends Module { // expand, contract
    forward(x) {
      const hidden = this.expand.forward(x);
      hidden.data.forEach((number, i) => { hidden.data[i] = Math.max(0, number); }); // relu
      return this.contract.forward(hidden);
    }
  }

  class EncoderLayer extends Module {
    forward(x, src_mask) {
      x = this.self_attn_connection.forward(x, (x) => this.self_attn.forward(x, x, x, src_mask));
      return this.feed_forward_connection.forward(x, (x) => this.feed_forward.forward(x));
    }
  }

  class DecoderLayer extends Module {
    forward(x, memory, src_mask, tgt_mask, cache) {
      x = this.self_attn_connection.forward(
        x, (x) => this.self_attn.forward(x, x, x, tgt_mask, cache));
      x = this.cross_attn_connection.forward(
        x, (x) => this.cross_attn.forward(x, memory, memory, src_mask, cache?.source));
      return this.feed_forward_connection.forward(x, (x) => this.feed_forward.forward(x));
    }
  }

  // ---- The model

  class Embeddings extends Module { // tokens, d_model
    with_positions = true;

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

  class Stack extends Module { // the encoder, or the decoder: layers, norm
    forward(x, ...others) { // what else its layers read
      this.stream = [x]; // before and after each layer, in the last pass
      for (const layer of this.layers) {
        x = layer.forward(x, ...others);
        this.stream.push(x);
      }
      return this.norm.forward(x);
    }
  }

  class Transformer {
    constructor(config, weights) {
      this.config = config;
      const { n_heads, norm_eps: eps, d_model } = config;
      const linear = (name) =>
        new Linear(weights.get(`${name}.weight`), weights.get(`${name}.bias`));
      const norm = (name) => new LayerNorm(
        { gain: weights.get(`${name}.gain`), bias: weights.get(`${name}.bias`), eps });
      const each = (name, parts, make) => // part by part
        Object.fromEntries(parts.map((part) => [part, make(`${name}.${part}`)]));
      const attention = (name) => new MultiHeadAttention(
        { n_heads, ...each(name, ["q_proj", "k_proj", "v_proj", "out_proj"], linear) });
      const feed_forward = (name) => new FeedForward(each(name, ["expand", "contract"], linear));
      const connection = (name) => new SublayerConnection({ norm: norm(`${name}.norm`) });
      const stack = (name, attentions, Layer) => ({ norm: norm(`${name}.norm`),
        layers: Array.from({ length: config[`n_${name}_layers`] }, (_, i) => {
          const layer = `${name}.layers.${i}`, sublayers = [...attentions, "feed_forward"];
          return new Layer({ ...each(layer, attentions, attention),
            ...each(layer, ["feed_forward"], feed_forward),
            ...each(layer, sublayers.map((each) => `${each}_connection`), connection) });
        }) });
      this.encoder = new Stack(stack("encoder", ["self_attn"], EncoderLayer));
      this.decoder = new Stack(stack("decoder", ["self_attn", "cross_attn"], DecoderLayer));
      this.lm_head = linear("lm_head");
      this.src_embeddings = new Embeddings({ tokens: this.lm_head, d_model }); // tied
      this.tgt_embeddings = new Embeddings({ tokens: this.lm_head, d_model });
      this.src_mask = null; // hides source tokens, if it is set
      this.causal = true;
    }

    encode(src) {
      return this.encoder.forward(this.src_embeddings.forward([src]), this.src_mask);
    }

    decode(tgt_in, memory, tgt_mask = null, cache = null) {
      const x = this.tgt_embeddings.forward(tgt_in, cache ? cache.length : 0);
      return this.decoder.forward(x, memory, this.src_mask, tgt_mask, cache);
    }

    // Logits of all positions of one target, as in training: (1, tgt_len, vocab_size)
    forward(src, tgt_in) {
      const mask = this.causal ? causal_mask : null;
      return this.lm_head.forward(this.decode([tgt_in], this.encode(src), mask));
    }

    named_attentions() { // [[name, attention], ...]
      return ["encoder", "decoder"].flatMap((stack) => this[stack].layers.flatMap((layer, i) =>
        ["self_attn", "cross_attn"].filter((kind) => layer[kind])
          .map((kind) => [`${stack}.layers.${i}.${kind}`, layer[kind]])));
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

  class KeyValueCache { // keys and values of each attention, of all that was read
    kept = new Map();
    length = 0; // of what was read

    get n_bytes() {
      return [...this.kept.values()].flat().reduce((sum, { data }) => sum + data.byteLength, 0);
    }

    update(attention, ...fresh) { // what is new joins what is kept; all of it is returned
      const old = this.kept.get(attention);
      const found = !old ? fresh : fresh.map((x, i) => (x.length ? joined(old[i], x) : old[i]));
      this.kept.set(attention, found);
      return found;
    }

    reorder(parents) { // every row goes on from another one's keys and values
      for (const [attention, kept] of this.kept) {
        this.kept.set(attention, kept.map((x) => {
          const next = new Tensor(parents.length, x.length, x.width);
          parents.forEach((parent, row) => next.row(row).set(x.row(parent)));
          return next;
        }));
      }
    }
  }

  function joined(old, fresh) { // each row, and what is new of it
    const both = new Tensor(old.batch, old.length + fresh.length, old.width);
    for (let row = 0; row < both.batch; row++) {
      both.row(row).set(old.row(row));
      both.row(row).set(fresh.row(row), old.length * old.width);
    }
    return both;
  }

  class IncrementalDecoder extends Module { // model
    prefill(src) {
      this.cache = new KeyValueCache();
      this.cache.source = new KeyValueCache(); // filled in the first step; all rows share it
      this.new_memory = this.model.encode(src);
    }

    // ids: the next tokens of each row. Returns the logits after the last one, by row.
    step(ids) {
      const first = this.cache.length;
      const tgt_mask = ids[0].length > 1 ? (q, k) => k <= first + q : null;
      const x = this.model.decode(ids, this.new_memory, tgt_mask, this.cache);
      this.cache.length += ids[0].length;
      this.new_memory = new Tensor(1, 0, x.width); // nothing of it is new any more
      return next_logits(this.model, x);
    }

    reorder(parents) {
      this.cache.reorder(parents);
    }
  }

  class RecomputingDecoder extends Module { // model; reads all tokens again in every step
    prefill(src) {
      this.rows = null;
      this.memory = this.model.encode(src);
    }

    step(ids) {
      this.rows = this.rows ? this.rows.map((row, i) => [...row, ...ids[i]]) : ids;
      const mask = this.model.causal ? causal_mask : null;
      return next_logits(this.model, this.model.decode(this.rows, this.memory, mask));
    }

    reorder(parents) {
      this.rows = parents.map((parent) => this.rows[parent]);
    }
  }

  function next_logits(model, x) {
    const last = new Tensor(x.batch, 1, x.width);
    for (let i = 0; i < x.batch; i++) last.row(i).set(x.row(i).subarray(-x.width));
    const logits = model.lm_head.forward(last);
    return Array.from({ length: x.batch }, (_, i) => logits.row(i));
  }

  // Without its causal mask, a model's earlier rows change with every new token.
  const make_decoder = (model) =>
    new (model.causal ? IncrementalDecoder : RecomputingDecoder)({ model });

  // ---- Searches. config: bos_id, eos_id, max_len, and prefix, tokens to begin with.
  // They return hypotheses; beam search tells what it does, step by step.

  function next_log_probs(model, logits) {
    const log_probs = log_softmax(logits);
    if (Number.isNaN(log_probs[0])) throw new Error("the model's logits are not finite");
    log_probs[model.config.pad_id] = -Infinity;
    return log_probs;
  }

  // choose(log_probs) -> token
  function decode(model, src, config, choose) {
    const decoder = make_decoder(model), start = [config.bos_id, ...config.prefix || []];
    decoder.prefill(src);
    let ids = start, fresh = start, log_prob = 0, finished;
    do {
      const log_probs = next_log_probs(model, decoder.step([fresh])[0]);
      const token = choose(log_probs);
      log_prob += log_probs[token];
      fresh = [token];
      ids = [...ids, token];
      finished = token === config.eos_id;
    } while (!finished && ids.length <= config.max_len);
    return { ids: ids.slice(1), log_prob, score: log_prob, finished };
  }

  const greedy_decode = (model, src, config) =>
    decode(model, src, config, (scores) => top_tokens(scores, 1)[0][1]);

  // Temperature first, then top-p: the fewest tokens with probability top_p together.
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

  function random(seed) { // the generator "mulberry32": the same seed, the same numbers
    return () => {
      seed = (seed + 0x6d2b79f5) | 0;
      let t = Math.imul(seed ^ (seed >>> 15), seed | 1);
      t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
      return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
    };
  }

  function sample(model, src, config, sampling, seed) {
    const draw = random(seed);
    return decode(model, src, config, (log_probs) => {
      const p = probabilities(log_probs, sampling);
      let left = draw();
      const token = p.findIndex((share) => (left -= share) < 0);
      return token < 0 ? top_tokens(p, 1)[0][1] : token; // shares are rounded
    });
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
        const is_full = children.length === this.n_beams;
        const counts = !is_full && rank < this.n_beams && log_prob > -Infinity;
        let fate = "dropped";
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

    keep(ids, log_prob) { // among the best n_beams; false if it isn't one of them
      const finished = ids[ids.length - 1] === this.config.eos_id;
      const found = { ids, log_prob, score: this.score(log_prob, ids.length), finished };
      this.hypotheses = [...this.hypotheses, found].sort((a, b) => b.score - a.score)
        .slice(0, this.n_beams);
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

  function beam_search(model, src, config, n_beams = 4, length_penalty = 1, tell = () => {}) {
    const prefix = config.prefix || [], start = [config.bos_id, ...prefix];
    const search = new BeamHypotheses(start, prefix.length, config, n_beams, length_penalty);
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

    bytes_of(ids) {
      const letters = ids.map((id) => this.tokens[id]).join("");
      return Uint8Array.from(letters, (letter) => this.bytes.get(letter));
    }

    decode(ids) { // without special tokens
      return utf8(this.bytes_of(ids.filter((id) => id > 3))).replace(/^ /, "");
    }

    label(id, space = "▁") { // readable, for the axes of a picture
      if (id <= 3) return this.tokens[id];
      const raw = this.bytes_of([id]);
      try {
        return utf8(raw, true).replace(/^ /, space);
      } catch { // a part of a character
        const hex = (byte) => byte.toString(16).toUpperCase().padStart(2, "0");
        return Array.from(raw, (byte) => `<${hex(byte)}>`).join("");
      }
    }
  }

  const utf8 = (bytes, fatal = false) =>
    new TextDecoder("utf-8", { fatal, ignoreBOM: true }).decode(bytes);

  // ---- Loading: what book/_ext/browser_model.py has written

  function load({ config, tokens, merges, tensors, data }) {
    const letters = atob(data), bytes = new Uint8Array(letters.length);
    for (let i = 0; i < bytes.length; i++) bytes[i] = letters.charCodeAt(i);
    const floats = (at, count) => new Float32Array(bytes.buffer, at, count);
    const weights = new Map(tensors.map(({ name, shape, offset, scale }) => {
      const n = shape.reduce((product, size) => product * size, 1);
      if (scale === undefined) return [name, floats(offset, n)];
      // A matrix in 8 bits, with one scale for each row
      const eights = new Int8Array(bytes.buffer, offset, n), scales = floats(scale, shape[0]);
      const data = new Float32Array(eights).map((w, i) => w * scales[Math.floor(i / shape[1])]);
      return [name, { shape, data }];
    }));
    return { model: new Transformer(config, weights), tokenizer: new Tokenizer(tokens, merges) };
  }

  return {
    work, load, intervene, causal_mask, log_softmax, top_tokens, probabilities, greedy_decode,
    sample, beam_search, RecomputingDecoder,
  };
}
