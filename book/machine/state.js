// @ts-check
// What is asked, shown and known: one state, and what each action makes of it. Nothing here
// reads the page, asks the model or waits; app.js does.

import { shown } from "./draw.js";
import { attention_in_words, level_of, looked_at, name_of, path_of, place_of, rank, WHOLE } from "./levels.js";
import { mistaken, NAMES, owned } from "./yours/parts.js";

/** @import { Action, Asked, Choice, Meanings, Place, State, Vectors, View } from "./types.d.ts" */

const FIRST = { step: 0, word: 0 }; // where a new sentence is looked at
/** @type {Asked} */
export const START = {
  ...FIRST, text: "", edits: {}, method: "greedy", n_beams: 4, length_penalty: 1, temperature: 1,
  top_p: 1, seed: 1, forced: [], reference: "", choice: "", english: "", attempt: 0, trying: "",
};
/** @type {{ [panel: string]: string }} */
export const VIEWS = { search: "Beam search", cache: "Cache", operate: "Operate" };
/** @type {{ [edit: string]: string }} */
export const SWITCHES = {
  src_positions: "source positions", tgt_positions: "target positions", causal: "the causal mask",
};

export const OWN = "the untouched model’s own"; // whose translation

/** The state of a page that has stored one sentence, and perhaps a change of it
 *  @param {State["config"]} config @param {{ trace: View, edited?: View|null }} stored
 *  @param {{ size: string, at: string, step: number, word: number, choices?: Choice[],
 *    meanings?: Meanings }} page @returns {State} */
export function first_state(config, { trace, edited }, page) {
  const { size, at, step, word, choices = [], meanings = {} } = page;
  const view = { ...(edited || trace), gloss: meanings[trace.source]?.words };
  const home = { ...START, text: trace.source, step, word, ...(edited && { edits: edited.edits }) };
  const state = {
    config, attentions: Object.keys(trace.maps), size, choices, meanings, home, asked: home, draft: home.text,
    parts: [], work: null, pieces: {}, sister: "", is_typed: false,
    offer: null, ...place_at(at, config), view, untouched: edited ? trace : view, found: null, found_before: null,
    search: view.search || null, losses: null, is_measuring: false, is_busy: false,
    is_ready: false, is_lost: false, loading: null, status: "", film: null, is_stopped: false,
    is_predicting: false, guess: null, guide: -1, tall: false, is_own: false,
  };
  return { ...state, ...numbers_known(state) };
}

/** The next state @param {State} state @param {Action} action @returns {State} */
export function reduce(state, action) {
  const next = { ...state, ...changes(state, action) };
  const is_elsewhere = next.place !== state.place || next.view !== state.view;
  const is_other_row = row_of(next) !== row_of(state);
  if (is_elsewhere || (is_other_row && grows(next.view))) Object.assign(next, numbers_known(next));
  if (is_other_row || next.view !== state.view) next.guess = null; // it was of another word
  if (next.is_predicting && next.panel) {
    next.is_predicting = false;
    next.status = "Predict first is over: this view shows what comes.";
  }
  return next;
}

