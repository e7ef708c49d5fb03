// @ts-check
// The field in which Python is written: CodeMirror, in a script of its own that is loaded when
// a field is entered. Its colors and its size are in yours.css.

import { closeBrackets, closeBracketsKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentLess, indentMore } from "@codemirror/commands";
import { python } from "@codemirror/lang-python";
import { bracketMatching, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { EditorState, StateEffect, StateField } from "@codemirror/state";
import { Decoration, EditorView, keymap, tooltips } from "@codemirror/view";
import { classHighlighter } from "@lezer/highlight";
import { open_place, tidied } from "./text.js";

/** @import { Field, FieldOptions, MakeField } from "./types.d.ts" */

const INDENT = "    ";
const NEAR = 100; // px from the edge of the window that a place to write at is away, at least
const BUTTONS = 64; // px at the lower edge of the window, where the buttons may stand

// ---- The line that an error is about

const mark_line = /** @type {import("@codemirror/state").StateEffectType<number|null>} */ (
  StateEffect.define());

const marked = StateField.define({
  create: () => Decoration.none,
  update(found, transaction) {
    let now = found.map(transaction.changes);
    for (const effect of transaction.effects) {
      if (!effect.is(mark_line)) continue;
      const { doc } = transaction.state, n = effect.value;
      now = n !== null && n >= 1 && n <= doc.lines ? Decoration.set([
        Decoration.line({ class: "yours-marked" }).range(doc.line(n).from)]) : Decoration.none;
    }
    return now;
  },
  provide: (field) => EditorView.decorations.from(field),
});

// ---- A line that is too long goes on further in than it began

/** @param {import("@codemirror/state").Text} doc */
function hanging(doc) {
  const found = [];
  for (let n = 1; n <= doc.lines; n++) {
    const { from, text } = doc.line(n), begin = text.search(/\S/);
    if (begin > 0) {
      found.push(Decoration.line({ attributes: { style: `--begin:${begin}ch` } }).range(from));
    }
  }
  return Decoration.set(found);
}

const hung = StateField.define({
  create: ({ doc }) => hanging(doc),
  update: (found, { docChanged, state }) => (docChanged ? hanging(state.doc) : found),
  provide: (field) => EditorView.decorations.from(field),
});

// ---- Keys

/** To the next multiple of four, or all the lines that are chosen
 *  @param {EditorView} view */
function indent(view) {
  const { state } = view, { main } = state.selection;
  if (!main.empty) return indentMore(view);
  const column = main.head - state.doc.lineAt(main.head).from;
  view.dispatch(state.update(state.replaceSelection(" ".repeat(4 - (column % 4))),
    { scrollIntoView: true, userEvent: "input.indent" }));
  return true;
}

/** @type {MakeField} */
function make_field(place, { text, label, described, on_type, on_check, on_free }) {
  let note = "", is_set = false, is_used = false; // since the focus came
  const free = (/** @type {EditorView} */ view, /** @type {boolean} */ is_free) => {
    view.setTabFocusMode(is_free);
    on_free(is_free, is_used);
    return true;
  };
  const use = () => {
    if (is_used) return;
    is_used = true;
    on_free(false, true);
  };
  const check = () => {
    on_check();
    return true;
  };
  const view = new EditorView({ parent: place, state: EditorState.create({ doc: text, extensions: [
    keymap.of([
      { key: "Mod-Enter", run: check }, { key: "Ctrl-Enter", run: check },
      { key: "Tab", run: (now) => is_used && indent(now), shift: (now) => is_used && indentLess(now) },
      { key: "Escape", run: (now) => free(now, true) },
      ...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap,
    ]),
    python(), indentUnit.of(INDENT), EditorState.tabSize.of(4), history(), closeBrackets(),
    bracketMatching(), indentOnInput(), syntaxHighlighting(classHighlighter), marked, hung,
    EditorView.lineWrapping, EditorView.scrollMargins.of(() => ({ bottom: BUTTONS })), tooltips({ position: "absolute" }),
    EditorView.contentAttributes.of({ "aria-label": label, "aria-describedby": described,
      autocomplete: "off", autocorrect: "off", autocapitalize: "off", spellcheck: "false",
      enterkeyhint: "enter", "data-gramm": "false" }),
    EditorView.clipboardInputFilter.of((pasted) => {
      const clean = tidied(pasted);
      if (/[\t\u00a0\u2000-\u200f\ufeff]/.test(pasted)) {
        note = "Tabs and special spaces were pasted: they are plain spaces now.";
      }
      return clean;
    }),
    EditorView.domEventHandlers({
      blur: (_, now) => {
        is_used = false;
        free(now, false);
      },
      keydown: ({ key }) => { if (!["Tab", "Shift", "Escape"].includes(key)) use(); },
      mousedown: use,
    }),
    EditorView.updateListener.of((update) => {
      if (!update.docChanged) return;
      if (!is_set) is_used = true;
      free(update.view, false);
      if (!is_set) on_type(update.state.doc.toString(), note);
      note = "";
    }),
  ] }) });
  const line_of = (/** @type {number} */ n) =>
    view.state.doc.line(Math.max(1, Math.min(n, view.state.doc.lines)));

  /** @type {Field} */
  const field = {
    text: () => view.state.doc.toString(),
    set(now) {
      if (now === field.text()) return;
      is_set = true;
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: now },
        selection: { anchor: 0 } });
      is_set = false;
    },
    mark: (line) => view.dispatch({ effects: mark_line.of(line) }),
    show(n) {
      const line = line_of(n);
      view.dispatch({ selection: { anchor: line.from + line.text.search(/\S|$/) },
        effects: EditorView.scrollIntoView(line.from, { y: "center" }) });
      view.focus();
    },
    focus: () => view.focus(),
    begin() {
      const open = open_place(field.text());
      if (open) {
        view.dispatch({ selection: { anchor: open.from, head: open.to },
          effects: EditorView.scrollIntoView(open.from, { y: "nearest", yMargin: NEAR }) });
      }
      view.focus();
    },
  };
  return field;
}

window.machine_editor = make_field;
