// @ts-check
// The state of a desk, and what each action makes of it.

import { is_same, loading_words, outcome, try_words } from "./text.js";

/** @import { Action, Answer, Desk, Kept, Part } from "./types.d.ts" */

export const ATTEMPTS = 2; // before the solution is shown

/** @type {{ [status in Answer["status"]]: string }} */
export const SIGNS = { open: "…", wrong: "✗", right: "✓", error: "✗" };
/** The same aloud @type {{ [status in Answer["status"]]: string }} */
const VERDICTS = { open: "Not yet:", wrong: "Not yet:", right: "Right:", error: "Not yet: error." };

/** @param {Part} part @param {Kept|null} kept @returns {Desk} */
export function first_state(part, kept) {
  return {
    part, text: kept?.text ?? part.stub, edition: kept?.edition || part.edition,
    best: kept?.best || "", attempts: kept?.attempts || 0, away: kept?.away ?? null, checked: "",
    is_entered: false, doing: null, is_stopping: false, loading: null, share: null, answer: null,
    tried: null, found: null, ran: null, trouble: "", asks: null, other: null, storage: "", note: "",
    sentence: part.sentence, lacks: "", own: null, others: [], with_others: true,
  };
}

/** Whether there is anything of the reader's to keep @param {Desk} state */
export const is_written = ({ text, part, best, away }) =>
  !is_same(text, part.stub) || best !== "" || away !== null;

/** Whether what stands in the field is the reader's @param {Desk} state */
const is_own = ({ text, part }) => !is_same(text, part.stub) && !is_same(text, part.solution);

/** What the browser keeps of it; null: nothing @param {Desk} state @returns {Kept|null} */
export function kept_of(state) {
  const { text, edition, best, attempts, away, other } = state;
  if (other) { // until that is answered, the other tab's stays, and this tab's is put away
    return { ...other, best: other.best || best, away: is_own(state) ? text : other.away ?? away };
  }
  return is_written(state) ? { text, edition, best, attempts, away } : null;
}

/** Whether the text was begun with an older edition of the book @param {Desk} state */
export const is_older = ({ edition, part, text }) =>
  edition !== part.edition && !is_same(text, part.stub);

/** Whether a draft stands in the field, while an earlier text is the right one that is used, and
 *  nothing has been checked or run since the page came @param {Desk} state */
export const is_draft = ({ answer, checked, found, best, text }) =>
  best !== "" && !is_same(text, best) && answer === null && checked === "" && found === null;

/** Whether what is shown of the last check is about what stands in the field @param {Desk} state */
export const is_current = ({ answer, checked, text }) => answer !== null && checked === text;

/** @param {Desk} state */
export const can_run_anyway = (state) => is_current(state) && state.answer?.status === "wrong"
  && state.answer.runs;

/** Another text, and the old one put away if there is something of the reader's in it
 *  @param {Desk} state @param {string} text @param {string} note @returns {Desk} */
function replaced(state, text, note) {
  const own = is_own(state);
  return { ...state, text, away: own ? state.text : state.away, answer: null, checked: "",
    asks: null, note: own ? `${note} Your text is put away: you can have it back.`.trim() : note };
}

/** What failed, in a sentence @param {string} name of the error @param {string} message */
function trouble_of(name, message) {
  if (["Stopped", "TooLong", "Problem", "Unable", "Broken", "Told"].includes(name)) return message;
  if (name === "Lost") return `${message} Try again.`;
  return `That didn’t work: ${message.replace(/\.$/, "")}.`;
}

/** @param {Desk} state @param {Answer} answer @param {string} text @returns {Desk} */
function answered(state, answer, text) {
  const { part, checked, best, edition } = state;
  const is_right = answer.status === "right", is_best = is_right && !is_same(text, part.solution);
  const counts = answer.status !== "open" && !is_right && text !== checked;
  return { ...state, answer, checked: text, doing: null, is_stopping: false, tried: null, note: "",
    attempts: state.attempts + Number(counts), best: is_best ? text : best,
    edition: is_right ? part.edition : edition };
}