/** What an action changes @param {State} state @param {Action} action @returns {Partial<State>} */
function changes(state, action) {
  const { asked } = state;
  switch (action.type) {
    case "ask": return { ...asking(state, action.changes),
      is_typed: Boolean(action.typed) || state.is_typed };
    case "take": {
      const { edits, ...others } = state.offer || {};
      return { ...(!state.panel && { place: WHOLE }), // and what is changed here is kept
        ...asking(state, { ...others, edits: { ...asked.edits, hide: undefined, ...edits } }) };
    }
    case "bring": return { offer: action.offer };
    case "draft": return { draft: action.text };
    case "go": return go(state, action.path, action.asked);
    case "step": return { asked: { ...asked, ...action.changes }, film: null, is_stopped: false };
    case "jump": return { asked: { ...asked, step: action.step } };
    case "tick": return tick(state);
    case "play": return { panel: "", place: state.place.stack ? WHOLE : state.place,
      guess: null, is_stopped: false, asked: { ...asked, step: action.from },
      film: { pace: action.pace, then: action.then } };
    case "stop": return { film: null, is_stopped: Boolean(action.by_hand) };
    case "finish": return { film: null, is_stopped: false,
      asked: { ...asked, step: surest(state.view) } };
    case "predict": return { is_predicting: !state.is_predicting, film: null, is_stopped: false,
      guess: null, asked: state.is_predicting ? asked : { ...asked, step: 0 } };
    case "guess": return { guess: action.token, film: state.film && { ...state.film } }; // it goes on
    case "lead": return lead(state, action.to, action.path);
    case "size": return { tall: action.tall };
    case "load": return { loading: action.share, ...(action.share === 0 && { status: "", is_lost: false }) };
    case "lost": return { loading: null, is_lost: true, status: action.text };
    case "ready": return { loading: null, is_ready: true, is_busy: true }; // it translates
    case "parts": return { parts: action.parts };
    case "work": return { work: action.work };
    case "status": return { status: action.text };
    case "failed": return { status: action.text, is_busy: false, is_measuring: false, work: null };
    case "read": return { pieces: { ...state.pieces, [action.text]: action.pieces } };
    case "means": return { meanings: { ...state.meanings,
      [action.text]: state.meanings[action.text] || { whole: "", words: action.words } } };
    case "sister": return { sister: action.text, ...(action.text && { draft: action.text }) };
    case "return": return { status: action.text, is_busy: false, is_measuring: false, work: null, asked: { ...asked,
      text: state.view.source, edits: state.view.edits, forced: [], choice: "", english: "" } };
    case "seen": return seen(state, action.view, action.untouched);
    case "found": return { found: action.found, found_before: action.found_before, work: null,
      status: action.text || state.status };
    case "searched": return { search: action.search, work: null };
    case "measured": return { losses: action.losses, is_measuring: false, work: null };
    default: return {};
  }
}

/** @param {State} state @param {string} path @param {Partial<Asked>} [more] @returns {Partial<State>} */
function go({ asked, draft, config }, path, more) {
  return { ...place_at(path, config), film: null, is_stopped: false,
    ...(more && { asked: { ...asked, ...more }, draft: more.text ?? draft }) };
}

/** @param {State} state @param {Partial<Asked>} more @returns {Partial<State>} */
function asking({ asked, offer, is_ready, panel }, more) {
  const is_other = more.text !== undefined && more.text !== asked.text;
  const fresh = { edits: { ...asked.edits, hide: undefined }, forced: [], reference: "", english: "",
    ...FIRST };
  const next = { ...asked, ...(is_other && fresh), ...more }; // what was of the old sentence goes
  if (asks_of(next) !== asks_of(asked)) next.choice = more.choice || ""; // it is no longer that
  return { asked: next, draft: next.text, offer: is_other ? null : offer, work: null,
    is_busy: is_ready, is_measuring: is_ready && panel === "operate" };
}

/** @param {State} state @returns {Partial<State>} */
function tick(state) {
  const { asked, film, view, guess } = state;
  if (!film || (is_asked(state) && !guess)) return {}; // it waits for the reader's guess
  const step = asked.step + 1, is_over = step >= view.tgt.length - 1;
  return { asked: { ...asked, step: is_over && film.then === "surest" ? surest(view) : step },
    film: is_over ? null : { ...film } }; // another one: its clock goes on
}

/** @param {State} state @param {number} to @param {string} path @returns {Partial<State>} */
function lead({ asked, view, config }, to, path) {
  if (to < 0) return { guide: -1 };
  const step = to > 1 ? asked.step : to && Math.round(0.75 * (view.tgt.length - 1));
  return { guide: to, film: null, is_stopped: false, asked: { ...asked, step },
    ...place_at(path, config) };
}

/** @param {State} state @param {View} view @param {View} untouched @returns {Partial<State>} */
function seen({ view: old, search, is_predicting, is_own }, view, untouched) {
  const is_new = view.source !== old.source;
  const is_alike = !is_new && JSON.stringify(view.edits) === JSON.stringify(old.edits);
  return { view, untouched, status: "", is_busy: false, is_typed: false, work: null,
    search: is_alike ? search : null, // till there is a new one
    is_predicting: is_predicting && !is_new, is_own: is_own || is_new };
}

/** Whether what is open can't be shown, or be changed, without the model @param {State} state */
export const needs_model = ({ is_ready, panel, search, place, found }) => !is_ready
  && (panel === "operate" || (searches({ panel }) && !search) || (!panel && level_of(place) === 3 && !found));

