// The data that goes between the model, the pictures and the page.

// ---- The model

/** Sizes of the model, as in its config.json, or the part of it that pictures need */
export interface Sizes { n_heads: number; n_encoder_layers: number; n_decoder_layers: number }
export interface Config extends Sizes {
  d_model: number; norm_eps: number; max_len: number; pad_id: number; tgt_vocab_size: number;
}

/** What `load` of engine.js takes: where each tensor lies in the data, which is base64 */
export interface Packed {
  config: Config; tokens: string[]; merges: number[]; data: string;
  tensors: { name: string; shape: number[]; offset: number; scale?: number }[];
}

/** Whether query q may attend to key k */
export type Mask = (q: number, k: number) => boolean;

/** How the model differs from what was trained; what isn't named is as it was */
export interface Edits {
  without?: { [attention: string]: number[] }; // heads that are cut
  hide?: number[]; // source positions
  src_positions?: boolean; tgt_positions?: boolean; causal?: boolean;
  yours?: string[]; // parts that code of the reader computes: all of it runs in Python then
}

/** Source of parts, by their names */
export interface Sources { [part: string]: string }

export interface Limits { bos_id: number; eos_id: number; max_len: number; prefix?: number[] }
export interface Sampling { temperature?: number; top_p?: number }
export interface Hypothesis { ids: number[]; log_prob: number; score: number; finished: boolean }

type Beam = { ids: number[]; log_prob: number; parent: number };
export type Fate = "beam" | "ended" | "dropped";

/** What beam search tells of a step */
export interface SearchStep {
  position: number; before: Beam[]; beams: Beam[];
  fates: { log_prob: number; parent: number; token: number; fate: Fate }[];
  cache: { length: number; own: { n_bytes: number }; source: { n_bytes: number } } | null;
}

// ---- What a page asks of the model, and is answered: plain data

export interface Token { id: number; label: string; p: number }
export type Numbers = number[] | Float32Array;

/** How a text is cut; the text as the model reads it */
export interface Reading {
  text: string; src: number[]; src_labels: string[]; pieces: number; too_long: boolean;
}

/** A translation; Python tells its time in ms, how many tokens of padding stood behind the source,
 *  whether it was cut since it didn't end, and what
 *  else the reader has to know */
export interface Written { ids: number[]; text: string; ms?: number; cut?: boolean; problem?: string; padding?: number }

/** All that is seen while a translation is written */
export interface Look {
  src: number[]; tgt: number[]; src_labels: string[]; tgt_labels: string[]; text: string;
  maps: { [attention: string]: Numbers[] }; // weights of each head, row after row
  padded?: { [attention: string]: number[][] }; // what padding gets of each row, for each head
  ahead: { [attention: string]: number[][] }; // without a causal mask, of each step
  norms: { [stack: string]: number[][] }; // length of the stream, before and after each layer
  log_probs: number[]; next: Token[][]; layers: Token[][][]; // what each would answer
}

/** Queries, keys and values of a head, row after row: stored ones are base64 */
export interface Vectors { head: number; q: Numbers | string; k: Numbers | string; v: Numbers | string }

/** Multiplications of a pass */
export interface Multiplications { encoder: number; decoder: number; head: number }

export interface Found {
  n_beams: number; length_penalty: number;
  steps: {
    position: number;
    candidates: (SearchStep["fates"][number] & { label: string; text: string })[];
    beams: { parent: number; labels: string[] }[];
    cache: { length: number; n_bytes: number; source_bytes: number; multiplications: number } | null;
    recomputed: Multiplications;
  }[];
  hypotheses: (Hypothesis & { labels: string[]; text: string })[];
}

