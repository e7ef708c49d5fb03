// @ts-check
// What the views of a page share: the model, a sentence, what is changed, where we are.
// Without a model it shows a stored trace that the page brings along.

import { h, percent, shown } from "./draw.js";
import { transformer_engine } from "./engine.js";
import { name_of, path_of, place_of, WHOLE } from "./levels.js";
import { translator_tasks, translator_worker } from "./tasks.js";

export const failed = (error) => `That didn’t work: ${error.message}.`;

// ---- When a sentence is one that the model can't be trusted with

const MANY = 1.9; // pieces a word: more than nearly every caption has
// Mean probability of the tokens: a tenth of the captions has less, and is translated much worse
const SURE = 0.55;
const ENGLISH = /\b(a|the|is|are|and|of|with|this)\b/i; // no German words

/** What to tell about a sentence of so many pieces a word, and of how sure it was; or "" */
export function worry(text, pieces, sure) {
  if (ENGLISH.test(text)) return "This looks like English, and the model reads German.";
  if (pieces > MANY) {
    return `This has ${pieces.toFixed(1)} pieces per word, more than nearly all captions that the ` +
      "model learned from: don’t trust what it writes.";
  }
  if (/[.!?]\s+\S/.test(text)) return "Several sentences: the model may leave some of them out.";
  if (sure >= SURE) return "";
  const advice = " German nouns begin with a capital letter, and it has learned them like that.";
  return `The model is unsure: its tokens have a probability of ${percent(sure)}, on (geometric) ` +
    `average. It knows captions of photos.${/.\p{Lu}|^\p{Lu}\S*$/u.test(text) ? "" : advice}`;
}

// ---- The engine, in a worker

function start_engine() {
  const text = `"use strict";const E=(${transformer_engine})();` +
    `(${translator_worker})((${translator_tasks})(E).tasks);`;
  const worker = new Worker(URL.createObjectURL(new Blob([text], { type: "text/javascript" })));
  return (task, question) => new Promise((resolve, reject) => {
    const { port1: answers, port2: asks } = new MessageChannel();
    answers.onmessage = ({ data: { answer, error } }) => {
      answers.close();
      return error === undefined ? resolve(answer) : reject(new Error(error));
    };
    worker.onerror = (event) => {
      event.preventDefault();
      reject(new Error("this browser can’t run the model"));
    };
    worker.postMessage({ task, question }, [asks]);
  });
}

// The weights come in scripts that call a function with their part: a page that is opened
// from a file may load scripts and nothing else.
async function load_model(addresses, on_part) {
  const parts = [];
  window.machine_model = (part) => { parts.push(part); };
  for (const [i, src] of addresses.entries()) {
    if (parts.length !== i) throw new Error("a part of the model is damaged");
    await new Promise((onload, fail) => {
      const onerror = () => fail(new Error(
        `a part of the model couldn’t be loaded from ${src}: perhaps the connection is gone`));
      document.head.append(h("script", { src, onload, onerror }));
    });
    on_part((i + 1) / addresses.length);
  }
  const [first, ...data] = parts;
  return { ...first, data: data.join("") };
}

// ---- The state: all that an address holds

const FIRST = { step: 0, word: 0 }; // where a new sentence is looked at
export const START = {
  ...FIRST, text: "", edits: {}, method: "greedy", n_beams: 4, length_penalty: 1, temperature: 1,
  top_p: 1, seed: 1, forced: [], reference: "",
};
export const VIEWS = { search: "Beam search", cache: "Cache", operate: "Operate" };
export const SWITCHES = {
  src_positions: "source positions", tgt_positions: "target positions", causal: "the causal mask",
};

/** What the tab keeps from page to page; a browser that keeps nothing says null. */
export function kept(name, value) {
  try {
    if (value) sessionStorage.setItem(name, value);
    return sessionStorage.getItem(name);
  } catch {
    return null;
  }
}

/** A list with an item that it has not, or without one that it has */
export const toggled = (list, item) => (list.includes(item) ? list.filter((x) => x !== item)
  : [...list, item].sort((a, b) => a - b));

const ids = (list, end) => Array.isArray(list)
  && list.every((id) => Number.isInteger(id) && id >= 0 && id < end);

