// @ts-check
// What the views of a page share: the model, a sentence, what is changed, where we are.
// Without a model it shows a stored trace that the page brings along.

import { h } from "./draw.js";
import { transformer_engine } from "./engine.js";
import { path_of, place_of, WHOLE } from "./levels.js";
import { translator_tasks, translator_worker } from "./tasks.js";
import { unpack } from "./trace.js";

// ---- The engine: in a worker, or on this thread in small pieces

function start_worker() {
  if (window.machine_without_worker) return null;
  const text = `"use strict";const E=(${transformer_engine})();` +
    `(${translator_worker})((${translator_tasks})(E).tasks);`;
  try {
    return new Worker(URL.createObjectURL(new Blob([text], { type: "text/javascript" })));
  } catch {
    return null;
  }
}

class Engine {
  constructor() {
    this.n = 0;
    this.waiting = new Map(); // id -> {resolve, reject, on_event}
    this.worker = start_worker();
    this.last = Promise.resolve();
    if (this.worker) {
      this.worker.onmessage = ({ data }) => this.hear(data);
      this.worker.onerror = (event) => {
        event.preventDefault();
        for (const { reject } of this.waiting.values()) {
          reject(new Error(event.message || "the worker stopped"));
        }
        this.waiting.clear();
      };
    } else {
      this.tasks = translator_tasks(transformer_engine()).tasks;
    }
  }

  hear({ id, event, answer, error }) {
    const asked = this.waiting.get(id);
    if (!asked) return;
    if (event) {
      if (asked.on_event) asked.on_event(event);
      return;
    }
    this.waiting.delete(id);
    if (error !== undefined) asked.reject(new Error(error));
    else asked.resolve(answer);
  }

  ask(task, question, on_event = null) {
    if (this.worker) {
      return new Promise((resolve, reject) => {
        const id = ++this.n;
        this.waiting.set(id, { resolve, reject, on_event });
        this.worker.postMessage({ id, task, question });
      });
    }
    // one task after the other: they share the model
    const run = this.last.then(() => this.run(task, question, on_event));
    this.last = run.catch(() => {});
    return run;
  }

  async run(task, question, on_event) {
    const run = this.tasks[task](question), piece = 12; // ms between two pauses
    let until = performance.now() + piece;
    for (let step = run.next(); ; step = run.next()) {
      if (step.done) return step.value;
      if (step.value && on_event) on_event(step.value);
      if (performance.now() > until) {
        await new Promise((go_on) => {
          const { port1, port2 } = new MessageChannel();
          port1.onmessage = go_on;
          port2.postMessage(0);
        });
        until = performance.now() + piece;
      }
    }
  }
}

function load_script(src) {
  return new Promise((resolve, reject) => {
    const script = h("script", { src, onload: () => resolve(script.remove()),
      onerror: () => reject(new Error(`a part of the model couldn’t be loaded from ${src}`)) });
    document.head.append(script);
  });
}

// The weights come in scripts that call a function with their part: a page that is opened
// from a file may load scripts and nothing else.
async function load_model(addresses, on_part) {
  const parts = [];
  window.machine_model = (part) => { parts.push(part); };
  for (const [i, address] of addresses.entries()) {
    if (parts.length !== i) throw new Error("a part of the model is damaged");
    await load_script(address);
    on_part((i + 1) / addresses.length);
  }
  const [first, ...data] = parts;
  return { ...first, data: data.join("") };
}

// ---- The state: all that an address holds

export const START = {
  text: "", step: 0, word: 0, edits: {}, method: "greedy", n_beams: 4, length_penalty: 1,
  temperature: 1, top_p: 1, seed: 1, forced: [], reference: "",
};
const LIMITS = { // smallest and largest, or the choices
  method: ["greedy", "sample"], n_beams: [1, 8], length_penalty: [-1, 2], step: [0, 200],
  word: [0, 200], temperature: [0.1, 3], top_p: [0.05, 1], seed: [0, 2 ** 31],
};
export const VIEWS = ["search", "cache", "operate"];
const KNOWN_EDITS = new Set(["src_positions", "tgt_positions", "causal"]);
const MEMORY = "machine"; // what the tab remembers from page to page

