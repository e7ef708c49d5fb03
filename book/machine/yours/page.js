// @ts-check
// The desks of a page, and Python for them and for its machines: the entry of the script that
// comes when one of them is used.

import { find } from "../kit.js";
import { desk } from "./desk.js";
import { plain_field } from "./plain.js";
import { Python } from "./python.js";
import { runner } from "./run.js";
import { completed, Shared } from "./shared.js";
import { Store } from "./store.js";

/** @import { MakeField, Part, Tools } from "./types.d.ts" */

const here = document.currentScript instanceof HTMLScriptElement ? document.currentScript.src : "";
let fields = /** @type {Promise<MakeField>|null} */ (null);

/** The editor, from beside this script; a plain field where it doesn't come
 *  @returns {Promise<MakeField>} */
function load_field() {
  fields ||= new Promise((resolve) => {
    const script = document.createElement("script");
    script.src = new URL("editor.js", here).href;
    script.addEventListener("load", () => resolve(window.machine_editor));
    script.addEventListener("error", () => {
      fields = null; // the next desk may have more luck
      resolve(plain_field);
    });
    document.head.append(script);
  });
  return fields;
}

let one = /** @type {Python|null} */ (null);

/** Python, one for all of the page */
const python = () => (one ||= new Python());
window.machine_yours = { python, completed, shared: new Shared(async () => python()) };

/** @type {Tools} */
const tools = {
  python, load_field,
  runner: (place, part) => runner(place, { part }),
};

function begin() {
  const store = new Store();
  const places = /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(".yours:not(.yours-alive)"));
  for (const root of places) {
    const known = JSON.parse(find(root, "script[type='application/json']").textContent || "");
    const part = /** @type {Part} */ (
      { ...known, stub: (find(root, ".yours-field pre").textContent || "").trim() });
    desk(root, part, tools, store);
  }
}
if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
else begin();
