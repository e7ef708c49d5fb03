"use strict";
// Reach into the model: switch off, hide, cut and remove; and beside the untouched model
// what becomes of its translation, and of the loss of a translation that is given.

translator_part("operate", (element, app) => {
  const { h, shown, roving, scroller, attentions } = translator_kit;
  const SWITCHES = [
    ["src_positions", "Source positions"],
    ["tgt_positions", "Target positions"],
    ["causal", "Causal mask"],
  ];
  const MANY = app.config.max_len; // tokens of a translation
  const LISTED = 6; // tokens of a list in a sentence
  const nats = (x) => x.toFixed(2).replace(/^-0\.00$/, "0.00");
  const signed = (a, b) => { // the difference of what is shown, not of hidden digits
    const x = nats(b) - nats(a);
    return `${x > 0.001 ? "+" : x < -0.001 ? "−" : ""}${Math.abs(x).toFixed(2)}`;
  };
  const quoted = (labels) =>
    labels.slice(0, LISTED).map((label) => `“${shown(label)}”`).join(", ") +
    (labels.length > LISTED ? `, and ${labels.length - LISTED} more` : "");
  const changes = (n) => (n === 1 ? "1 change" : `${n} changes`);

  // What the app shows now, as an answer of the task "write"
  const written = ({ tgt: ids, tgt_labels: labels, text, written: { finished } = {} }) =>
    ({ ids, labels, text, finished: finished !== false });
  let kept = { key: "", before: { text: "" } }; // the untouched model’s translation
  let result = null, turn = 0, acted = false; // acted: here, so say what came of it

  const act = (change) => { acted = true; return change(); };
  const edit = (some) => act(() => app.edit(some)); // undefined: as it was trained

  // ---- Controls

  const switches = SWITCHES.map(([name, text]) => {
    const says = h("span");
    const box = h("input", { type: "checkbox",
      onchange: () => edit({ [name]: box.checked ? undefined : false }) });
    return { name, box, says, label: h("label", { class: "tr-switch" }, box,
      h("span", {}, `${text}: `, says)) };
  });
  const toolbar = (label) => {
    const row = h("div", { class: "tr-chips", role: "toolbar", "aria-label": label });
    roving(row, "button");
    return row;
  };
  const tokens = toolbar("Hide source tokens");
  const cuts = toolbar("Cut cross-attention");
  const removed = toolbar("Put removed heads back");
  const none = h("small");
  const undo = h("button", { type: "button", onclick: () => act(() => app.undo_all()) });
  const field = h("input", { type: "text", id: "tr-reference", lang: "en",
    spellcheck: "false", maxlength: 400, "aria-describedby": "tr-reference-hint",
    onchange: () => {
      const text = field.value.trim(), own = kept.before.text;
      if (!text) field.value = own;
      act(() => app.set({ reference: text === own ? "" : text }));
    } });
  const group = (title, ...children) => h("div", {}, h("h3", {}, title), children);
  const single = group("Removed heads", removed, none);
  const controls = h("fieldset", { class: "tr-controls" },
    h("legend", { class: "tr-live" }, "Change the model"),
    group("Switch on or off", h("div", { class: "tr-row" },
      switches.map((each) => each.label))),
    group("Hide source tokens: no head can look at them", tokens),
    group("Cut cross-attention: the decoder’s view of the source", cuts),
    single,
    h("div", { class: "tr-row" }, undo),
    h("h3", {}, h("label", { for: "tr-reference" }, "A translation to score")),
    h("div", { class: "tr-row tr-own" }, field,
      h("button", { type: "button" }, "Score it")), // leaving the field does it
    h("small", { id: "tr-reference-hint" },
      "Leave it empty to score the untouched model’s own translation."));

  const load = h("div", { class: "tr-row" },
    h("button", { type: "button", class: "tr-go",
      onclick: () => app.load().catch(() => {}) }, `Load the model (${app.size})`),
    h("small", {}, "The controls below need it."));
  const status = h("p", { class: "tr-status" });
  const results = h("div", { class: "tr-results" });
  const address = h("input", { type: "text", readonly: true,
    "aria-label": "Address of this page with its changes" });
  const copied = h("small");
  const copy = h("button", { type: "button", onclick: copy_link }, "Copy link");
  element.append(app.has("type") ? load : "", controls, status, results,
    app.shares ? h("div", { class: "tr-row" }, copy, copied) : "");

  async function copy_link() {
    try {
      await navigator.clipboard.writeText(app.address);
      copied.textContent = "Link copied. It holds the sentence and the changes.";
    } catch (error) { // no clipboard in a page opened from a file
      copied.textContent = "Copy the address from this field:";
      address.value = app.address;
      copied.after(address);
      address.focus();
      address.select();
    }
    app.say(copied.textContent);
  }

  // Buttons are made anew only if their labels change; the focus keeps its place.
  function fill(row, items) {
    const key = JSON.stringify(items.map((item) => item.label));
    row.items = items;
    if (row.key !== key) {
      row.key = key;
      const at = [...row.children].indexOf(document.activeElement);
      const stop = Math.max(0, Math.min(at, items.length - 1));
      row.replaceChildren(...items.map(({ label, kind }, i) => h("button", {
        type: "button", class: kind, tabindex: i === stop ? 0 : -1,
        onclick: () => row.items[i].act() }, label)));
      if (at >= 0) (row.children[stop] || undo).focus({ preventScroll: true });
    }
    items.forEach(({ pressed }, i) => {
      if (pressed !== undefined) row.children[i].setAttribute("aria-pressed", pressed);
    });
  }

  function draw_tokens() {
    const { src_labels = [] } = app.view;
    const here = app.engine || app.state.text === app.view.source;
    const hide = here ? app.state.edits.hide || [] : []; // else of another sentence
    fill(tokens, src_labels.map((label, k) => ({
      label: shown(label), kind: "tr-chip source", pressed: hide.includes(k),
      act: () => {
        const next = hide.includes(k) ? hide.filter((x) => x !== k) : [...hide, k];
        edit({ hide: next.length ? next.sort((a, b) => a - b) : undefined });
      },
    })));
  }

  const N_HEADS = app.config.n_heads, CROSS = attentions("decoder", "cross_attn");
  const n_removed = (name) => ((app.state.edits.without || {})[name] || []).length;
  const is_cut = (name) => n_removed(name) >= N_HEADS;
  const cut = (names, off) => edit({ without: { ...app.state.edits.without,
    ...Object.fromEntries(names.map((name) =>
      [name, off ? [...Array(N_HEADS).keys()] : []])) } });

  function draw_heads() {
    const layers = CROSS;
    const all = layers.every(is_cut);
    fill(cuts, [
      ...layers.map((name) => ({ label: `layer ${name.split(".")[2]}`, kind: "tr-chip",
        pressed: is_cut(name), act: () => cut([name], !is_cut(name)) })),
      { label: "all layers", kind: "tr-chip", pressed: all,
        act: () => cut(layers, !all) },
    ]);
    const some = Object.entries(app.state.edits.without || {}).filter(([name]) =>
      !(layers.includes(name) && is_cut(name))); // cuts say it
    fill(removed, some.flatMap(([name, heads]) => heads.map((head) => ({
      label: `Put back ${title(name, head)}`, kind: "tr-chip",
      act: () => act(() => app.remove_head(name, head)) }))));
    const empty = removed.children.length === 0;
    single.hidden = empty && !app.has("heads");
    none.hidden = !empty;
    none.textContent = layers.some(is_cut)
      ? "None besides those that are cut." : "None. To remove heads, use the part that shows all of them.";
  }

  function title(name, head) {
    const [stack, , layer, kind] = name.split(".");
    const text = kind === "self_attn" ? "self-attention" : "cross-attention";
    return `${stack} ${text}, layer ${layer}, head ${head}`;
  }

  function draw_controls() {
    controls.disabled = !app.engine;
    if (app.engine && load.isConnected) {
      const had_focus = load.contains(document.activeElement);
      load.remove();
      if (had_focus) switches[0].box.focus({ preventScroll: true });
    }
    for (const { name, box, says } of switches) {
      box.checked = app.state.edits[name] !== false;
      says.textContent = box.checked ? "on" : "off";
    }
    draw_tokens();
    draw_heads();
    undo.textContent = `Undo all (${app.n_edits ? changes(app.n_edits) : "no changes"})`;
    if (document.activeElement !== field) {
      field.value = app.engine ? app.state.reference || kept.before.text : "";
    }
    if (address.isConnected) address.value = app.address;
  }

  // ---- What becomes of it

  // The places in a and in b that their longest common subsequence leaves out
  function differing(a, b) {
    const best = Array.from({ length: a.length + 1 }, () => Array(b.length + 1).fill(0));
    for (let i = a.length - 1; i >= 0; i--) {
      for (let j = b.length - 1; j >= 0; j--) {
        best[i][j] = a[i] === b[j]
          ? best[i + 1][j + 1] + 1 : Math.max(best[i + 1][j], best[i][j + 1]);
      }
    }
    const only_a = [], only_b = [];
    for (let i = 0, j = 0; i < a.length || j < b.length;) {
      if (i < a.length && j < b.length && a[i] === b[j]) { i++; j++; }
      else if (j === b.length || (i < a.length && best[i + 1][j] >= best[i][j + 1])) {
        only_a.push(i++);
      } else only_b.push(j++);
    }
    return [only_a, only_b];
  }

  // Ask for what the untouched model does with the same sentence, and for both losses.
  async function measure() {
    const mine = ++turn, late = () => mine !== turn;
    const { text, edits, forced, reference, ...how } = app.state;
    const { src } = app.view, n = app.n_edits, after = written(app.view);
    try {
      const key = JSON.stringify([src, forced, how]);
      if (!n) kept = { key, before: after };
      if (kept.key !== key) {
        const before = await app.ask("write", { src, edits: {}, prefix: forced, ...how });
        if (late()) return;
        kept = { key, before };
      }
      const { before } = kept;
      const scored = reference ? await app.ask("encode", { text: reference }) : before;
      if (late()) return;
      if (scored.ids.length > MANY) {
        throw new Error(`the translation has more than ${MANY} tokens`);
      }
      const loss = (some) => app.ask("loss", { src, tgt: scored.ids, edits: some });
      const untouched = await loss({});
      if (late()) return;
      const changed = n ? await loss(edits) : null;
      if (late()) return;
      result = { before, after: n ? after : null, n, own: !reference,
        alike: forced.length || how.method === "sample", causal: edits.causal !== false,
        labels: scored.labels, untouched, changed };
      status.textContent = "";
      draw_controls();
      draw_results();
      if (acted) { // else another part may have more to say
        app.say(`${live_text()} Loss: ${nats(untouched.mean)} untouched` +
          (changed ? `, ${nats(changed.mean)} with ${changes(n)}.` : "."));
      }
      acted = false;
    } catch (error) {
      if (!late()) app.status(`That didn’t work: ${error.message}.`);
    }
    if (!late()) results.removeAttribute("aria-busy");
  }

  const live_text = () => app.live.textContent.replace(/ Loss: .*/, "");

  // Before the model is loaded: the stored translation and what it cost
  function show_trace() {
    const { tgt, tgt_labels, log_probs } = app.view;
    if (!tgt || !log_probs) return;
    const each = log_probs.map((x) => -x);
    const mean = each.reduce((sum, x) => sum + x, 0) / each.length;
    kept.before = written(app.view);
    result = { before: kept.before, after: null, n: 0, own: true, causal: true,
      labels: tgt_labels, untouched: { nats: each, mean }, changed: null };
    if (app.n_edits || app.state.reference || app.state.text !== app.view.source) {
      status.textContent = "The address of this page contains its own sentence or " +
        "changes. You’ll see them once the model is loaded.";
    }
    draw_results();
  }

  function column(heading, { ids, labels, text, finished }, different) {
    return h("section", { "aria-label": heading }, h("h3", {}, heading),
      h("p", { class: "tr-words", lang: "en" }, text || "(no words)"),
      h("ol", { class: "tr-chips", "aria-label": "Its tokens" }, labels.map((label, i) =>
        h("li", { class: `tr-chip target${different.includes(i) ? " changed" : ""}` },
          shown(label)))),
      finished ? null : h("p", { class: "tr-note" },
        `It never ended: it was stopped after ${ids.length} tokens.`));
  }

  const unchanged = h("p", { class: "tr-note" });

  function draw_results() {
    unchanged.textContent = app.n_edits ? "The changes take effect once the model is loaded."
      : "No part of the model is changed.";
    const { before, after, n, alike } = result;
    const forced = app.state.forced.length && app.engine;
    const untouched = `Untouched model${forced ? ", same forced tokens" : ""}`;
    const [gone, fresh] = after ? differing(before.ids, after.ids) : [[], []];
    const name = (places, labels) => quoted(places.map((i) => labels[i])) || "nothing";
    results.replaceChildren(
      h("div", { class: "tr-pair" }, column(untouched, before, gone),
        after ? column(`With ${changes(n)}`, after, fresh)
          : h("section", {}, h("h3", {}, "With your changes"), unchanged)),
      !after ? "" : h("p", {}, gone.length + fresh.length
        ? `What differs is dashed and bold. Gone: ${name(gone, before.labels)}. ` +
          `New: ${name(fresh, after.labels)}.`
        : "The two translations are the same."),
      after && alike ? h("p", { class: "tr-note" },
        "Both were written with the same forced tokens and the same seed.") : "",
      ...losses(), after && !result.causal ? mask_note(gone.length + fresh.length) : "");
  }

  function losses() {
    const { own, labels, untouched, changed } = result;
    const most = Math.max(...untouched.nats, ...(changed ? changed.nats : []), 1e-9);
    const number = (x) => h("td", {}, nats(x), h("span", {
      class: "tr-bar", style: `--share: ${(100 * x / most).toFixed(1)}%` }));
    const mean = (term, text) => h("div", {}, h("dt", {}, term), h("dd", {}, text));
    const heads = changed ? ["Token", "Untouched", "Changed", "Difference"]
      : ["Token", "Untouched"];
    const which = own ? "the untouched model’s own translation" : "your translation";
    return [
      h("h3", {}, `Loss of ${which}, in nats per token`),
      h("dl", { class: "tr-means" }, mean("Untouched model", nats(untouched.mean)),
        changed && mean("With your changes", nats(changed.mean)),
        changed && mean("Difference", signed(untouched.mean, changed.mean))),
      scroller({ class: "tr-tall", role: "region", "aria-label": "Loss of each token" },
      h("table", { class: "tr-losses" }, h("caption", {}, "Loss of each token, in nats"),
        h("thead", {}, h("tr", {}, heads.map((text) => h("th", { scope: "col" }, text)))),
        h("tbody", {}, labels.map((label, i) => h("tr", {},
          h("th", { scope: "row" }, shown(label)), number(untouched.nats[i]),
          changed && number(changed.nats[i]),
          changed && h("td", {}, signed(untouched.nats[i], changed.nats[i]))))))),
    ];
  }

  function mask_note(n_different) {
    const { n, untouched, changed } = result;
    const [a, b] = [untouched.mean, changed.mean].map(nats);
    const way = Number(a) === Number(b) ? `stayed at ${a}`
      : `${Number(b) < Number(a) ? "fell" : "rose"} from ${a} to ${b}`;
    const lesson = n > 1 || Number(a) === Number(b) ? "" : Number(b) < Number(a)
      ? "So this lower loss doesn’t mean a better translator. "
      : "Here, that view of the answer didn’t lower the loss. ";
    return h("p", { class: "tr-warning" },
      `The causal mask is off, and the loss ${way}` +
      `${n > 1 ? ", all changes taken together" : ""}. A scored translation is ` +
      "there from the start: without the mask, each position can look at the tokens " +
      `after it, even the one it has to predict. ${lesson}When the model writes, those ` +
      "tokens don’t exist yet. What it wrote " +
      `${n_different ? "is different from before." : "is the same as before."}`);
  }

  app.on("view", () => {
    draw_controls();
    if (app.engine) measure();
    else show_trace();
    if (!app.engine) draw_controls(); // the field shows the stored translation
  });
  app.on("state", () => {
    turn++; // what is on its way answers an older question
    draw_controls();
    if (!app.engine) return;
    results.setAttribute("aria-busy", "true");
    if (result && !result.after) unchanged.textContent = "Computing…";
  });
  app.on("status", (text) => {
    if (text) {
      status.textContent = text;
      results.removeAttribute("aria-busy");
    }
    draw_controls();
  });
});