const ids = (list, end) => Array.isArray(list)
  && list.every((id) => Number.isInteger(id) && id >= 0 && id < end);

// The names of all attentions, layer by layer: attentions(config, "decoder", "cross_attn")
export function attentions(config, stack, ...kinds) {
  return Array.from({ length: config[`n_${stack}_layers`] }, (_, layer) =>
    kinds.map((kind) => `${stack}.layers.${layer}.${kind}`)).flat();
}

function is_edits(edits, config) {
  return Object.entries(edits).every(([name, value]) => {
    if (name === "hide") return ids(value, config.max_len);
    if (name !== "without") return typeof value === "boolean" && KNOWN_EDITS.has(name);
    const known = [...attentions(config, "encoder", "self_attn"),
      ...attentions(config, "decoder", "self_attn", "cross_attn")];
    return value && Object.entries(value).every(([attention, heads]) =>
      known.includes(attention) && ids(heads, config.n_heads));
  });
}

// Whether a value out of an address is one that the state may have
function is_like(known, value, limits, config) {
  if (Array.isArray(known)) return ids(value, config.tgt_vocab_size);
  if (typeof known !== typeof value || value === null) return false;
  if (typeof value === "number") return limits[0] <= value && value <= limits[1];
  if (limits) return limits.includes(value);
  if (typeof value === "object") return !Array.isArray(value) && is_edits(value, config);
  return typeof value !== "string" || value.length <= 600;
}

export class App {
  config; addresses; size; options; n_tokens; // given, or known once the model is there

  constructor(config, { trace, edited, addresses, size, at, options }) {
    Object.assign(this, { config, addresses, size, options });
    this.handlers = {};
    this.engine = null; // until the model is loaded
    for (const each of [trace, edited]) if (each) unpack(each);
    this.untouched = trace;
    this.view = edited || trace;
    this.home = { ...START, text: trace.source, step: options.step, word: options.word };
    if (edited) this.home.edits = edited.edits;
    this.state = { ...this.home };
    this.start = at;
    this.go(at);
    this.turn = 0;
  }

  on(name, handler) { // "view", "search", "state", "place", "status", "progress"
    (this.handlers[name] ||= []).push(handler);
  }

  tell(name, what) {
    for (const handler of this.handlers[name] || []) handler(what);
  }

  status(text) {
    this.tell("status", text);
  }

  async load() {
    if (this.loading) return this.loading;
    this.loading = (async () => {
      this.tell("progress", 0);
      const data = await load_model(this.addresses, (share) => this.tell("progress", share));
      const engine = new Engine();
      ({ n_tokens: this.n_tokens } = await engine.ask("load", data));
      this.engine = engine;
      this.remember();
      this.tell("progress", null);
      this.tell("state");
      await this.update();
    })();
    this.loading.catch((error) => {
      this.loading = null;
      this.tell("progress", null);
      this.status(`That didn’t work: ${error.message}. Try again.`);
    });
    return this.loading;
  }

  ask(task, question, on_event) {
    return this.engine.ask(task, question, on_event);
  }

  // ---- Where we are: a path such as /decoder/1/cross_attn/4/9, or /search

  go(path) {
    const view = path.slice(1);
    this.panel = VIEWS.includes(view) ? view : "";
    this.place = this.panel ? WHOLE : place_of(path, this.config);
    this.found = null; // queries, keys and values of the head that is open
  }

  get path() {
    return this.panel ? `/${this.panel}` : path_of(this.place);
  }

  move(path) {
    this.go(path);
    this.share();
    this.tell("place");
  }

  /** The query that is looked at: a step of the translation, or a word of the source */
  get row() {
    const { src_labels, tgt_labels } = this.view, encoder = this.place.stack === "encoder";
    return Math.min(encoder ? this.state.word : this.state.step,
      (encoder ? src_labels : tgt_labels).length - 1);
  }

  show(changes) { // another step or word: nothing is computed
    Object.assign(this.state, changes);
    this.share();
    this.tell("place");
  }

