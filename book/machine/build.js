// node build.js: bundles the script of the pages and the one that draws stills.
// Both are committed, so that the book is built without Node.

import { build } from "esbuild";

await build({
  entryPoints: { "book/_static/machine/machine": "page.js",
    "transformer_book/charts/machine_still": "still.js" },
  outdir: process.argv[2] || "../..", bundle: true, minify: true, target: "es2022",
  format: "iife", charset: "utf8", legalComments: "none", logLevel: "warning",
});
