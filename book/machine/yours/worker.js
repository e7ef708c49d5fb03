// @ts-check
// The inside of Python's worker: {task, question} in, then {progress}, and at last {answer},
// {problem}, a sentence for the reader, or {broken}, if Python itself is. Its text is all that
// goes there, behind Pyodide's, so nothing is used here that isn't defined here.

/** @import { Files, Memory, Pyodide } from "./python_types.d.ts" */

/** @param {(memory: Memory) => object} kernels */
export function python_worker(kernels) {
  const scope = /** @type {any} */ (self);
  const { load_pyodide } = scope;
  const HOME = "/home/pyodide";
  // What no code in here needs. The policy of the page holds here, too; this is a second door.
  const CLOSED = ["load_pyodide", "fetch", "XMLHttpRequest", "WebSocket", "WebSocketStream", "WebTransport",
    "EventSource", "Worker", "SharedWorker", "BroadcastChannel", "indexedDB", "caches"];
  let answer = /** @type {((task: string, question: unknown, progress: (share: number) => void) => any)|null} */ (null);

  /** @param {Omit<Files, "script">} files */
  async function start({ module, library, sources }) {
    const close = (/** @type {object} */ place, /** @type {string} */ name, /** @type {unknown} */ value) =>
      Object.defineProperty(place, name, { value, configurable: true, writable: true });
    // Pyodide fetches two files, and compiles one of them: both are here.
    close(scope, "fetch", async (/** @type {URL} */ { href }) =>
      new Response(href.endsWith(".zip") ? library : null));
    close(WebAssembly, "instantiateStreaming", async (/** @type {unknown} */ _, /** @type {any} */ imports) =>
      ({ module, instance: await WebAssembly.instantiate(module, imports) }));
    const nothing = () => {};
    const python = /** @type {Pyodide} */ (await load_pyodide({
      indexURL: "memory:/", jsglobals: {}, stdout: nothing, stderr: nothing, stdin: nothing,
      env: { HOME, PYTHONHASHSEED: "0" }, convertNullToNone: true,
    }));
    for (const [path, text] of Object.entries(sources)) {
      const name = `${HOME}/${path}`;
      python.FS.mkdirTree(name.slice(0, name.lastIndexOf("/")));
      python.FS.writeFile(name, text);
    }
    for (const name of CLOSED) close(scope, name, undefined);
    scope.python = python; // for whoever looks into this worker with the browser's tools
    const worker = python.pyimport("transformer_book.yours.worker");
    worker.start(kernels(python._module));
    answer = (task, question, progress) => {
      const found = worker.answer(task, python.toPy(question), progress);
      try {
        return plain(found.toJs({ dict_converter: Object.fromEntries, create_pyproxies: false }));
      } finally {
        found.destroy();
      }
    };
  }

  /** Python's None is null here @param {any} x @returns {any} */
  function plain(x) {
    if (x === undefined) return null;
    if (Array.isArray(x)) return x.map(plain);
    if (typeof x !== "object" || x === null || ArrayBuffer.isView(x)) return x;
    for (const name of Object.keys(x)) x[name] = plain(x[name]);
    return x;
  }

  self.onmessage = async ({ data: { task, question } }) => {
    try {
      if (!answer) {
        await start(question);
        return self.postMessage({ answer: null });
      }
      self.postMessage(answer(task, question, (progress) => self.postMessage({ progress })));
    } catch (error) {
      self.postMessage({ broken: error instanceof Error ? error.message : String(error) });
    }
  };
}