  /** The numbers of the head that is open, now and in the untouched model. */
  async look_into() {
    const { place, view, untouched } = this, name = `${place.stack}.layers.${place.layer}.${place.kind}`;
    const own = async (of, edits) => {
      // Without a causal mask, a step's vectors are those of what was there by then.
      const tgt = edits.causal === false ? of.tgt.slice(0, this.row + 1) : of.tgt;
      const key = `${name} ${place.head} ${tgt.length}`;
      of.heads ||= {};
      const stored = of.heads[name] && of.heads[name].head === place.head ? of.heads[name] : null;
      of.inside ||= new Map();
      if (stored) return stored;
      if (!of.live) return null;
      if (!of.inside.has(key)) {
        of.inside.set(key, await this.ask("head", { src: of.src, tgt, edits, name, head: place.head }));
      }
      return of.inside.get(key);
    };
    const found = await own(view, view.edits || {});
    const before = view === untouched || untouched.source !== view.source ? null
      : await own(untouched, {});
    if (view !== this.view || place !== this.place) return false; // meanwhile something else
    this.found = found;
    this.found_before = before;
    return true;
  }

  // ---- Changes

  set(changes) { // and translate again where there is a model
    if ("text" in changes && changes.text !== this.state.text) { // of the old sentence
      const edits = { ...this.state.edits, hide: undefined };
      changes = { edits, forced: [], reference: "", step: 0, word: 0, ...changes };
    }
    Object.assign(this.state, changes);
    this.remember();
    this.share();
    this.tell("state");
    return this.update();
  }

  edit(changes) {
    return this.set({ edits: { ...this.state.edits, ...changes } });
  }

  get n_edits() {
    const { without = {}, hide = [], ...off } = this.state.edits;
    const heads = Object.values(without).reduce( // a layer that is cut counts once
      (sum, some) => sum + (some.length === this.config.n_heads ? 1 : some.length), 0);
    return heads + hide.length + Object.values(off).filter((x) => x === false).length;
  }

  removed(name, head) {
    return ((this.state.edits.without || {})[name] || []).includes(head);
  }

  remove_head(name, head) { // or put it back
    const without = { ...(this.state.edits.without || {}) };
    const some = without[name] || [];
    without[name] = some.includes(head)
      ? some.filter((each) => each !== head) : [...some, head].sort();
    return this.edit({ without });
  }

  undo_all() {
    const { temperature, top_p } = START;
    return this.set({ edits: {}, forced: [], method: "greedy", temperature, top_p });
  }

  // What differs from the model as it was trained, writing greedily; "" for nothing
  get changes() {
    const { edits, forced, method } = this.state, { without = {}, hide = [] } = edits;
    const several = (n, one, more) => n && `${n} ${n === 1 ? one : more}`;
    const sizes = Object.values(without).map((heads) => heads.length);
    const whole = this.config.n_heads;
    const single = sizes.filter((n) => n < whole).reduce((sum, n) => sum + n, 0);
    return [
      several(single, "head removed", "heads removed"),
      several(sizes.filter((n) => n === whole).length, "block of heads removed",
        "blocks of heads removed"),
      several(hide.length, "source token hidden", "source tokens hidden"),
      edits.src_positions === false && "source positions off",
      edits.tgt_positions === false && "target positions off",
      edits.causal === false && "the causal mask off",
      forced.length && "a forced token", method === "sample" && "sampled tokens",
    ].filter(Boolean).join(", ");
  }

  /** Whether what is shown is what the state asks for. */
  get is_current() {
    const { view, state } = this;
    return view.source === state.text && (Boolean(view.live) === Boolean(this.engine))
      && (this.engine || JSON.stringify(view.edits || {}) === JSON.stringify(state.edits));
  }

  // Beside a changed translation: what the untouched model wrote, where that is known
  get beside() {
    const { source, text } = this.untouched;
    if (!this.changes || !this.is_current || source !== this.view.source) return "";
    return text === this.view.text ? "The same as without changes."
      : `Without changes: “${text}”`;
  }

