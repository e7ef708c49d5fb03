// @ts-check
// Python in the page: its files come by scripts, once they are asked for; one worker runs what
// the reader writes, and another one stands by, so that nobody waits after *Stop*.

import { h } from "../draw.js";
import { kernels } from "./kernels.js";
import { python_worker } from "./worker.js";

/** @import { Files, Options, Progress } from "./python_types.d.ts" */

const SECONDS = 10; // without progress: then a run is ended
// Of these the last that was answered holds for a worker that takes over.
const LASTING = ["load", "use"];

/** What is said, by the error's name */
const SAYS = {
  Stopped: "You’ve stopped it.",
  TooLong: "Stopped: for ten seconds nothing came. Perhaps a loop in it never ends.",
  Lost: "Python didn’t come: perhaps the connection is gone.",
  Unable: "This browser can’t run Python: it may be too old.",
  Broken: "Python broke down: perhaps something calls itself for ever, or is too large.",
};

/** @param {keyof typeof SAYS} name @param {unknown} [cause] */
const reason = (name, cause) => Object.assign(new Error(SAYS[name], { cause }), { name });
/** @param {string} message */
const problem = (message) => Object.assign(new Error(message), { name: "Problem" });

// ---- The files

const own = /** @type {HTMLScriptElement|null} */ (document.currentScript); // while the bundle runs

/** Load the scripts that a list names, which stands in a script, too
 *  @param {string} folder @param {(at: Progress) => void} on_progress @returns {Promise<Map<string, Uint8Array<ArrayBuffer>>>} */
async function load_files(folder, on_progress) {
  const given = /** @type {unknown[]} */ ([]);
  window.machine_python = (/** @type {unknown} */ part) => { given.push(part); };
  await load_script(`${folder}list.js?at=${Date.now()}`); // always the newest
  const { scripts, files } = /** @type {{ scripts: [string, number][], files: [string, number][] }} */ (given.shift());
  const total = scripts.reduce((sum, [, size]) => sum + size, 0);
  const data = [], under_way = /** @type {Promise<void>[]} */ ([]);
  let loaded = 0;
  for (const [i, [, size]] of scripts.entries()) {
    on_progress({ loaded, total });
    while (under_way.length < Math.min(i + 2, scripts.length)) { // two at a time
      const coming = load_script(folder + scripts[under_way.length][0]);
      coming.catch(() => {}); // one that failed is enough
      under_way.push(coming);
    }
    await under_way[i].catch(async (error) => {
      await Promise.allSettled(under_way); // none of them comes while it is tried again
      throw error;
    });
    const part = given.shift();
    if (typeof part !== "string") throw reason("Lost");
    data.push(bytes_of(part));
    loaded += size;
  }
  on_progress({ loaded, total });
  const all = new Blob(data), found = new Map();
  let start = 0;
  for (const [name, size] of files) {
    found.set(name, await unpacked(all.slice(start, start + size)));
    start += size;
  }
  return found;
}

/** Scripts run in the order of these calls @param {string} src @returns {Promise<void>} */
const load_script = (src) => new Promise((resolve, fail) => {
  const script = /** @type {HTMLScriptElement} */ (h("script", { src,
    onload: () => { script.remove(); resolve(); },
    onerror: () => { script.remove(); fail(reason("Lost")); } }));
  script.async = false;
  document.head.append(script);
});

