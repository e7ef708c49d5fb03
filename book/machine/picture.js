// @ts-check
// The picture of where we are, the same numbers as a table, and what a pointer does in it.

import { e, h, markup, table_of } from "./draw.js";
import { hand } from "./hand.js";
import { find, scroller, when_changed } from "./kit.js";
import { draw, level_of, row_class, table } from "./levels.js";
import { before, is_asked, row_of, searches } from "./state.js";

/** @import { App } from "./app.js" */
/** @import { Draw, State } from "./types.d.ts" */

/** @param {App} app */
export function picture(app) {
  const stage = h("div", { class: "machine-stage", tabindex: 0, role: "region",
    "aria-label": "The picture" });
  const sheet = h("div"), pointer = hand(app, stage);
  const numbers = h("details", { class: "machine-numbers", ontoggle: () => { draw_table(app.state); } },
    e("summary", {}, "As a table"), sheet);
  let drawn = /** @type {Partial<State> & { level?: number }} */ ({}); // what the picture shows

  const redraw = when_changed((state) => [state.place, state.panel, state.view, state.untouched,
    state.found, state.tall, state.is_predicting, row_of(state)], (state) => {
    stage.hidden = searches(state);
    numbers.hidden = stage.hidden || is_asked(state);
    if (stage.hidden || state.found === undefined) return; // it comes
    draw_picture(state);
    draw_table(state);
  });

  /** @param {State} state */
  function draw_picture(state) {
    const { view, place, found, found_before, tall, untouched } = state;
    const level = level_of(place), row = row_of(state);
    if (level === 3 && !found) {
      stage.replaceChildren(h("p", { class: "machine-note" },
        view.live ? "The numbers of this weight aren’t there: what you wrote doesn’t show them."
          : "The numbers of this weight come with the model."));
      drawn = {};
      return;
    }
    const is_drawn = drawn.view === view && drawn.tall === tall && drawn.untouched === untouched;
    if (level === 0 && drawn.level === 0 && is_drawn) { // only what is written, or to come
      for (const each of rows()) each.setAttribute("class", `row ${row_class(Number(each.dataset.row), row)}`);
    } else {
      const how = { row, tall, before: before(state), found_before };
      stage.innerHTML = markup(draw(view, place, found || null, how)); // faster than by node
      find(stage, "svg").classList.toggle("tall", tall);
      stage.dataset.zoom = ["out", "", "in"][1 + Math.sign(level - (drawn.level ?? level))];
      drawn = { view, tall, untouched, level };
      pointer.draw(view.src_labels);
    }
    for (const choice of stage.querySelectorAll(".choice")) {
      make_choice(state, /** @type {SVGGElement} */ (choice));
    }
  }

  const rows = () => /** @type {NodeListOf<SVGGElement>} */ (stage.querySelectorAll(".row"));

  /** A likely token that can be forced @param {State} state @param {SVGGElement} choice */
  function make_choice({ view }, choice) {
    const row = Number(/** @type {SVGGElement} */ (choice.closest(".row")).dataset.row);
    const id = Number(choice.dataset.id);
    if (id === view.tgt[row]) return;
    const force = () => app.ask({ forced: [...view.tgt.slice(0, row), id], step: row });
    choice.role = "button";
    choice.tabIndex = 0;
    choice.ariaLabel = `Go on instead with ${choice.textContent}`;
    choice.onclick = force;
    choice.onkeydown = ({ key }) => { if (key === "Enter") force(); };
  }

  /** @param {State} state */
  function draw_table(state) {
    if (!numbers.open || searches(state) || state.found === undefined) return;
    const found = table(state.view, state.place, state.found, row_of(state));
    sheet.replaceChildren(found ? scroller(found.caption || "", table_of(found)) : "");
  }

  // One zoom: the picture grows out of the place that was chosen, or shrinks into it.
  stage.addEventListener("pointerdown", ({ clientX, clientY }) => {
    const { left, top } = stage.getBoundingClientRect();
    stage.style.setProperty("--from", `${clientX - left}px ${clientY - top}px`);
  });

  return { stage, numbers, /** @type {Draw} */ draw: redraw };
}
