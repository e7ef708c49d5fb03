// @ts-check
// The machine in its place in a page: its parts, each in a file of its own, put together. After
// every action all of them are drawn; keys and the width of the page are the last to be heard.

import { beneath } from "./beneath.js";
import { cache } from "./cache.js";
import { changes } from "./changes.js";
import { choices } from "./choices.js";
import { crumbs } from "./crumbs.js";
import { h } from "./draw.js";
import { focus_keeper } from "./focus.js";
import { form } from "./form.js";
import { guide } from "./guide.js";
import { button, find, focus } from "./kit.js";
import { level_of } from "./levels.js";
import { operate } from "./operate.js";
import { picture } from "./picture.js";
import { PACE, player } from "./player.js";
import { search } from "./search.js";
import { share } from "./share.js";
import { mistaken } from "./yours/parts.js";
import { own_parts } from "./yours/switch.js";
import { speech } from "./speech.js";
import { axis_of, is_asked, is_drafted, labels_of, row_of, searches, waits } from "./state.js";

/** @import { App } from "./app.js" */
/** @import { Draw, State } from "./types.d.ts" */

/** Whether pictures stand upright @param {number} width in px */
const is_narrow = (width) => width < 800;

/** @param {HTMLElement} root @param {App} app */
export function show(root, app) {
  app.dispatch({ type: "size", tall: is_narrow(root.clientWidth) }); // before there is who draws
  const talk = speech(app, root), sentence = form(app), taps = choices(app), steps = player(app), where = crumbs();
  const look = picture(app), under = beneath(app), { stage } = look;
  const changed = changes(app, () => focus(stage, steps.forward)), own = own_parts(app);
  const predict = button("Predict first", start_predicting, { "aria-pressed": "false" });
  const keep = share(app, root, stage, talk.say);
  const alive = h("div", { class: "machine-live" });
  const lead = guide(app, { alive, stage, beneath: under.element, forward: steps.forward });
  const { is_second } = app; // where code is written there is a field already, and who tells what came out
  const tools = h("div", { class: "machine-row" }, predict, !is_second && [lead.toggle, keep.element]);
  const head = h("div", { class: "machine-head" }, steps.words, steps.row, !is_second && where.views);
  alive.append(...(is_second ? [sentence.bar] : [...sentence.elements, ...taps.elements]), head, changed.offer, own.element, changed.changed, where.way, stage, under.element, tools, look.numbers,
    lead.caption, talk.live);
  root.append(alive);

  // ---- Drawing

  /** @type {{ [panel: string]: { element: HTMLElement, above?: HTMLElement, draw: Draw } }} */
  const panels = {}; // made when they are asked for
  /** @type {{ [panel: string]: (app: App, say: (words: string) => void) => typeof panels[string] }} */
  const PANELS = { search, cache, operate };

  /** @type {Draw} */
  function draw_panels(state, before, action) {
    const { panel } = state;
    if (panel && !panels[panel]) {
      panels[panel] = PANELS[panel](app, talk.say);
      look.numbers.before(panels[panel].element);
      stage.before(panels[panel].above || "");
    }
    for (const [name, { element, above, draw }] of Object.entries(panels)) {
      element.hidden = name !== panel;
      if (above) above.hidden = element.hidden;
      draw(state, before, action);
    }
  }

  /** @param {State} state */
  function draw_frame(state) {
    const { view: { source, text }, is_busy, film, guess, is_own } = state, asks = is_asked(state);
    const { edits: { yours }, trying } = state.view;
    const whose = yours ? `, with ${trying ? mistaken(yours, trying) : "code of yours"}` : "";
    root.ariaLabel = `The machine translates “${source}”${asks ? "" : ` into “${text}”`}${whose}`;
    root.toggleAttribute("aria-busy", is_busy);
    root.classList.toggle("machine-hides", asks && !guess);
    root.classList.toggle("machine-waiting", waits(state) || is_drafted(state));
    root.classList.toggle("machine-own", is_own);
    root.classList.toggle("machine-from-start", film?.pace === PACE.step);
    predict.ariaPressed = String(state.is_predicting);
    predict.hidden = Boolean(state.panel) || axis_of(state) === "word"; // where nothing can be asked
    tools.hidden = searches(state);
  }

  const draws = [sentence.draw, taps.draw, steps.draw, own.draw, changed.draw, where.draw, draw_panels, draw_frame,
    look.draw, under.draw, keep.draw, lead.draw];
  const keep_focus = focus_keeper({ root, stage, beneath: under.element, ...where }, app.state);
  app.on((state, before, action) => {
    const hand_on = keep_focus(action);
    for (const draw of draws) draw(state, before, action);
    hand_on(state);
    if (action.type === "go" && state.panel === "operate" && before.panel !== "operate") see_both();
    talk.draw(state, before, action); // of what is drawn
  });

  function see_both() { // the hand, and what moves
    const { bottom } = stage.getBoundingClientRect(), bar = matchMedia("(min-width: 1280px)").matches ? 0 : 44;
    const by = head.getBoundingClientRect().top - bar;
    if (bottom > innerHeight && by > 0 && !app.state.tall) scrollBy({ top: by, behavior: "instant" });
  }

  function start_predicting() { // or end
    app.dispatch({ type: "predict" });
    const choice = under.element.querySelector(".machine-predict button");
    if (choice) focus(/** @type {HTMLElement} */ (choice));
  }

  // ---- Keys: left and right are steps, Home and End the ends of a row, Escape goes up

  root.addEventListener("keydown", (event) => {
    const from = /** @type {HTMLElement} */ (event.target), { state } = app, row = row_of(state);
    const ends = from.closest(".machine-words") && { Home: -row, End: labels_of(state).length - 1 - row };
    /** @type {{ [key: string]: number }} */
    const steps_of_keys = { ArrowRight: 1, ArrowLeft: -1, ...ends }, by = steps_of_keys[event.key];
    const is_command = event.altKey || event.ctrlKey || event.metaKey;
    if (is_command || from.matches("input, select, .machine-scroll")) return;
    if (by !== undefined) {
      event.preventDefault();
      app.step_by(by);
    } else if (event.key === "Escape" && level_of(state.place) > 0 && !document.fullscreenElement) {
      event.preventDefault();
      find(where.way, ".machine-up").click();
      focus(stage);
    }
  });

  root.addEventListener("click", (event) => {
    const link = is_second && /** @type {Element} */ (event.target).closest('a[href^="#machine"]');
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    app.visit(link.getAttribute("href") || "");
  });

  new ResizeObserver(([{ contentRect: { width } }]) => {
    if (is_narrow(width) !== app.state.tall) app.dispatch({ type: "size", tall: !app.state.tall });
  }).observe(root);
  return { lead: lead.lead };
}
