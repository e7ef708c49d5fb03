// @ts-check
// A desk: the place in a chapter where a reader writes a part of the machine, has it checked,
// and lets the machine translate with it.

import { h } from "../draw.js";
import { button, find, focus, is_still, when_changed } from "../kit.js";
import { owned } from "./parts.js";
import { can_run_anyway, first_state, is_current, is_draft, is_older, is_written, kept_of, made_with, question_of,
  reduce, SIGNS, spoken } from "./state.js";
import { capital, file_name, file_of, is_same, loading_words, notebook_of, outcome, seconds,
  slow_words, tidied, try_words } from "./text.js";

/** @import { Action, Desk, Field, Part, RunnerLike, Tools, Try } from "./types.d.ts" */
/** @import { Store } from "./store.js" */

const KEY = /Mac|iP(hone|ad|od)/.test(navigator.platform) ? "Cmd" : "Ctrl";
const CHECKS = `${KEY}+Enter checks.`;
const UNUSED = `Tab leaves the field until you type, and indents from then on. Escape, then Tab leaves it. ${CHECKS}`;
const LEAVING = `Tab indents. Escape, then Tab leaves the field. ${CHECKS}`;
const FREE = "Tab leaves the field now.";
const NAMES = "torch, math, nn, F, and the book’s other parts are here.";
const DOING = { check: "Checking…", run: "The machine translates…", save: "Putting it together…" };
const YES = { again: "Begin again", solution: "Show the book’s", forget: "Forget it" };
const SAVE_AFTER = 400; // ms without a key
const EDGE = 12; // px from the edge of the window to what is brought there

/** @typedef {(state: Desk, before: Desk) => void} Draw */

/** Draw only where what it shows has changed: of a desk */
const on_change = /** @type {(shows: (now: Desk) => unknown[], draw: Draw) => Draw} */ (
  /** @type {unknown} */ (when_changed));

/** Let what stands between two places be seen, if it isn't: from its top where it is too high
 *  @param {Element} first @param {Element} [last] @param {"first"|"last"} [most] what matters most */
function bring(first, last = first, most = "first") {
  const { top: above } = first.getBoundingClientRect(), { bottom: below } = last.getBoundingClientRect();
  const head = parseFloat(getComputedStyle(document.documentElement).scrollPaddingTop) || 0;
  const { offsetTop = 0, height = innerHeight } = visualViewport || {};
  const up = above - offsetTop - head - EDGE, down = below - offsetTop - height + EDGE;
  if (up >= 0 && down <= 0) return;
  const by = most === "first" ? Math.min(up, Math.max(down, 0)) : Math.max(down, Math.min(up, 0));
  scrollBy({ top: by, behavior: is_still() ? "instant" : "smooth" });
}

/** Whether a part of it is in the window @param {Element} place */
function is_seen(place) {
  const { top, bottom } = place.getBoundingClientRect();
  return bottom > 0 && top < innerHeight;
}

/** What stands between backticks is code @param {string} words */
const with_code = (words) => words.split("`").map((each, i) => (i % 2 ? h("code", {}, each) : each));