export interface Tasks {
  load(packed: Packed): void;
  tokens(question: { text: string }): Reading;
  write(question: {
    src: number[]; edits: Edits; method?: string; prefix?: number[]; seed?: number;
  } & Sampling): Written;
  look(question: { src: number[]; tgt: number[]; edits: Edits } & Sampling): Look;
  head(question: { src: number[]; tgt: number[]; edits: Edits; name: string; head: number }): Vectors;
  search(question: {
    src: number[]; edits: Edits; n_beams?: number; length_penalty?: number;
  }): Found;
  loss(question: { src: number[]; tgt: number[]; edits: Edits }): number[];
}
/** The model in its worker */
export type Ask = <T extends keyof Tasks>(
  task: T, question: Parameters<Tasks[T]>[0]) => Promise<ReturnType<Tasks[T]>>;

/** Python in a worker, one for all of a page: yours/python.js. What goes wrong has a sentence
 *  for a message, and a name: Problem, Stopped, TooLong, Lost, Unable, Broken */
export interface Python {
  worker: number; // another one with each new start, which knows nothing of the one before
  start(on_progress: (came: { loaded: number; total: number }) => void): Promise<void>;
  ask(task: string, question: object,
    how?: { on_progress?: (share: number) => void; seconds?: number }): Promise<any>;
  stop(): void;
}

/** What a page has where code of a reader's runs: yours/page.js */
export interface Yours {
  python: () => Python; // the one of the page
  shared: import("./yours/shared.js").Shared; // which all machines of it ask
  completed: typeof import("./yours/shared.js").completed;
}

/** What Python is at: it is loaded (MB of how many), or runs the reader's code */
export interface Work { what: "python" | "code"; share: number; size?: string }

// ---- Pictures

/** All that is known of a sentence: stored in the page, or live, of the model */
export interface View extends Look {
  source: string; edits: Edits; sizes: { d_model: number; d_ff: number };
  trying?: string; // a mistake in the book's own parts: edits.yours aren't the reader's
  gloss?: [string, string][]; // its words with what they mean, where that is known
  heads?: { [attention: string]: Vectors }; // one of each attention is stored
  nats?: number[]; // stored: what the model's own translation costs the changed model
  search?: Found; // stored: of these edits
  live?: { // of the model, and not stored: how it has cut the text, and what it was asked for
    read: Reading; asks: string; n_forced: number;
    ran?: { ms: number; n_lines: number; cut: boolean; problem: string; padding?: number }; // by code of the reader's
  };
}

/** Where in the machine: stack "" is the whole machine, kind "" a layer; -1 is "none" */
export interface Place { stack: string; layer: number; kind: string; head: number; key: number }

/** How a level is drawn. row: the query that is looked at; before: what the untouched
 *  model does with the sentence, and found_before the numbers of its head */
export interface How { row: number; tall: boolean; before: View | null; found_before?: Vectors | null }

export type Point = [number, number];
export type Attributes = { [name: string]: string | number | boolean | null | undefined
  | ((event: Event) => unknown) };
/** A node of a tree that becomes a document or a text */
export interface Branch { tag: string; attributes: Attributes; children: Leaf[] }
export type Leaf = Branch | Node | string | number;
export type Inside = Leaf | false | null | undefined | readonly Inside[];
export interface Table { caption?: string; head: Inside[]; rows: Inside[][] }

// ---- The state of a page, and what changes it

/** All that an address holds: what the model is asked for, and which step or word is looked at */
export interface Asked extends Required<Sampling> {
  step: number; word: number; text: string; edits: Edits; method: string; seed: number;
  forced: number[]; n_beams: number; length_penalty: number; reference: string;
  choice: string; // the name of the one that was tapped, as long as nothing else is changed
  english: string; // the reader's own, where the sister model has written the German
  attempt: number; trying: string; // which run of the reader's code; a mistake, by its label
}

/** What a reader can choose with one tap; was and now: what is written without and with the edits */
export interface Choice {
  name: string; label: string; text: string; edits: Edits; was: string; now: string; says: string;
  why: { to: string; words: string };
}

/** What is known of German sentences: the whole, if it is the page's own, and word by word */
export interface Meanings { [sentence: string]: { whole: string; words: [string, string][] } }

