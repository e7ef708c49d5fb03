// @ts-check
// The state of a page and all that isn't drawing: the model is loaded and asked, the address and
// the tab's memory are written. Every change is an action; who draws is told of each.

import { address_of, asked_in, checked, read_address } from "./address.js";
import { language } from "./language.js";
import { looked_words } from "./gloss.js";
import { name_of } from "./levels.js";
import { load_model } from "./model.js";
import { asks_of, axis_of, before, changes_of, cut_of, edited, grows, labels_of, OWN, is_current, needs_model, reduce,
  notes_of, row_of, searches, START, stored_numbers, surest, toggled, where_to, yours_of } from "./state.js";
import { in_order } from "./yours/parts.js";
import { is_told, told } from "./yours/told.js";

/** @import { Action, Ask, Asked, Choice, Draw, Edits, Packed, Reading, Sampling, Sources, State, View, Work, Yours } from "./types.d.ts" */

/** @param {unknown} error */
const failed = (error) => (is_told(error) ? error.message
  : `That didn’t work: ${error instanceof Error ? error.message : error}.`);

/** As texts @param {unknown} one @param {unknown} other */
const is_same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/** What the tab keeps from page to page; a browser that keeps nothing says null.
 *  @param {string} name @param {string} [value] */
export function kept(name, value) {
  try {
    if (value) sessionStorage.setItem(name, value);
    return sessionStorage.getItem(name);
  } catch {
    return null;
  }
}