/** The model has to answer before something else than the stored sentence can be shown. @param {State} state */
export const waits = (state) => !state.view.live && !is_current(state);

/** What was tapped, as long as it is shown or comes @param {State} state */
export const choice_of = ({ choices, asked }) => choices.find(({ name }) => name === asked.choice);

/** Another sentence stands in the field than the one that is told of. @param {State} state */
export const is_drafted = ({ draft, view }) => draft.trim() !== view.source.trim();

// ---- Where we are: a path such as /decoder/1/cross_attn/4/9, or /search

/** @param {string} path @param {State["config"]} config */
function place_at(path, config) {
  const panel = Object.hasOwn(VIEWS, path.slice(1)) ? path.slice(1) : "";
  return { panel, place: panel ? WHOLE : place_of(path, config) };
}

/** @typedef {Pick<State, "panel"|"place"|"view"|"search"|"asked">} Where */

/** @param {Pick<State, "panel"|"place">} state */
export const where_to = ({ panel, place }) => (panel ? `/${panel}` : path_of(place));
/** What the keys go along @param {Pick<State, "place">} state */
export const axis_of = ({ place }) => (place.stack === "encoder" ? "word" : "step");
/** Whether steps are those of the search @param {Pick<State, "panel">} state */
export const searches = ({ panel }) => panel === "search" || panel === "cache";

/** What stands along the axis @param {Where} state */
export function labels_of(state) {
  const { view: { src_labels, tgt_labels }, search } = state;
  if (!searches(state)) return axis_of(state) === "word" ? src_labels : tgt_labels;
  return search?.steps.map(({ candidates }) => candidates[0].label) || [];
}

/** Where on it we are: the query that is looked at, the step of the search @param {Where} state */
export const row_of = (state) =>
  Math.max(0, Math.min(state.asked[axis_of(state)], labels_of(state).length - 1));

/** Whether the reader is asked for the word, and its answer is not to be seen @param {State} state */
export const is_asked = (state) => state.is_predicting && axis_of(state) === "step";

/** The step that looks most at one word of the source @param {View} view */
export function surest(view) {
  const peaks = view.tgt.slice(0, -1).map((_, i) => rank(looked_at(view, i, 1)[0][0]));
  return Math.max(0, peaks.indexOf(Math.max(...peaks)));
}

// ---- The numbers of the head that is open

/** Without a causal mask, a step's vectors are those of what was there by then. @param {View} view */
export const grows = ({ edits, live, ahead }) => Boolean(live)
  && (edits.causal === false || Object.keys(ahead || {}).length > 0);

/** As far as a view has them: null for none, undefined where the model has to be asked
 *  @param {View} view @param {Place} place @returns {Vectors|null|undefined} */
export function stored_numbers(view, place) {
  if (level_of(place) < 2) return null;
  const stored = view.heads?.[name_of(place)];
  return stored?.head === place.head ? stored : view.live ? undefined : null;
}

/** @param {Pick<State, "view"|"untouched"|"place">} state */
function numbers_known(state) {
  const { view, place } = state, other = before(state);
  const found = stored_numbers(view, place), found_before = other && stored_numbers(other, place);
  if (found_before === undefined) return { found: undefined, found_before: null };
  return { found, found_before };
}

/** What the untouched model does with the same sentence, where something is changed
 *  @param {Pick<State, "view"|"untouched">} state */
export const before = ({ view, untouched }) =>
  (untouched !== view && untouched.source === view.source ? untouched : null);

// ---- What is changed

/** The heads of an attention that are cut @param {State} state @param {string} name */
export const cut_of = ({ asked }, name) => asked.edits.without?.[name] || [];

/** A list with an item that it has not, or without one that it has
 *  @param {number[]} list @param {number} item */
export const toggled = (list, item) => (list.includes(item) ? list.filter((x) => x !== item)
  : [...list, item].sort((a, b) => a - b));

/** Whether a cross-attention has none of its heads @param {State} state @param {string} name */
export const is_cut = (state, name) =>
  name.endsWith("cross_attn") && cut_of(state, name).length === state.config.n_heads;

