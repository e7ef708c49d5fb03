// @ts-check
// What a page with desks loads: little. The script of the desks comes when one is touched, or
// when something was written there before. The boxes of the front page need no more than this.

import { boxes } from "./boxes.js";
import { Store } from "./store.js";

const here = document.currentScript instanceof HTMLScriptElement ? document.currentScript.src : "";
let coming = /** @type {Promise<void>|null} */ (null);

/** The script of the desks, which finds all of the page */
const wake = () => coming ||= new Promise((resolve, fail) => {
  if (window.machine_yours) return resolve(); // the machine has it already
  const script = document.createElement("script");
  script.src = new URL("yours.js", here).href;
  script.addEventListener("load", () => resolve());
  script.addEventListener("error", () => {
    coming = null; // another time, perhaps
    fail(new Error("the script of the desks didn’t come"));
  });
  document.head.append(script);
});

function begin() {
  const store = new Store();
  for (const root of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(".yours"))) {
    root.addEventListener("click", async ({ target }) => {
      if (root.matches(".yours-alive") || !(target instanceof Element)) return;
      const button = target.closest("button"), text = target.closest(".yours-field > *");
      const touched = /** @type {HTMLElement|null} */ (button || text);
      if (!touched) return;
      await wake();
      touched.click(); // again, now that it's heard
    });
    root.classList.add("yours-ready");
    if (store.read(root.id.replace("yours-", ""))) wake();
  }
  for (const root of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(".yours-boxes"))) {
    boxes(root, store);
  }
}
if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
else begin();
