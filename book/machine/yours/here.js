// @ts-check
// What a script of the page brings along when it is wanted: the files beside it.

import { h } from "../draw.js";

/** @import { Yours } from "../types.d.ts" */

const { src = "" } = /** @type {Partial<HTMLScriptElement>} */ (globalThis.document?.currentScript || {});
const LOADED = /** @type {Map<string, Promise<void>>} */ (new Map());

/** The address of a file beside the script that this is part of @param {string} name */
export const beside = (name) => new URL(name, src || location.href).href;

/** A script, once: a page that is opened from a file may load scripts and nothing else
 *  @param {string} name @returns {Promise<void>} */
export function script(name) {
  const known = LOADED.get(name);
  if (known) return known;
  const loads = /** @type {Promise<void>} */ (new Promise((resolve, fail) => {
    const onerror = () => {
      LOADED.delete(name); // it can be tried again
      fail(new Error(`${name} didn’t come: perhaps the connection is gone`));
    };
    document.head.append(h("script", { src: beside(name), onload: () => resolve(), onerror }));
  }));
  LOADED.set(name, loads);
  return loads;
}

/** What runs the reader's code: the script of the places where it is written has it
 *  @returns {Promise<Yours>} */
export async function yours_of_page() {
  if (!window.machine_yours) await script("yours.js");
  if (!window.machine_yours) throw new Error("there is no Python in this page");
  return window.machine_yours;
}
