// @ts-check
// Pyodide as one classic script: its two modules in one, which a worker from a blob can run.

/* global LOCK */
import { loadPyodide } from "pyodide";
import create_module from "pyodide/pyodide.asm.mjs";

// It asks whether `importScripts` works, and refuses to start where it does. Nothing here needs it.
Object.defineProperty(self, "importScripts", { value: undefined });

Object.assign(self, { load_pyodide: (/** @type {object} */ options) => loadPyodide({
  ...options, createPyodideModule: create_module,
  lockFileContents: JSON.stringify({ info: LOCK, packages: {} }), // the page has no others
}) });
