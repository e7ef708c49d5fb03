"use strict";
// The translator in the page. Each element of class "translator" shows one part of it;
// all parts of a page share one model, one sentence and one state. What is shown before
// the model is loaded comes from a small trace that the page brings along.
//
// A part is a function (element, app) in a file of its own, registered by name:
//   translator_part("heads", (element, app) => { app.on("view", () => ...); });

(() => {
  const builders = {};
  window.translator_part = (name, build) => { builders[name] = build; };

  // ---- Elements

  // h("button", { class: "x", onclick: act, "aria-label": "..." }, "text", child, ...)
  function h(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (value === true) element.setAttribute(name, "");
      else if (value !== false && value !== null && value !== undefined) {
        element.setAttribute(name, value);
      }
    }
    element.append(...children.flat().filter((child) => child !== null));
    return element;
  }

  const shown = (token) => (token === "▁" ? "␣" : token.replace(/^▁/, ""));
  const percent = (p) => (p > 0 && p < 0.005 ? "<1%" : `${Math.round(100 * p)}%`);

  // One tab stop for many: arrow keys go on inside. A grid gives the width of a row.
  function roving(container, selector, { width = () => 1, on_move = null } = {}) {
    const all = () => [...container.querySelectorAll(selector)];
    const mark = (chosen) => {
      for (const each of all()) each.tabIndex = each === chosen ? 0 : -1;
    };
    if (all().length) mark(all()[0]);
    container.addEventListener("keydown", (event) => {
      const items = all(), at = items.indexOf(event.target.closest(selector));
      const grid = width() > 1;
      const step = {
        ArrowRight: 1, ArrowLeft: -1, ArrowDown: width(), ArrowUp: -width(),
      }[event.key];
      let next = at + step;
      if (event.key === "Home") next = grid ? at - (at % width()) : 0;
      else if (event.key === "End") {
        next = grid ? at - (at % width()) + width() - 1 : items.length - 1;
      }
      if (at < 0 || !(next >= 0 && next < items.length)) return;
      event.preventDefault();
      mark(items[next]);
      items[next].focus();
      if (on_move) on_move(items[next]);
    });
    container.addEventListener("focusin", (event) => {
      const item = event.target.closest(selector);
      if (item) mark(item);
    });
  }

  // A map of attention weights as a table: rows are queries, columns are keys.
  //   { rows, columns: labels; weights: (rows * columns); caption; on_row(i) }
  function matrix({ rows, columns, weights, caption, on_row = null, row = -1 }) {
    const cell = (i, j) => {
      const weight = weights[i * columns.length + j];
      return h("td", {
        style: `--weight: ${(100 * weight).toFixed(1)}%`, role: "gridcell",
        "aria-label": `${shown(rows[i])} to ${shown(columns[j])}: ${weight.toFixed(2)}`,
        title: `${shown(rows[i])} → ${shown(columns[j])}: ${weight.toFixed(2)}`,
        onclick: on_row && (() => on_row(i)),
        onkeydown: on_row && ((event) => {
          if (event.key === "Enter" || event.key === " ") {
            event.preventDefault();
            on_row(i);
          }
        }),
      });
    };
    const table = h("table", { class: "tr-matrix", role: "grid", "aria-label": caption },
      h("thead", {}, h("tr", { role: "row" }, h("td", { role: "presentation" }),
        columns.map((label) => h("th", { scope: "col", role: "columnheader" },
          h("span", {}, shown(label)))))),
      h("tbody", {}, rows.map((label, i) =>
        h("tr", { role: "row", class: i === row ? "chosen" : null },
          h("th", { scope: "row", role: "rowheader" }, shown(label)),
          columns.map((_, j) => cell(i, j))))));
    roving(table, "[role=gridcell]", { width: () => columns.length });
    return scroller({}, table);
  }

  // A region that may be too small for what is in it: it fades out where there is more,
  // and is a tab stop only then, unless something in it is one already.
  const watched = new ResizeObserver((entries) => entries.forEach(({ target }) =>
    show_edges(target.closest(".tr-scroll"))));

  function show_edges(region) {
    if (!region) return;
    const { scrollLeft: left, scrollTop: top } = region;
    const right = region.scrollWidth - region.clientWidth - left;
    const below = region.scrollHeight - region.clientHeight - top;
    const edges = { left, right, top, below };
    region.dataset.more = Object.keys(edges).filter((name) => edges[name] > 1).join(" ");
    const stops = region.querySelector("[tabindex='0'], button, input");
    if (region.dataset.more && !stops) region.tabIndex = 0;
    else if (document.activeElement !== region) region.removeAttribute("tabindex");
  }

  function scroller(attributes, ...inside) { // the first thing inside stays
    const { class: more = "", ...others } = attributes;
    const region = h("div", { class: `tr-scroll ${more}`, ...others,
      onscroll: () => show_edges(region) }, ...inside);
    watched.observe(region);
    for (const each of region.children) watched.observe(each);
    return region;
  }

  // Bars for the shares of some labels, with their numbers: also the table of a row.
  function bars(items, { caption, on_choose = null, chosen = null }) {
    return h("table", { class: "tr-bars" }, h("caption", {}, caption), h("tbody", {},
      items.map(({ label, p, id }) => h("tr", { class: id === chosen ? "chosen" : null },
        h("th", { scope: "row" }, on_choose
          ? h("button", { type: "button", onclick: () => on_choose(id) }, shown(label))
          : shown(label)),
        h("td", {}, h("span", {
          class: "tr-bar", hidden: p === 0, style: `--share: ${(100 * p).toFixed(1)}%` })),
        h("td", { class: "tr-number" }, percent(p))))));
  }

  // A thumbnail of a map, in the colors of the page
  function thumbnail(canvas, weights, n_rows, n_columns) {
    if (!canvas.isConnected) return; // replaced in the meantime
    canvas.width = n_columns;
    canvas.height = n_rows;
    const style = getComputedStyle(canvas);
    const [ink, page] = [style.color, style.backgroundColor].map((color) =>
      color.match(/[\d.]+/g).slice(0, 3).map(Number));
    const context = canvas.getContext("2d");
    const image = context.createImageData(n_columns, n_rows);
    for (let i = 0; i < n_rows * n_columns; i++) {
      for (let c = 0; c < 3; c++) {
        image.data[4 * i + c] = page[c] + (ink[c] - page[c]) * weights[i];
      }
      image.data[4 * i + 3] = 255;
    }
    context.putImageData(image, 0, 0);
  }

  // ---- The engine: in a worker, or on this thread in small pieces

  function start_worker() {
    if (window.translator_without_worker) return null;
    try {
      const text = [transformer_engine, translator_tasks, translator_worker].join("\n");
      const source = new Blob([`"use strict";\n${text}\ntranslator_worker();`],
        { type: "text/javascript" });
      return new Worker(URL.createObjectURL(source));
    } catch (error) {
      return null;
    }
  }

  class Engine {
    constructor() {
      this.n = 0;
      this.waiting = new Map(); // id -> {resolve, reject, on_event}
      this.worker = start_worker();
      this.last = Promise.resolve();
      if (this.worker) {
        this.worker.onmessage = ({ data }) => this.hear(data);
        this.worker.onerror = (event) => {
          event.preventDefault();
          for (const { reject } of this.waiting.values()) {
            reject(new Error(event.message || "the worker stopped"));
          }
          this.waiting.clear();
        };
      } else {
        this.tasks = translator_tasks(transformer_engine()).tasks;
      }
    }

    hear({ id, event, answer, error }) {
      const asked = this.waiting.get(id);
      if (!asked) return;
      if (event) return asked.on_event && asked.on_event(event);
      this.waiting.delete(id);
      if (error !== undefined) asked.reject(new Error(error));
      else asked.resolve(answer);
    }

    ask(task, question, on_event) {
      if (this.worker) {
        return new Promise((resolve, reject) => {
          const id = ++this.n;
          this.waiting.set(id, { resolve, reject, on_event });
          this.worker.postMessage({ id, task, question });
        });
      }
      // one task after the other: they share the model
      const run = this.last.then(() => this.run(task, question, on_event));
      this.last = run.catch(() => {});
      return run;
    }

    async run(task, question, on_event) {
      const run = this.tasks[task](question), piece = 12; // ms between two pauses
      let until = performance.now() + piece;
      for (let step = run.next(); ; step = run.next()) {
        if (step.done) return step.value;
        if (step.value && on_event) on_event(step.value);
        if (performance.now() > until) {
          await new Promise((go_on) => {
            const { port1, port2 } = new MessageChannel();
            port1.onmessage = go_on;
            port2.postMessage(0);
          });
          until = performance.now() + piece;
        }
      }
    }
  }

  function load_script(address) {
    return new Promise((resolve, reject) => {
      document.head.append(h("script", { src: address, onload: resolve,
        onerror: () => reject(new Error(`the model couldn’t be loaded from ${address}`)),
      }));
    });
  }

  // The weights come as a script that calls a function; the engine comes before it.
  async function load_model({ engine, tasks, model }) {
    let data;
    window.transformer_model = (found) => { data = found; };
    for (const address of [engine, tasks, model]) await load_script(address);
    return data;
  }

  // ---- What all parts of a page share

  const START = {
    text: "", edits: {}, method: "greedy", n_beams: 4, length_penalty: 1,
    temperature: 1, top_p: 1, seed: 1, forced: [], reference: "",
  };

  const LIMITS = { // smallest and largest, or the choices
    method: ["greedy", "sample"], n_beams: [1, 8], length_penalty: [-1, 2],
    temperature: [0.1, 3], top_p: [0.05, 1], seed: [0, 2 ** 31],
  };

  let config; // the model's sizes, by the names of TransformerConfig

  // The names of all attentions, layer by layer: attentions("decoder", "cross_attn")
  function attentions(stack, ...kinds) {
    return Array.from({ length: config[`n_${stack}_layers`] }, (_, layer) =>
      kinds.map((kind) => `${stack}.layers.${layer}.${kind}`)).flat();
  }

  const KNOWN_EDITS = new Set(["src_positions", "tgt_positions", "causal"]);
  const ids = (list, end) => Array.isArray(list)
    && list.every((id) => Number.isInteger(id) && id >= 0 && id < end);

  function is_edits(edits) {
    return Object.entries(edits).every(([name, value]) => {
      if (name === "hide") return ids(value, config.max_len);
      if (name !== "without") return typeof value === "boolean" && KNOWN_EDITS.has(name);
      const known = [...attentions("encoder", "self_attn"),
        ...attentions("decoder", "self_attn", "cross_attn")];
      return value && Object.entries(value).every(([attention, heads]) =>
        known.includes(attention) && ids(heads, config.n_heads));
    });
  }

  // Whether a value out of an address is one that the state may have
  function is_like(known, value, limits) {
    if (Array.isArray(known)) return ids(value, config.tgt_vocab_size);
    if (typeof known !== typeof value || value === null) return false;
    if (typeof value === "number") return limits[0] <= value && value <= limits[1];
    if (limits) return limits.includes(value);
    if (typeof value === "object") return is_edits(value);
    return typeof value !== "string" || value.length <= 600;
  }

  class App {
    constructor(elements) {
      this.config = config;
      this.elements = elements;
      this.handlers = {};
      this.engine = null; // until the model is loaded
      this.view = {};
      for (const element of elements) { // each part brings its share of the trace
        const script = element.querySelector("script[type='application/json']");
        if (script) Object.assign(this.view, JSON.parse(script.textContent));
      }
      this.untouched = this.view;
      this.state = { ...START, text: this.view.source || "" };
      this.scripts = elements[0].dataset; // addresses: engine, tasks, model
      this.size = elements[0].dataset.size;
      this.shares = elements.some((each) => "share" in each.dataset);
      this.live = h("p", { class: "tr-live", "aria-live": "polite", role: "status" });
      elements[0].append(this.live);
      this.turn = 0;
    }

    on(name, handler) { // "view", "search", "state", "status", "writing"
      (this.handlers[name] ||= []).push(handler);
    }

    tell(name, what) {
      this.steadily(() => {
        for (const handler of this.handlers[name] || []) handler(what);
      });
    }

    // What the reader holds stays where it is on the screen, whatever grows above it.
    steadily(draw) {
      const held = () => {
        const at = document.activeElement;
        return this.elements.some((each) => each.contains(at)) ? at : null;
      };
      const place = (at) => at.getBoundingClientRect().top;
      const before = held() && place(held());
      draw();
      if (before === null || !held()) return;
      scrollBy({ top: place(held()) - before, behavior: "instant" });
      const { top, bottom } = held().getBoundingClientRect();
      if (bottom < 0 || top > innerHeight) held().scrollIntoView({ block: "nearest" });
    }

    say(text) {
      this.live.textContent = text;
    }

    has(part) {
      return this.elements.some((each) => each.dataset.part === part);
    }

    async load() {
      if (this.loading) return this.loading;
      this.loading = (async () => {
        this.status("Loading the model…");
        const data = await load_model(this.scripts);
        const engine = new Engine();
        ({ n_tokens: this.n_tokens } = await engine.ask("load", data));
        this.engine = engine;
        document.documentElement.classList.add("tr-loaded");
        this.status("The model is loaded.");
        this.tell("state");
        await this.update();
      })();
      this.loading.catch((error) => {
        this.loading = null;
        this.status(`That didn’t work: ${error.message}.`);
      });
      return this.loading;
    }

    status(text) {
      this.say(text);
      this.tell("status", text);
    }

    ask(task, question, on_event) {
      return this.engine.ask(task, question, on_event);
    }

    // Change the state, and translate again where there is a model
    set(changes) {
      if ("text" in changes && changes.text !== this.state.text) { // of the old sentence
        const edits = { ...this.state.edits, hide: undefined };
        changes = { edits, forced: [], reference: "", ...changes };
      }
      Object.assign(this.state, changes);
      this.share();
      this.tell("state");
      return this.update();
    }

    edit(changes) {
      return this.set({ edits: { ...this.state.edits, ...changes } });
    }

    get n_edits() {
      const { without = {}, hide = [], ...off } = this.state.edits;
      const heads = Object.values(without).reduce( // a layer that is cut counts once
        (sum, some) => sum + (some.length === config.n_heads ? 1 : some.length), 0);
      return heads + hide.length + Object.values(off).filter((x) => x === false).length;
    }

    removed(name, head) {
      return ((this.state.edits.without || {})[name] || []).includes(head);
    }

    remove_head(name, head) { // or put it back
      const without = { ...(this.state.edits.without || {}) };
      const some = without[name] || [];
      without[name] = some.includes(head)
        ? some.filter((each) => each !== head) : [...some, head].sort();
      return this.edit({ without });
    }

    undo_all() {
      const { temperature, top_p } = START;
      return this.set({ edits: {}, forced: [], method: "greedy", temperature, top_p });
    }

    // What differs from the model as it was trained, writing greedily; "" for nothing
    get changes() {
      const { edits, forced, method } = this.state, { without = {}, hide = [] } = edits;
      const several = (n, one, more) => n && `${n} ${n === 1 ? one : more}`;
      const sizes = Object.values(without).map((heads) => heads.length);
      const single = sizes.filter((n) => n < config.n_heads).reduce((sum, n) => sum + n, 0);
      return [
        several(single, "head removed", "heads removed"),
        several(sizes.filter((n) => n === config.n_heads).length, "block of heads removed",
          "blocks of heads removed"),
        several(hide.length, "source token hidden", "source tokens hidden"),
        edits.src_positions === false && "source positions off",
        edits.tgt_positions === false && "target positions off",
        edits.causal === false && "the causal mask off",
        forced.length && "a forced token", method === "sample" && "sampled tokens",
      ].filter(Boolean).join(", ");
    }

    // Beside a changed translation: what the untouched model wrote, where that is known
    get beside() {
      const { source, text } = this.untouched || {};
      if (!this.engine || !this.changes || source !== this.view.source) return "";
      return text === this.view.text ? "The same as without changes."
        : `Without changes: “${text}”`;
    }

    // A line in every part while something is changed
    banner() {
      const line = h("p", { class: "tr-changes", hidden: true });
      const undo = h("button", { type: "button", onclick: () => {
        this.undo_all(); // the button goes; the focus goes on to the part's first control
        const first = "[tabindex='0'], button:not([tabindex]), input, select, textarea";
        line.nextElementSibling.querySelector(first).focus({ preventScroll: true });
      } }, "Undo all");
      this.on("state", () => {
        line.hidden = !this.changes;
        line.replaceChildren(
          this.engine ? `Changed: ${this.changes}. `
            : `Once the model is loaded: ${this.changes}. `,
          this.engine ? undo : "");
      });
      return line;
    }

    // What makes a field one for a sentence: its button, what becomes of it, and go()
    sentence(field) {
      const go = () => {
        if (!field.value.trim()) return this.status("Type a German sentence first.");
        this.set({ text: field.value });
        return this.load().catch(() => {});
      };
      const button = h("button", { type: "button", class: "tr-go", onclick: go });
      const status = h("p", { class: "tr-status" });
      const name = () => {
        button.textContent = this.engine ? "Translate"
          : `Load the model (${this.size}) and translate`;
      };
      let last = field.value = this.state.text;
      field.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" || event.shiftKey) return;
        event.preventDefault();
        go();
      });
      this.on("status", (text) => {
        status.textContent = this.engine && /loaded/.test(text) ? "" : text;
        name();
      });
      this.on("state", () => {
        if (this.state.text !== last) last = field.value = this.state.text;
      });
      this.on("view", name);
      return { button, status, go };
    }

    // Where a part stands alone, in a chapter, it brings such a field along
    sentence_row() {
      const field = h("input", { type: "text", lang: "de", maxlength: 600,
        spellcheck: "false", id: "tr-field" });
      const { button, status } = this.sentence(field);
      return h("div", { class: "tr-own" }, h("label", { for: "tr-field" },
        "A German sentence"), h("div", { class: "tr-row" }, field, button), status);
    }

    // Translate the sentence of the state and look at everything. A later call makes
    // an earlier one give up.
    async update() {
      if (!this.engine) return;
      const turn = ++this.turn, { text, edits, forced, ...how } = this.state;
      const late = () => turn !== this.turn;
      try {
        const read = await this.ask("tokens", { text });
        if (late()) return;
        if (read.too_long) throw new Error(`the sentence has more than ${config.max_len} tokens`);
        const { src } = read;
        const written = await this.ask(
          "write", { src, edits, prefix: forced, ...how }, (event) => {
            if (!late()) this.tell("writing", { read, ...event });
          });
        if (late()) return;
        const seen = await this.ask("look", { src, tgt: written.ids, edits });
        if (late()) return;
        const { search } = this.view; // the old one stays until the new one is there
        this.view = { source: text, read, written, ...seen, search };
        if (!this.changes) this.untouched = this.view;
        this.tell("status", "");
        this.say([this.changes && `Changed: ${this.changes}.`,
          `Translation: ${this.view.text}`, this.beside].filter(Boolean).join(" "));
        this.tell("view");
        if (!this.has("search") && !this.has("cache")) return;
        const { n_beams, length_penalty } = this.state;
        const found = await this.ask("search", { src, edits, n_beams, length_penalty });
        if (late()) return;
        this.view.search = found;
        this.tell("search");
      } catch (error) {
        if (!late()) this.status(`That didn’t work: ${error.message}.`);
      }
    }

    // The whole state stands in the address, on the page that asks for it
    share() {
      if (this.shares) history.replaceState(null, "", this.address);
    }

    get address() {
      const drawn = ["temperature", "top_p", "seed"], { method } = this.state;
      const changed = Object.entries(this.state).filter(([name, value]) =>
        JSON.stringify(value) !== JSON.stringify(START[name])
        && (method === "sample" || !drawn.includes(name)));
      const text = changed.length ? JSON.stringify(Object.fromEntries(changed)) : "";
      const [page] = location.href.split("#");
      return text ? `${page}#translator=${encodeURIComponent(text)}` : page;
    }

    restore() {
      const [, text] = location.hash.match(/^#translator=(.*)/) || [];
      if (!this.shares || !text) return false;
      try {
        const found = JSON.parse(decodeURIComponent(text));
        for (const [name, value] of Object.entries(found)) {
          if (!(name in START) || !is_like(START[name], value, LIMITS[name])) {
            throw new Error(`${name} can’t be ${JSON.stringify(value)}`);
          }
        }
        Object.assign(this.state, found);
        return true;
      } catch (error) {
        this.status(`The address holds a state that can’t be read: ${error.message}.`);
        return false;
      }
    }
  }

  window.translator_kit = {
    h, shown, percent, roving, scroller, matrix, bars, thumbnail, attentions,
  };

  document.addEventListener("DOMContentLoaded", () => {
    const elements = [...document.querySelectorAll(".translator")];
    if (!elements.length) return;
    config = JSON.parse(elements[0].dataset.config);
    const app = new App(elements);
    window.translator_app = app;
    app.restore();
    for (const element of elements) {
      const body = h("div", { class: "tr-part" });
      element.append(app.has("type") ? "" : app.sentence_row(), app.banner(), body);
      builders[element.dataset.part](body, app);
      element.classList.add("tr-alive");
    }
    app.tell("view");
    app.tell("search");
    app.tell("state");
    window.addEventListener("hashchange", () => { // another link, in the same tab
      if (!location.hash.startsWith("#translator=")) return;
      Object.assign(app.state, START, { text: app.view.source || "" });
      app.restore();
      app.tell("state");
      app.update();
    });
  });
})();
