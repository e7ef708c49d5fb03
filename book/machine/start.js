// @ts-check
// A machine in its place: what its page says of it becomes an app that is shown.

import { App, kept } from "./app.js";
import { is_still } from "./kit.js";
import { show } from "./machine.js";
import { PACE } from "./player.js";
import { first_state, is_current, needs_model } from "./state.js";
import { yours_of_page } from "./yours/here.js";
import { in_order } from "./yours/parts.js";
import { CHANGED, sources } from "./yours/store.js";

// In parts, between which others have their turn, but at once where a place is asked for: it would move.
const turn = () => !location.hash && !came_back(1, 2)
  && new Promise((resolve) => { setTimeout(resolve); });

/** Whether the page was opened like that: 0 by a link, 1 again, 2 on the way back
 *  @param {number[]} ways */
const came_back = (...ways) => ways.includes(performance.navigation.type);

/** What it stands in has been opened; a link to it opens that @param {HTMLElement} root @param {boolean} linked */
async function opened(root, linked) {
  for (let fold; (fold = root.closest("details:not([open])"));) {
    if (linked) fold.setAttribute("open", "");
    else await new Promise((resolve) => { fold.addEventListener("toggle", resolve, { once: true }); });
  }
}

/** @param {DOMStringMap} settings @param {string} stored @param {boolean} is_second */
function app_of(settings, stored, is_second) {
  const { config = "", model = "", sister = "[]", size = "", at = "", options = "{}", words = "{}" } = settings;
  const { step = 0, word = 0, shares = false } = JSON.parse(options);
  const state = first_state(JSON.parse(config), JSON.parse(stored), { size, at, step, word, ...JSON.parse(words) });
  return new App(state, { addresses: JSON.parse(model), sisters: JSON.parse(sister),
    shares: shares && !is_second, is_second, find_python: yours_of_page, stored: sources });
}

/** The machine whose address the page has
 *  @param {HTMLElement} root @param {string} stored */
export async function start(root, stored) {
  const { shares = false, play = false } = JSON.parse(root.dataset.options || "{}");
  const app = app_of(root.dataset, stored, false), is_own = history.state === "own";
  const know = () => app.know(in_order(Object.keys(sources())));
  window.machine = app;
  know();
  for (const event of ["storage", CHANGED]) addEventListener(event, know);
  const linked = app.restore(location.hash), loaded = !linked && app.recall();
  if (linked && is_own) app.recall_yours();
  history.replaceState("own", ""); // on the way back here, what was changed since then stays
  window.addEventListener("hashchange", () => app.follow(location.hash));
  await opened(root, linked);
  await turn(); // until then the picture without a script is seen
  const { lead } = show(root, app);
  await turn();
  app.dispatch({ type: "draw" });
  root.classList.add("machine-alive");
  if (linked && came_back(0)) root.scrollIntoView({ block: "nearest" });
  // A link asks for what it holds; and a model that was here a page ago is here again.
  if (loaded || (linked && (!is_current(app.state) || needs_model(app.state)))) await app.load();
  else if (play && !linked && !is_still() && !kept("machine-played")) {
    kept("machine-played", "yes"); // once in this tab
    app.play(PACE.step, "surest");
  }
  document.documentElement.classList.remove("machine-linked"); // now it's what the link means
  const led = Number(shares && kept("machine-guide"));
  if (led && came_back(2)) lead(led - 1); // back from a chapter
}

/** Another machine of a page, in an element that is empty: it has no address and no switch
 *  @param {HTMLElement} root @param {DOMStringMap & { stored: string }} settings @returns {App} */
export function start_second(root, settings) {
  const app = app_of(settings, settings.stored, true);
  root.classList.add("machine", "machine-second", "machine-alive");
  root.setAttribute("role", "group");
  show(root, app);
  app.dispatch({ type: "draw" });
  return app;
}
