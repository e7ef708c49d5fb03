// @ts-check
// What a page asks of the engine, by name: a question of plain data, an answer of plain
// data. They run in a worker made of the text of this function and of engine.js.

/** @import { transformer_engine } from "./engine.js" */
/** @import { Found, Look, SearchStep, Tasks } from "./types.d.ts" */

/** @param {ReturnType<typeof transformer_engine>} E */
export function translator_tasks(E) {
  /** @typedef {{ data: Float32Array, width: number }} Rows */

  /** @typedef {ReturnType<typeof E.load>} Loaded */
  /** @type {Loaded["model"]} */
  let model;
  /** @type {Loaded["tokenizer"]} */
  let tokenizer;
  const N_NEXT = 5; // likeliest tokens that are listed

  /** @param {number[]} ids */
  const labels = (ids) => ids.map((id) => tokenizer.label(id));

  /** @param {number[]} src @param {number[]} prefix */
  const limits = (src, prefix = []) => ({ bos_id: tokenizer.bos_id, eos_id: tokenizer.eos_id, prefix,
    max_len: Math.min(src.length + 50, model.config.max_len) });

  /** @param {Rows} x */
  const rows_of = ({ data, width }) => Array.from({ length: data.length / width },
    (_, row) => data.subarray(row * width, (row + 1) * width));

  /** @param {Rows} x */
  const lengths = (x) => rows_of(x).map((row) => Math.hypot(...row));

  /** @param {Float32Array} p @param {number} n */
  const likeliest = (p, n) => E.top_tokens(p, n).map(([share, id]) =>
    ({ id, label: tokenizer.label(id), p: share }));

  /** Of one pass without a cache: the encoder, and n_rows targets of n_tgt tokens, one scored
   *  @param {number} n_src @param {number} n_tgt @param {number} n_rows */
  function multiplications(n_src, n_tgt, n_rows) {
    const { d_model: d, n_encoder_layers: n_enc, n_decoder_layers: n_dec } = model.config;
    const feed = 2 * d * model.encoder.layers[0].feed_forward.expand.n_out;
    const encoder = n_enc * n_src * (4 * d * d + feed + 2 * n_src * d);
    const own = n_tgt * (4 * d * d + 2 * n_tgt * d);
    const cross = n_tgt * (2 * d * d + 2 * n_src * d);
    const memory = 2 * n_src * d * d;
    const decoder = n_dec * (n_rows * (own + cross + n_tgt * feed) + memory);
    return { encoder, decoder, head: n_rows * d * model.lm_head.n_out };
  }

  /** @type {Tasks} */
  const tasks = {
    load(packed) {
      ({ model, tokenizer } = E.load(packed));
    },

    // How a text is cut, and whether it looks like what the model has learned
    tokens({ text: typed }) {
      const text = E.normalized(typed);
      const src = tokenizer.encode(text);
      const n_words = text.split(/[\s.,!?;:]+/).filter(Boolean).length;
      return { text, src, src_labels: labels(src), pieces: (src.length - 1) / Math.max(1, n_words),
        too_long: src.length > model.config.max_len };
    },

    // Write a translation. method: "greedy", or "sample" with temperature, top_p and seed;
    // prefix: ids to begin with.
    write({ src, edits, method = "greedy", prefix = [], seed = 0, ...sampling }) {
      E.intervene(model, edits);
      const how = limits(src, prefix);
      const { ids } = prefix.at(-1) === tokenizer.eos_id ? { ids: prefix } // nothing is left
        : method === "sample" ? E.sample(model, src, how, sampling, seed)
          : E.greedy_decode(model, src, how);
      return { ids, text: tokenizer.decode(ids) };
    },

    // Everything to be seen while a translation is written: weights of all heads, length
    // of the residual stream, what each layer would answer at each position, and the
    // likeliest next tokens, as temperature and top_p leave them. One pass tells it all, but
    // without a causal mask: then each step is one, and ahead has the heads' means of all rows.
    look({ src, tgt, edits, temperature = 1, top_p = 1 }) {
      E.intervene(model, edits);
      const all = [...tgt.keys()], mask = model.causal ? E.causal_mask : null;
      const memory = model.encode(src);
      const [maps, ahead] = /** @type {[Look["maps"], Look["ahead"]]} */ ([{}, {}]);
      const norms = /** @type {Look["norms"]} */ ({ decoder: [] });
      const [log_probs, next, layers] =
        /** @type {[number[], Look["next"], Look["layers"]]} */ ([[], [], []]);
      for (const rows of model.causal ? [all] : all.map((row) => [row])) {
        const x = model.decode([[tokenizer.bos_id, ...tgt.slice(0, rows.at(-1))]], memory, mask);
        const own = (/** @type {Rows} */ { width, data }) =>
          new E.Tensor(1, rows.length, width, data.subarray(-rows.length * width)); // of what is told
        for (const [name, { seen }] of model.named_attentions()) {
          if (!seen) throw new Error(`${name} has not been passed`);
          const is_encoder = name.startsWith("encoder"), n_read = seen.k.length;
          const n_rows = is_encoder ? src.length : tgt.length;
          const n_keys = name.startsWith("decoder") && name.endsWith("self_attn") ? n_rows : n_read;
          const kept = /** @type {Float32Array[]} */ (
            maps[name] ||= seen.weights.map(() => new Float32Array(n_rows * n_keys)));
          for (const row of is_encoder ? src.keys() : rows) {
            kept.forEach((head, i) => head.set(
              seen.weights[i].subarray(row * n_read, (row + 1) * n_read), row * n_keys));
          }
          if (model.causal || is_encoder || name.endsWith("cross_attn")) continue;
          const left = seen.weights.filter((head) => head[0] > 0); // those that aren't cut
          (ahead[name] ||= []).push(Array.from(seen.weights[0], (_, k) =>
            left.reduce((sum, head) => sum + head[k] / left.length, 0)));
        }
        norms.encoder = model.encoder.stream.map(lengths);
        for (const [k, logits] of rows_of(model.lm_head.forward(own(x))).entries()) {
          const scores = E.log_softmax(logits);
          log_probs.push(scores[tgt[rows[k]]]);
          next.push(likeliest(E.probabilities(scores, { temperature, top_p }), N_NEXT));
        }
        for (const [stage, x] of model.decoder.stream.map(own).entries()) {
          const answers = rows_of(model.lm_head.forward(model.decoder.norm.forward(x)));
          (layers[stage] ||= []).push(...answers.map((logits) =>
            likeliest(E.log_softmax(logits).map(Math.exp), 3)));
          (norms.decoder[stage] ||= []).push(...lengths(x));
        }
      }
      return { src, tgt, src_labels: labels(src), tgt_labels: labels(tgt), maps, ahead, norms,
        log_probs, next, layers, text: tokenizer.decode(tgt) };
    },

    // Queries, keys and values of one head: (length, d_head) each, row after row
    head({ src, tgt, edits, name, head }) {
      E.intervene(model, edits);
      model.forward(src, [tokenizer.bos_id, ...tgt.slice(0, -1)]);
      const seen = model.named_attentions().get(name)?.seen;
      if (!seen) throw new Error(`the model has no ${name}`);
      const d_head = model.config.d_model / model.config.n_heads, first = head * d_head;
      const own = (/** @type {Rows} */ x) => rows_of(x).flatMap((row) => [...row.subarray(first, first + d_head)]);
      return { head, q: own(seen.q), k: own(seen.k), v: own(seen.v) };
    },

    // Beam search, step by step, with what its cache holds after each
    search({ src, edits, n_beams = 4, length_penalty = 1 }) {
      E.intervene(model, edits);
      const steps = /** @type {Found["steps"]} */ ([]), start = E.work.multiplications;
      const keep = (/** @type {SearchStep} */ { position, before, fates, beams, cache }) => steps.push({
        position,
        candidates: fates.filter((each) => each.log_prob > -Infinity).map((each) => ({
          ...each, label: tokenizer.label(each.token),
          text: tokenizer.decode([...before[each.parent].ids.slice(1), each.token]),
        })),
        beams: beams.map(({ ids, parent }) => ({ parent, labels: labels(ids.slice(1)) })),
        cache: cache && { length: cache.length, n_bytes: cache.own.n_bytes,
          source_bytes: cache.source.n_bytes, multiplications: E.work.multiplications - start },
        recomputed: multiplications(src.length, position, n_beams),
      });
      const found = E.beam_search(model, src, limits(src), n_beams, length_penalty, keep);
      return { n_beams, length_penalty, steps, hypotheses: found.map((each) => ({
        ...each, labels: labels(each.ids), text: tokenizer.decode(each.ids) })) };
    },

    // What each token of a given translation costs in nats, read with teacher forcing
    loss({ src, tgt, edits }) {
      E.intervene(model, edits);
      const logits = rows_of(model.forward(src, [tokenizer.bos_id, ...tgt.slice(0, -1)]));
      return tgt.map((token, i) => -E.log_softmax(logits[i])[token]);
    },
  };
  return { tasks, multiplications };
}

/** The inside of the worker: {task, question} in, {answer} or {error} out, by the port given
 *  @param {{ [task: string]: (question: object) => unknown }} tasks */
export function translator_worker(tasks) {
  self.onmessage = ({ data: { task, question }, ports: [port] }) => {
    try {
      port.postMessage({ answer: tasks[task](question) });
    } catch (error) {
      port.postMessage({ error: error instanceof Error ? error.message : String(error) });
    }
  };
}