function is_edits(edits, { config, attentions }) {
  if (!(edits instanceof Object) || Array.isArray(edits)) return false;
  return Object.entries(edits).every(([name, value]) => {
    if (name === "hide") return ids(value, config.max_len);
    if (name !== "without") return typeof value === "boolean" && Object.hasOwn(SWITCHES, name);
    return value && Object.entries(value).every(([attention, heads]) =>
      attentions.includes(attention) && ids(heads, config.n_heads));
  });
}

// What values out of an address the state may have
const between = (least, most) => (x) => typeof x === "number" && least <= x && x <= most;
const is_text = (x) => typeof x === "string" && x.length <= 5000;
const ALLOWED = {
  step: between(0, 200), word: between(0, 200), text: is_text, reference: is_text, edits: is_edits,
  forced: (x, { config }) => ids(x, config.tgt_vocab_size),
  method: (x) => ["greedy", "sample"].includes(x), n_beams: between(1, 8),
  length_penalty: between(-1, 2), temperature: between(0.1, 3), top_p: between(0.05, 1),
  seed: between(0, 2 ** 31),
};

export class App {
  config; addresses; size; options; told; offer; found; found_before; // given, and found
  handlers = {};
  turn = 0;
  engine = null; // asks the model, once it is loaded: engine(task, question)

  constructor(config, { trace, edited, addresses, size, at, options }) {
    Object.assign(this, { config, addresses, size, options });
    this.attentions = Object.keys(trace.maps); // their names, layer by layer
    this.untouched = trace;
    this.view = edited || trace;
    this.home = { ...START, text: trace.source, step: options.step, word: options.word };
    if (edited) this.home.edits = edited.edits;
    this.state = { ...this.home };
    this.view.asks = this.asks;
    this.go(at);
  }

  on(name, handler) { // "view", "state", "place", "status", "progress"
    (this.handlers[name] ||= []).push(handler); // told even of what is being told
  }

  tell(name, what) {
    for (const handler of this.handlers[name] || []) handler(what);
  }

  status(text) {
    this.told = text; // perhaps before there is somebody to tell
    this.tell("status", text);
  }

  /** Load the model, once; what goes wrong is told. */
  load() {
    queueMicrotask(() => this.remember()); // that it is wanted, on the next page too
    this.loading ||= this.start().catch((error) => {
      this.loading = null;
      this.tell("state");
      this.tell("progress", null);
      this.status(`${failed(error)} Try again.`);
    });
    return this.loading;
  }

  async start() {
    this.tell("progress", 0);
    const data = await load_model(this.addresses, (share) => this.tell("progress", share));
    const engine = start_engine();
    await engine("load", data);
    this.engine = engine;
    this.tell("progress", null);
    this.tell("state");
    await this.update();
  }

  // ---- Where we are: a path such as /decoder/1/cross_attn/4/9, or /search

  go(path) {
    const view = path.slice(1);
    this.panel = Object.hasOwn(VIEWS, view) ? view : "";
    this.place = this.panel ? WHOLE : place_of(path, this.config);
    this.axis = this.place.stack === "encoder" ? "word" : "step"; // what the keys go along
    this.searches = ["search", "cache"].includes(this.panel); // steps are those of the search
    this.found = null; // queries, keys and values of the head that is open
  }

  get path() {
    return this.panel ? `/${this.panel}` : path_of(this.place);
  }

  move(path) { // a step in the history of the tab, too
    if (path !== this.path && this.options.shares) history.pushState("own", "", this.address);
    this.go(path);
    this.share();
    this.tell("place");
  }

  get labels() {
    const { src_labels: word, tgt_labels: step, search } = this.view;
    if (!this.searches) return { word, step }[this.axis];
    return search?.steps.map(({ candidates }) => candidates[0].label) || [];
  }

  /** Where on it we are: the query that is looked at, the step of the search */
  get row() {
    return Math.max(0, Math.min(this.state[this.axis], this.labels.length - 1));
  }

  show(changes) { // another step or word: nothing is computed
    Object.assign(this.state, changes);
    this.share();
    this.tell("place");
  }

  /** The numbers of the head that is open, now and in the untouched model. */
  async look_into() {
    const { place, view, before } = this;
    const found = await this.numbers_of(view);
    const found_before = before && await this.numbers_of(before);
    if (view !== this.view || place !== this.place) return false; // meanwhile something else
    Object.assign(this, { found, found_before });
    return true;
  }

