// @ts-check
// The picture of the model in a page; its parts open, down to one weight. The views "search",
// "cache" and "operate" show the same sentence and the same changes.

import { kept, VIEWS, worry } from "./app.js";
import { cache } from "./cache.js";
import { e, h, is_joined, markup, mean_of, percent, piece, shown, table_of } from "./draw.js";
import { clearest, GUIDE } from "./guide.js";
import { button, is_still, load_button, refill, scroller } from "./kit.js";
import * as levels from "./levels.js";
import { operate } from "./operate.js";
import { save } from "./save.js";
import { search } from "./search.js";

const PACE = { first: 1300, step: 800, own: 330 }; // ms: before the first word, for each
const NARROW = 800; // px: below, pictures stand upright
const HINTS = {
  layer: "Each part that isn’t cut adds what it finds to the word’s strand. Open a head.",
  head: "The closer a key matches the query, the more of its word’s value goes on. Open a row.",
  cut: "This head is cut: its weights count as 0, and it hands on nothing.",
  weight: "Multiply feature by feature, add up, divide, and compare with the other keys.",
};

const quoted = ({ label, p }) => `“${piece(label)}” (${percent(p)})`;

/** A machine in its place in a page.
 *  @param {HTMLElement} root @param {import("./app.js").App} app */
