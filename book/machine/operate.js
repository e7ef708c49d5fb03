// @ts-check
// Reach into the model: switch off, hide, cut, sample; and what a given translation costs
// the model as it was trained, and as it is now.

import { attentions } from "./app.js";
import { decimal, h, shown } from "./draw.js";
import { scroller } from "./kit.js";

const SWITCHES = [
  ["src_positions", "Source positions"],
  ["tgt_positions", "Target positions"],
  ["causal", "Causal mask"],
];

export function operate(app, say) {
  const { n_heads, max_len } = app.config, CROSS = attentions(app.config, "decoder", "cross_attn");
  let turn = 0, acted = false; // acted: here, so say what came of it
  const act = (change) => { acted = true; return change(); };
  const edit = (some) => act(() => app.edit(some)); // undefined: as it was trained

  // ---- Controls

  const switches = SWITCHES.map(([name, words]) => {
    const box = h("input", { type: "checkbox",
      onchange: () => edit({ [name]: box.checked ? undefined : false }) });
    return { name, box, label: h("label", { class: "machine-switch" }, box, words) };
  });
  const chips = (label) => h("div", { class: "machine-chips", role: "group", "aria-label": label });
  const tokens = chips("Hide source tokens"), cuts = chips("Cut cross-attention");
  const removed = chips("Put removed heads back");
  const slider = (words, min, max, name) => {
    const value = h("output"), input = h("input", { type: "range", min, max, step: 0.05, value: 1,
      oninput: () => { value.textContent = decimal(input.valueAsNumber); } });
    return { name, input, value, label: h("label", { class: "machine-switch" }, words, input, value) };
  };
  const sliders = [slider("Temperature", 0.1, 2, "temperature"), slider("Top-p", 0.05, 1, "top_p")];
  const shape = () => Object.fromEntries(sliders.map(({ name, input }) => [name, input.valueAsNumber]));
  const button = (words, onclick) => h("button", { type: "button", onclick }, words);
  const draw = button("Sample a translation", () => act(() =>
    app.set({ method: "sample", ...shape(), seed: app.state.seed + 1 })));
  const greedy = button("Back to greedy", () => act(() => app.set({ method: "greedy" })));
  const field = h("input", { type: "text", id: "machine-reference", lang: "en", spellcheck: "false", maxlength: 400,
    placeholder: "Leave it empty to score the untouched model’s own translation",
    onchange: () => act(() => app.set({ reference: field.value.trim() })) });
  const group = (title, ...children) => h("div", {}, h("h3", {}, title), children);
  const single = group("Removed heads", removed);
  const controls = h("fieldset", { class: "machine-controls-of-model" },
    h("legend", { class: "machine-spoken" }, "Change the model"),
    group("Switch on or off", h("div", { class: "machine-row" }, switches.map(({ label }) => label))),
    group("Hide source tokens: no head can look at them", tokens),
    group("Cut cross-attention: the decoder’s view of the source", cuts), single,
    group("Draw words instead of taking the likeliest", h("div", { class: "machine-row" },
      sliders.map(({ label }) => label), draw, greedy)),
    h("h3", {}, h("label", { for: "machine-reference" }, "A translation to score")), field);
  const load = h("p", { class: "machine-note" }, "Changing the model needs the model. ",
    button(`Load it (${app.size})`, () => app.load().catch(() => {})));
  const results = h("div", { class: "machine-results" });
  const element = h("div", { class: "machine-operate" }, load, controls, results);

  // Buttons are made anew only if their labels change; the focus keeps its place.
  function fill(row, items) {
    const key = items.map(({ label }) => label).join("\n");
    row.items = items;
    if (row.key !== key) {
      row.key = key;
      const at = [...row.children].indexOf(document.activeElement);
      row.replaceChildren(...items.map(({ label }, i) => button(label, () => row.items[i].act())));
      if (at >= 0) (row.children[Math.min(at, items.length - 1)] || draw).focus({ preventScroll: true });
    }
    items.forEach(({ pressed }, i) => {
      if (pressed !== undefined) row.children[i].setAttribute("aria-pressed", String(pressed));
    });
  }

  const without = (name) => (app.state.edits.without || {})[name] || [];
  const is_cut = (name) => without(name).length >= n_heads;
  const cut = (names, off) => edit({ without: { ...app.state.edits.without,
    ...Object.fromEntries(names.map((name) => [name, off ? [...Array(n_heads).keys()] : []])) } });

  function draw_controls() {
    controls.disabled = !app.engine;
    load.hidden = Boolean(app.engine);
    for (const { name, box } of switches) box.checked = app.state.edits[name] !== false;
    const hide = app.is_current ? app.state.edits.hide || [] : []; // else of another sentence
    fill(tokens, app.view.src_labels.map((label, k) => ({ label: shown(label), pressed: hide.includes(k),
      act: () => {
        const next = hide.includes(k) ? hide.filter((x) => x !== k) : [...hide, k];
        edit({ hide: next.length ? next.sort((a, b) => a - b) : undefined });
      } })));
    const all = CROSS.every(is_cut);
    fill(cuts, [...CROSS.map((name) => ({ label: `layer ${name.split(".")[2]}`, pressed: is_cut(name),
      act: () => cut([name], !is_cut(name)) })), { label: "all layers", pressed: all, act: () => cut(CROSS, !all) }]);
    const heads = Object.keys(app.state.edits.without || {}).filter((name) => !(CROSS.includes(name) && is_cut(name)));
    fill(removed, heads.flatMap((name) => without(name).map((head) => {
      const [stack, , layer, kind] = name.split(".");
      return { label: `${stack}, layer ${layer}, ${kind === "self_attn" ? "self" : "cross"}-attention, head ${head}`,
        act: () => act(() => app.remove_head(name, head)) };
    })));
    single.hidden = !removed.children.length;
    for (const { name, input, value } of sliders) {
      if (app.state.method === "sample") input.value = String(app.state[name]);
      value.textContent = decimal(input.valueAsNumber);
    }
    greedy.hidden = app.state.method === "greedy";
    if (document.activeElement !== field) field.value = app.state.reference;
  }

  // ---- What a translation costs

  async function measure() {
    const mine = ++turn, late = () => mine !== turn;
    const { edits, reference } = app.state, { src } = app.view;
    try {
      const scored = reference ? await app.ask("encode", { text: reference })
        : { ids: app.untouched.tgt, labels: app.untouched.tgt_labels };
      if (late()) return;
      if (scored.ids.length > max_len) throw new Error(`the translation has ${scored.ids.length} tokens, more than ${max_len}`);
      const loss = (some) => app.ask("loss", { src, tgt: scored.ids, edits: some });
      const untouched = await loss({}), changed = app.n_edits ? await loss(edits) : null;
      if (late()) return;
      draw_losses(scored.labels, untouched, changed, !reference);
      if (acted) {
        say(`Translation: ${app.view.text}. ${app.beside} Loss: ${decimal(untouched.mean)} untouched` +
          (changed ? `, ${decimal(changed.mean)} now.` : "."));
      }
      acted = false;
    } catch (error) {
      if (!late()) results.replaceChildren(h("p", { class: "machine-warning" }, `That didn’t work: ${error.message}.`));
    }
    if (!late()) results.removeAttribute("aria-busy");
  }

  function draw_losses(labels, untouched, changed, own) {
    const most = Math.max(...untouched.nats, ...(changed ? changed.nats : []), 1e-9);
    const cell = (x) => h("td", {}, decimal(x), h("span", { class: "machine-bar", style: `--share: ${(100 * x / most).toFixed(1)}%` }));
    results.replaceChildren(
      h("h3", {}, `Loss of ${own ? "the untouched model’s own" : "your"} translation, in nats per token`),
      h("p", { class: "machine-says" }, `Untouched ${decimal(untouched.mean)}` + (changed ? `, now ${decimal(changed.mean)}.` : ".")),
      scroller("Loss of each token", h("table", {},
        h("thead", {}, h("tr", {}, ["Token", "Untouched", ...(changed ? ["Now"] : [])].map((words) => h("th", { scope: "col" }, words)))),
        h("tbody", {}, labels.map((label, i) => h("tr", {}, h("th", { scope: "row" }, shown(label)),
          cell(untouched.nats[i]), changed && cell(changed.nats[i])))))),
      changed && app.state.edits.causal === false ? h("p", { class: "machine-warning" },
        "The causal mask is off. A scored translation is there from the start, so each position can look at the " +
        "tokens after it, even the one that it has to predict. When the model writes, those tokens don’t exist yet: " +
        "compare what it writes with what it wrote before.") : "");
  }

  const shown_now = () => app.panel === "operate";
  const refresh = () => {
    draw_controls();
    if (!shown_now()) return;
    const { view, untouched } = app;
    if (app.engine) measure();
    else if (view.nats) { // a stored change
      const cost = (nats) => ({ nats, mean: nats.reduce((sum, x) => sum + x, 0) / nats.length });
      draw_losses(untouched.tgt_labels, cost(untouched.log_probs.map((x) => -x)), cost(view.nats), true);
    }
  };
  app.on("view", refresh);
  app.on("place", refresh);
  app.on("state", () => {
    turn++; // what is on its way answers an older question
    draw_controls();
    if (app.engine && shown_now()) results.setAttribute("aria-busy", "true");
  });
  draw_controls();
  return { place: element };
}