  // Translate the sentence of the state and look at everything. A later call makes an
  // earlier one give up.
  async update() {
    if (!this.engine) return;
    const turn = ++this.turn, { text, edits, forced, method, seed, temperature, top_p } = this.state;
    const late = () => turn !== this.turn;
    const sampling = method === "sample" ? { temperature, top_p } : {};
    this.tell("busy", true);
    try {
      const read = await this.ask("tokens", { text });
      if (late()) return;
      if (read.too_long) {
        throw new Error(`the sentence has ${read.src.length} tokens, and the model reads ${this.config.max_len} at most`);
      }
      const { src } = read;
      const translate = async (edits, prefix) => {
        const written = await this.ask("write", { src, edits, prefix, method, seed, ...sampling },
          ({ text: so_far }) => { if (!late()) this.tell("writing", so_far); });
        if (late()) return null;
        const seen = await this.ask("look", { src, tgt: written.ids, edits, ...sampling });
        return { source: text, read, written, edits, ...seen, sizes: this.view.sizes, live: true };
      };
      if (this.untouched.source !== text || !this.untouched.live) {
        const plain = !this.changes ? null : await this.ask("write", { src, edits: {} })
          .then(async (written) => ({ source: text, read, written, edits: {}, sizes: this.view.sizes, live: true,
            ...await this.ask("look", { src, tgt: written.ids, edits: {} }) }));
        if (late()) return;
        if (plain) this.untouched = plain;
      }
      const view = await translate(edits, forced);
      if (late() || !view) return;
      const { search } = this.view; // the old one stays until the new one is there
      this.view = { ...view, search };
      if (!this.changes) this.untouched = this.view;
      this.found = null;
      this.tell("busy", false);
      this.status("");
      this.tell("view");
      await this.search();
    } catch (error) {
      if (late()) return;
      this.tell("busy", false);
      this.status(`That didn’t work: ${error.message}.`);
    }
  }

  async search() {
    if (!this.engine || !["search", "cache"].includes(this.panel) || this.view.searched) return;
    const { view } = this, { edits, n_beams, length_penalty } = this.state;
    view.searched = true;
    const search = await this.ask("search", { src: view.src, edits, n_beams, length_penalty });
    if (view !== this.view) return;
    view.search = search;
    this.tell("search");
  }

  // ---- The address, and what the tab remembers

  get address() {
    const drawn = ["temperature", "top_p", "seed"], { method } = this.state;
    const changed = Object.entries(this.state).filter(([name, value]) =>
      JSON.stringify(value) !== JSON.stringify(START[name])
      && (method === "sample" || !drawn.includes(name)));
    const [page] = location.href.split("#");
    return `${page}#machine${this.path}` + (changed.length
      ? `?${encodeURIComponent(JSON.stringify(Object.fromEntries(changed)))}` : "");
  }

  share() {
    if (this.options.shares) history.replaceState(null, "", this.address);
  }

  /** Take over what an address says; false where it says nothing of the machine. */
  restore(hash) {
    const [, path, text] = hash.match(/^#machine(\/[^?]*)?(?:\?(.*))?$/) || [];
    if (!hash.startsWith("#machine")) return false;
    this.go(path || "");
    if (path && path !== "/" && this.path !== path) this.status("This model has nothing at that address: here is the whole machine.");
    if (!text) return true;
    try {
      const found = JSON.parse(decodeURIComponent(text));
      for (const [name, value] of Object.entries(found)) {
        if (!Object.hasOwn(START, name) || !is_like(START[name], value, LIMITS[name], this.config)) {
          throw new Error(`${name} can’t be ${JSON.stringify(value)}`);
        }
      }
      Object.assign(this.state, START, { text: this.home.text }, found);
    } catch (error) {
      this.status(`The address holds a state that can’t be read: ${error.message}.`);
    }
    return true;
  }

  remember() {
    const { text, edits, forced } = this.state;
    try {
      sessionStorage.setItem(MEMORY, JSON.stringify({ loaded: Boolean(this.engine), text, edits, forced }));
    } catch { /* a browser that keeps nothing: the next page starts afresh */ }
  }

  /** The sentence and the changes of the page before; whether a model was loaded there. */
  recall() {
    try {
      const { loaded, text, edits, forced } = JSON.parse(sessionStorage.getItem(MEMORY) || "{}");
      if (!loaded || !is_like("", text) || !is_like({}, edits, null, this.config)
        || !is_like([], forced, null, this.config)) return false;
      if (text !== this.home.text || JSON.stringify(edits) !== "{}") {
        Object.assign(this.state, { text, edits, forced, step: 0, word: 0 });
      }
      return true;
    } catch {
      return false;
    }
  }
}