export function show(root, app) {
  let playing = null, tall = root.clientWidth < NARROW, drawn = {}, guide = -1;
  let typed = false, predicting = false, answered = null, stopped = false;
  let saying = null, where = "", came = app.place, drawing = null;
  const told = { ...app.view, path: app.path, row: app.row };

  // ---- What stays; what it shows is drawn anew

  const live = h("p", { class: "machine-spoken", role: "status", "aria-live": "polite" });
  const say = (words) => { // what stays for a moment, not each of many steps
    clearTimeout(saying);
    saying = setTimeout(() => { live.textContent = words; }, 150);
  };
  const focus = (...places) => // on the first that is to be seen
    places.find((place) => place.checkVisibility()).focus({ preventScroll: true });
  const field = h("input", { type: "text", id: "machine-field", lang: "de", maxlength: 5000,
    spellcheck: "false", autocomplete: "off", value: app.state.text, required: true,
    onfocus: () => app.load(), oninput: draw_changes });
  const is_asked = () => predicting && app.axis === "step"; // of a word, and not in the encoder
  const is_typed = () => field.value.trim() !== app.view.source.trim(); // another than is told of
  const go_button = h("button", { class: "machine-go", "aria-label": "Translate" }, "Translate");
  const form = h("form", { class: "machine-say", onsubmit: translate },
    h("label", { for: "machine-field", class: "machine-spoken" }, "A German sentence"), field,
    go_button);
  const bar = h("progress", { max: 1, hidden: true, "aria-label": "The model is being loaded" });
  const status = h("p", { class: "machine-status", role: "alert" }, app.told);
  const warning = h("p", { class: "machine-warning", hidden: true });
  const undo = button("Undo all", () => {
    focus(stage, forward); // first, since what has the focus stays where it is seen
    note.textContent = "";
    app.undo_all();
  });
  const news = h("span"), changed = h("p", { class: "machine-changes", hidden: true }, news, undo);
  const brought = Object.keys(app.offer?.edits || {}).length ? " and changes" : "";
  const offer = h("p", { class: "machine-offer", hidden: !app.offer }, app.offer
    && [`You came with a sentence${brought} of your own: `,
      button(`“${app.offer.text}”`, take_offer)]);
  const words = h("div", { class: "machine-words", role: "toolbar" });
  const play_button = button("Play", () => {
    if (!playing) return play(PACE.step, stopped ? app.state.step : 0, pause);
    step_to(app.state.step);
    stopped = true;
  });
  const slider = h("input", { type: "range", min: 1, max: 1,
    oninput: () => step_to(slider.valueAsNumber - 1) });
  const back = button("Previous", () => step_by(-1)), forward = button("Next", () => step_by(1));
  const predict = button("Predict first", start_predicting, { "aria-pressed": "false" });
  const views = h("nav", { class: "machine-views", "aria-label": "Views of the machine" },
    Object.entries({ "": "The machine", ...VIEWS }).map(([view, name]) =>
      h("a", { href: `#machine${view && `/${view}`}`, "data-view": view }, name)));
  const crumbs = h("nav", { class: "machine-crumbs", "aria-label": "Where we are in the machine" });
  const stage = h("div", { class: "machine-stage", tabindex: 0, role: "region",
    "aria-label": "The picture" });
  const beneath = h("div", { class: "machine-beneath" }), sheet = h("div");
  const numbers = h("details", { class: "machine-numbers", ontoggle: draw_table },
    e("summary", {}, "As a table"), sheet);
  const caption = h("div", { class: "machine-guide", hidden: true });
  const note = h("small"), panels = {}; // made when they are asked for
  const save_as = async (kind) => {
    if (!stage.querySelector("svg")) return; // of a weight whose numbers aren't there
    const what = [root.ariaLabel, app.changes && `Changed: ${app.changes}`,
      decodeURIComponent(app.address)];
    await save(stage.querySelector("svg"), what.filter(Boolean), kind);
    say(note.textContent = `Saved as machine.${kind}, for a slide.`);
  };
  const more = h("details", { class: "machine-more" }, e("summary", {}, "Keep, share"),
    h("div", { class: "machine-row" },
      button("Save as SVG", () => save_as("svg")), button("Save as PNG", () => save_as("png")),
      button("Copy link", copy_link), document.fullscreenEnabled && button("Full screen on/off", () =>
        (document.fullscreenElement ? document.exitFullscreen() : root.requestFullscreen())), note));
  const guide_button = button("Guide", () =>
    lead(guide < 0 ? (Number(kept("machine-guide")) || 1) - 1 : -1), { "aria-expanded": "false" });
  const tools = h("div", { class: "machine-row" }, predict, guide_button, more);
  const player = h("div", { class: "machine-row machine-controls" },
    play_button, back, forward, slider);
  const alive = h("div", { class: "machine-live" }, form, bar, status, warning,
    h("div", { class: "machine-head" }, words, player, views),
    offer, changed, crumbs, stage, beneath, tools, numbers, caption, live);
  root.append(alive);

  // ---- Sentences

  function translate(event) {
    event.preventDefault();
    pause();
    typed = true;
    app.set({ text: field.value });
    app.load();
  }

  function take_offer() { // and keep what is changed here
    const { edits, ...found } = app.offer;
    if (!app.panel) app.move("");
    Object.assign(told, { path: app.path, row: 0 }); // what it becomes is told, not where we were
    focus(stage, forward);
    offer.hidden = true;
    app.set({ ...found, edits: { ...app.state.edits, hide: undefined, ...edits } });
    app.load();
  }

  async function copy_link() {
    try {
      await navigator.clipboard.writeText(app.address);
      note.textContent = "Copied: the link holds what you typed, the changes, and this place.";
    } catch { // no clipboard in a page opened from a file
      note.replaceChildren("Copy this address: ", h("input", { readonly: true, value: app.address,
        "aria-label": "Address of this view", onfocus: ({ target }) => target.select() }));
    }
    say(note.textContent);
  }

  // ---- Playing: one step after the other

  function play(pace = PACE.step, from = 0, then = finish) {
    pause();
    predicting = false;
    if (app.place.stack || app.panel) app.move("");
    const on = () => {
      if (!document.hidden) app.show({ step: app.state.step + 1 });
      if (app.state.step < app.view.tgt.length - 1) playing = setTimeout(on, pace);
      else then();
    };
    root.classList.toggle("machine-from-start", pace === PACE.step);
    play_button.textContent = "Pause";
    if (pace === PACE.step) say(`Playing ${app.view.tgt.length} steps.`);
    playing = setTimeout(on, pace >= PACE.step ? PACE.first : pace);
    app.show({ step: from });
  }

  function pause() {
    clearTimeout(playing);
    playing = null;
    stopped = false;
    play_button.textContent = "Play";
    root.classList.remove("machine-from-start");
  }

  function step_to(step) {
    pause();
    app.show({ [app.axis]: step });
  }

  function finish() { // with the whole sentence
    const step = surest();
    if (app.view.live) told.row = step; // a translation was told, and a film wasn't
    step_to(step);
  }

  const step_by = (by) => app.labels[app.row + by] && step_to(app.row + by);

  // ---- Drawing

  // The words of the translation; inside the encoder, those of the sentence
  function draw_words() {
    const { axis, labels, row } = app, { source, text, tgt_labels, log_probs } = app.view;
    const at = Math.min(row, tgt_labels.length - 1), is_step = axis === "step" && !app.searches;
    const n_forced = app.engine ? app.state.forced.length : 0;
    const hides_now = is_asked() && !answered;
    root.classList.toggle("machine-hides", hides_now);
    words.classList.toggle("source", axis === "word");
    words.ariaLabel = axis === "word" ? "The words of the sentence"
      : "The translation, word by word";
    if (axis === "word") refill(words, labels.map((label, i) => [shown(label), () => step_to(i),
      { class: `machine-word ${i === row ? "now" : ""}` }]), row);
    else refill(words, tgt_labels.map((label, i) => {
      const hidden = (playing || is_asked()) && (i > at || (hides_now && i === at));
      const kinds = ["machine-word", levels.row_class(i, at), is_joined(label) && "joined",
        i < n_forced && "forced", hidden && !is_asked() && "unseen"];
      const share = percent(Math.exp(log_probs[i]));
      const says = `${shown(label)}, ${share}${i < n_forced ? ", kept" : ""}${i === n_forced - 1 ? ", chosen by hand" : ""}`;
      return [hidden && is_asked() ? "·" : shown(label), () => step_to(i), {
        class: kinds.filter(Boolean).join(" "), title: !hidden && share,
        "aria-label": hidden ? `word ${i + 1}, to come` : says }];
    }), at);
    const where = `${row + 1} of ${labels.length}`, [looks] = is_step ? looked_at(at) : [];
    slider.max = labels.length;
    slider.value = row + 1;
    slider.ariaLabel = axis === "word" ? "Word of the sentence"
      : `Step of the ${app.searches ? "search" : "translation"}`;
    slider.ariaValueText = hides_now || !labels[row] ? where
      : `${shown(labels[row])}, ${where}${looks ? `; looked most at ${looks}` : ""}`;
    root.ariaLabel = `The machine translates “${source}”${is_asked() ? "" : ` into “${text}”`}`;
  }

  function draw_changes() {
    const { changes, engine, is_current, state, view } = app;
    const is_other = state.text !== view.source;
    const waits = !view.live && !is_current;
    changed.hidden = !changes && !waits;
    undo.hidden = waits || !engine;
    root.classList.toggle("machine-waiting", waits || is_typed());
    if (waits) {
      const what = [is_other && `the sentence “${state.text}”`, changes].filter(Boolean).join("; ");
      news.replaceChildren(`Waiting for the model (${what}). `, h("span", {},
        "Until then, you see a stored sentence. "), bar.hidden && !engine ? load_button(app) : "");
      return;
    }
    const now = is_current ? [`Now: “${view.text}” `, `${app.beside} `] : ["Now: …"];
    news.textContent = [`Changed: ${changes}. `, ...(is_asked() ? [] : now)].join("");
  }

  function draw_crumbs(level) {
    const { place, view, panel, row } = app, { stack, layer, kind, head } = place;
    const link = (to, words, more) =>
      h("a", { href: `#machine${levels.path_of(place, to)}`, ...more }, words);
    const keys = levels.keys_of(place, view, row), at = Math.min(place.key, keys.length - 1);
    const names = ["the machine", `${stack}, layer ${layer}`,
      `${levels.ATTENTIONS[kind]}, head ${head}`, `its weight for “${shown(keys[at] || "")}”`];
    crumbs.replaceChildren(...names.slice(0, level + 1).flatMap((name, i) => [i ? " › " : "",
      link(i, name, { "aria-current": i === level && "true" })]),
    link(Math.max(0, level - 1), "Up", { class: "machine-up" }));
    crumbs.hidden = !level;
    where = VIEWS[panel] || names.slice(Math.min(1, level), level + 1).join(", ");
    for (const each of views.children) each.ariaCurrent = each.dataset.view === panel ? "page" : null;
  }

  /** For those who listen: where we are, if that is another place, and at which step. */
  function announce() {
    const { axis, engine, labels, path, row, searches, view } = app, has_moved = path !== told.path;
    const is_early = playing || (searches && engine && !view.search);
    if (is_early || (!has_moved && row === told.row)) return;
    Object.assign(told, { path, row });
    if (!has_moved && !predicting && document.activeElement === slider) return; // it speaks
    const open = ".machine-live > :not([hidden])";
    const says = root.querySelector(`${open} .machine-predict p, ${open} .machine-says`);
    const step = !searches && `${axis === "word" ? "Word" : "Step"} ${row + 1} of ` +
      `${labels.length}${is_asked() ? "" : `: ${shown(labels[row])}`}.`;
    const words = [has_moved && `${where}.`, step,
      (!path || !step || is_asked()) && says?.textContent];
    say(words.filter(Boolean).join(" "));
  }

  async function draw() {
    const { place, panel } = app, level = levels.level_of(place);
    const had = document.activeElement, was_beneath = beneath.contains(had);
    const had_focus = root.contains(had), href = had.getAttribute("href");
    draw_words();
    draw_changes();
    draw_crumbs(level);
    if (panel && !panels[panel]) {
      panels[panel] = { search, cache, operate }[panel](app, say);
      numbers.before(panels[panel]);
    }
    for (const [name, each] of Object.entries(panels)) each.hidden = name !== panel;
    predict.ariaPressed = String(predicting);
    predict.hidden = Boolean(panel) || app.axis === "word"; // where nothing can be asked
    stage.hidden = tools.hidden = play_button.hidden = app.searches;
    back.hidden = forward.hidden = !stage.hidden;
    const is_lost = had_focus && !document.activeElement.checkVisibility(); // with its view
    if (is_lost) views.querySelector("[aria-current]").focus();
    back.ariaDisabled = String(!app.labels[app.row - 1]);
    forward.ariaDisabled = String(!app.labels[app.row + 1]);
    numbers.hidden = stage.hidden || is_asked();
    caption.hidden = guide < 0 || (Boolean(panel) && app.path !== GUIDE[guide].path); // false there
    if (stage.hidden) {
      app.search();
      beneath.replaceChildren();
      return;
    }
    const is_unknown = level >= 2 && (!app.found || app.view.edits.causal === false);
    if (is_unknown && !await app.look_into()) return;
    draw_picture(level);
    draw_beneath(level);
    draw_table();
    const at = document.activeElement, has_moved = came !== place;
    const [same, back_down] = [href, `#machine${levels.path_of(came, level + 1)}`].map((each) =>
      (was_beneath ? beneath : stage).querySelector(`[href="${each}"]`));
    const act = was_beneath && !has_moved && beneath.querySelector("button");
    const heir = same || act || back_down;
    came = place;
    if (!had_focus || (root.contains(at) && !(has_moved && at === stage))) return;
    (heir || stage).focus({ preventScroll: !heir }); // what had the focus is gone
    if (has_moved && !heir) crumbs.scrollIntoView({ block: "nearest" });
  }

  /** What has the focus stays where it is seen, though lines come, go, or stick above it. */
  function steadily(draw) {
    const at = document.activeElement, { top } = at.getBoundingClientRect();
    draw();
    const by = at.isConnected && at.getBoundingClientRect().top - top;
    if (by) scrollBy({ top: by, behavior: "instant" });
    panels.operate?.querySelector(":focus")?.scrollIntoView({ block: "nearest" });
  }

  function draw_picture(level) {
    const { view, place, row, before, found, found_before } = app;
    if (level === 3 && !found) {
      stage.replaceChildren(h("p", { class: "machine-note" },
        "The numbers of this weight come with the model. ", load_button(app)));
      drawn = {};
      return;
    }
    const is_drawn = drawn.view === view && drawn.tall === tall && drawn.before === before;
    if (level === 0 && drawn.level === 0 && is_drawn) { // only what is written, or to come
      for (const each of stage.querySelectorAll(".row")) {
        each.setAttribute("class", `row ${levels.row_class(Number(each.dataset.row), row)}`);
      }
    } else {
      const how = { row, tall, before, found_before };
      stage.innerHTML = markup(levels.draw(view, place, found, how)); // faster than by node
      stage.firstElementChild.classList.toggle("tall", tall);
      stage.dataset.zoom = ["out", "", "in"][1 + Math.sign(level - (drawn.level ?? level))];
      drawn = { view, tall, before, level };
    }
    for (const choice of stage.querySelectorAll(".choice")) make_choice(choice);
  }

  // One zoom: the picture grows out of the place that was chosen, or shrinks into it.
  stage.addEventListener("pointerdown", ({ clientX, clientY }) => {
    const { left, top } = stage.getBoundingClientRect();
    stage.style.setProperty("--from", `${clientX - left}px ${clientY - top}px`);
  });

  function make_choice(choice) { // a likely token that can be forced
    const row = Number(choice.closest(".row").dataset.row), id = Number(choice.dataset.id);
    if (!app.engine || id === app.view.tgt[row]) return;
    const force = () => app.set({ forced: [...app.view.tgt.slice(0, row), id], step: row });
    Object.assign(choice, { role: "button", tabIndex: 0, onclick: force,
      ariaLabel: `Go on instead with ${choice.textContent}`,
      onkeydown: ({ key }) => void (key === "Enter" && force()) }); // false would hold the Tab key
  }

  function draw_beneath(level) {
    const is_cut = level > 1 && levels.is_cut(app.view, app.place);
    const hint = HINTS[is_cut ? "cut" : ["", "layer", "head", "weight"][level]];
    beneath.replaceChildren(is_asked() ? ask() : h("p", { class: "machine-says" },
      level === 3 && !app.found ? "" : hint || what_it_shows()), level < 2 ? "" : heads());
  }

  function heads() {
    const { place, view } = app, name = levels.name_of(place), removed = app.without(name);
    const links = view.maps[name].map((_, head) => h("a", {
      href: `#machine${levels.path_of({ ...place, head })}`,
      "aria-current": head === place.head && "true", class: removed.includes(head) && "removed",
      "aria-label": removed.includes(head) && `${head}, cut`,
    }, head));
    const words = removed.includes(place.head) ? "Put this head back" : "Cut this head";
    return h("div", { class: "machine-row machine-heads", role: "group",
      "aria-label": "The heads of this layer" }, links, app.engine
      ? [button(words, () => app.remove_head(name, place.head)), h("small", {}, removed.length > 0
        && !is_asked() && [`Now: “${view.text}” `, app.beside])]
      : h("small", {}, "To cut a head: ", load_button(app)));
  }

  /** What a step looked at most, if it could */
  const looked_at = (step) => levels.looked_at(app.view, step, 2)
    .map(([p, key]) => p > 0 && quoted({ label: app.view.src_labels[key], p }));

  /** The step that looks most at one word of the source. */
  function surest() {
    const peaks = app.view.tgt.slice(0, -1).map((_, i) => levels.looked_at(app.view, i, 1)[0][0]);
    return Math.max(0, peaks.indexOf(Math.max(...peaks)));
  }

  /** What the step shows, in a sentence. */
  function what_it_shows() {
    const { view, row } = app, [first, second] = looked_at(row);
    if (playing && !row) return "First the German side reads: each word looks at the others.";
    const how = row === surest() ? ", its surest look for a word," : "";
    const found = first ? `looked most at ${first}${how} and ${second}`
      : "couldn’t look at the German";
    const written = { label: view.tgt_labels[row], p: Math.exp(view.log_probs[row]) };
    const now = tall && app.changes && !app.panel ? ` The text is now “${view.text}”` : "";
    return `Writing ${quoted(written)}: layer ${levels.middle_layer(view)} of the decoder ` +
      `${found}.${now}`;
  }

  function draw_table() {
    if (!numbers.open) return;
    const found = levels.table(app.view, app.place, app.found, { row: app.row });
    sheet.replaceChildren(found ? scroller(found.caption, table_of(found)) : "");
  }

  // ---- Predict first

  function start_predicting() { // or end
    predicting = !predicting;
    told.row = -1; // told again, even if it is the same step
    pause();
    app.show(predicting ? { step: 0 } : {});
    beneath.querySelector(".machine-predict button")?.focus();
  }

  function ask() {
    const { view, row } = app, [best] = view.next[row];
    if (answered) return h("div", { class: "machine-predict" }, ...reply(best, row));
    const choices = view.next[row].slice(0, 5)
      .sort((a, b) => shown(a.label).localeCompare(shown(b.label), "en"));
    return h("div", { class: "machine-predict" }, h("p", {}, "What is likeliest next? "),
      choices.map((choice) => button(piece(choice.label), () => {
        answered = choice;
        draw();
        say(beneath.querySelector("p").textContent);
      })));
  }

  function reply(best, row) {
    const verdict = answered.id === best.id ? `Yes: “${shown(best.label)}”, ${percent(best.p)}. `
      : `You said ${quoted(answered)}; the model says ${quoted(best)}. `;
    const next = button("Next word", () => app.show({ step: row + 1 }));
    const other = best.id !== app.view.tgt[row] && `The text goes on with “${shown(app.labels[row])}”. `;
    return [h("p", {}, verdict, other), app.labels[row + 1] && next];
  }

  // ---- The guide

  async function lead(to) {
    guide = to;
    guide_button.ariaExpanded = String(to >= 0);
    kept("machine-guide", String(to + 1)); // a link to a chapter leaves it
    caption.hidden = guide < 0;
    alive.querySelector(".machine-lit")?.classList.remove("machine-lit");
    if (guide < 0) return [guide_button, forward].find((each) => each.checkVisibility()).focus();
    pause();
    const { level, path, words: text, control, chapter, href } = GUIDE[guide];
    const is_last = guide === GUIDE.length - 1;
    if (guide < 2) app.state.step = guide && Math.round(0.75 * (app.view.tgt.length - 1));
    app.move(path || clearest(app, level));
    const number = e("b", {}, `${guide + 1} of ${GUIDE.length} `);
    caption.replaceChildren(h("p", {}, number, `${text} `, e("a", { href }, chapter)),
      h("div", { class: "machine-row" },
        button("Back", () => lead(guide - 1), { disabled: guide === 0 }),
        !is_last && button("Next", () => lead(guide + 1)),
        button(is_last ? "Done" : "End", () => lead(-1))));
    focus(caption.querySelector(".machine-row").children[1]);
    queueMicrotask(() => say(`${guide + 1}: ${where}, “${shown(app.labels[app.row])}”. ${text}`));
    await drawing;
    const lit = alive.querySelector(control);
    lit.classList.add("machine-lit");
    document.documentElement.style.setProperty("--guide", `${caption.offsetHeight + 8}px`);
    const room = innerHeight - caption.offsetHeight - 60; // above the caption, below the bar
    for (const seen of [beneath, stage, lit.closest(".machine-stage") || lit]) {
      const block = seen.offsetHeight > room ? "start" : "nearest";
      seen.scrollIntoView({ block, behavior: "instant" });
    }
  }

  // ---- Keys: left and right are steps, Home and End the ends of a row, Escape goes up

  root.addEventListener("keydown", (event) => {
    const from = /** @type {HTMLElement} */ (event.target), level = levels.level_of(app.place);
    const ends = from.closest(".machine-words") && { Home: -app.row,
      End: app.labels.length - 1 - app.row };
    const by = { ArrowRight: 1, ArrowLeft: -1, ...ends }[event.key];
    const is_command = event.altKey || event.ctrlKey || event.metaKey;
    if (is_command || from.matches("input, select, .machine-scroll")) return;
    if (by !== undefined) {
      event.preventDefault();
      step_by(by);
    } else if (event.key === "Escape" && level > 0 && !document.fullscreenElement) {
      event.preventDefault();
      crumbs.querySelector(".machine-up").click();
      focus(stage);
    }
  });
  root.addEventListener("click", ({ target, clientX, clientY }) => {
    const at = /** @type {Element} */ (target), lane = at.closest(".lane");
    if (playing && at.closest("a, .machine-stage")) pause(); // going elsewhere ends the film
    if (lane) app.state.word = [...lane.parentElement.children].indexOf(lane); // when it's opened
    if (!at.closest(".lane, .row") || at.closest(".choice")) return; // else over a way into a layer
    const there = document.elementsFromPoint(clientX, clientY);
    const ground = there.find((each) => each.matches(".door-ground"));
    if (ground) location.hash = ground.parentElement.getAttribute("href");
  });

  // ---- What the app tells

  app.on("progress", (share) => {
    const is_over = share === null;
    Object.assign(bar, { hidden: is_over, value: share || 0 });
    draw_changes();
    go_button.textContent = is_over ? "Translate" : `${Math.round(100 * share)}% of ${app.size}`;
    if (share === 0) say("The model is being loaded.");
    if (is_over) say(app.engine ? "The model is loaded." : "The model is not loaded.");
  });
  app.on("status", (text) => { status.textContent = text; });
  app.on("busy", (is) => root.toggleAttribute("aria-busy", is));
  app.on("state", () => {
    if (document.activeElement !== field) field.value = app.state.text;
    steadily(draw_changes);
  });
  app.on("place", () => {
    if (app.row !== told.row) answered = null;
    if (predicting && app.panel) app.status("Predict first is over: this view shows what comes.");
    predicting &&= !app.panel;
    note.textContent = ""; // a link that was copied is an old one now
    drawing = draw();
    queueMicrotask(announce); // when all is drawn
  });
  app.on("view", () => {
    const { source, read, log_probs, text, asks } = app.view, is_new = source !== told.source;
    answered = null; // it was of another text
    predicting &&= !is_new;
    const sure = app.changes ? 1 : Math.exp(mean_of(log_probs)); // else it isn't the model's doubt
    const worries = worry(source, read.pieces, sure);
    const said = [app.changes && `Changed: ${app.changes}.`, `Translation: ${text}`, app.beside, worries];
    const is_news = asks !== told.asks && !is_asked() && !is_typed();
    if (is_news && app.panel !== "operate") say(said.filter(Boolean).join(" "));
    Object.assign(told, { source, asks });
    root.classList.toggle("machine-own", is_new || root.matches(".machine-own"));
    if (typed && is_new && !app.place.stack && !app.panel) {
      (is_still() ? finish : play)(PACE.own);
      told.row = app.row; // the translation is told, and not its step
    }
    typed = false;
    steadily(() => {
      warning.textContent = worries;
      warning.hidden = !worries;
      draw();
    });
  });
  root.addEventListener("fullscreenchange", () => more.scrollIntoView({ block: "nearest" }));
  new ResizeObserver(([{ contentRect: { width } }]) => {
    if ((width < NARROW) === tall) return;
    tall = !tall;
    draw();
  }).observe(root);
  return { play, lead };
}