/** @param {Desk} state @param {Action} action @returns {Desk} */
export function reduce(state, action) {
  const { part } = state;
  switch (action.type) {
    case "enter":
      return { ...state, is_entered: true };
    case "type": {
      const is_begun = is_same(state.text, part.stub); // anew, with this edition
      return { ...state, text: action.text, edition: is_begun ? part.edition : state.edition,
        note: action.note ?? "", asks: null };
    }
    case "start":
      return { ...state, doing: action.what, is_stopping: false, trouble: "", note: "", lacks: "", asks: null,
        tried: action.what === "run" ? action.tried || null : state.tried, share: null,
        own: action.what === "run" ? null : state.own,
        ...(action.what === "check" && { answer: null }) };
    case "load":
      return { ...state, loading: action.progress };
    case "progress":
      return { ...state, share: action.share };
    case "stopping":
      return { ...state, is_stopping: true };
    case "answer":
      return answered({ ...state, loading: null }, action.answer, action.text);
    case "found":
      return { ...state, doing: null, is_stopping: false, loading: null, share: null,
        found: action.found, ran: { text: action.text ?? state.text, tried: state.tried, fails: false } };
    case "failed":
      return { ...state, ran: state.ran && { ...state.ran, fails: state.ran.fails || state.doing === "run" }, doing: null, is_stopping: false, loading: null, share: null,
        trouble: trouble_of(action.name, action.message) };
    case "off":
      return { ...state, found: null, tried: null, ran: null, own: state.found && state.found.before };
    case "ask": // the solution comes without a question where nothing of the reader's stands
      return action.what === "solution" && (state.attempts < ATTEMPTS || !is_own(state))
        ? reduce(state, { type: "solution" }) : { ...state, asks: action.what };
    case "again":
      return { ...replaced(state, part.stub, ""),
        edition: part.edition };
    case "solution":
      if (state.attempts < ATTEMPTS) {
        const left = ATTEMPTS - state.attempts;
        return { ...state, note: `The solution comes after ${ATTEMPTS} attempts: ` +
          `${left} to go. Check what you have.` };
      }
      return replaced(state, part.solution, "The book’s own stands in the field now.");
    case "back":
      if (state.away === null) return state;
      return { ...replaced(state, state.away, ""), away: is_own(state) ? state.text : null,
        note: "Here it is again." };
    case "forget":
      return { ...first_state(part, null), is_entered: state.is_entered, storage: state.storage,
        sentence: state.sentence, others: state.others, with_others: state.with_others,
        note: "Forgotten: this browser keeps nothing of it any more." };
    case "kept": // said once
      return { ...state, storage: action.trouble };
    case "elsewhere":
      return elsewhere(state, action.kept, action.is_known);
    case "take":
      if (!state.other) return state;
      return { ...replaced(state, state.other.text, "The other tab’s text stands in the field now."), best: state.other.best || state.best, edition: state.other.edition,
      attempts: Math.max(state.attempts, state.other.attempts), other: null };
    case "keep":
      return { ...state, other: null };
    case "sentence":
      return { ...state, sentence: action.text, lacks: "" };
    case "lacks":
      return { ...state, lacks: action.text };
    case "others":
      return { ...state, others: action.names };
    case "with_others":
      return { ...state, with_others: action.on };
    case "note":
      return { ...state, doing: null, loading: null, note: action.text };
  }
}

/** What another tab has kept, or forgotten. is_known: it has only put a text of its own away
 *  @param {Desk} state @param {Kept|null} kept @param {boolean} [is_known] @returns {Desk} */
function elsewhere(state, kept, is_known = false) {
  if (!kept) return state; // what stands here stays
  const best = kept.best || state.best, attempts = Math.max(state.attempts, kept.attempts);
  if (is_known || kept.text === state.text) {
    return { ...state, best, attempts, away: kept.away ?? state.away, other: null };
  }
  if (!state.is_entered) { // nobody has touched it here
    return { ...state, text: kept.text, edition: kept.edition, best, attempts, away: kept.away,
      answer: null };
  }
  return { ...state, other: kept };
}

// ---- In words

/** What made the translation that is shown, and whether that is of the past @param {Desk} state */
export function made_with(state) {
  const { ran, text, best } = state, is_past = ran !== null && (ran.fails || (!ran.tried && ran.text !== text));
  if (ran?.tried) return { is_past, words: `${is_past ? "before, " : ""}with the mistake` };
  const is_best = ran !== null && best !== "" && ran.text === best;
  if (is_past) return { is_past, words: is_best ? "from your last right text" : "from an earlier text" };
  const is_wrong = is_current(state) && state.answer?.status !== "right";
  return { is_past, words: is_wrong ? "with yours, not right yet" : "with yours" };
}

/** What a reader is told aloud of a change, or "" @param {Desk} state @param {Desk} before */
export function spoken(state, before) {
  const { answer, found, tried, trouble, note, storage, other, loading, doing, asks, own,
    lacks } = state;
  const told = [];
  const is_sequel = doing === "run" && answer?.status === "right" && !tried; // said with what comes
  if (doing && !before.doing && !is_sequel) told.push({ check: "Checking.", run: "Translating.", save: "" }[doing]);
  if (loading && !before.loading) told.push(loading_words(loading));
  if (answer && answer !== before.answer) {
    const printed = answer.printed ? "Your code printed something, below." : "";
    told.push(`${VERDICTS[answer.status]} ${answer.message.replaceAll("`", "")}`, printed);
  }
  if (found && found !== before.found) {
    told.push(tried ? try_words(tried, found) : "", `Translation: ${found.text}`,
      found.text === found.before ? outcome(found) : `The book’s: ${found.before}`);
  }
  if (own !== null && before.own === null) told.push(`The book’s own again: ${own}`);
  if (lacks !== before.lacks) told.push(lacks);
  if (trouble !== before.trouble) told.push(trouble);
  if (note !== before.note) told.push(note);
  if (storage !== before.storage) told.push(storage);
  if (other && !before.other) told.push("Your text was changed in another tab.");
  if (asks && asks !== before.asks) told.push(question_of(asks));
  return told.map((words) => words.trim()).filter(Boolean).join(" ");
}

/** @param {NonNullable<Desk["asks"]>} asks */
export const question_of = (asks) => ({
  again: "Begin again with the empty function? Your text is put away: you can have it back.",
  solution: "Put the book’s own in its place? Your text is put away: you can have it back.",
  forget: "Forget what you wrote here? It can’t be brought back.",
})[asks];