/** Lines of code: what isn't empty, a comment or a docstring @param {Sources} sources */
const n_lines = (sources) => Object.values(sources).join("\n").replace(/("""|''')[^]*?\1/g, "").split("\n")
  .filter((line) => /^\s*[^\s#]/.test(line)).length;

/** @type {{ [task: string]: number[] }} */
const SHARES = { write: [0, 0.7], look: [0.7, 1] }; // a translation is written, and then looked at

class TooLong extends Error {}

/** @param {Reading} read @param {number} max_len */
function check_length({ src, too_long }, max_len) {
  if (!too_long) return;
  throw new TooLong(`This has ${src.length} tokens, and the model reads ${max_len} at most. ` +
    "Take a part of it.");
}

// ---- What a page may lack: what it depends on, and how the model is asked for it

/** @param {State} state */
const numbers_needed = (state) => [state.view, state.place, before(state), row_of(state)];

/** The numbers of the head that is open, now and in the untouched model
 *  @param {State} state @param {Ask} ask @returns {Promise<Action>} */
async function find_numbers(state, ask) {
  const { place, view } = state, other = before(state);
  const numbers_of = async (/** @type {View} */ of) => {
    const { src, edits } = of, stored = stored_numbers(of, place);
    if (stored !== undefined) return stored;
    // Without a causal mask, a step's vectors are those of what was there by then.
    const tgt = grows(of) ? of.tgt.slice(0, row_of(state) + 1) : of.tgt;
    return ask("head", { src, tgt, edits, name: name_of(place), head: place.head }).catch((error) => {
      if (!is_told(error)) throw error;
      text = error.message; // code of a reader's need not have them
      return null;
    });
  };
  let text = "";
  const found = await numbers_of(view), found_before = other && await numbers_of(other);
  return { type: "found", found, found_before, text };
}

/** @param {State} state */
const search_needed = ({ view }) => [view];

/** @param {State} state @param {Ask} ask @returns {Promise<Action>} */
async function find_search({ view, asked: { edits, n_beams, length_penalty } }, ask) {
  const search = await ask("search", { src: view.src, edits, n_beams, length_penalty });
  return { type: "searched", search };
}

/** @param {State} state */
const losses_needed = ({ view, asked: { edits, reference } }) => [view, edits, reference];

/** What each token of a translation costs: the reader's own, or the untouched model's
 *  @param {State} state @param {Ask} ask @returns {Promise<Action>} */
async function find_losses(state, ask) {
  const { view: { src }, untouched, config, asked: { edits, reference } } = state;
  try {
    const read = reference && await ask("tokens", { text: reference });
    const [tgt, labels] = read ? [read.src, read.src_labels] : [untouched.tgt, untouched.tgt_labels];
    if (tgt.length > config.max_len) {
      throw new Error(`the translation has ${tgt.length} tokens, more than ${config.max_len}`);
    }
    return { type: "measured", losses: { labels, whose: reference ? "your" : OWN,
      before: await ask("loss", { src, tgt, edits: {} }),
      now: edited(state).length ? await ask("loss", { src, tgt, edits }) : null } };
  } catch (error) {
    return { type: "measured", losses: failed(error) };
  }
}

// What a reader does: after it, a question that had failed is asked again. Answers don't count,
// since a failure is one itself.
/** @type {Action["type"][]} */
const ASKS_AGAIN = ["ask", "take", "go", "step", "lead", "ready"];

/** What the tab keeps, with those of the reader's parts that are still there
 *  @param {{ edits?: Edits }} found @param {string[]} parts */
function with_parts({ edits, ...found }, parts) {
  if (!edits?.yours) return { ...found, ...(edits && { edits }) };
  const { yours, ...others } = edits, left = yours.filter((name) => parts.includes(name));
  return { ...found, edits: { ...others, ...(left.length && { yours: left }) } };
}

export class App {
  engine = /** @type {Ask|null} */ (null); // asks the model, once it is loaded
  loading = /** @type {Promise<void>|null} */ (null);
  sister = /** @type {Promise<Ask>|null} */ (null); // of the model for the other way round
  n_said = 0;
  draws = /** @type {Draw[]} */ ([]);
  actions = /** @type {Action[]} */ ([]); // that came while another one was drawn
  is_drawing = false;
  turn = 0; // of those who ask for a translation
  // What the page was lacking last: what that depended on, and when it will be there
  lacking = /** @type {{ [what: string]: { needs: unknown[], done: Promise<void>,
   *  has_failed: boolean } }} */ ({});

  packed = /** @type {Packed|null} */ (null); // the model, for Python
  on_work = /** @type {((work: Work) => void)|null} */ (null); // who else is told
  yours = /** @type {Yours|null} */ (null); // runs the reader's code, once it has come
  tried = /** @type {Sources|null} */ (null); // what runs instead of what is stored

  /** @param {State} state
   *  @param {{ addresses: string[], sisters?: string[], shares?: boolean, is_second?: boolean,
   *    find_python?: () => Promise<Yours>, stored?: () => Sources }} options addresses: of the parts of the
   *  model; sisters: of its sister's; shares: the page's address holds the state; is_second: the address
   *  is another machine's; find_python: what runs the reader's code, and stored: what there is of it */
  constructor(state, { addresses, sisters = [], shares = false, is_second = false, find_python, stored }) {
    this.sisters = sisters;
    this.state = state;
    this.addresses = addresses;
    this.shares = shares;
    this.is_second = is_second;
    this.find_python = find_python;
    this.stored = stored || (() => ({}));
  }

  /** Tell of every action, once it is done. @param {Draw} draw */
  on(draw) {
    this.draws.push(draw);
  }

  /** @param {Action} action */
  dispatch(action) {
    this.actions.push(action);
    if (this.is_drawing) return; // its turn comes
    this.is_drawing = true;
    try {
      for (let next; (next = this.actions.shift());) {
        const old = this.state, now = this.state = reduce(old, next);
        for (const draw of this.draws) draw(now, old, next);
        const has_moved = now.place !== old.place || now.panel !== old.panel;
        if (this.draws.length && (has_moved || now.asked !== old.asked)) this.share();
      }
    } finally {
      this.is_drawing = false;
    }
    if (ASKS_AGAIN.includes(action.type)) {
      for (const [what, { has_failed }] of Object.entries(this.lacking)) {
        if (has_failed) delete this.lacking[what];
      }
    }
    this.look_up();
  }

  /** @param {string} text */
  status(text) {
    this.dispatch({ type: "status", text });
  }

  // ---- The model

  /** Load the model, once; what goes wrong is told. */
  load() {
    queueMicrotask(() => this.remember()); // that it is wanted, on the next page too
    this.loading ||= this.start().catch((error) => {
      this.loading = null;
      this.dispatch({ type: "lost", text: failed(error) });
    });
    return this.loading;
  }

  async start() {
    this.dispatch({ type: "load", share: 0 });
    const { ask, packed } = await load_model(this.addresses, (share) => {
      if (!this.state.is_ready) this.dispatch({ type: "load", share });
    });
    this.engine = ask;
    this.packed = packed;
    this.dispatch({ type: "ready" });
    await this.update();
  }

  /** Who answers is chosen by the question: Python, where parts are the reader's, else the engine
   *  @param {() => boolean} is_late whether the answer isn't waited for any more @returns {Ask} */
  answers(is_late) {
    const { engine, packed } = this;
    return async (task, question) => {
      const yours = "edits" in question && question.edits.yours || [];
      if (!engine) throw new Error("the model isn’t there");
      if (!yours.length) return engine(task, question);
      if (!this.find_python || !packed) throw told("Your code can’t be run on this page.");
      this.yours ||= await this.find_python();
      const on_work = (/** @type {Work} */ work) => {
        const [from, to] = work.what === "code" && SHARES[task] || [0, 1];
        if (is_late()) return;
        const now = { ...work, share: from + (to - from) * work.share };
        this.on_work?.(now);
        this.dispatch({ type: "work", work: now });
      };
      return this.yours.shared.ask(task, question, { sources: this.sources_of(yours), packed, on_work, is_late });
    };
  }

  /** @param {string[]} names */
  sources_of(names) {
    /** @type {Sources} */
    const all = { ...this.stored(), ...this.tried };
    return Object.fromEntries(in_order(names).map((name) => {
      if (!all[name]) throw told(`There is no ${name} of yours any more: switch it off, or write it again.`);
      return [name, all[name]];
    }));
  }

  /** Translate and look at everything. A later call makes an earlier one give up. */
  async update() {
    const turn = ++this.turn, is_late = () => turn !== this.turn, answers = this.answers(is_late);
    if (!this.engine) return;
    /** @type {Ask} */
    const ask = async (task, question) => {
      const answer = await answers(task, question);
      if (is_late()) throw new Error("there is a later one");
      return answer;
    };
    try {
      this.dispatch({ type: "seen", ...await this.translate(ask) });
    } catch (error) {
      if (is_late()) return;
      this.dispatch(error instanceof TooLong ? { type: "return", text: error.message }
        : { type: "failed", text: failed(error) });
      return;
    }
    await this.lacking.search?.done;
  }

  /** @param {Ask} ask */
  async translate(ask) {
    const { state } = this, { text, edits, forced, method, seed, temperature, top_p, trying } = state.asked;
    const read = await ask("tokens", { text }), { src } = read, { sizes } = state.view;
    check_length(read, state.config.max_len);
    this.dispatch({ type: "read", text, pieces: read.pieces }); // a warning comes before the words
    const is_drawn = method === "sample", sampling = is_drawn ? { temperature, top_p } : {};
    /** @param {Edits} edits @param {string} asks @param {Sampling} sampling
     *  @param {{ method?: string, seed?: number, prefix?: number[] }} how @returns {Promise<View>} */
    const see = async (edits, asks, sampling, how) => {
      const written = await ask("write", { src, edits, ...how, ...sampling }), { ids } = written;
      const whose = trying ? "The changed" : "Your";
      if (!ids.length) throw told(`${whose} code wrote nothing, not even the end of a sentence.`);
      const seen = await ask("look", { src, tgt: ids, edits, ...sampling });
      const live = { read, asks, n_forced: how.prefix?.length || 0 }, { yours } = edits;
      const has_ended = ids.at(-1) === src.at(-1); // both end with <eos>
      const own = yours?.length && { ran: { ms: 0, problem: "", ...written, cut: written.cut || !has_ended,
        n_lines: n_lines(this.sources_of(yours)) } };
      const look = own && this.yours ? this.yours.completed(seen, { src, ...written }, state) : seen;
      return { source: text, gloss: state.meanings[text]?.words, sizes, edits, ...look, ...(yours && trying && { trying }),
        live: { ...live, ...own } };
    };
    const is_known = state.untouched.source === text && state.untouched.live;
    const is_changed = Boolean(changes_of(state));
    const untouched = is_changed && !is_known ? await see({}, "", {}, {}) : state.untouched;
    const view = await see(edits, asks_of(state.asked), sampling, { prefix: forced, ...(is_drawn && { method, seed }) });
    return { view, untouched: is_changed ? untouched : view };
  }

  // ---- What the place where we are needs besides

  look_up() {
    const { state } = this;
    if (!state.view.live || state.is_busy) return; // there will be another view
    if (state.found === undefined) this.lack("found", numbers_needed, find_numbers);
    if (searches(state)) this.lack("search", search_needed, find_search);
    if (state.panel === "operate") this.lack("losses", losses_needed, find_losses);
  }

  /** Ask for something, once for all that it depends on; if that has changed, the answer is late
   *  @param {string} what @param {(state: State) => unknown[]} needs_of
   *  @param {(state: State, ask: Ask) => Promise<Action>} find */
  lack(what, needs_of, find) {
    const { state } = this, needs = needs_of(state);
    const are_needed = (/** @type {unknown[]} */ others) => needs.every((x, i) => x === others[i]);
    if (!this.engine || are_needed(this.lacking[what]?.needs || [])) return;
    const done = find(state, this.answers(() => !are_needed(needs_of(this.state)))).then((action) => {
      if (are_needed(needs_of(this.state))) this.dispatch(action);
    }).catch((error) => {
      asked.has_failed = true;
      if (this.lacking[what] === asked) this.dispatch({ type: "failed", text: failed(error) });
    });
    /** @type {App["lacking"][string]} */
    const asked = { needs, done, has_failed: false };
    this.lacking[what] = asked;
  }

  // ---- What the reader does

  /** A sentence that was typed: the sister model writes an English one in German first
   *  @param {string} text */
  async say(text) {
    const turn = ++this.n_said, found = language(text);
    this.dispatch({ type: "stop" });
    if (found === "none") {
      return this.status("There are no words in this. Type a German or an English sentence.");
    }
    this.status("");
    let german = text;
    if (found === "English") {
      this.dispatch({ type: "sister", text });
      await this.load(); // one after the other: their scripts call the same function
      const written = this.engine && await this.write_german(text);
      if (turn !== this.n_said) return;
      this.dispatch({ type: "sister", text: "" });
      if (!written || !this.engine) return; // and why was told
      german = written;
    }
    const edits = this.state.asked.choice ? { edits: {} } : {}; // a choice ends with its sentence
    await this.ask({ text: german, english: german === text ? "" : text, ...edits }, true);
  }

  /** What the sister model makes of an English text; "" where it can't @param {string} text */
  async write_german(text) {
    try {
      this.sister ||= load_model(this.sisters, (share) => this.dispatch({ type: "load", share }))
        .then(({ ask }) => ask);
      const ask = await this.sister, read = await ask("tokens", { text });
      check_length(read, this.state.config.max_len);
      this.dispatch({ type: "read", text, pieces: read.pieces });
      const { ids, text: german } = await ask("write", { src: read.src, edits: {} });
      const look = await ask("look", { src: read.src, tgt: ids, edits: {} });
      this.dispatch({ type: "means", text: german, words: looked_words(look) });
      return german;
    } catch (error) {
      if (!(error instanceof TooLong)) this.sister = null; // it can be loaded again
      this.status(error instanceof TooLong ? error.message
        : `${failed(error)} Type it in German, or try again.`);
      return "";
    } finally {
      this.dispatch({ type: "load", share: null });
    }
  }

  /** Ask for something else, and translate again; the model comes by itself
   *  @param {Partial<Asked>} changes */
  ask(changes, typed = false) {
    this.dispatch({ type: "ask", changes, typed });
    this.remember();
    return this.engine ? this.update() : this.load();
  }

  /** What is open now may need the model */
  enter() {
    if (needs_model(this.state)) this.load();
  }

  /** @param {Edits} edits */
  async edit(edits) {
    await this.ask({ edits: { ...this.state.asked.edits, ...edits } });
    this.jump();
  }

  /** To the first word that is changed, if one is */
  jump() {
    const other = this.first_change();
    if (other >= 0) this.dispatch({ type: "jump", step: other });
  }

  /** The first word that the changes change, if they are done; else -1 */
  first_change() {
    const { view, untouched } = this.state;
    if (!view.live || !is_current(this.state)) return -1;
    return view.tgt.findIndex((id, i) => id !== untouched.tgt[i]);
  }

  /** Of the attentions that are named: cut these heads, and no others
   *  @param {{ [attention: string]: number[] }} heads */
  cut(heads) {
    return this.edit({ without: { ...this.state.asked.edits.without, ...heads } });
  }

  /** Cut a head, or put it back @param {string} name @param {number} head */
  cut_head(name, head) {
    return this.cut({ [name]: toggled(cut_of(this.state, name), head) });
  }

  /** A choice, and then the first word that it changes @param {Choice} choice */
  async choose({ name, text, edits }) {
    this.push("");
    this.dispatch({ type: "stop" });
    this.dispatch({ type: "go", path: "" });
    const { forced, method, temperature, top_p, seed } = START;
    await this.ask({ text, edits, choice: name, forced, method, temperature, top_p, seed });
    const { state } = this, { view } = state;
    if (state.asked.choice !== name || !is_current(state) || !view.live) return;
    const other = this.first_change();
    this.show({ step: other < 0 ? surest(view) : other });
  }

  undo_all() {
    const { edits, forced, method, temperature, top_p, seed, trying } = START;
    return this.ask({ edits, forced, method, temperature, top_p, seed, trying, choice: "" });
  }

  /** Translate with these sources in the places of the book's parts, and tell what came out
   *  @param {Sources} sources @param {string} trying the label of a mistake, or "" @param {string} [text] */
  async run(sources, trying, text = this.state.asked.text) {
    const { asked } = this.state, attempt = asked.attempt + 1;
    this.tried = sources;
    this.dispatch({ type: "stop" });
    const { forced, method } = START, choice = "", edits = { yours: in_order(Object.keys(sources)) };
    await this.ask({ text, edits, forced, method, choice, trying, attempt });
    this.jump();
    const { state } = this, { view, untouched } = state;
    if (state.asked.attempt !== attempt) throw told("Another run came later.");
    if (!is_current(state) || !view.live?.ran) throw told(state.status || "Something else was asked meanwhile.");
    const { ms, cut } = view.live.ran, problem = notes_of(state);
    return { text: view.text, before: untouched.text, ms, cut, problem, words: yours_of(state) };
  }

  /** Run on all parts that the reader has written, or on the book's @param {boolean} on */
  async switch_yours(on) {
    this.tried = null;
    const { attempt, edits } = this.state.asked, yours = on ? this.state.parts : undefined;
    await this.ask({ edits: { ...edits, yours }, trying: "", attempt: attempt + 1 });
    this.jump();
  }

  /** The reader has written, or forgotten, parts: what is gone can't be run @param {string[]} parts */
  know(parts) {
    this.dispatch({ type: "parts", parts });
    const { yours = [] } = this.state.asked.edits, left = yours.filter((name) => parts.includes(name));
    if (!this.tried && left.length < yours.length) this.edit({ yours: left.length ? left : undefined });
  }

  take_offer() {
    this.push(this.state.panel ? this.path : "");
    this.dispatch({ type: "take" });
    this.remember();
    return this.engine ? this.update() : this.load();
  }

  /** Another step or word: nothing is computed. @param {{ step?: number, word?: number }} changes */
  show(changes) {
    this.dispatch({ type: "step", changes });
  }

  /** @param {number} row along the axis that the keys go */
  step_to(row) {
    this.show({ [axis_of(this.state)]: row });
  }

  /** @param {number} by */
  step_by(by) {
    const row = row_of(this.state) + by;
    if (labels_of(this.state)[row]) this.step_to(row);
  }

  /** One step after the other @param {number} pace @param {"stop"|"surest"} then */
  play(pace, then, from = 0) {
    this.push("");
    this.dispatch({ type: "play", pace, from, then });
  }

  /** Before a move: a step in the history of the tab, too @param {string} path */
  push(path) {
    if (path !== this.path && this.shares) history.pushState("own", "", this.address);
  }

  // ---- The address, and what the tab remembers

  get path() {
    return where_to(this.state);
  }

  get address() {
    return location.href.split("#")[0] + address_of(this.state);
  }

  share() {
    if (this.shares) history.replaceState("own", "", this.address);
  }

  /** Take over what an address says; false where it says nothing of the machine. @param {string} hash */
  restore(hash) {
    const found = read_address(hash);
    if (!found) return false;
    const { path, text } = found, { home } = this.state;
    let asked = /** @type {Asked|undefined} */ (undefined), trouble = "";
    try {
      if (text) asked = { ...START, text: home.text, ...asked_in(text, this.state) };
      const name = asked?.choice;
      if (asked && name && !this.state.choices.some((each) => each.name === name)) {
        asked.choice = "";
        trouble = "The address names a choice that this page doesn’t have. Those it has are below the field.";
      }
    } catch (error) {
      const why = error instanceof Error ? error.message : error;
      trouble = `The address holds a state that can’t be read: ${why}. Here is the page’s own sentence.`;
    }
    this.dispatch({ type: "go", path, asked });
    if (path.length > 1 && this.path !== path) {
      trouble ||= "This model has nothing at that address: here is the whole machine.";
    }
    if (trouble) this.status(trouble);
    return true;
  }

  /** Where a link leads; the address is of the page's first machine alone @param {string} hash */
  visit(hash) {
    if (!this.is_second) location.hash = hash;
    else if (this.restore(hash)) this.enter();
  }

  /** Another address, in the page that is open; on the way back, another place alone
   *  @param {string} hash */
  follow(hash) {
    const old = asks_of(this.state.asked);
    if (!this.restore(history.state === "own" ? hash.split("?")[0] : hash)) return;
    this.share();
    if (asks_of(this.state.asked) !== old) this.ask({});
    else this.enter();
  }

  /** The same page, opened again: its address holds no code of the reader's, and the tab does */
  recall_yours() {
    try {
      const { parts, asked } = this.state, { edits } = with_parts(JSON.parse(kept("machine") || "{}"), parts);
      const { yours } = checked({ edits }, this.state, parts).edits || {};
      if (yours) this.dispatch({ type: "go", path: this.path, asked: { edits: { ...asked.edits, yours } } });
    } catch { // it keeps nothing
    }
  }

  remember() {
    const { offer, asked, home } = this.state, { text, edits: all, forced } = { ...asked, ...offer };
    const edits = this.tried ? { ...all, yours: undefined } : all; // a mistake is tried here alone
    const loaded = Boolean(this.loading), is_stored = text === home.text
      && (!this.shares || is_same([edits, forced], [home.edits, home.forced]));
    kept("machine", JSON.stringify(is_stored ? { loaded } : { loaded, text, edits, forced }));
  }

  /** The sentence and the changes of the page before, taken over by a page that shares its
   *  state, else kept as an offer; whether a model was loaded there. */
  recall() {
    try {
      const { loaded, ...found } = JSON.parse(kept("machine") || "{}"), { step, word } = START;
      if (!loaded) return false;
      const { parts } = this.state, asked = checked(with_parts(found, parts), this.state, parts);
      if (this.shares) {
        this.dispatch({ type: "go", path: this.path, asked: { ...asked, step, word } });
      } else if (asked.text && asked.text !== this.state.home.text) {
        this.dispatch({ type: "bring", offer: asked });
      }
      return true;
    } catch {
      return false;
    }
  }
}
