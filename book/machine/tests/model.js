// A model of a few numbers, none of which a multiple of four, and the tokenizer that is shipped.

import { readFileSync } from "node:fs";

import { transformer_engine } from "../engine.js";
import { first_state } from "../state.js";
import { translator_tasks } from "../tasks.js";

/** @import { Ask, Config, Edits, Tasks, View } from "../types.d.ts" */

export const E = transformer_engine();

/** @type {Config} */
export const CONFIG = { n_heads: 2, d_model: 6, n_encoder_layers: 1, n_decoder_layers: 2,
  norm_eps: 1e-5, max_len: 20, pad_id: 0, tgt_vocab_size: 11 };
const D_FF = 7;

/** A model with numbers that look as if they were drawn, always the same */
export function small_model() {
  let n_drawn = 0;
  const draw = (/** @type {number[]} */ ...shape) => ({ shape, data: Float32Array.from(
    { length: shape.reduce((a, b) => a * b) }, () => Math.sin(12.9898 * ++n_drawn) / 2) });
  const weights = new Map();
  const linear = (/** @type {string} */ name, /** @type {number} */ n_out, n_in = CONFIG.d_model) => {
    weights.set(`${name}.weight`, draw(n_out, n_in)).set(`${name}.bias`, draw(n_out));
  };
  const norm = (/** @type {string} */ name) => {
    weights.set(`${name}.gain`, draw(CONFIG.d_model)).set(`${name}.bias`, draw(CONFIG.d_model));
  };
  const stacks = { encoder: ["self_attn"], decoder: ["self_attn", "cross_attn"] };
  for (const [stack, attentions] of Object.entries(stacks)) {
    const n_layers = stack === "encoder" ? CONFIG.n_encoder_layers : CONFIG.n_decoder_layers;
    for (let i = 0; i < n_layers; i++) {
      const layer = `${stack}.layers.${i}`;
      for (const part of attentions) {
        for (const name of ["q_proj", "k_proj", "v_proj", "out_proj"]) {
          linear(`${layer}.${part}.${name}`, CONFIG.d_model);
        }
      }
      for (const part of [...attentions, "feed_forward"]) norm(`${layer}.${part}_connection.norm`);
      linear(`${layer}.feed_forward.expand`, D_FF);
      linear(`${layer}.feed_forward.contract`, CONFIG.d_model, D_FF);
    }
    norm(`${stack}.norm`);
  }
  linear("lm_head", CONFIG.tgt_vocab_size);
  return new E.Transformer(CONFIG, weights);
}

const STORED = "../../../transformer_lib/pretrained/models";

/** Text to ids and back, as the pages have it */
export function shipped_tokenizer(name = "multi30k-de-en") {
  const file = new URL(`${STORED}/${name}/tokenizer.json`, import.meta.url);
  const { model } = JSON.parse(readFileSync(file, "utf8"));
  const ids = /** @type {{ [token: string]: number }} */ (model.vocab);
  const pairs = /** @type {[string, string][]} */ (model.merges);
  return new E.Tokenizer(Object.keys(ids).sort((a, b) => ids[a] - ids[b]),
    pairs.flat().map((piece) => ids[piece]));
}

/** How a shipped model cuts a text, as a page is told */
export function cutter(name = "multi30k-de-en") {
  const model = small_model(), tokenizer = shipped_tokenizer(name);
  const { tasks } = translator_tasks({ ...E, load: () => ({ model, tokenizer }) });
  tasks.load({ config: CONFIG, tokens: [], merges: [], tensors: [], data: "" });
  return (/** @type {string} */ text) => tasks.tokens({ text });
}

/** What a page asks of the small model, whose words are numbers: "5 7 4" @returns {Tasks} */
export function small_tasks() {
  const tokenizer = Object.assign(new E.Tokenizer(Array.from({ length: 11 }, (_, id) => `${id}`), []), {
    encode: (/** @type {string} */ text) => [...E.normalized(text).split(" ").map(Number), 2],
    decode: (/** @type {number[]} */ ids) => ids.filter((id) => id > 3).join(" "),
    label: (/** @type {number} */ id) => (id === 2 ? "<eos>" : `▁${id}`),
  });
  const model = small_model(), { tasks } = translator_tasks({ ...E, load: () => ({ model, tokenizer }) });
  tasks.load({ config: CONFIG, tokens: [], merges: [], tensors: [], data: "" });
  return tasks;
}

/** The same as from a worker: later @returns {Ask} */
export function small_engine() {
  const tasks = /** @type {{ [task: string]: Function }} */ ({ ...small_tasks() });
  return async (task, question) => {
    await null;
    return tasks[task](question);
  };
}

/** A sentence that is stored in a page @param {Edits} edits @returns {View} */
export function stored_view(source = "5 7 4", edits = {}) {
  const tasks = small_tasks(), { src } = tasks.tokens({ text: source });
  const { ids: tgt } = tasks.write({ src, edits });
  const name = "decoder.layers.1.cross_attn", head = tasks.head({ src, tgt, edits, name, head: 1 });
  return { source, edits, sizes: { d_model: CONFIG.d_model, d_ff: D_FF },
    ...tasks.look({ src, tgt, edits }), heads: { [name]: head } };
}

/** @param {{ at?: string, step?: number }} page */
export const small_state = ({ at = "", step = 0 } = {}) => first_state(CONFIG,
  { trace: stored_view() }, { size: "1 MB", at, step, word: 0 });
