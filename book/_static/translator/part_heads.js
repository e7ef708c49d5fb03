"use strict";
// Every head of every layer as a thumbnail; one enlarged, one of its rows as bars.

translator_part("heads", (element, app) => {
  const { h, shown, matrix, bars, roving, thumbnail, attentions } = translator_kit;
  const KINDS = [
    ["encoder", "self_attn", "Encoder, self-attention", "source", "source"],
    ["decoder", "self_attn", "Decoder, self-attention", "target", "target"],
    ["decoder", "cross_attn", "Decoder, cross-attention", "target", "source"],
  ];
  const { n_heads } = app.config;
  const n_attentions = KINDS.flatMap(([stack, kind]) => attentions(stack, kind)).length;
  const start = element.parentElement.dataset;
  const cross = attentions("decoder", "cross_attn");
  let chosen = { name: start.block || cross[cross.length >> 1],
    head: Number(start.head || 0), row: 0 };
  const board = h("div", { class: "tr-board", role: "toolbar",
    "aria-label": `All heads: ${n_attentions} rows of ${n_heads}` });
  const large = h("div", { class: "tr-large" });
  element.append(board, large);
  roving(board, ".tr-thumb-button", { width: () => n_heads });

  const title = (name, head) => {
    const [stack, , layer, kind] = name.split(".");
    const [, , text] = KINDS.find((each) => each[0] === stack && each[1] === kind);
    return `${text}, layer ${layer}, head ${head}`;
  };

  // Labels of the rows and columns of an attention. The decoder reads <bos> first; its
  // rows say what it has just read and what it writes there.
  function axes(name) {
    const { src_labels, tgt_labels } = app.view;
    const read = ["<bos>", ...tgt_labels.slice(0, -1)];
    if (name.startsWith("encoder")) return [src_labels, src_labels];
    const rows = read.map((label, i) => `${shown(label)} → ${shown(tgt_labels[i])}`);
    return [rows, name.endsWith("self_attn") ? read : src_labels];
  }

  function draw() {
    const { maps } = app.view;
    if (!maps) return;
    const { name, head } = document.activeElement.dataset, held = name
      && board.contains(document.activeElement);
    board.replaceChildren(...KINDS.map(([stack, kind, text]) => {
      const names = Object.keys(maps).filter((name) =>
        name.startsWith(stack) && name.endsWith(kind));
      return h("section", { "aria-label": text }, h("h3", {}, text),
        h("div", { class: "tr-block tr-note", "aria-hidden": "true" }, h("span", {}, "head"),
          maps[names[0]].map((_, head) => h("span", {}, String(head)))),
        names.map((name) => block(name)));
    }));
    enlarge();
    if (held) {
      const same = `[data-name="${name}"][data-head="${head}"]`;
      board.querySelector(same).focus({ preventScroll: true });
    }
  }

  function block(name) {
    const [rows, columns] = axes(name);
    const layer = name.split(".")[2];
    const canvases = app.view.maps[name].map((weights, head) => {
      const canvas = h("canvas", { class: "tr-thumb", "aria-hidden": "true" });
      const removed = app.removed(name, head);
      const says = title(name, head) + (removed ? ", removed" : "");
      return h("button", {
        type: "button", "aria-label": says, title: says,
        "data-name": name, "data-head": head,
        class: `tr-thumb-button${removed ? " removed" : ""}`,
        onclick: () => open(name, head),
        onkeydown: (event) => {
          if (event.key !== "Delete") return;
          if (!app.engine) return app.status("Load the model first.");
          open(name, head);
          app.remove_head(name, head);
        },
      }, canvas);
    });
    const line = h("div", { class: "tr-block" },
      h("span", { class: "tr-layer" }, `layer ${layer}`), canvases);
    requestAnimationFrame(() => canvases.forEach((button, head) => thumbnail(
      button.firstChild, app.view.maps[name][head], rows.length, columns.length)));
    return line;
  }

  function open(name, head) {
    chosen = { name, head, row: chosen.row };
    enlarge();
    large.scrollIntoView({ block: "nearest" });
    app.say(`${title(name, head)} is open. ${tell_row()}`);
  }

  function tell_row() { // the two largest weights of the chosen row
    const rows = [...large.querySelectorAll(".tr-bars tr")];
    if (!rows.length) return "It is removed.";
    const said = rows.map((row) => [row.cells[0].textContent, row.cells[2].textContent]);
    const best = said.sort((a, b) => parseFloat(b[1]) - parseFloat(a[1])).slice(0, 2);
    return `${large.querySelector(".tr-bars caption").textContent} ` +
      best.map(([label, share]) => `“${label}” (${share})`).join(" and ") + ".";
  }

  function enlarge() {
    const { maps } = app.view;
    if (!maps[chosen.name]) [chosen.name] = Object.keys(maps);
    const { name, head } = chosen;
    const [rows, columns] = axes(name), weights = maps[name][head];
    chosen.row = Math.min(chosen.row, rows.length - 1);
    for (const button of board.querySelectorAll("button")) {
      const here = button.dataset.name === name && Number(button.dataset.head) === head;
      button.setAttribute("aria-pressed", String(here));
      button.tabIndex = here ? 0 : -1;
    }
    const row = Array.from(columns, (label, k) =>
      ({ label, p: weights[chosen.row * columns.length + k] }));
    const caption = title(name, head);
    const removed = app.removed(name, head);
    const held = large.contains(document.activeElement)
      && document.activeElement.matches("button");
    large.replaceChildren(
      h("h3", {}, caption),
      h("div", { class: "tr-row" },
        h("button", { type: "button", disabled: !app.engine, "aria-describedby": "tr-key",
          onclick: () => app.remove_head(name, head) },
        removed ? "Put this head back" : "Remove this head"),
        app.engine ? null : h("small", {}, "Load the model first.")),
      h("p", { class: "tr-words" }, app.view.text), h("p", {}, app.beside),
      removed ? h("p", {}, "This head is removed: it looks nowhere and adds nothing.") : "",
      h("div", { class: columns.length > 9 ? "tr-tower" : "tr-pair" },
        matrix({ rows, columns, weights, caption, row: chosen.row,
          on_row: (i) => {
            chosen.row = i;
            enlarge();
            focus_row(i);
            app.say(tell_row());
          } }),
        removed ? "" : bars(row, { caption: `“${shown(rows[chosen.row])}” looks at` })),
      app.engine && app.state.edits.causal === false ? h("p", { class: "tr-warning" },
        "The causal mask is off. The maps show the finished translation, read once more: " +
        "when a token was written, those after it didn’t exist.") : "",
      h("p", { class: "tr-note", id: "tr-key" },
        "Choose a row to see it as bars. Keyboard: arrow keys move, Enter opens a head or a " +
        "row, Delete removes a head or puts it back."),
      name.startsWith("decoder") ? h("p", { class: "tr-note" },
        "Before the arrow is the token just read; after it, the one being written.") : "");
    if (held) keep_focus();
  }

  // Who has removed a head by key goes on from there
  const keep_focus = () => large.querySelector("button").focus({ preventScroll: true });

  function focus_row(i) {
    const cells = large.querySelectorAll(`tbody tr:nth-child(${i + 1}) [role=gridcell]`);
    if (cells.length) cells[0].focus({ preventScroll: true });
  }

  app.on("view", draw);
  app.on("state", () => { if (app.view.maps) draw(); });
  new MutationObserver(() => { if (app.view.maps) draw(); }).observe(
    document.documentElement, { attributeFilter: ["data-theme"] });
});