/** @param {string} base64 */
function bytes_of(base64) {
  const text = atob(base64), bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

/** @param {Blob} blob */
const unpacked = async (blob) => new Uint8Array(await new Response(
  blob.stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer());

/** What each worker is made of. The code of WebAssembly is compiled once for all of them
 *  @param {string} folder @param {(at: Progress) => void} on_progress @returns {Promise<Files>} */
async function prepare(folder, on_progress) {
  const files = await load_files(folder, on_progress);
  const file = (/** @type {string} */ name) => {
    const found = files.get(name);
    if (!found) throw reason("Lost");
    return found;
  };
  const text = `(${python_worker})(${kernels});`;
  const blob = new Blob([file("pyodide.js"), "\n", text], { type: "text/javascript" });
  return {
    script: URL.createObjectURL(blob),
    module: await WebAssembly.compile(file("pyodide.asm.wasm")),
    library: file("python_stdlib.zip"),
    sources: JSON.parse(new TextDecoder().decode(file("sources.json"))),
  };
}

// ---- One worker

class Process {
  /** @param {Files} files */
  constructor(files) {
    const { script, ...question } = files;
    this.is_ended = false;
    this.worker = new Worker(script);
    this.worker.onerror = (event) => {
      event.preventDefault();
      this.end(reason("Broken", event.message));
    };
    this.fail = /** @type {((why: Error) => void)|null} */ (null); // who waits for an answer
    this.ready = this.ask("start", question, { seconds: Infinity })
      .catch((error) => { throw reason("Unable", error); });
    this.ready.catch(() => {}); // whoever asks is told
  }

  /** One question at a time @param {string} task @param {object} question @param {Options} options
   *  @returns {Promise<any>} */
  ask(task, question, { on_progress, seconds = SECONDS } = {}) {
    return new Promise((resolve, reject) => {
      if (this.is_ended) return reject(reason("Broken"));
      let left = seconds; // of those in which the page is awake
      const clock = setInterval(() => {
        left -= 1;
        if (left <= 0) this.end(reason("TooLong"));
      }, 1000);
      const done = () => {
        clearInterval(clock);
        this.fail = null;
      };
      this.fail = (/** @type {Error} */ why) => {
        done();
        reject(why);
      };
      this.worker.onmessage = ({ data }) => {
        if (data.progress !== undefined) {
          left = seconds;
          return on_progress?.(data.progress);
        }
        if (data.broken !== undefined) return this.end(reason("Broken", data.broken));
        done();
        if (data.problem !== undefined) return reject(problem(data.problem));
        resolve(data.answer);
      };
      this.worker.postMessage({ task, question });
    });
  }

  /** @param {Error} why */
  end(why) {
    this.is_ended = true;
    this.worker.terminate();
    this.fail?.(why);
  }
}

// ---- What a page has

export class Python {
  /** @param {string} [folder] of its scripts; else it lies beside that of the bundle */
  constructor(folder = new URL("../yours/", own?.src ?? document.baseURI).href) {
    this.folder = folder;
    this.worker = 1; // grows where a new one couldn't be given what the last one had
    this.files = /** @type {Promise<Files>|null} */ (null);
    this.at_work = /** @type {Process|null} */ (null);
    this.spare = /** @type {Process|null} */ (null);
    this.listeners = /** @type {Set<(at: Progress) => void>} */ (new Set());
    this.lasting = /** @type {Map<string, object>} */ (new Map());
    this.turn = /** @type {Promise<unknown>} */ (Promise.resolve());
    this.waiting = /** @type {Set<(why: unknown) => void>} */ (new Set()); // for an answer
    this.is_running = false;
  }

  /** Load all that it needs, once; the bytes that have come are told
   *  @param {(at: Progress) => void} [on_progress] */
  async start(on_progress) {
    await (await this.#process(on_progress)).ready;
  }

  /** One question after the other @param {string} task @param {object} question @param {Options} [options]
   *  @returns {Promise<any>} */
  ask(task, question, options) {
    return new Promise((resolve, reject) => {
      this.waiting.add(reject);
      this.turn = this.turn.then(async () => {
        try {
          const process = this.waiting.has(reject) && await this.#ready_process();
          if (!process || !this.waiting.has(reject)) return; // it was stopped meanwhile
          this.is_running = true;
          const answer = await process.ask(task, question, options);
          if (LASTING.includes(task)) this.lasting.set(task, question);
          resolve(answer);
        } catch (error) {
          reject(error);
        }
        this.is_running = false;
        this.waiting.delete(reject);
        this.#stand_by().catch(() => {}); // the next question meets the same error
      });
    });
  }

  /** End what runs, and what waits for it */
  stop() {
    for (const reject of this.waiting) reject(reason("Stopped"));
    this.waiting.clear();
    if (this.is_running) this.at_work?.end(reason("Stopped"));
  }

  async #ready_process() {
    for (let tries = 0; ; tries++) {
      const process = await this.#process();
      await process.ready;
      if (!process.is_ended || tries) return process;
    }
  }

  /** Whoever takes over is made ready, then the next one that could */
  async #stand_by() {
    await this.#ready_process();
    const files = await this.files;
    if (files && (!this.spare || this.spare.is_ended)) this.spare = new Process(files);
  }

  /** The worker that is asked next @param {(at: Progress) => void} [on_progress] @returns {Promise<Process>} */
  async #process(on_progress) {
    if (on_progress) this.listeners.add(on_progress);
    try {
      const files = await (this.files ??= prepare(this.folder, (at) => {
        for (const listener of this.listeners) listener(at);
      }));
      if (this.at_work && !this.at_work.is_ended) return this.at_work;
      const first = !this.at_work;
      this.at_work = this.spare && !this.spare.is_ended ? this.spare : new Process(files);
      this.spare = null;
      if (!first) this.at_work.ready = this.#restore(this.at_work);
      return this.at_work;
    } catch (error) {
      this.files = null; // it can be tried again
      throw error instanceof Error && error.name in SAYS ? error : reason("Unable", error);
    } finally {
      if (on_progress) this.listeners.delete(on_progress);
    }
  }

  /** Give a worker what the last one had @param {Process} process */
  async #restore(process) {
    await process.ready;
    try {
      for (const task of LASTING) {
        const question = this.lasting.get(task);
        if (question) await process.ask(task, question, { seconds: 60 });
      }
    } catch {
      this.lasting.clear();
      this.worker += 1;
    }
  }
}
