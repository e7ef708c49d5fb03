// @ts-check
// The view "Beam search": its tree, step by step; below, the hypotheses that it found, ranked
// again under another length penalty.

import { decimal, e, h, markup, shown } from "./draw.js";
import { button, fill, find, labeled, scroller, show_end, view_of_search } from "./kit.js";
import { draw_tree, grow, sentence, width_of, WORDS } from "./tree.js";

/** @import { App } from "./app.js" */
/** @import { Found, State } from "./types.d.ts" */

/** Those of a search, by the score that they have under another length penalty
 *  @param {Found} search @param {number} alpha */
export const ranked = ({ hypotheses }, alpha) => hypotheses.map((each) => ({ ...each,
  score: each.log_prob / each.ids.length ** alpha })).sort((a, b) => b.score - a.score);

/** @param {App} app @param {(words: string) => void} say */
export function search(app, say) {
  let drawn = /** @type {Found|null} */ (null), name = "";
  const drawing = h("div"), key = h("p", { class: "machine-note" });
  const candidates = h("table"), hypotheses = h("table", { class: "machine-figures" });
  const tree = scroller("Search tree", drawing), alpha_number = h("span");
  const alpha = h("input", { type: "range", min: -1, max: 2, step: 0.05,
    oninput: () => { draw_hypotheses(); }, onchange: () => { say(first()); } });
  const n_beams = h("select", {}, Array.from({ length: 8 }, (_, i) => e("option", {}, i + 1)));
  const again = button("Search again", search_again);

  return view_of_search("search", draw, tree, key,
    scroller("Candidates", candidates),
    h("h3", {}, "At the end of the search"),
    labeled("Length penalty α", alpha), alpha_number,
    scroller("Hypotheses", hypotheses),
    h("p", { class: "machine-note" }, "Score: ln p divided by length", e("sup", {}, "α"),
      ". The slider reranks what this search found; a search with another α may find others."),
    h("div", { class: "machine-row" }, labeled("Beams", n_beams), again));

  /** @param {State} state @param {Found} found @param {number} at */
  function draw(state, found, at) {
    const { asked, view } = state, columns = grow(found, view.tgt);
    const is_changed = state.is_ready && (asked.method !== "greedy" || asked.forced.length > 0);
    name = is_changed ? "the translation" : "greedy search";
    if (drawn !== found) { // a slider that was moved stays until there is a new search
      alpha.value = String(found.length_penalty);
      n_beams.value = String(found.n_beams);
    }
    drawn = found;
    drawing.innerHTML = markup(draw_tree(columns, at, view, is_changed ? "Translation" : "Greedy"));
    const svg = find(drawing, "svg");
    svg.setAttribute("role", "img");
    svg.style.width = `${width_of(at) / 16}rem`;
    show_end(tree);
    key.textContent = "Each box: a token, and ln p, the log-probability of the text up to it, " +
      `in nats. Thick lines: the path of ${name}. With n beams, a text that ends among the ` +
      "first n candidates is a hypothesis if it’s one of the best n so far.";
    fill(candidates, { caption: `Candidates at step ${at + 1}, likeliest first`,
      head: ["Token", "Text so far", "Fate", "ln p"],
      rows: columns[at].map(({ i, label, text, fate, log_prob, on_path }) =>
        [`${i + 1}. ${shown(label)}`, text, [WORDS[fate], marked(on_path)], decimal(log_prob)]) },
    columns[at].map(({ on_path }) => on_path && "chosen"));
    draw_hypotheses();
    return sentence(columns, at, name);
  }

  /** @param {boolean} is the path that is followed */
  function marked(is) {
    return is && e("small", {}, ` ${name}`);
  }

  function in_order() {
    return drawn ? ranked(drawn, alpha.valueAsNumber) : [];
  }

  function first() {
    const { length, 0: { text, score } } = in_order();
    return `First of ${length}, α = ${alpha_number.textContent}: “${text}”, ${decimal(score, 3)}.`;
  }

  function draw_hypotheses() {
    if (!drawn) return;
    const { n_beams: n, length_penalty } = drawn, found = in_order();
    const is_target = (/** @type {number[]} */ ids) => String(ids) === String(app.state.view.tgt);
    alpha_number.textContent = decimal(alpha.valueAsNumber);
    const beams = n === 1 ? "1 beam" : `${n} beams`;
    const caption = `Found with ${beams} and α = ${decimal(length_penalty)}, best score with ` +
      `α = ${alpha_number.textContent} first`;
    fill(hypotheses, { caption,
      head: ["Translation", "Length", "ln p", "Score"],
      rows: found.map(({ ids, text, finished, log_prob, score }, i) =>
        [[`${i + 1}. ${text}`, marked(is_target(ids)),
          finished === false && e("small", {}, " cut at the maximum length")],
        ids.length, decimal(log_prob), decimal(score, 3)]) },
    found.map(({ ids }) => is_target(ids) && "chosen"));
  }

  async function search_again() {
    const before = app.state.search;
    const done = app.ask({ n_beams: Number(n_beams.value), length_penalty: alpha.valueAsNumber });
    again.textContent = "Searching…";
    await done;
    again.textContent = "Search again";
    if (app.state.search !== before) say(first());
  }
}
