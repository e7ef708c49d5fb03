// @ts-check
// One Python for all machines of a page: it comes when somebody's code is to run, is handed the
// model and the sources of the reader's parts, and answers one question after the other.

import { told } from "./told.js";

/** @import { Look, Packed, Python, Sources, Work, Written } from "../types.d.ts" */

/** @typedef {object} How
 *  @property {Sources} sources of the parts that the question names
 *  @property {Packed} packed the model
 *  @property {(work: Work) => void} on_work
 *  @property {() => boolean} [is_late] whether nobody waits for the answer any more */

const SECONDS = 10; // without a step: then a run is ended

const SENTENCES = ["Problem", "Stopped", "TooLong", "Lost", "Unable", "Broken"]; // as Python tells them

/** @param {unknown} error */
const in_a_sentence = (error) => (error instanceof Error && SENTENCES.includes(error.name)
  ? told(error.message) : error);

export class Shared {
  python = /** @type {Python|null} */ (null);
  worker = -1; // which has the model
  used = ""; // the sources that it has taken in, as JSON
  last = /** @type {Promise<unknown>} */ (Promise.resolve());

  /** @param {() => Python|Promise<Python>} find the one of the page */
  constructor(find) {
    this.find = find;
  }

  /** @template {keyof import("../types.d.ts").Tasks} T
   *  @param {T} task @param {Parameters<import("../types.d.ts").Tasks[T]>[0]} question @param {How} how
   *  @returns {Promise<ReturnType<import("../types.d.ts").Tasks[T]>>} */
  ask(task, question, how) {
    const answer = this.last.then(() => this.answer(task, question, how)).catch((error) => { throw in_a_sentence(error); });
    this.last = answer.catch(() => {}); // the next one has its turn
    return answer;
  }

  /** @param {string} task @param {object} question @param {How} how */
  async answer(task, question, { sources, packed, on_work, is_late = () => false }) {
    if (is_late()) throw new Error("there is a later one");
    const python = this.python ||= await this.find();
    await python.start(({ loaded, total }) => on_work({ what: "python", share: loaded / total,
      size: `${(total / 1e6).toFixed(1)} MB` }));
    on_work({ what: "code", share: 0 });
    if (this.worker !== python.worker) {
      const { worker } = python;
      await python.ask("load", { packed: with_bytes(packed) }, { seconds: 60 });
      Object.assign(this, { worker, used: "" });
    }
    await this.use(python, sources);
    const began = performance.now();
    const answer = await python.ask(task, question,
      { seconds: SECONDS, on_progress: (share) => on_work({ what: "code", share }) });
    return task === "write" ? { ms: performance.now() - began, ...answer } : answer;
  }

  /** @param {Python} python @param {Sources} parts */
  async use(python, parts) {
    const wanted = JSON.stringify(parts);
    if (wanted === this.used) return;
    this.used = ""; // if it fails, nothing is known
    await python.ask("use", { parts }, { seconds: SECONDS });
    this.used = wanted;
  }

  stop() {
    this.python?.stop();
  }
}

/** The model with its numbers as bytes, which a worker can be given @param {Packed} packed */
const with_bytes = (packed) => ({ ...packed,
  data: Uint8Array.from(atob(packed.data), (sign) => sign.charCodeAt(0)) });

/** What is seen of a model whose code may show less of it: what isn't known is left blank, so that
 *  the rest can be drawn
 *  @param {Partial<Look>} look @param {Written & { src: number[] }} written
 *  @param {{ attentions: string[], config: import("../types.d.ts").Config }} model @returns {Look} */
export function completed(look, { src, ids: tgt }, { attentions, config }) {
  const tokens = { encoder: src, decoder: tgt };
  const n_stages = { encoder: config.n_encoder_layers + 1, decoder: config.n_decoder_layers + 1 };
  const unknown = { id: -1, label: "?", p: undefined };
  /** @param {unknown[][]|undefined} rows @param {"encoder"|"decoder"} stack @param {unknown} [blank] */
  const filled = (rows, stack, blank) => Array.from({ length: n_stages[stack] }, (_, stage) =>
    tokens[stack].map((_, i) => rows?.[stage]?.[i] ?? blank));
  const { maps = {}, norms = {}, next = [], layers, log_probs = [] } = look;
  return /** @type {Look} */ (/** @type {unknown} */ ({ src, tgt, ahead: {}, ...look,
    maps: Object.fromEntries(attentions.map((name) => [name, maps[name]?.length ? maps[name]
      : Array(config.n_heads).fill([])])),
    norms: { encoder: filled(norms.encoder, "encoder"), decoder: filled(norms.decoder, "decoder") },
    layers: filled(layers, "decoder", [unknown]),
    next: tgt.map((_, i) => (next[i]?.length ? next[i] : [unknown])),
    log_probs: tgt.map((_, i) => log_probs[i] ?? NaN) }));
}
