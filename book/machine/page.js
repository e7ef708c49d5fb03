// @ts-check
// A page with a machine in it: the entry of the script that pages load.

import { App, kept } from "./app.js";
import { find, is_still } from "./kit.js";
import { show } from "./machine.js";
import { PACE } from "./player.js";
import { first_state, is_current, needs_model } from "./state.js";

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

document.addEventListener("DOMContentLoaded", async () => {
  const root = /** @type {HTMLElement|null} */ (document.querySelector(".machine"));
  if (!root) return;
  const { config = "", model = "", sister = "[]", size = "", at = "", options = "{}", words = "{}" } = root.dataset;
  const stored = JSON.parse(find(root, "script[type='application/json']").textContent || "");
  const { step = 0, word = 0, shares = false, play = false } = JSON.parse(options);
  const app = new App(first_state(JSON.parse(config), stored, { size, at, step, word, ...JSON.parse(words) }),
    { addresses: JSON.parse(model), sisters: JSON.parse(sister), shares });
  window.machine = app;
  const linked = app.restore(location.hash), loaded = !linked && app.recall();
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
});