/** A file for the reader @param {string} name @param {string} text */
function download(name, text) {
  const href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  h("a", { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 10_000);
}

/** @param {HTMLElement} root @param {Part} part @param {Tools} tools @param {Store} store */
export function desk(root, part, tools, store) {
  const { name } = part;
  let state = first_state(part, store.read(name)), turn = 0;
  let field = /** @type {Field|null} */ (null), fields = /** @type {Promise<void>|null} */ (null);
  let machine = /** @type {RunnerLike|null} */ (null), saved = JSON.stringify(kept_of(state));
  let timer = 0, own = state.text; // what this tab has kept last

  // ---- The state, and what follows from it

  /** @param {Action} action */
  function dispatch(action) {
    const before = state;
    state = reduce(state, action);
    if (field && state.text !== field.text()) field.set(state.text);
    if (state.text !== before.text) field?.mark(null);
    if (state.answer !== before.answer && state.answer) field?.mark(state.answer.line);
    draw(state, before);
    show_news(before);
    const words = spoken(state, before);
    if (words) say(words);
    clearTimeout(timer);
    if (action.type === "type") timer = window.setTimeout(save, SAVE_AFTER);
    else save();
  }

  /** What has come is brought where it is seen, unless the reader has gone on @param {Desk} before */
  function show_news(before) {
    if (!is_seen(root)) return;
    const { answer: says, found, tried } = state;
    if (found && found !== before.found) {
      if (tried) bring(tries, whose);
      else bring(is_current(state) ? answer : lines, whose);
    } else if (says && says !== before.answer) bring(answer);
    else if (state.trouble && state.trouble !== before.trouble) bring(trouble);
    else if (state.asks && state.asks !== before.asks) bring(question);
    else if (state.note && state.note !== before.note) bring(note);
    else if (state.doing && state.doing !== before.doing) bring(row, waits);
  }

  /** Keep what is written; where another tab's text would be written over, beside that */
  function save() {
    clearTimeout(timer);
    const kept = kept_of(state), text = JSON.stringify(kept);
    if (text === saved) return;
    saved = text;
    if (!state.other) own = state.text;
    const trouble = store.write(name, kept);
    if (trouble !== state.storage) dispatch({ type: "kept", trouble });
  }

  const find_others = () => dispatch({ type: "others",
    names: Object.keys(store.sources()).filter((other) => other !== name) });

  // ---- What a reader does

  /** Let the reader write @param {boolean} is_wanted or only have the editor ready */
  async function enter(is_wanted = true) {
    fields ||= tools.load_field().then((make) => {
      const place = h("div", { class: "yours-written" });
      field = make(place, { text: state.text, described: hint.id,
        label: `Your ${part.names}, in Python`,
        on_type: (text, note) => dispatch({ type: "type", text, note }),
        on_check: check, on_free: tell_keys });
      reserve();
      unwritten.replaceWith(place);
      field.mark(is_current(state) && state.answer ? state.answer.line : null);
      dispatch({ type: "enter" });
    });
    await fields;
    if (is_wanted) field?.begin();
  }

  /** What the key Tab does now; that it leaves the field is said @param {boolean} is_free @param {boolean} is_used */
  function tell_keys(is_free, is_used) {
    const words = is_free ? FREE : is_used ? LEAVING : UNUSED;
    if (is_free && keys.textContent !== words) say(words);
    keys.textContent = words;
  }

  /** The field stays as high as its text was, until the page gets another width */
  function reserve() {
    const wide = innerWidth, release = () => {
      if (innerWidth === wide) return; // it is a keyboard that came
      box.style.minHeight = "";
      removeEventListener("resize", release);
    };
    box.style.minHeight = `${box.offsetHeight}px`;
    addEventListener("resize", release);
  }

  /** Do one thing after the other, until it is done or stopped
   *  @param {() => Promise<void>} act */
  async function work(act) {
    const mine = ++turn;
    try {
      await tools.python().start((progress) => {
        if (mine === turn) dispatch({ type: "load", progress });
      });
      if (mine !== turn) return;
      dispatch({ type: "load", progress: null });
      await act();
    } catch (error) {
      if (mine !== turn) return;
      const { name: kind, message } = error instanceof Error ? error : new Error(String(error));
      dispatch({ type: "failed", name: kind, message });
    }
  }

  /** Let the book's grader judge; after a right answer the machine runs on it. */
  async function check() {
    if (state.doing) return;
    const { text } = state;
    dispatch({ type: "start", what: "check" });
    const mine = turn + 1;
    await work(async () => {
      const answer = await tools.python().ask("check", { part: name, source: tidied(text) },
        { seconds: 10 });
      if (mine === turn) dispatch({ type: "answer", answer, text });
    });
    if (mine === turn && state.answer?.status === "right" && is_current(state)) await run();
  }

  /** Let the machine translate with the reader's text, or with a mistake @param {Try} [tried] */
  async function run(tried) {
    if (state.doing) return;
    if (!/\p{L}/u.test(state.sentence)) {
      dispatch({ type: "lacks", text: "There are no words in this. Type a German sentence." });
      return sentence.focus();
    }
    dispatch({ type: "start", what: "run", tried });
    const mine = turn + 1, { text } = state, source = tried ? tried.source : tidied(state.text);
    const others = state.with_others && !tried ? store.sources() : {};
    await work(async () => {
      machine ||= tools.runner(place, name);
      const found = await machine.run({ ...others, [name]: source },
        tried ? tried.label : part.owned, { text: state.sentence,
          on_progress: (share) => { if (mine === turn) dispatch({ type: "progress", share }); } });
      if (mine === turn) dispatch({ type: "found", found, text });
    });
  }

  /** One file of Python that does with PyTorch what the machine does with all the parts */
  async function save_all() {
    if (state.doing) return;
    dispatch({ type: "start", what: "save" });
    await work(async () => {
      const { text } = await tools.python().ask("program", { parts: store.sources() });
      download("my_transformer.py", text);
      dispatch({ type: "note", text: "Saved as my_transformer.py. It needs PyTorch and the book’s library." });
    });
  }

  function stop() {
    turn++;
    is_stopped = true;
    tools.python().stop();
    dispatch({ type: "failed", name: "Stopped", message: "You’ve stopped it." });
  }

  /** The same again with the sentence, or the parts, that are wanted now */
  const rerun = () => (state.tried || state.found) && run(state.tried || undefined);

  function switch_off() {
    machine?.off();
    dispatch({ type: "off" });
    focus(made.run, made.check, write);
    bring(root, row, "last");
  }

  /** @param {number} line */
  async function show_line(line) {
    await enter(false);
    field?.show(line);
  }

  // ---- What is seen

  const live = h("p", { class: "yours-spoken", role: "status", "aria-live": "polite" });
  let saying = 0, unsaid = /** @type {string[]} */ ([]);
  /** @param {string} words */
  function say(words) {
    clearTimeout(saying);
    unsaid.push(words); // what follows at once is said after it, not in its place
    saying = window.setTimeout(() => {
      live.textContent = unsaid.join(" ");
      unsaid = [];
    }, 150);
  }

  const box = find(root, ".yours-field"), row = find(root, ".yours-row");
  const write = find(row, ".yours-write"), tries = find(root, ".yours-tries");
  const unwritten = /** @type {HTMLElement} */ (box.firstElementChild);
  const keys = h("span", { class: "yours-keys" }, UNUSED);
  const hint = h("p", { class: "yours-hint", id: `yours-${name}-hint`, hidden: true }, NAMES, " ", keys);

  /** The focus to the text, not to a button that the next key would press: but where a keyboard
   *  would come up on the screen */
  function land() {
    if (field && !matchMedia("(pointer: coarse)").matches) field.focus();
    else focus(made.check, write);
  }

  // The row of buttons: only those that make sense now
  const made = {
    check: button("Check", check, { class: "yours-go" }),
    stop: button("Stop", () => state.doing && stop()),
    run: button("", () => run(), { class: "yours-go" }),
    again: button("Start again", () => dispatch({ type: "ask", what: "again" })),
    solution: button("Solution", () => dispatch({ type: "ask", what: "solution" })),
    back: button("Bring back my text", () => dispatch({ type: "back" })),
  };
  const keep = h("details", { class: "yours-keep" }, h("summary", {}, "Keep"), h("div", {},
    button("Save as a file", () => download(file_name(part, "py"), file_of(part, state.text))),
    button("Save as a notebook", () => download(file_name(part, "ipynb"), notebook_of(part, state.text))),
    button("Save all my parts as a program", save_all, { class: "yours-all" }),
    button("Forget", () => dispatch({ type: "ask", what: "forget" })),
    h("p", { class: "yours-note" }, "What you write is kept in this browser, and nowhere else.")));
  row.append(...Object.values(made), keep);

  // What it was pressed for leads back to the text; where a run ends by itself, the focus stays
  let is_stopped = false;
  made.stop.addEventListener("blur", () => { made.stop.hidden = state.doing === null; });
  const draw_row = on_change((now) => [now.is_entered, now.text, now.doing, now.answer, now.away,
    now.checked, now.best, now.found, now.others], (now) => {
    const at = document.activeElement, had = row.contains(at), written = is_written(now);
    const is_busy = now.doing !== null, is_open = now.is_entered || written;
    const is_right = is_current(now) && now.answer?.status === "right";
    made.run.textContent = is_right ? "Translate with it" : "Run it anyway";
    /** @type {[HTMLElement, boolean][]} */
    const seen = [[write, !is_open], [made.check, is_open], [made.stop, is_busy || (at === made.stop && !is_stopped)],
      [made.run, !is_busy && ((is_right && !now.found) || can_run_anyway(now))],
      [made.solution, is_open && !is_busy && !is_same(now.text, part.solution)],
      [made.again, written && !is_busy && !is_same(now.text, part.stub)],
      [made.back, now.away !== null && !is_busy && now.away !== now.text], [keep, written],
      [find(keep, ".yours-all"), now.best !== "" && now.others.length > 0]];
    for (const [each, is_seen] of seen) each.hidden = !is_seen;
    for (const each of [made.check, ...tries.querySelectorAll("button")]) {
      each.ariaDisabled = String(is_busy);
    }
    made.stop.ariaDisabled = String(!is_busy);
    if (is_busy) is_stopped = false;
    hint.hidden = !now.is_entered;
    if (!had || /** @type {HTMLElement} */ (at).checkVisibility()) return;
    if (at === made.run) focus(result, made.stop, made.check);
    else if (at === write) focus(made.check);
    else land();
  });

  // What comes of it: how far it is, the grader's sentence, what was printed
  const bar = h("progress", { max: 1 }), told = h("span");
  const waits = h("p", { class: "yours-waits", hidden: true }, bar, told);
  const answer = h("div", { class: "yours-answer" });
  const trouble = h("p", { class: "yours-trouble" }), note = h("p", { class: "yours-note" });
  const older = h("p", { class: "yours-note" }), storage = h("p", { class: "yours-trouble" });
  const draft = h("p", { class: "yours-note" });
  const question = h("p", { class: "yours-asks", onkeydown: (event) => {
    const { key } = /** @type {KeyboardEvent} */ (event);
    if (key === "Escape" && state.asks) dispatch({ type: "ask", what: null });
  } });

  const draw_waits = on_change((now) => [now.doing, now.loading, now.share], (now) => {
    waits.hidden = !now.doing;
    const { loading, share } = now, how_far = loading ? loading.loaded / (loading.total || 1) : share;
    if (how_far === null || how_far >= 1) bar.removeAttribute("value");
    else bar.value = how_far;
    told.textContent = loading ? loading_words(loading)
      : now.doing ? DOING[now.doing] : "";
    bar.ariaLabel = told.textContent;
  });

  const draw_answer = on_change((now) => [now.answer, now.tried, is_current(now)], (now) => {
    const { answer: found } = now;
    answer.hidden = now.tried !== null; // it is of the reader's text, not of a mistake that runs
    if (!found) return answer.replaceChildren();
    const { status, message, line, printed } = found, is_error = status === "error";
    const kind = { open: "open", right: "right", wrong: "wrong", error: "wrong" }[status];
    const says = h("p", { class: `yours-says feedback-${kind}` }, `${SIGNS[status]} `,
      is_error ? h("span", { class: "yours-error" }, message) : with_code(message),
      line !== null && [" ", button(`Go to line ${line}`, () => show_line(line), { class: "yours-line" })]);
    answer.replaceChildren(says, ...(printed ? [h("p", { class: "yours-note" }, "It printed:"),
      h("pre", { class: "yours-printed", tabindex: 0, role: "region",
        "aria-label": "What your code printed" }, printed)] : []));
    answer.classList.toggle("yours-stale", !is_current(now));
    if (!is_current(now)) says.append(h("small", {}, " (before your last change)"));
  });

  const draw_notes = on_change((now) => [now.trouble, now.note, is_older(now), is_draft(now), now.storage,
    now.asks, now.other], (now, before) => {
    trouble.textContent = now.trouble;
    note.textContent = now.note;
    storage.textContent = now.storage;
    draft.textContent = is_draft(now) ? "Your last right text is kept, and runs; this text isn’t it." : "";
    older.textContent = is_older(now) ? `You wrote this with edition ${now.edition} of the book; ` +
      `this one is ${part.edition}. Check it again.` : "";
    const had = question.contains(document.activeElement), is_kept = now.text === before.text;
    if (now.asks === before.asks && now.other === before.other) return;
    if (now.asks) {
      const { asks: type } = now;
      question.replaceChildren(question_of(type), " ", button(YES[type], () => dispatch({ type })), " ",
        button("No", () => dispatch({ type: "ask", what: null }), { class: "yours-no" }));
      find(question, ".yours-no").focus({ preventScroll: true });
    } else if (now.other) {
      question.replaceChildren("Changed in another tab. ",
        button("Take it", () => dispatch({ type: "take" })), " ",
        button("Keep mine", () => dispatch({ type: "keep" })));
    } else {
      question.replaceChildren();
      const { asks: type } = before;
      if (had && is_kept && type) focus(type === "forget" ? find(keep, "summary") : made[type], made.check, write);
      else if (had) land();
    }
  });

  // The machine: the sentence, what came out, whose it is
  const lacks = h("small", { class: "yours-trouble", id: `yours-${name}-lacks` });
  const sentence = h("textarea", { rows: 2, lang: "de", id: `yours-${name}-sentence`,
    maxlength: 500, spellcheck: "false", autocomplete: "off", autocapitalize: "off", enterkeyhint: "go",
    "aria-describedby": lacks.id,
    oninput: () => { dispatch({ type: "sentence", text: sentence.value.replace(/\s*\n\s*/g, " ") }); },
    onkeydown: (event) => {
      const { key, isComposing } = /** @type {KeyboardEvent} */ (event);
      if (key !== "Enter" || isComposing) return;
      event.preventDefault();
      asks.requestSubmit();
    } });
  const asks = h("form", { class: "yours-say", onsubmit: (event) => {
    event.preventDefault();
    if (state.tried || state.found || is_current(state)) rerun() || run();
  } }, h("label", { for: sentence.id }, "German"), sentence, h("button", {}, "Translate"), lacks);
  const lines = h("dl", { class: "yours-lines" }), whose = h("p", { class: "yours-note" });
  const others = h("input", { type: "checkbox", checked: true, onchange: () => {
    dispatch({ type: "with_others", on: others.checked });
    rerun();
  } });
  const others_names = h("span"), off = button("The book’s own again", switch_off);
  const with_others = h("label", { class: "yours-others" }, others, others_names);
  const place = h("div", { class: "yours-machine" });
  const result = h("div", { class: "yours-result", role: "group", "aria-label": "The machine with it",
    tabindex: -1, hidden: true },
    lines, whose, asks, h("div", { class: "yours-row" }, with_others, off), place);

  const draw_result = on_change((now) => [now.found, now.tried, now.doing, now.others,
    now.with_others, now.sentence, now.lacks, now.own, is_current(now), made_with(now).words], (now) => {
    const { found, own } = now, tried = now.ran?.tried, { words: term, is_past } = made_with(now);
    result.hidden = !found && own === null && now.doing !== "run";
    lacks.textContent = now.lacks;
    sentence.ariaInvalid = String(now.lacks !== "");
    asks.hidden = own !== null && !is_current(now); // there is nothing to translate it with
    result.classList.toggle("yours-stale", now.doing !== null || is_past);
    if (sentence.value !== now.sentence) sentence.value = now.sentence;
    with_others.hidden = Boolean(now.tried) || !now.others.length;
    others_names.textContent = `with your other parts, too: ${owned(now.others).replaceAll("your ", "")}`;
    off.hidden = whose.hidden = !found;
    lines.hidden = !found && own === null;
    for (const each of tries.querySelectorAll("button")) {
      each.ariaPressed = String(now.tried?.label === each.textContent);
    }
    const line = (/** @type {string} */ term, /** @type {string} */ text, /** @type {string} */ more) =>
      [h("dt", {}, term), h("dd", {}, text || "nothing", more && h("small", {}, ` ${more}`))];
    if (own !== null) lines.replaceChildren(...line("the book’s", own, ""));
    if (!found || now.doing) return;
    lines.replaceChildren(...line(term, found.text, outcome(found)),
      ...(found.text === found.before ? [] : line("the book’s", found.before, "")));
    const words = tried ? `${try_words(tried, found)} It took ` : `${capital(found.words).replace(/\.?$/, "")}, in `;
    whose.textContent = [`${words}${seconds(found.ms)}.`, found.problem, slow_words(found.ms)]
      .filter(Boolean).join(" ");
  });

  /** @type {Draw} */
  const draw = (now, before) => {
    for (const each of [draw_result, draw_row, draw_waits, draw_answer, draw_notes]) each(now, before);
  };

  // ---- Alive

  box.after(hint);
  row.after(waits, question, answer, trouble, note, draft, older, storage);
  tries.after(result, live);
  if (state.text !== part.stub) { // what was written before stands there at once
    find(unwritten, "pre").replaceChildren(...state.text.split("\n").map((line) =>
      h("span", { style: `--begin:${line.search(/\S|$/)}ch` }, `${line}\n`)));
  }
  unwritten.addEventListener("click", () => { // a text that is being chosen to be copied is left
    if (getSelection()?.isCollapsed) enter();
  });
  write.addEventListener("click", () => enter());
  [...tries.querySelectorAll("button")].forEach((each, i) =>
    each.addEventListener("click", () => run(part.tries[i])));
  store.watch(name, (kept) => {
    saved = JSON.stringify(kept);
    dispatch({ type: "elsewhere", kept, is_known: !state.other && kept?.text === own });
    find_others();
  });
  addEventListener("pagehide", save);
  draw(state, state);
  find_others();
  if (is_written(state)) { // the editor comes when the place does
    const near = new IntersectionObserver(([{ isIntersecting }]) => {
      if (!isIntersecting) return;
      near.disconnect();
      enter(false);
    });
    near.observe(root);
  }
  root.classList.add("yours-alive");
}
