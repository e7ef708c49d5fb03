// @ts-check
// The picture of the whole model in a page: a sentence goes in, another comes out, and
// every part opens, from the machine down to one weight. The views "search", "cache" and
// "operate" show the same sentence and the same changes.

import { cache } from "./cache.js";
import { e, h, markup, percent, shown, table_of } from "./draw.js";
import { GUIDE } from "./guide.js";
import { scroller } from "./kit.js";
import * as levels from "./levels.js";
import { operate } from "./operate.js";
import { save } from "./save.js";
import { search } from "./search.js";
import { worry } from "./worry.js";

const PACE = { first: 1300, step: 800, own: 330 }; // ms: before the first word, for each
const NARROW = 800; // px: below, pictures stand upright
const still_wanted = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
const EXAMPLES = [
  "Ein Hund spielt im Schnee.",
  "Im Wasser schwimmt ein brauner Hund.",
  "Zwei Kinder spielen am Strand Fußball.",
  "Eine Frau mit einem roten Hut liest in der Sonne ein Buch.",
  "Drei Männer mit Helmen stehen vor einem Gebäude.",
];

/** A machine in its place in a page.
 *  @param {HTMLElement} root @param {import("./app.js").App} app */
export function show(root, app) {
  let playing = null, tall = false, drawn = {}, predicting = false, said = 0, alike = 0, guide = -1;
  let reading = { pieces: 0 }, last_text = app.view.source;

  // ---- What stays; what it shows is drawn anew

  const live = h("p", { class: "machine-spoken", role: "status", "aria-live": "polite" });
  const say = (words) => { live.textContent = words; };
  const button = (words, onclick, more = {}) => h("button", { type: "button", onclick, ...more }, words);
  const field = h("input", { type: "text", id: "machine-field", lang: "de", maxlength: 600,
    spellcheck: "false", autocomplete: "off", list: "machine-examples",
    onfocus: () => app.load().catch(() => {}), oninput: mark_stale });
  const go_button = button("Translate", null, { class: "machine-go" });
  go_button.type = "submit";
  const form = h("form", { class: "machine-say", onsubmit: (event) => {
    event.preventDefault();
    translate();
  } }, h("label", { for: "machine-field", class: "machine-spoken" }, "A German sentence"), field,
  h("datalist", { id: "machine-examples" }, EXAMPLES.map((value) => e("option", { value }))), go_button);
  const bar = h("progress", { max: 1, hidden: true, "aria-label": "The model is being loaded" });
  const status = h("p", { class: "machine-status", role: "alert" });
  const warning = h("p", { class: "machine-warning", hidden: true });
  const changed = h("p", { class: "machine-changes", hidden: true });
  const words = h("div", { class: "machine-words", role: "toolbar", "aria-label": "The translation, word by word" });
  const source_words = h("div", { class: "machine-words source", role: "toolbar", "aria-label": "The words of the sentence" });
  const play_button = button("Play", () => {
    if (!playing) play(PACE.step);
    else {
      pause();
      draw_words();
    }
  });
  const slider = h("input", { type: "range", min: 1, max: 1, "aria-label": "Step of the translation",
    oninput: () => { pause(); app.show({ step: slider.valueAsNumber - 1 }); } });
  const predict = button("Predict first", () => {
    predicting = !predicting;
    pause();
    if (predicting) app.show({ step: 0 });
    draw();
  }, { "aria-pressed": "false" });
  const views = ["", "/search", "/cache", "/operate"].map((path, i) =>
    h("a", { href: `#machine${path}` }, ["The machine", "Search", "Cache", "Operate"][i]));
  const crumbs = h("nav", { class: "machine-crumbs", "aria-label": "Where we are in the machine" });
  const stage = h("div", { class: "machine-stage", tabindex: 0, role: "region", "aria-label": "The picture" });
  const beneath = h("div", { class: "machine-beneath" });
  const numbers = h("details", { class: "machine-numbers", ontoggle: draw_table }, e("summary", {}, "The same as a table"));
  const caption = h("div", { class: "machine-guide", hidden: true });
  const panels = { search: search(app, say), cache: cache(app, say), operate: operate(app, say) };
  const note = h("small", {});
  const more = h("details", { class: "machine-more" }, e("summary", {}, "Keep, share"),
    h("div", { class: "machine-row" },
      button("Save as SVG", () => save(stage.querySelector("svg"), app.address, "svg")),
      button("Save as PNG", () => save(stage.querySelector("svg"), app.address, "png")),
      button("Copy link", copy_link), button("Full screen", full_screen), note));
  const body = h("div", { class: "machine-live" },
    form, bar, status, warning, h("div", { class: "machine-head" }, words,
      h("div", { class: "machine-row machine-controls" }, play_button, slider),
      h("nav", { class: "machine-views", "aria-label": "Views of the machine" }, views)),
    changed,
    crumbs, source_words, stage, beneath, caption,
    h("div", { class: "machine-row" }, predict, button("Guide", () => lead(guide < 0 ? 0 : -1)), more),
    ...Object.values(panels).map(({ place }) => place), numbers, live);
  root.append(body);
  field.value = app.state.text;

  // ---- Sentences

  function translate() {
    if (!field.value.trim()) {
      app.status("Type a German sentence first.");
      return;
    }
    pause();
    app.set({ text: field.value });
    app.load().catch(() => {});
  }

  function mark_stale() {
    const stale = field.value.trim() !== app.view.source && !app.engine;
    root.classList.toggle("machine-waiting", stale);
  }

  function warn(text, pieces, sure = 1) {
    const why = worry(text, pieces, sure);
    warning.hidden = !why;
    warning.textContent = why;
  }

  async function copy_link() {
    try {
      await navigator.clipboard.writeText(app.address);
      note.textContent = "Copied: the link holds the sentence, the changes, and this place.";
    } catch { // no clipboard in a page opened from a file
      note.replaceChildren("Copy this address: ", h("input", { readonly: true, value: app.address, onfocus: (event) => event.target.select(),
        "aria-label": "Address of this view" }));
    }
    say(note.textContent);
  }

  async function full_screen() {
    try {
      await (document.fullscreenElement ? document.exitFullscreen() : root.requestFullscreen());
    } catch {
      note.textContent = "This browser doesn’t allow full screen here.";
    }
  }

  // ---- Playing: one step after the other

  function play(pace, from = 0) {
    pause();
    if (app.place.stack || app.panel) app.move("");
    if (still_wanted()) { // no film: its last frame
      app.show({ step: clearest() });
      return;
    }
    root.classList.add("machine-from-start");
    play_button.textContent = "Pause";
    const on = () => {
      if (!document.hidden) app.show({ step: app.state.step + 1 });
      if (app.state.step < app.view.tgt.length - 1) playing = setTimeout(on, pace);
      else {
        pause();
        app.show({ step: clearest() }); // the whole sentence, and a word to look at
      }
    };
    playing = setTimeout(on, pace >= PACE.step ? PACE.first : pace);
    app.show({ step: from });
  }

  /** The word of the translation that looks most at one word of the source. */
  function clearest() {
    const { view } = app, n = view.src.length, middle = levels.n_layers(view, "decoder") >> 1;
    const weights = levels.means(view)[`decoder.layers.${middle}.cross_attn`];
    const peaks = view.tgt.slice(0, -1).map((_, i) => levels.most(weights, i, n, 1)[0][0]);
    return Math.max(0, peaks.indexOf(Math.max(...peaks)));
  }

  function pause() {
    clearTimeout(playing);
    playing = null;
    play_button.textContent = "Play";
    root.classList.remove("machine-from-start");
  }

  // ---- Drawing

  function draw_words() {
    const { view } = app, { tgt_labels, log_probs } = view, at = Math.min(app.state.step, tgt_labels.length - 1);
    const { forced } = app.state;
    const word = (label, i) => {
      const hidden = playing || predicting ? i > at || (predicting && !answered && i === at) : false;
      return h("button", { type: "button", class: `machine-word ${levels.row_class(i, at)}${/^[▁<]/.test(label) ? "" : " joined"}${
        app.engine && i < forced.length ? " forced" : ""}`,
        "aria-pressed": String(i === at), tabindex: i === at ? 0 : -1,
        "aria-label": hidden ? `word ${i + 1}, to come` : `${shown(label)}, ${percent(Math.exp(log_probs[i]))}`,
        title: hidden ? null : percent(Math.exp(log_probs[i])),
        onclick: () => { pause(); app.show({ step: i }); } }, hidden ? "·" : shown(label));
    };
    const had_focus = words.contains(document.activeElement);
    words.replaceChildren(...tgt_labels.map(word));
    if (had_focus) words.children[at].focus({ preventScroll: true });
    slider.max = String(tgt_labels.length);
    slider.value = String(at + 1);
    slider.setAttribute("aria-valuetext", `${shown(tgt_labels[at])}, ${at + 1} of ${tgt_labels.length}`);
    const encoder = app.place.stack === "encoder";
    source_words.hidden = !encoder;
    if (encoder) {
      source_words.replaceChildren(...view.src_labels.map((label, i) => h("button", { type: "button",
        class: `machine-word${i === app.row ? " now" : ""}`, "aria-pressed": String(i === app.row),
        onclick: () => app.show({ word: i }) }, shown(label))));
    }
  }

  function draw_changes() {
    const { changes, engine } = app, waits = !engine && (app.state.text !== app.view.source || (changes && !app.is_current));
    changed.hidden = !changes && !waits;
    const shared = [app.state.text !== app.view.source && `the sentence “${app.state.text}”`, changes].filter(Boolean).join("; ");
    changed.replaceChildren(...(waits
      ? [`Waiting for the model: ${shared}. Until then, you see a stored sentence. `, button(`Load the model (${app.size})`, () => app.load().catch(() => {}))]
      : [`Changed: ${changes}. ${app.beside} `, engine ? button("Undo all", () => { app.undo_all(); field.focus(); }) : ""]));
    root.classList.toggle("machine-waiting", Boolean(waits));
  }

  function draw_crumbs() {
    const { place, view } = app, level = levels.level_of(place);
    const kind = { self_attn: "self-attention", cross_attn: "cross-attention" }[place.kind];
    const link = (path, text) => h("a", { href: `#machine${path}` }, text);
    const steps = [link("", "the machine")];
    if (level > 0) steps.push(link(levels.path_of({ ...levels.WHOLE, stack: place.stack, layer: place.layer }), `${place.stack}, layer ${place.layer}`));
    if (level > 1) steps.push(link(levels.path_of({ ...place, key: -1 }), `${kind}, head ${place.head}`));
    if (level > 2) steps.push(h("span", {}, `its weight for “${shown(levels.axes(place, view)[1][place.key] || "")}”`));
    const up = level && levels.path_of([levels.WHOLE, levels.WHOLE, { ...levels.WHOLE, stack: place.stack, layer: place.layer }, { ...place, key: -1 }][level]);
    crumbs.replaceChildren(...steps.flatMap((step, i) => (i ? [" › ", step] : [step])),
      level ? h("a", { class: "machine-up", href: `#machine${up}` }, "Up") : "");
    const last = crumbs.querySelectorAll("a:not(.machine-up)");
    last[last.length - 1].setAttribute("aria-current", "true");
    views.forEach((each, i) => {
      const here = ["", "search", "cache", "operate"][i] === app.panel;
      if (here) each.setAttribute("aria-current", "page");
      else each.removeAttribute("aria-current");
    });
  }

  async function draw() {
    const { view, place, row, panel } = app, level = levels.level_of(place);
    draw_words();
    draw_changes();
    draw_crumbs();
    for (const [name, { place: at }] of Object.entries(panels)) at.hidden = name !== panel;
    const with_picture = !panel || panel === "operate"; // operating is seen in the picture
    stage.hidden = numbers.hidden = !with_picture;
    crumbs.hidden = !level;
    predict.setAttribute("aria-pressed", String(predicting));
    if (["search", "cache"].includes(panel)) app.search();
    if (!with_picture) {
      beneath.replaceChildren();
      return;
    }
    tall = root.clientWidth > 0 && root.clientWidth < NARROW;
    const before = app.untouched !== view && app.untouched.source === view.source ? app.untouched : null;
    if (level >= 2 && (!app.found || view.edits.causal === false)) {
      if (!await app.look_into()) return;
      if (!app.found && level === 3) {
        stage.replaceChildren(h("p", { class: "machine-note" }, "The numbers of this weight come with the model. ",
          button(`Load the model (${app.size})`, () => app.load().catch(() => {}))));
        drawn = {};
        draw_beneath(level);
        return;
      }
    }
    if (level === 0 && drawn.view === view && drawn.tall === tall && drawn.before === before) step_to(row);
    else {
      const how = { row, step: row, tall };
      const old = before && app.found_before ? levels.numbers(before, place, app.found_before, row) : null;
      const tree = [() => levels.whole(view, { step: row, tall, before }), () => levels.layer(view, place, how),
        () => levels.head(view, place, app.found, { ...how, before: old }),
        () => levels.weight(view, place, app.found, { ...how, before: old })][level]();
      exchange(drawing(tree), level);
      drawn = { view, tall, before, level: level };
      if (level) drawn.view = null; // other levels are drawn for each row
    }
    for (const answer of stage.querySelectorAll(".choice")) make_choice(answer);
    draw_beneath(level);
    draw_table();
  }

  function drawing(tree) { // as text: faster than node by node
    const holder = h("div");
    holder.innerHTML = markup(tree);
    return holder.firstElementChild;
  }

  function step_to(step) { // level 0: only what is written, being written, to come
    for (const each of stage.querySelectorAll(".row")) {
      each.setAttribute("class", `row ${levels.row_class(Number(each.dataset.row), step)}`);
    }
  }

  // One zoom: the old picture grows away from the place that was chosen, the new one out
  // of it; and the other way around on the way up.
  let origin = "50% 50%";
  stage.addEventListener("pointerdown", ({ clientX, clientY }) => {
    const { left, top, width, height } = stage.getBoundingClientRect();
    origin = `${(100 * (clientX - left) / width).toFixed(0)}% ${(100 * (clientY - top) / height).toFixed(0)}%`;
  });
  function exchange(picture, level) {
    const old = stage.querySelector("svg"), down = level > (drawn.level || 0), moved = drawn.level !== undefined && level !== drawn.level;
    stage.replaceChildren(picture);
    picture.classList.toggle("tall", tall);
    if (!old || !moved || still_wanted() || !stage.isConnected) return;
    const ghost = h("div", { class: "machine-ghost", "aria-hidden": "true" }, old);
    stage.append(ghost);
    const far = `scale(${down ? 2.6 : 0.5})`, near = `scale(${down ? 0.5 : 1.8})`;
    const how = { duration: 320, easing: "ease-in-out" };
    for (const each of [ghost, picture]) each.style.transformOrigin = origin;
    ghost.animate([{ opacity: 1 }, { opacity: 0, transform: far }], how).onfinish = () => ghost.remove();
    picture.animate([{ opacity: 0, transform: near }, { opacity: 1, transform: "none" }], how);
  }

  function make_choice(choice) { // a likely token that can be forced
    if (!app.engine) return;
    const row = Number(choice.closest(".row").dataset.row), id = Number(choice.dataset.id);
    if (id === app.view.tgt[row]) return;
    choice.setAttribute("role", "button");
    choice.setAttribute("tabindex", "0");
    choice.setAttribute("aria-label", `Go on with “${choice.querySelector("tspan").textContent}” instead`);
    const force = () => app.set({ forced: [...app.view.tgt.slice(0, row), id], step: row });
    choice.onclick = force;
    choice.onkeydown = ({ key }) => { if (key === "Enter") force(); };
  }

  function draw_beneath(level) {
    const { place, view } = app, name = levels.name_of(place), parts = [];
    if (level === 0 && predicting) parts.push(ask());
    if (level === 0 && !predicting) parts.push(h("p", { class: "machine-says" }, looked_at()));
    if (level === 1) {
      parts.push(h("p", { class: "machine-says" }, place.stack === "encoder"
        ? "Each head looks at the whole sentence, and what it found is added to the word’s own strand. Open a head."
        : "Two looks, then a small network: each adds something to the strand. Below the strand’s ends: how long its vector is. Open a head."));
    }
    if (level >= 2) {
      const heads = h("div", { class: "machine-row machine-heads", role: "group", "aria-label": "The heads of this layer" },
        view.maps[name].map((_, i) => h("a", { href: `#machine${levels.path_of({ ...place, head: i })}`,
          "aria-current": i === place.head ? "true" : null, class: app.removed(name, i) ? "removed" : null }, String(i))),
        app.engine ? button(app.removed(name, place.head) ? "Put this head back" : "Cut this head",
          () => app.remove_head(name, place.head)) : h("small", {}, "Load the model to cut a head."));
      parts.push(h("p", { class: "machine-says" }, level === 2
        ? "The query meets every key; the closer the match, the more of that word’s value goes on. Open a row."
        : "Multiply feature by feature, add up, divide, and compare with the other keys."), heads);
    }
    beneath.replaceChildren(...parts);
  }

  /** What the step shows, in a sentence. */
  function looked_at() {
    const { view, row } = app, { src_labels, tgt_labels } = view, middle = levels.n_layers(view, "decoder") >> 1;
    const best = levels.most(levels.means(view)[`decoder.layers.${middle}.cross_attn`], row, src_labels.length, 2);
    const [first, second] = best.map(([share, key]) => `“${shown(src_labels[key])}” (${percent(share)})`);
    const found = best[0][0] > 0 ? `layer ${middle} of the decoder looked most at ${first} and ${second}` : "the decoder couldn’t look anywhere";
    return `Writing “${shown(tgt_labels[row])}” (${percent(Math.exp(view.log_probs[row]))}): ${found}.`;
  }

  // ---- Predict first

  let answered = null, asked_step = 0;
  function ask() {
    const { view, row } = app, [best] = view.next[row];
    const choices = view.next[row].slice(0, 5).map(({ id, label, p }) => ({ id, p, label: shown(label) }))
      .sort((a, b) => a.label.localeCompare(b.label, "en"));
    root.classList.toggle("machine-hides", !answered);
    if (answered) {
      const { choice } = answered;
      return h("div", { class: "machine-predict" }, h("p", {}, choice.id === best.id
        ? `Yes: “${choice.label}”, ${percent(choice.p)}. `
        : `You said “${choice.label}” (${percent(choice.p)}); the model says “${shown(best.label)}” (${percent(best.p)}). `,
      `Alike ${alike} of ${said}. `),
      row < view.tgt.length - 1 ? button("Next word", () => { answered = null; app.show({ step: row + 1 }); }) : "");
    }
    return h("div", { class: "machine-predict" }, h("p", {}, "Which word comes next? "),
      choices.map((choice) => button(choice.label, () => {
        said += 1;
        alike += Number(choice.id === best.id);
        answered = { choice };
        draw();
      })));
  }

  // ---- The numbers as a table

  function draw_table() {
    if (!numbers.open) return;
    const found = levels.table(app.view, app.place, app.found, { row: app.row });
    numbers.replaceChildren(numbers.firstChild, found ? scroller(found.caption, table_of(found)) : "");
  }

  // ---- The guide

  function lead(to) {
    guide = to;
    caption.hidden = guide < 0;
    root.classList.toggle("machine-guided", guide >= 0);
    for (const each of root.querySelectorAll(".machine-lit")) each.classList.remove("machine-lit");
    if (guide < 0) return;
    pause();
    const { go, words: text, control, chapter, href, step } = GUIDE[guide];
    if (step !== undefined) app.state.step = Math.min(Math.round(step * (app.view.tgt.length - 1)), app.view.tgt.length - 1);
    app.move(go(app));
    caption.replaceChildren(h("p", {}, e("b", {}, `${guide + 1} of ${GUIDE.length} `), text, " ", e("a", { href }, chapter)),
      h("div", { class: "machine-row" }, button("Back", () => lead(Math.max(0, guide - 1)), guide ? {} : { disabled: true }),
        button(guide < GUIDE.length - 1 ? "Next" : "Done", () => lead(guide < GUIDE.length - 1 ? guide + 1 : -1)),
        button("Full screen", full_screen)));
    const lit = control && root.querySelector(control);
    if (lit) lit.classList.add("machine-lit");
    say(text);
  }

  // ---- Keys: left and right are steps, Escape goes up

  root.addEventListener("keydown", (event) => {
    const from = /** @type {HTMLElement} */ (event.target);
    if (from.matches("input, select, textarea") || event.altKey || event.ctrlKey || event.metaKey) return;
    const { place } = app, level = levels.level_of(place);
    const key = place.stack === "encoder" ? "word" : "step";
    const to = app.row + { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const end = (place.stack === "encoder" ? app.view.src : app.view.tgt).length;
    if (to >= 0 && to < end) {
      event.preventDefault();
      pause();
      app.show({ [key]: to });
      if (level === 0) say(looked_at());
    } else if (event.key === "Escape" && level > 0 && !document.fullscreenElement) {
      event.preventDefault();
      crumbs.querySelector(".machine-up").click();
      stage.focus({ preventScroll: true });
    }
  });
  root.addEventListener("click", ({ target }) => { // going elsewhere ends the film
    if (playing && /** @type {Element} */ (target).closest("a, .machine-stage")) pause();
  });

  // ---- What the app tells

  app.on("progress", (share) => {
    bar.hidden = share === null;
    if (share !== null) bar.value = share;
    go_button.textContent = share === null ? "Translate" : `${Math.round(100 * share)}% of ${app.size}`;
    if (share === 0) say("The model is being loaded.");
    if (share === null && app.engine) say("The model is loaded.");
  });
  app.on("status", (text) => { status.textContent = text; });
  app.on("busy", (is) => root.toggleAttribute("aria-busy", is));
  app.on("writing", (text) => {
    words.replaceChildren(h("span", { class: "machine-word past" }, text));
  });
  app.on("state", () => {
    if (document.activeElement !== field || app.state.text === field.value) field.value = app.state.text;
    draw_changes();
  });
  app.on("place", () => {
    if (app.state.step !== asked_step) answered = null;
    asked_step = app.state.step;
    draw();
  });
  app.on("view", () => {
    const { view } = app, fresh = view.source !== last_text;
    last_text = view.source;
    reading = view.read || { pieces: 0 };
    const sure = view.log_probs.length ? Math.exp(view.log_probs.reduce((sum, x) => sum + x, 0) / view.log_probs.length) : 1;
    if (view.live) warn(view.source, reading.pieces || 0, sure);
    say([app.changes && `Changed: ${app.changes}.`, `Translation: ${view.text}`, app.beside].filter(Boolean).join(" "));
    if (fresh && !app.place.stack && !app.panel) play(PACE.own, 0);
    draw();
  });
  window.addEventListener("hashchange", () => {
    if (location.hash.includes("?")) {
      if (app.restore(location.hash)) app.update();
      app.tell("state");
      app.tell("place");
    } else if (location.hash.startsWith("#machine")) {
      app.restore(location.hash);
      app.share();
      app.tell("place");
    }
  });
  new ResizeObserver(() => {
    if ((root.clientWidth < NARROW) !== tall) draw();
  }).observe(root);

  draw();
  return { play };
}
