// @ts-check
// The scripts that are committed, out of the modules here. `node build.js` writes them;
// `node build.js --check` writes nothing and fails where one isn't what its sources give.

import { readFileSync, writeFileSync } from "node:fs";
import { relative } from "node:path";
import { fileURLToPath } from "node:url";
import { buildSync } from "esbuild";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const { outputFiles } = buildSync({
  absWorkingDir: fileURLToPath(new URL(".", import.meta.url)),
  entryPoints: {
    "book/_static/machine/machine": "page.js", // for pages
    "book/_static/machine/desks": "yours/wake.js", // for pages on which one can write
    "book/_static/machine/yours": "yours/page.js", // loaded when one begins to
    "book/_static/machine/editor": "yours/editor.js", // and when one does
    "transformer_book/charts/machine_still": "still.js", // where no script of a page runs
  },
  outdir: ROOT, write: false, bundle: true, minify: true, target: "es2022", format: "iife",
  charset: "utf8", legalComments: "none", logLevel: "warning",
});
for (const { path, contents } of outputFiles) {
  const name = relative(ROOT, path);
  if (!process.argv.includes("--check")) writeFileSync(path, contents);
  else if (!readFileSync(path).equals(contents)) {
    console.error(`${name} isn't what book/machine gives: npm run build there, and commit it`);
    process.exitCode = 1;
  }
}