  async numbers_of(view) {
    const { head } = this.place, { src, edits, live } = view, name = name_of(this.place);
    const stored = view.heads?.[name];
    if (stored?.head === head) return stored;
    if (!live) return null;
    // Without a causal mask, a step's vectors are those of what was there by then.
    const tgt = edits.causal === false ? view.tgt.slice(0, this.row + 1) : view.tgt;
    return this.engine("head", { src, tgt, edits, name, head });
  }

  /** What the untouched model does with the same sentence, where something is changed */
  get before() {
    const { view, untouched } = this;
    return untouched !== view && untouched.source === view.source ? untouched : null;
  }

  // ---- Changes

  set(changes) { // and translate again where there is a model
    if ("text" in changes && changes.text !== this.state.text) { // of the old sentence
      const edits = { ...this.state.edits, hide: undefined };
      changes = { edits, forced: [], reference: "", ...FIRST, ...changes };
      this.offer = null;
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

  without(name) { // the heads of an attention that are removed
    return this.state.edits.without?.[name] || [];
  }

  is_cut = (name) => // a cross-attention without any of its heads
    name.endsWith("cross_attn") && this.without(name).length === this.config.n_heads;

  remove(heads) { // of the attentions that are named: these, and no others
    return this.edit({ without: { ...this.state.edits.without, ...heads } });
  }

  remove_head(name, head) { // or put it back
    return this.remove({ [name]: toggled(this.without(name), head) });
  }

  undo_all() {
    const { edits, forced, method, temperature, top_p, seed } = START;
    return this.set({ edits, forced, method, temperature, top_p, seed });
  }

  // How the model differs from what was trained, in words: a list
  get edited() {
    const { without = {}, hide = [], ...is_on } = this.state.edits, { view, state } = this;
    const name_of_token = (i) => (view.source === state.text ? `“${shown(view.src_labels[i])}”`
      : `token ${i + 1}`);
    const off = Object.keys(SWITCHES).filter((name) => is_on[name] === false);
    const { n_heads, n_decoder_layers } = this.config;
    const cut = this.attentions.filter(this.is_cut);
    const single = Object.values(without).flat().length - cut.length * n_heads;
    const layers = cut.length === n_decoder_layers ? "all layers"
      : cut.map((name) => `layer ${name.split(".")[2]}`).join(" and ");
    return [
      single > 0 && `${single} ${single === 1 ? "head" : "heads"} cut`,
      cut.length > 0 && `cross-attention cut in ${layers}`,
      hide.length > 0 && `hidden: ${hide.map(name_of_token).join(", ")}`,
      ...off.map((name) => `${SWITCHES[name]} off`),
    ].filter(Boolean);
  }

  // The same, and how its translation isn't what it would write greedily; "" for nothing
  get changes() {
    const { forced, method } = this.state;
    return [...this.edited, forced.length > 0 && "a word chosen by hand",
      forced.length > 1 && "and those before it kept",
      method === "sample" && "sampled tokens"].filter(Boolean).join(", ");
  }

  /** All of the state that the model has to be asked for */
  get asks() {
    const { text, edits, forced, method, seed, temperature, top_p } = this.state;
    return JSON.stringify([text, edits, forced, method, seed, temperature, top_p]);
  }

  /** Whether what is shown is what the state asks for. */
  get is_current() {
    return this.view.asks === this.asks;
  }

  // Beside a changed translation: what the untouched model wrote, where that is known
  get beside() {
    const { source, text } = this.untouched;
    if (!this.changes || !this.is_current || source !== this.view.source) return "";
    return text === this.view.text ? "The same words as without changes." : `Without changes: “${text}”`;
  }

  // Translate and look at everything. A later call makes an earlier one give up.
  async update() {
    if (!this.engine) return;
    const turn = ++this.turn, late = () => turn !== this.turn;
    const ask = async (task, question) => {
      const answer = await this.engine(task, question);
      if (late()) throw new Error("there is a later one");
      return answer;
    };
    this.tell("busy", true);
    const error = await this.translate(ask).catch((error) => error);
    if (late()) return;
    this.tell("busy", false);
    this.status(error ? failed(error) : "");
    if (error) return;
    this.found = null;
    this.tell("view");
    await this.search().catch((error) => this.status(failed(error)));
  }

  async translate(ask) {
    const { text, edits, forced, method, seed, temperature, top_p } = this.state;
    const { asks } = this, { sizes } = this.view;
    const read = await ask("tokens", { text }), { src } = read;
    if (read.too_long) {
      throw new Error(`the sentence has ${src.length} tokens, and the model reads ` +
        `${this.config.max_len} at most`);
    }
    const see = async (how) => {
      const { ids } = await ask("write", { src, ...how });
      const seen = await ask("look", { src, tgt: ids, ...how });
      return { source: text, read, sizes, edits: how.edits, ...seen, live: true };
    };
    const is_known = this.untouched.source === text && this.untouched.live;
    if (this.changes && !is_known) this.untouched = await see({ edits: {} });
    const sampling = method === "sample" ? { method, seed, temperature, top_p } : {};
    const view = await see({ edits, prefix: forced, ...sampling });
    const is_same = JSON.stringify([text, edits]) ===
      JSON.stringify([this.view.source, this.view.edits]);
    this.view = { ...view, asks, search: is_same ? this.view.search : null }; // till a new one
    if (!this.changes) this.untouched = this.view;
  }

  async search() {
    const { view } = this, { edits, n_beams, length_penalty } = this.state;
    if (!this.engine || !this.searches) return;
    view.found ||= this.engine("search", { src: view.src, edits, n_beams, length_penalty });
    const search = await view.found; // of however many that ask
    if (view !== this.view || view.search === search) return;
    view.search = search;
    this.tell("place"); // there is more to see of it
  }

  // ---- The address, and what the tab remembers

  get address() {
    const { state } = this, [page] = location.href.split("#");
    const changed = Object.entries(state).filter(([name, value]) =>
      JSON.stringify(value) !== JSON.stringify(START[name]));
    const found = JSON.stringify(Object.fromEntries(changed));
    return `${page}#machine${this.path}${changed.length ? `?${encodeURIComponent(found)}` : ""}`;
  }

  share() {
    if (this.options.shares) history.replaceState("own", "", this.address);
  }

  /** Take over what an address says; false where it says nothing of the machine. */
  restore(hash) {
    if (!hash.startsWith("#machine")) return false;
    const [, path = "", text] = hash.match(/^#machine(\/[^?]*)?(?:\?(.*))?$/) || [];
    this.go(path);
    if (path.length > 1 && this.path !== path) {
      this.status("This model has nothing at that address: here is the whole machine.");
    }
    if (!text) return true;
    try {
      const found = JSON.parse(decodeURIComponent(text));
      this.check(found);
      Object.assign(this.state, START, { text: this.home.text }, found);
    } catch (error) {
      this.status(`The address holds a state that can’t be read: ${error.message}.`);
    }
    return true;
  }

  /** Another address, in the page that is open; on the way back, another place alone */
  follow(hash) {
    const { asks } = this;
    if (!this.restore(history.state === "own" ? hash.split("?")[0] : hash)) return;
    this.share();
    this.tell("place");
    if (this.asks !== asks) this.set({});
  }

  check(found) {
    for (const [name, value] of Object.entries(found)) {
      if (!Object.hasOwn(ALLOWED, name) || !ALLOWED[name](value, this)) {
        throw new Error(`${name} can’t be ${JSON.stringify(value).slice(0, 80)}`);
      }
    }
  }

  remember() {
    const { text, edits, forced } = this.offer || this.state, loaded = Boolean(this.loading);
    const { home } = this, is_stored = text === home.text && (!this.options.shares
      || JSON.stringify([edits, forced]) === JSON.stringify([home.edits, home.forced]));
    kept("machine", JSON.stringify(is_stored ? { loaded } : { loaded, text, edits, forced }));
  }

  /** The sentence and the changes of the page before, taken over by a page that shares its
   *  state, else kept as an offer; whether a model was loaded there. */
  recall() {
    try {
      const { loaded, ...found } = JSON.parse(kept("machine") || "{}");
      if (!loaded) return false;
      this.check(found);
      if (this.options.shares) Object.assign(this.state, found, FIRST);
      else if (found.text && found.text !== this.home.text) this.offer = found;
      return true;
    } catch {
      return false;
    }
  }
}
