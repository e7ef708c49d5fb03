// @ts-check
// The machine where code is written: it comes when something is to be run, with the front page's
// stored sentence as its first picture, and translates with what the reader has written.

import { h } from "../draw.js";
import { beside, script } from "./here.js";
import { owned } from "./parts.js";

/** @import { App } from "../app.js" */
/** @import { Sources } from "../types.d.ts" */

/** @typedef {{ text: string, before: string, ms: number, cut: boolean, problem: string, words: string }} Ran */

/** The machine's script, its style, and what it shows at first; the page may have them */
async function load_machine() {
  if (!document.querySelector('link[href*="machine.css"]')) {
    document.head.append(h("link", { rel: "stylesheet", href: beside("../machine.css") }));
  }
  if (!window.machine_second) await script("machine.js");
  if (!window.machine_view) await script("view.js");
}

/** Its addresses are seen from its folder @param {typeof window.machine_view} view */
function seen_from_here(view) {
  const [model, sister] = [view.model, view.sister].map((all = "[]") =>
    JSON.stringify(JSON.parse(all).map((/** @type {string} */ address) => beside(address))));
  return { ...view, model, sister };
}

/** @param {HTMLElement} root empty; the machine fills it at the first run
 *  @param {{ part?: string }} [place] the part that is written here; the page's Python is found by itself */
export function runner(root, { part = "" } = {}) {
  let app = /** @type {Promise<App>|null} */ (null);

  const begin = () => app ||= load_machine().then(() => window.machine_second(root, seen_from_here(window.machine_view))).catch((error) => {
    app = null;
    throw new Error(`The machine didn’t come: ${error.message}.`);
  });

  return {
    /** Translate with these sources in the places of the book's parts. before: what the book's own
     *  write; words: whose it is; problem: what else there is to know, or ""
     *  @param {Sources} sources @param {string} [label] of a mistake that is tried, or whose it is
     *  @param {{ text?: string, on_progress?: (share: number) => void }} [how] @returns {Promise<Ran>} */
    async run(sources, label = "", { text, on_progress } = {}) {
      const machine = await begin();
      machine.on_work = ({ what, share }) => { if (what === "code") on_progress?.(share); };
      return machine.run(sources, label === owned([part]) ? "" : label, text);
    },
    /** Back to the book's own */
    off: async () => (app ? (await app).undo_all() : undefined),
  };
}
