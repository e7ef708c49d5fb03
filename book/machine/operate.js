// @ts-check
// The view "Operate": reach into the model. Above the picture, what it has is switched off, hidden
// or removed; below it, words are drawn, and a given translation is scored, as the model was
// trained and as it is now.

import { decimal, drawn_share, e, h, mean_of, shown, table_of } from "./draw.js";
import { button, id_of, labeled, refill, scroller, together, when_changed } from "./kit.js";
import { attention_in_words } from "./levels.js";
import { cut_of, is_cut, OWN, SWITCHES, toggled } from "./state.js";

/** @import { App } from "./app.js" */
/** @import { Inside, Losses, State } from "./types.d.ts" */

const UNMASKED = "The causal mask is off: in a scored translation, each position can look at the " +
  "token that it has to predict. When the model writes, that token doesn’t exist yet.";

/** @param {Losses} losses */
export const losses_in_words = ({ before, now }) =>
  `Untouched ${decimal(mean_of(before))}${now ? `, now ${decimal(mean_of(now))}` : ""}.`;

/** Those that are stored with a change, until the model is there @param {State} state */
function losses_of({ losses, is_ready, view: { nats }, untouched }) {
  if (is_ready || !nats) return losses;
  return { labels: untouched.tgt_labels, whose: OWN, before: untouched.log_probs.map((x) => -x),
    now: nats };
}

/** @param {App} app */
export function operate(app) {
  const parts = parts_of(app), words = words_of(app), results = h("div", { class: "machine-results" });

  const draw_results = when_changed((state) => [state.losses, state.is_ready, state.view],
    (state) => {
      const losses = losses_of(state);
      if (typeof losses === "string") { // what went wrong
        results.replaceChildren(h("p", { class: "machine-warning" }, losses));
      } else if (losses) results.replaceChildren(...tell(state, losses));
    });

  /** @param {State} state @param {Losses} losses */
  function tell({ asked }, losses) {
    const { labels, whose, before, now } = losses, columns = now ? [before, now] : [before];
    const most = Math.max(...columns.flat().filter(Number.isFinite), 1e-9);
    const cell = (/** @type {number} */ x) => [decimal(x), e("span",
      { class: "machine-bar", style: `--share: ${drawn_share(x / most).toFixed(3)}` })];
    const table = table_of({ head: ["Token", "Untouched", "Now"].slice(0, columns.length + 1),
      rows: labels.map((label, i) => [shown(label), ...columns.map((nats) => cell(nats[i]))]) });
    return [h("h3", {}, `Loss of ${whose} translation, in nats per token: lower means less surprised`),
      h("p", { class: "machine-says" }, losses_in_words(losses)),
      scroller("Loss of each token", table),
      now && asked.edits.causal === false ? h("p", { class: "machine-warning" }, UNMASKED) : ""];
  }

  /** @param {State} state */
  function draw_busy({ is_measuring }) {
    if (is_measuring) results.setAttribute("aria-busy", "true");
    else results.removeAttribute("aria-busy");
  }

  return { above: parts.element,
    element: h("div", { class: "machine-operate" }, words.element, results),
    draw: together(parts.draw, words.draw, draw_results, draw_busy) };
}

/** @param {string} title @param {Inside[]} inside */
const group = (title, ...inside) => h("div", {}, h("h3", {}, title), inside);
/** @param {Inside[]} inside */
const row = (...inside) => h("div", { class: "machine-row" }, inside);
/** @param {string} label */
const chips = (label) => h("div", { class: "machine-chips", role: "group", "aria-label": label });

