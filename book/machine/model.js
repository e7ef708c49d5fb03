// @ts-check
// The model behind a page: its weights come by scripts, and a worker reckons with them.

import { h } from "./draw.js";
import { transformer_engine } from "./engine.js";
import { translator_tasks, translator_worker } from "./tasks.js";

/** @import { Ask, Packed } from "./types.d.ts" */

/** A model that is there, and what it was made of @typedef {{ ask: Ask, packed: Packed }} Model */
/** @type {Map<string, { model: Promise<Model>, on_part: Set<(share: number) => void> }>} */
const MODELS = new Map(); // of this page, by their addresses
let last = /** @type {Promise<unknown>} */ (Promise.resolve()); // their scripts call the same function

/** Load it, once for all machines of a page
 *  @param {string[]} addresses @param {(share: number) => void} on_part @returns {Promise<Model>} */
export function load_model(addresses, on_part) {
  const name = addresses.map((each) => new URL(each, document.baseURI).href).join(), known = MODELS.get(name);
  if (known) {
    known.on_part.add(on_part);
    return known.model;
  }
  const all = new Set([on_part]);
  const model = last.then(() => load_parts(addresses, (share) => all.forEach((tell) => tell(share))))
    .then(async (packed) => {
      const ask = start_worker();
      await ask("load", packed);
      return { ask, packed };
    });
  last = model.catch(() => MODELS.delete(name)); // it can be loaded again
  MODELS.set(name, { model, on_part: all });
  return model;
}

// The weights come in scripts that call a function with their part: a page that is opened
// from a file may load scripts and nothing else.
/** @param {string[]} addresses @param {(share: number) => void} on_part @returns {Promise<Packed>} */
async function load_parts(addresses, on_part) {
  /** @type {(Packed|string)[]} */
  const parts = [];
  window.machine_model = (part) => { parts.push(part); };
  for (const [i, src] of addresses.entries()) {
    if (parts.length !== i) throw new Error("a part of the model is damaged");
    await new Promise((onload, fail) => {
      const onerror = () => fail(new Error(
        `part ${i + 1} of ${addresses.length} of the model didn’t come: perhaps the connection is gone`));
      document.head.append(h("script", { src, onload, onerror }));
    });
    on_part((i + 1) / addresses.length);
  }
  const [first, ...data] = parts;
  return { .../** @type {Packed} */ (first), data: data.join("") };
}

/** @returns {Ask} */
function start_worker() {
  const text = `"use strict";const E=(${transformer_engine})();` +
    `(${translator_worker})((${translator_tasks})(E).tasks);`;
  return asks_of_worker(new Worker(URL.createObjectURL(new Blob([text], { type: "text/javascript" }))));
}

/** Each question has its answer, or the error that was made with it; what goes wrong with the
 *  worker itself fails all that wait
 *  @param {Worker} worker @returns {Ask} */
export function asks_of_worker(worker) {
  const waiting = /** @type {Set<(why: Error) => void>} */ (new Set()); // for an answer
  worker.onerror = (event) => {
    event.preventDefault();
    for (const fail of [...waiting]) fail(new Error("this browser can’t run the model"));
  };
  return (task, question) => new Promise((resolve, reject) => {
    const { port1: answers, port2: asks } = new MessageChannel();
    const done = () => {
      answers.close();
      waiting.delete(fail);
    };
    const fail = (/** @type {Error} */ why) => {
      done();
      reject(why);
    };
    waiting.add(fail);
    answers.onmessage = ({ data: { answer, error } }) => {
      if (error !== undefined) return fail(new Error(error));
      done();
      resolve(answer);
    };
    worker.postMessage({ task, question }, [asks]);
  });
}
