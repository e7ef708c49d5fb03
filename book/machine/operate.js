// @ts-check
// Reach into the model: switch off, hide, cut, sample; and what a given translation costs
// the model as it was trained, and as it is now.

import { failed, SWITCHES, toggled } from "./app.js";
import { decimal, e, h, mean_of, shown, table_of } from "./draw.js";
import { button, labeled, load_button, refill, scroller } from "./kit.js";

const UNMASKED = "The causal mask is off: in a scored translation, each position can look at the " +
  "token that it has to predict. When the model writes, that token doesn’t exist yet.";
const OWN = "the untouched model’s own";

export function operate(app, say) {
  const { n_heads, max_len } = app.config;
  const CROSS = app.attentions.filter((name) => name.endsWith("cross_attn"));
  let turn = 0, acted = false; // acted: while this is open, so say what came of it

  // ---- Controls

  const switches = Object.keys(SWITCHES).map((name) => h("input", { type: "checkbox", name,
    onchange: ({ target }) => app.edit({ [name]: target.checked ? undefined : false }) }));
  const chips = (label) => h("div", { class: "machine-chips", role: "group", "aria-label": label });
  const tokens = chips("Hide source tokens"), cuts = chips("Cut cross-attention");
  const slider = (name, min, max) => h("input", { type: "range", name, min, max, step: 0.05,
    value: 1, oninput: ({ target }) => show_value(target) });
  const temperature = slider("temperature", 0.1, 2), top_p = slider("top_p", 0.05, 1);
  const draw = button("Sample a translation", () => app.set({ method: "sample",
    temperature: temperature.valueAsNumber, top_p: top_p.valueAsNumber,
    seed: app.state.seed + 1 }));
  const greedy = button("Back to greedy", () => {
    draw.focus(); // this button goes
    app.set({ method: "greedy" });
  });
  const field = h("input", { type: "text", id: "machine-reference", lang: "en", maxlength: 400,
    spellcheck: "false", placeholder: `Empty: ${OWN}`,
    onchange: () => app.set({ reference: field.value.trim() }) });
  const value = () => h("span", { "aria-hidden": "true" }); // the slider speaks
  const group = (title, ...inside) => h("div", {}, h("h3", {}, title), inside);
  const row = (...inside) => h("div", { class: "machine-row" }, inside);
  const controls = h("fieldset", { class: "machine-controls-of-model" },
    h("legend", { class: "machine-spoken" }, "Change the model"),
    group("Switch on or off", row(switches.map((box) => labeled(box, SWITCHES[box.name])))),
    group("Hide source tokens: no head can look at them", tokens),
    group("Cut cross-attention: the decoder’s view of the source", cuts),
    group("Draw words instead of taking the likeliest", row(
      labeled("Temperature", temperature, value()), labeled("Top-p", top_p, value()),
      draw, greedy)),
    h("h3", {}, h("label", { for: "machine-reference" }, "A translation to score")),
    field, button("Score it", () => field.blur())); // which is a change, where it is one
  const load = h("p", { class: "machine-note" }, "Changes need the model. ", load_button(app));
  const results = h("div", { class: "machine-results" });

  const show_value = (of) => { of.nextSibling.textContent = decimal(of.valueAsNumber); };

  function fill_tokens() {
    const hide = app.view.source === app.state.text ? app.state.edits.hide || [] : [];
    refill(tokens, app.view.src_labels.map((label, k) => {
      const next = toggled(hide, k);
      return [shown(label), () => app.edit({ hide: next.length ? next : undefined }),
        { "aria-pressed": String(hide.includes(k)) }];
    }));
  }

  function fill_cuts() {
    const layers = CROSS.map((name, layer) => [`layer ${layer}`, [name]]);
    refill(cuts, [...layers, ["all layers", CROSS]].map(([label, names]) => {
      const pressed = names.every(app.is_cut), heads = pressed ? [] : [...Array(n_heads).keys()];
      const cut = Object.fromEntries(names.map((name) => [name, heads]));
      return [label, () => app.remove(cut), { "aria-pressed": String(pressed) }];
    }));
  }

  function draw_controls() {
    const { edits, method, reference } = app.state;
    controls.disabled = !app.engine;
    load.hidden = Boolean(app.engine);
    for (const box of switches) box.checked = edits[box.name] !== false;
    fill_tokens();
    fill_cuts();
    for (const slider of [temperature, top_p]) {
      if (method === "sample") slider.value = app.state[slider.name];
      show_value(slider);
    }
    greedy.hidden = method === "greedy";
    if (document.activeElement !== field) field.value = reference;
  }

  // ---- What a translation costs

  async function measure() {
    const mine = ++turn, found = await losses().catch(failed);
    if (mine !== turn) return;
    results.removeAttribute("aria-busy");
    if (typeof found === "string") { // what went wrong
      results.replaceChildren(h("p", { class: "machine-warning" }, found));
      return;
    }
    draw_losses(found);
    const loss = `Loss of ${found.whose} translation: ${in_words(found)}`;
    if (acted) say(`Translation: ${app.view.text} ${app.beside} ${loss}`);
    acted = false;
  }

  async function losses() {
    const { edits, reference } = app.state, { src } = app.view, { untouched } = app;
    const read = reference && await app.engine("tokens", { text: reference });
    const { src: tgt, src_labels: labels } = read
      || { src: untouched.tgt, src_labels: untouched.tgt_labels };
    if (tgt.length > max_len) {
      throw new Error(`the translation has ${tgt.length} tokens, more than ${max_len}`);
    }
    const loss = (edits) => app.engine("loss", { src, tgt, edits });
    return { labels, whose: reference ? "your" : OWN,
      before: await loss({}), now: app.edited.length ? await loss(edits) : null };
  }

  const in_words = ({ before, now }) =>
    `Untouched ${decimal(mean_of(before))}${now ? `, now ${decimal(mean_of(now))}` : ""}.`;

  function draw_losses({ labels, whose, before, now }) {
    const losses = now ? [before, now] : [before], most = Math.max(...losses.flat(), 1e-9);
    const cell = (x) => [decimal(x), e("span",
      { class: "machine-bar", style: `--share: ${(x / most).toFixed(3)}` })];
    const table = table_of({ head: ["Token", "Untouched", "Now"].slice(0, losses.length + 1),
      rows: labels.map((label, i) => [shown(label), ...losses.map((nats) => cell(nats[i]))]) });
    results.replaceChildren(
      h("h3", {}, `Loss of ${whose} translation, in nats per token`),
      h("p", { class: "machine-says" }, in_words({ before, now })),
      scroller("Loss of each token", table),
      now && app.state.edits.causal === false
        ? h("p", { class: "machine-warning" }, UNMASKED) : "");
  }

  function refresh() {
    draw_controls();
    if (app.panel !== "operate") return;
    const { view, untouched } = app;
    if (app.engine) measure();
    else if (view.nats) { // a stored change
      draw_losses({ labels: untouched.tgt_labels, whose: OWN,
        before: untouched.log_probs.map((x) => -x), now: view.nats });
    }
  }
  app.on("view", refresh);
  app.on("place", refresh);
  app.on("state", () => {
    turn++; // what is on its way answers an older question
    draw_controls();
    acted = app.engine && app.panel === "operate";
    if (acted) results.setAttribute("aria-busy", "true");
  });
  return h("div", { class: "machine-operate" }, load, controls, results);
}
