// @ts-check
// A page with a machine in it: the entry of the script that pages load.

import { find } from "./kit.js";
import { start, start_second } from "./start.js";

window.machine_second = start_second;

document.addEventListener("DOMContentLoaded", () => {
  const root = /** @type {HTMLElement|null} */ (document.querySelector(".machine"));
  if (root) return start(root, find(root, "script[type='application/json']").textContent || "");
});