/** Which parts are the reader's, in words; "" for none @param {State} state */
export function yours_of({ asked: { edits: { yours = [] }, trying } }) {
  if (!yours.length) return "";
  if (trying) return mistaken(yours, trying);
  return is_alone(yours) ? "all nine parts are yours" : `${owned(yours)}; the rest is the book’s`;
}
/** What came out of the reader's code, besides words @param {Pick<State, "view">} state */
export function ran_in_words({ view }) {
  const { edits, live } = view;
  if (!live?.ran) return "";
  const { ms, n_lines } = live.ran, time = `${n_lines} lines, ${(ms / 1000).toFixed(1)} s`;
  return [is_alone(edits.yours) && `This sentence was translated by your code alone: ${time}.`,
    notes_of({ view })].filter(Boolean).join(" ");
}

const NUMBERS = ["No", "One", "Two", "Three", "Four", "Five", "Six"];

/** What else there is to know of a translation by Python: what it read besides the sentence, what
 *  went wrong, and whether it ended @param {Pick<State, "view">} state */
export function notes_of({ view: { live, tgt } }) {
  if (!live?.ran) return "";
  const { cut, problem, padding = 0 } = live.ran, number = NUMBERS[padding] || padding;
  return [padding > 0 && `${number} padding tokens stand behind the sentence, as in a batch.`, problem,
    cut && `It was cut after ${tgt.length} tokens, since it never ended by itself.`].filter(Boolean).join(" ");
}

/** Whether nothing is the book's @param {string[]} yours */
export const is_alone = (yours = []) => NAMES.every((name) => yours.includes(name));

/** How the model differs from what was trained, in words @param {State} state */
export const edited = (state) => [...broken(state), yours_of(state)].filter(Boolean);

/** The same without code of the reader's @param {State} state */
function broken(state) {
  const { without = {}, hide = [], ...is_on } = state.asked.edits, { view, asked } = state;
  const name_of_token = (/** @type {number} */ i) => (view.source === asked.text
    ? `“${shown(view.src_labels[i])}”` : `token ${i + 1}`);
  const off = Object.entries(is_on).filter(([, is]) => is === false).map(([name]) => name);
  const { n_decoder_layers } = state.config;
  const cut = state.attentions.filter((name) => is_cut(state, name));
  const heads = Object.entries(without).filter(([name]) => !cut.includes(name)).flatMap(
    ([name, cut_here]) => cut_here.map((head) => `head ${head + 1} of ${attention_in_words(name)}`));
  const layers = cut.length === n_decoder_layers ? "all layers"
    : cut.map((name) => `layer ${Number(name.split(".")[2]) + 1}`).join(" and ");
  return [
    heads.length > 0 && `${heads.length > 2 ? `${heads.length} heads` : heads.join(" and ")} cut`,
    cut.length > 0 && `cross-attention cut in ${layers}`,
    hide.length > 0 && `hidden: ${hide.map(name_of_token).join(", ")}`,
    ...Object.keys(SWITCHES).filter((name) => off.includes(name)).map((name) => `${SWITCHES[name]} off`),
  ].filter((words) => words !== false);
}

/** The same, and how its translation isn't what it would write greedily; "" for nothing
 *  @param {State} state */
export function changes_of(state) {
  const { forced, method } = state.asked;
  return [...broken(state), forced.length > 0 && "a word chosen by hand",
    forced.length > 1 && "and those before it kept",
    method === "sample" && "sampled tokens", yours_of(state)].filter(Boolean).join(", ");
}

/** All of it that the model has to be asked for @param {Asked} asked */
export const asks_of = ({ text, edits, forced, method, seed, temperature, top_p, attempt }) =>
  JSON.stringify([text, edits, forced, method, seed, temperature, top_p, ...(attempt ? [attempt] : [])]);

/** Whether what is shown is what is asked for @param {State} state */
export function is_current({ view, asked, home }) {
  return asks_of(asked) === (view.live?.asks ?? asks_of(home)); // a stored view is the page's own
}

/** Beside a changed translation: what the untouched model wrote, where that is known
 *  @param {State} state */
export function beside(state) {
  const { view, untouched } = state;
  if (!changes_of(state) || !is_current(state) || untouched.source !== view.source) return "";
  if (yours_of(state)) {
    return untouched.text === view.text ? "The same words as by the book’s own code."
      : `instead of “${untouched.text}”`;
  }
  if (untouched.text !== view.text) return `Without changes: “${untouched.text}”`;
  return state.asked.method === "sample" ? "Drawn: the same words this time."
    : "The same words as without changes.";
}
