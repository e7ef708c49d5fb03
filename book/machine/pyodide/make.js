// @ts-check
// Writes what the pages need of Pyodide into a folder: `python -m book._ext.pyodide` calls it.

import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildSync } from "esbuild";
import { loadPyodide } from "pyodide";

const folder = process.argv[2], { resolve } = createRequire(import.meta.url);
const { info } = JSON.parse(readFileSync(resolve("pyodide/pyodide-lock.json"), "utf8"));
const LIBRARY = "python_stdlib.zip", CODE = "pyodide.asm.wasm";

// The script: its two modules in one, which a classic worker can run.
buildSync({
  absWorkingDir: fileURLToPath(new URL("..", import.meta.url)),
  entryPoints: ["pyodide/entry.js"], outfile: join(folder, "pyodide.js"),
  bundle: true, minify: true, target: "es2022", format: "iife",
  external: ["node:*", "ws"], // asked for where there is Node, and nowhere else
  define: { "import.meta.url": "self.location.href", LOCK: JSON.stringify(info) },
  charset: "utf8", legalComments: "none", logLevel: "warning",
});

copyFileSync(resolve(`pyodide/${CODE}`), join(folder, CODE));

// The library: reduced and compiled by the very Python that it belongs to.
const python = await loadPyodide({ env: { PYTHONHASHSEED: "0" } });
python.FS.writeFile("/given.zip", readFileSync(resolve(`pyodide/${LIBRARY}`)));
const own = (/** @type {string} */ name) => readFileSync(new URL(name, import.meta.url), "utf8");
python.FS.writeFile("/left_out.txt", own("left_out.txt"));
python.runPython(own("reduce_library.py"));
writeFileSync(join(folder, LIBRARY), python.FS.readFile("/kept.zip"));