/** What can be taken from the model @param {App} app */
function parts_of(app) {
  const { attentions, config: { n_heads } } = app.state;
  const cross = attentions.filter((name) => name.endsWith("cross_attn"));

  const switches = Object.keys(SWITCHES).map((name) => {
    const box = h("input", { type: "checkbox", name,
      onchange: () => { app.edit({ [name]: box.checked ? undefined : false }); } });
    return box;
  });
  const tokens = chips("Hide source tokens"), cuts = chips("Cut cross-attention"), heads = chips("Remove a head");
  const which = h("select", { "aria-label": "Heads of which attention", onchange: () => fill_heads(app.state) },
    attentions.map((name) => h("option", { value: name }, attention_in_words(name))));
  which.value = cross[cross.length >> 1];
  const element = h("fieldset", { class: "machine-operate machine-controls-of-model" },
    h("legend", { class: "machine-spoken" }, "Change the model"),
    group("Switch on or off", row(switches.map((box) => labeled(box, SWITCHES[box.name])))),
    group("Hide words: no head can look at them", tokens),
    group("Remove heads", row(which, heads)),
    group("Cut the decoder’s view of the source", cuts));

  /** @param {State} state */
  function fill_tokens({ view, asked: { text, edits } }) {
    const hide = view.source === text ? edits.hide || [] : [];
    refill(tokens, view.src_labels.map((label, k) => {
      const next = toggled(hide, k);
      return [shown(label), () => app.edit({ hide: next.length ? next : undefined }),
        { "aria-pressed": String(hide.includes(k)) }];
    }));
  }

  /** @param {State} state */
  function fill_heads(state) {
    const cut = cut_of(state, which.value);
    refill(heads, [...Array(n_heads).keys()].map((head) => [String(head + 1),
      () => app.cut_head(which.value, head),
      { "aria-pressed": String(cut.includes(head)), "aria-label": `head ${head + 1}` }]));
  }

  /** @param {State} state */
  function fill_cuts(state) {
    const layers = cross.map((name, layer) =>
      /** @type {[string, string[]]} */ ([`layer ${layer + 1}`, [name]]));
    refill(cuts, [...layers, /** @type {[string, string[]]} */ (["all layers", cross])]
      .map(([label, names]) => {
        const pressed = names.every((name) => is_cut(state, name));
        const heads = pressed ? [] : [...Array(n_heads).keys()];
        const cut = Object.fromEntries(names.map((name) => [name, heads]));
        return [label, () => app.cut(cut), { "aria-pressed": String(pressed) }];
      }));
  }

  const draw = when_changed(({ asked, view }) => [asked, view], (state) => {
    const { edits } = state.asked;
    for (const box of switches) {
      box.checked = edits[/** @type {"causal"} */ (box.name)] !== false;
    }
    fill_tokens(state);
    fill_heads(state);
    fill_cuts(state);
  });
  return { element, draw };
}

/** How words are drawn, and which are scored @param {App} app */
function words_of(app) {
  const temperature = slider("temperature", 0.1, 2), top_p = slider("top_p", 0.05, 1);
  const draw_words = button("Sample a translation", () => app.ask({ method: "sample",
    temperature: temperature.input.valueAsNumber, top_p: top_p.input.valueAsNumber,
    seed: app.state.asked.seed + 1 }));
  const greedy = button("Back to greedy", () => {
    draw_words.focus(); // this button goes
    app.ask({ method: "greedy" });
  });
  const id = id_of("machine-reference");
  const field = h("input", { type: "text", id, lang: "en", maxlength: 400,
    spellcheck: "false", placeholder: `Empty: ${OWN}`,
    onchange: () => { app.ask({ reference: field.value.trim() }); } });
  const element = h("div", {},
    group("Draw words instead of taking the likeliest", row(
      labeled("Temperature", temperature.input, temperature.number),
      labeled("Top-p", top_p.input, top_p.number), draw_words, greedy)),
    h("h3", {}, h("label", { for: id }, "A translation to score")),
    field, button("Score it", () => field.blur())); // which is a change, where it is one

  const draw = when_changed(({ asked, view }) => [asked, view], (state) => {
    const { method, reference, ...sampling } = state.asked;
    for (const each of [temperature, top_p]) {
      if (method === "sample") each.input.value = String(sampling[each.name]);
      each.show();
    }
    greedy.hidden = method === "greedy";
    if (document.activeElement !== field) field.value = reference;
  });
  return { element, draw };
}

/** A slider and its number; it speaks by itself
 *  @param {"temperature"|"top_p"} name @param {number} min @param {number} max */
function slider(name, min, max) {
  const number = h("span", { "aria-hidden": "true" });
  const show = () => { number.textContent = decimal(input.valueAsNumber); };
  const input = h("input", { type: "range", name, min, max, step: 0.05, value: 1, oninput: show });
  return { name, input, number, show };
}
