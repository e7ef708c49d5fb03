// What a desk, the place where a reader writes a part of the machine, knows and shows.

/** A mistake to try, and how many of forty sentences it translates otherwise, if that was counted */
export interface Try { label: string; source: string; why: string; changed: number | null }

/** What the page says of a part: of transformer_book/yours/parts.py, by book/_ext/sphinx_yours.py */
export interface Part {
  name: string; title: string; names: string; owned: string; // names: what is written, in words
  stub: string; solution: string; tries: Try[];
  sentence: string; // to translate first
  edition: string; // of the book
  preamble: string; setup: string; // imports, and the cell that fetches the library in Colab
}

/** What the browser keeps of a part. best: the last text of the reader's own that was right */
export interface Kept {
  text: string; edition: string; best: string; attempts: number; away: string | null;
}

/** What Python answers to a check: desk.py */
export interface Answer {
  status: "open" | "wrong" | "right" | "error"; message: string; printed: string;
  line: number | null; runs: boolean; ms: number;
}

/** What the machine wrote with the reader's parts, and what the book's own write */
export interface Translated {
  text: string; before: string; ms: number; words: string; cut: boolean;
  problem?: string; // what else there is to know
}

export interface Progress { loaded: number; total: number } // bytes

export interface Desk {
  part: Part;
  text: string; edition: string; // the edition that the text was begun with
  best: string; attempts: number; checked: string; // the text that was checked last
  away: string | null; // what another text has taken the place of
  is_entered: boolean;
  doing: "check" | "run" | "save" | null; is_stopping: boolean;
  loading: Progress | null; share: number | null; // of Python; of what is being translated
  answer: Answer | null;
  tried: Try | null; // what the machine runs with, if it isn't the reader's text
  found: Translated | null;
  ran: { text: string; tried: Try | null; fails: boolean } | null; // what that was made with; whether a later run failed
  trouble: string; // what went wrong, in a sentence
  asks: "again" | "solution" | "forget" | null; // whether it is meant
  other: Kept | null; // what another tab has written
  storage: string; // why nothing is kept
  note: string; // what was done
  sentence: string; lacks: string; // lacks: what the sentence lacks to be translated
  own: string | null; // the book’s own translation, once the machine is the book’s again
  others: string[]; with_others: boolean; // other parts that are the reader's
}

export type Action =
  | { type: "enter" }
  | { type: "type"; text: string; note?: string }
  | { type: "start"; what: "check" | "run" | "save"; tried?: Try }
  | { type: "load"; progress: Progress | null }
  | { type: "progress"; share: number }
  | { type: "stopping" }
  | { type: "answer"; answer: Answer; text: string }
  | { type: "found"; found: Translated; text?: string }
  | { type: "failed"; name: string; message: string }
  | { type: "off" } // the machine is the book's own again
  | { type: "ask"; what: Desk["asks"] }
  | { type: "again" } | { type: "solution" } | { type: "back" } | { type: "forget" }
  | { type: "kept"; trouble: string }
  | { type: "elsewhere"; kept: Kept | null; is_known?: boolean }
  | { type: "take" } | { type: "keep" }
  | { type: "sentence"; text: string }
  | { type: "lacks"; text: string } // the sentence can't be translated
  | { type: "others"; names: string[] }
  | { type: "with_others"; on: boolean }
  | { type: "note"; text: string };

/** A place to write in: CodeMirror, or a plain one where that didn't come */
export interface Field {
  text(): string;
  set(text: string): void; // as one step that can be undone
  mark(line: number | null): void;
  show(line: number): void; // the cursor there, and the focus
  focus(): void;
  begin(): void; // the focus, at the first place that is left open
}
export interface FieldOptions {
  text: string; label: string; described: string; // described: id of what says how to leave it
  on_type(text: string, note?: string): void;
  on_check(): void;
  on_free(free: boolean, is_used: boolean): void; // whether Tab leaves it, and why
}
export type MakeField = (place: HTMLElement, options: FieldOptions) => Field;

/** Python in the page: python.js */
export interface PythonLike {
  start(on_progress?: (progress: Progress) => void): Promise<unknown>;
  ask(task: "check", question: { part: string; source: string },
    options?: { seconds?: number }): Promise<Answer>;
  ask(task: "program", question: { parts: { [part: string]: string } }): Promise<{ text: string }>;
  stop(): void;
}

/** The machine of the page with other parts: run.js */
export interface RunnerLike {
  run(sources: { [part: string]: string }, label: string, how: {
    text: string; on_progress(share: number): void;
  }): Promise<Translated>;
  off(): void;
}

export interface Tools {
  python(): PythonLike;
  runner(place: HTMLElement, name: string): RunnerLike;
  load_field(): Promise<MakeField>;
}

declare global {
  interface Window { machine_editor: MakeField }
}
