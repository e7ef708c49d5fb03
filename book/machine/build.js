// @ts-check
// The scripts that are committed, out of the modules here. `node build.js` writes them, each
// packed; `node build.js --check` writes nothing and fails where one isn't what its sources give.

import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { gunzipSync, gzipSync } from "node:zlib";
import { buildSync } from "esbuild";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const { outputFiles } = buildSync({
  absWorkingDir: fileURLToPath(new URL(".", import.meta.url)),
  entryPoints: {
    "book/machine/bundles/machine": "page.js", // for pages
    "book/machine/bundles/desks": "yours/wake.js", // for pages on which one can write
    "book/machine/bundles/yours": "yours/page.js", // loaded when one begins to
    "book/machine/bundles/editor": "yours/editor.js", // and when one does
    "transformer_book/charts/machine_still": "still.js", // where no script of a page runs
  },
  outdir: ROOT, write: false, bundle: true, minify: true, target: "es2022", format: "iife",
  charset: "utf8", legalComments: "none", logLevel: "warning",
});
for (const { path, contents } of outputFiles) {
  const packed = `${path}.gz`;
  // What is unpacked counts: another version of Node packs it otherwise.
  if (existsSync(packed) && gunzipSync(readFileSync(packed)).equals(contents)) continue;
  if (!process.argv.includes("--check")) {
    mkdirSync(dirname(packed), { recursive: true });
    writeFileSync(packed, gzipSync(contents, { level: 9 }));
  } else {
    const name = relative(ROOT, packed);
    console.error(`${name} isn't what book/machine gives: npm run build there, and commit it`);
    process.exitCode = 1;
  }
}
