"use strict";
// One step of writing: what each layer would answer at a position of the translation,
// and the likeliest next tokens, to be reshaped, drawn from, or chosen by hand.

translator_part("step", (element, app) => {
  const { h, shown, percent, roving, scroller, bars } = translator_kit;
  const DELAY = 150; // ms of rest before the model is asked
  const RANKS = ["1st", "2nd", "3rd"];
  let position = Number(element.parentElement.dataset.position || 0);
  let asked = 0, timer = null, adopted = "", message = "";

  const toolbar = h("div", { class: "tr-chips", role: "toolbar",
    "aria-label": "Positions of the translation" });
  const mark_note = h("p", { class: "tr-note" });
  const stages = h("div");
  const tokens = h("div");
  const left = h("p");
  const hint = h("span", { class: "tr-note" }, "Load the model to change things here.");
  const load = h("button", { type: "button", onclick: () => app.load().catch(() => {}) });
  const hints = h("div", { class: "tr-row" }, load, hint);
  const temperature = slider("Temperature", { min: 0.1, max: 2, step: 0.1 });
  const top_p = slider("Top-p", { min: 0.05, max: 1, step: 0.05 });
  const draw_button = h("button", { type: "button", onclick: sample },
    "Sample a translation");
  const greedy = h("button", { type: "button",
    onclick: () => app.set({ method: "greedy" }) }, "Back to greedy");
  const release = h("button", { type: "button",
    onclick: () => app.set({ forced: [] }) }, "Let the model choose again");
  const words = h("p", { class: "tr-words", lang: "en" }), beside = h("p", {});
  const how = h("p", { class: "tr-note" });
  element.append(
    h("div", { class: "tr-row" }, toolbar, release), mark_note,
    h("div", { class: "tr-pair" },
      h("div", {}, stages),
      h("div", {}, tokens, hints,
        h("div", { class: "tr-sliders", role: "group",
          "aria-label": "Reshape the probabilities" }, temperature.row, top_p.row),
        left, h("div", { class: "tr-row" }, draw_button, greedy), words, beside, how)));
  roving(toolbar, "button", { on_move: (chip) => choose(Number(chip.dataset.position)) });

  function slider(name, range) {
    const value = h("output");
    const input = h("input", { type: "range", ...range, value: 1,
      oninput: () => { show_value(); reshape(true); } });
    const show_value = () => { value.textContent = Number(input.value).toFixed(2); };
    const set = (number) => { input.value = number; show_value(); };
    set(1);
    return { input, set, row: h("label", {}, h("span", {}, name), input, value) };
  }

  const shape = () =>
    ({ temperature: Number(temperature.input.value), top_p: Number(top_p.input.value) });

  // Before the model is loaded, all is as in the trace, whatever the address says.
  const state = () => (app.engine ? app.state : { method: "greedy", forced: [] });

  function sample() {
    app.set({ method: "sample", ...shape(), seed: app.state.seed + 1 });
  }

  function force(id) {
    app.set({ forced: [...app.view.tgt.slice(0, position), id] });
  }

  // ---- Positions

  // Whether a token was given to the model: all up to the last forced one stay as they
  // are, but most of those it would have chosen itself.
  function mark_of(i) {
    const { forced } = state(), { tgt, next } = app.view;
    if (i >= forced.length) return "";
    return i === forced.length - 1 || next[i][0].id !== tgt[i] ? "forced" : "kept";
  }

  function draw_toolbar() {
    const { tgt_labels, log_probs } = app.view;
    toolbar.replaceChildren(...tgt_labels.map((label, i) => {
      const mark = mark_of(i), share = percent(Math.exp(log_probs[i]));
      return h("button", { type: "button", "data-position": i,
        class: `tr-chip target${mark === "forced" ? " changed" : ""}`,
        "aria-label": [shown(label), share, mark].filter(Boolean).join(", "),
        onclick: () => choose(i) },
      h("span", {}, shown(label)), h("small", {}, mark ? `${share}, ${mark}` : share));
    }));
    mark_chosen();
    mark_note.textContent = state().forced.length
      ? "Forced: given to the model instead of its own choice. Kept: stays because a " +
        "later token is forced." : "";
  }

  function mark_chosen() {
    [...toolbar.children].forEach((chip, i) => {
      chip.setAttribute("aria-pressed", String(i === position));
      chip.tabIndex = i === position ? 0 : -1;
    });
  }

  function choose(i) {
    position = i;
    mark_chosen();
    draw_position();
    const first = app.view.next[i].slice(0, 3).map(({ label, p }) =>
      `“${shown(label)}” (${percent(p)})`);
    app.say(`Likeliest here: ${first.join(", ")}. ${formed()}`);
  }

  // ---- What the layers would answer

  function formed() {
    const { layers } = app.view, n = layers.length;
    const tops = layers.map((stage) => stage[position][0]);
    let first = n - 1;
    while (first > 0 && tops[first - 1].id === tops[n - 1].id) first--;
    const token = `“${shown(tops[n - 1].label)}”`;
    if (first === 0) return `${token} is first in every row.`;
    if (first === n - 1) return `${token} is first only after the last layer.`;
    return `${token} is first from layer ${first - 1} on.`;
  }

  function draw_stages() {
    const { layers, tgt, tgt_labels } = app.view;
    const name = (stage) => (stage ? `after layer ${stage - 1}` : "embeddings");
    const cell = ({ id, label, p }) => h("td", {
      class: id === tgt[position] ? "written" : null,
      style: `--weight: ${(100 * p).toFixed(1)}%` },
    h("span", {}, shown(label)), h("small", {}, percent(p)));
    const rows = layers.map((stage, i) => h("tr", {},
      h("th", { scope: "row" }, name(i)), stage[position].map(cell)));
    const before = position ? tgt_labels[position - 1] : "<bos>";
    stages.replaceChildren(
      scroller({ role: "region", "aria-label": "What each layer would answer" },
      h("table", { class: "tr-stages" },
        h("caption", {}, `What each layer would answer after “${shown(before)}”, ` +
          "from bottom to top. Framed: " +
          `“${shown(tgt_labels[position])}”, the token written.`),
        h("thead", {}, h("tr", {}, h("td"),
          RANKS.map((rank) => h("th", { scope: "col" }, rank)))),
        h("tbody", {}, rows.reverse()))),
      h("p", {}, formed()));
  }

  // ---- The next token

  function draw_tokens() {
    const { next, tgt, tgt_labels, log_probs } = app.view, written = tgt[position];
    const among = next[position].some(({ id }) => id === written);
    const label = shown(tgt_labels[position]);
    const table = bars(next[position], {
      caption: "The ten likeliest tokens here." +
        (app.engine ? " Choose one, and the translation continues from there." : "") +
        (among ? ` Written: “${label}”.` : ` Written: “${label}”, ` +
          `${percent(Math.exp(log_probs[position]))}, not among them.`),
      chosen: written, on_choose: app.engine ? force : null });
    next[position].forEach(({ id }, i) => {
      const button = table.tBodies[0].rows[i].querySelector("button");
      if (!button) return;
      button.dataset.id = id;
      button.setAttribute("aria-label", `${button.textContent}, ${percent(next[position][i].p)}`);
      if (id === written) button.setAttribute("aria-current", "true");
    });
    tokens.replaceChildren(table);
    roving(table, "button");
  }

  // Temperature and top-p keep the order of the tokens, so the rows stay.
  function show_shares(found) {
    const table = tokens.firstChild, { top_p } = shape();
    app.view.next[position].forEach(({ id, p }, i) => {
      const hit = found && found.find((each) => each.id === id && each.p > 0);
      const share = found ? (hit ? hit.p : 0) : p;
      const [, , number] = table.tBodies[0].rows[i].cells;
      const bar = table.tBodies[0].rows[i].querySelector(".tr-bar");
      bar.style.setProperty("--share", `${(100 * share).toFixed(1)}%`);
      bar.hidden = found && !hit;
      const text = found && !hit ? (top_p < 1 ? "out" : "<1%") : percent(share);
      const own = found ? [h("small", {}, ` (${percent(p)})`)] : [];
      number.replaceChildren(text, ...own);
    });
  }

  function reshape(by_hand = false) {
    const turn = ++asked, now = shape();
    clearTimeout(timer);
    if (!app.engine || (now.temperature === 1 && now.top_p === 1)) {
      show_shares(null);
      left.textContent = app.engine ? "No tokens are left out." : "";
      return;
    }
    const { src, tgt } = app.view;
    const question = { src, tgt: tgt.slice(0, position), edits: app.state.edits, ...now };
    timer = setTimeout(async () => {
      try {
        const { next, n_left } = await app.ask("next", question);
        if (turn !== asked) return;
        show_shares(next);
        left.textContent = (now.top_p < 1
          ? `${n_left} of ${app.n_tokens} tokens ${n_left === 1 ? "remains" : "remain"}.`
          : "No tokens are left out.") + " In parentheses: the model’s own probabilities.";
        const [{ label, p }] = next;
        if (by_hand) app.say(`“${shown(label)}” is at ${percent(p)}. ${left.textContent}`);
      } catch (error) {
        if (turn === asked) left.textContent = `That didn’t work: ${error.message}.`;
      }
    }, by_hand ? DELAY : 0);
  }

  // ---- All of it

  function draw_position() {
    draw_stages();
    draw_tokens();
    reshape();
  }

  // Sliders follow the state where it was set elsewhere, in the address say.
  function adopt() {
    const { temperature: heat, top_p: share } = app.state, text = `${heat} ${share}`;
    if (!app.engine || text === adopted) return;
    adopted = text;
    temperature.set(heat);
    top_p.set(share);
  }

  function draw_controls() {
    const { method, forced, temperature: heat, top_p: share, seed } = state();
    for (const each of [temperature.input, top_p.input, draw_button]) {
      each.disabled = !app.engine;
    }
    hints.hidden = Boolean(app.engine);
    load.textContent = app.loading
      ? "Loading the model…" : `Load the model (${app.size})`;
    greedy.hidden = method === "greedy";
    release.hidden = !forced.length;
    const rest = forced.length ? "The rest is " : "";
    how.textContent = message || rest + (method === "greedy"
      ? `${rest ? "w" : "W"}ritten greedily: the likeliest token each time.`
      : `${rest ? "s" : "S"}ampled with temperature ${heat}, top-p ${share}, ` +
        `seed ${seed}.`);
  }

  // Who had the focus keeps it, or hands it on to what has taken its place.
  function keep_focus(redraw) {
    const held = document.activeElement;
    if (!element.contains(held)) return redraw();
    const [in_tokens, in_toolbar, in_stages] = [tokens, toolbar, stages].map(
      (each) => each.contains(held));
    const { id } = held.dataset;
    redraw();
    let heir = null;
    if (in_toolbar || (held === release && release.hidden)) {
      heir = toolbar.children[position];
    } else if (in_tokens) {
      heir = tokens.querySelector(`[data-id="${id}"]`) || tokens.querySelector("button");
    } else if (in_stages) {
      heir = stages.querySelector("[tabindex]");
    } else if (held === load && hints.hidden) {
      heir = toolbar.children[position];
    } else if (held === greedy && greedy.hidden) {
      heir = draw_button;
    }
    if (heir) heir.focus({ preventScroll: true });
  }

  function draw() {
    if (!app.view.next || !app.view.layers) return;
    position = Math.min(position, app.view.tgt.length - 1);
    keep_focus(() => {
      message = "";
      adopt();
      draw_controls();
      words.textContent = app.view.text;
      beside.textContent = app.beside;
      draw_toolbar();
      draw_position();
    });
  }

  app.on("view", draw);
  app.on("state", () => keep_focus(() => { adopt(); draw_controls(); }));
  app.on("status", (text) => {
    message = text;
    keep_focus(draw_controls);
  });
  app.on("writing", ({ text }) => { words.textContent = text; });
});
