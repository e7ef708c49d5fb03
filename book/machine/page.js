// @ts-check
// A page with a machine in it: the entry of the script that pages load.

import { App, kept } from "./app.js";
import { is_still } from "./kit.js";
import { show } from "./machine.js";

// In parts, between which others have their turn, but at once where a place is asked for: it would move.
const turn = () => !location.hash && !performance.navigation.type
  && new Promise((resolve) => { setTimeout(resolve); });

document.addEventListener("DOMContentLoaded", async () => {
  const root = /** @type {HTMLElement|null} */ (document.querySelector(".machine"));
  if (!root) return;
  const { config, model, size, at = "", options } = root.dataset;
  const stored = JSON.parse(root.querySelector("script[type='application/json']").textContent);
  const app = new App(JSON.parse(config), { ...stored, addresses: JSON.parse(model), size, at,
    options: { step: 0, word: 0, ...JSON.parse(options || "{}") } });
  window.machine = app;
  const linked = app.restore(location.hash), loaded = !linked && app.recall();
  history.replaceState("own", ""); // on the way back here, what was changed since then stays
  window.addEventListener("hashchange", () => app.follow(location.hash));
  await turn(); // until then the picture without a script is seen
  const { play, lead } = show(root, app);
  await turn();
  app.tell("place");
  root.classList.add("machine-alive");
  if (linked && performance.navigation.type === 0) root.scrollIntoView({ block: "nearest" });
  // A link asks for what it holds; and a model that was here a page ago is here again.
  if (loaded || (linked && !app.is_current)) await app.load();
  else if (app.options.play && !linked && !is_still() && !kept("machine-played")) {
    kept("machine-played", "yes"); // once in this tab
    play();
  }
  document.documentElement.classList.remove("machine-linked"); // now it's what the link means
  const led = Number(app.options.shares && kept("machine-guide"));
  if (led && performance.navigation.type === 2) lead(led - 1); // back from a chapter
});