/** What each token of a translation costs, untouched and now */
export interface Losses { labels: string[]; whose: string; before: number[]; now: number[] | null }

export interface State {
  // What stays: the model's sizes, the names of its attentions, how large it is to load
  config: Config; attentions: string[]; size: string;
  choices: Choice[]; meanings: Meanings;
  parts: string[]; // that the reader has written, and can run
  work: Work | null;
  home: Asked; // of the page, before anything is changed
  asked: Asked;
  draft: string; // what stands in the field
  pieces: { [text: string]: number }; // a word, of each text that a model has cut
  sister: string; // what the sister model is about to write in German
  is_typed: boolean; // the sentence was typed here, and is not translated yet
  offer: Partial<Asked> | null; // what the reader brings along from another page
  panel: string; place: Place; // where we are; the panel is one of VIEWS, or ""
  view: View; untouched: View; // what is shown, and what the untouched model does
  found: Vectors | null | undefined; // numbers of the head that is open; undefined: to be asked
  found_before: Vectors | null; // the same in the untouched model
  search: Found | null; // of the view
  losses: Losses | string | null; // or what went wrong
  is_measuring: boolean; is_busy: boolean; is_ready: boolean; // ready: the model is there
  is_lost: boolean; // it didn't come
  loading: number | null; // the share of the model that has come, while it does
  status: string;
  film: { pace: number; then: "stop" | "surest" } | null; // steps that follow by themselves
  is_stopped: boolean; // the film, by hand: it can go on
  is_predicting: boolean; guess: Token | null; // "Predict first", and what the reader said
  guide: number; // which of its captions; -1: none
  tall: boolean; // pictures stand upright
  is_own: boolean; // a sentence of the reader's was shown
}

export type Action =
  | { type: "ask"; changes: Partial<Asked>; typed?: boolean } // of the model: it has to answer
  | { type: "take" } // the offer
  | { type: "bring"; offer: Partial<Asked> }
  | { type: "draft"; text: string }
  | { type: "go"; path: string; asked?: Partial<Asked> } // with what an address asks besides
  | { type: "step"; changes: { step?: number; word?: number } } // by hand
  | { type: "jump"; step: number } // to what a change has changed
  | { type: "tick" } // of the film
  | { type: "play"; pace: number; from: number; then: "stop" | "surest" }
  | { type: "stop"; by_hand?: boolean }
  | { type: "finish" } // with the whole sentence, at the step that looks most at one word
  | { type: "predict" }
  | { type: "guess"; token: Token }
  | { type: "lead"; to: number; path: string }
  | { type: "size"; tall: boolean }
  | { type: "draw" } // all of it, for the first time
  | { type: "load"; share: number | null } // null: no more comes
  | { type: "lost"; text: string } // the model didn't come
  | { type: "ready" }
  | { type: "parts"; parts: string[] }
  | { type: "work"; work: Work | null }
  | { type: "status"; text: string }
  | { type: "failed"; text: string } // the model gave no answer
  | { type: "read"; text: string; pieces: number }
  | { type: "means"; text: string; words: [string, string][] } // word by word
  | { type: "sister"; text: string } // it is asked; "" when it has answered
  | { type: "return"; text: string } // to what is shown: the model can't read what was asked
  | { type: "seen"; view: View; untouched: View }
  | { type: "found"; found: Vectors | null; found_before: Vectors | null; text?: string }
  | { type: "searched"; search: Found }
  | { type: "measured"; losses: Losses | string };

/** A part of the page, which is drawn after every action */
export type Draw = (state: State, before: State, action: Action) => void;

declare global {
  interface Window {
    machine: import("./app.js").App;
    // What scripts have that come when they are wanted: Python, a machine more, what it shows first
    machine_yours?: Yours;
    machine_second: (root: HTMLElement, settings: DOMStringMap & { stored: string }) => import("./app.js").App;
    machine_view: DOMStringMap & { stored: string };
    machine_model: (part: Packed | string) => void; // what scripts of the model call
  }
}
