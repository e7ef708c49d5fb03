// node build.js: bundles the script of the pages and the one that draws stills.
// Both are committed, so that the book is built without Node.

import { build } from "esbuild";

const to = process.argv[2] || "../..";
const outfiles = {
  "page.js": `${to}/book/_static/machine/machine.js`,
  "still.js": `${to}/transformer_book/charts/machine_still.js`,
};
for (const [entry, outfile] of Object.entries(outfiles)) {
  await build({ entryPoints: [entry], outfile, bundle: true, minify: true, target: "es2022",
    format: "iife", charset: "utf8", legalComments: "none", logLevel: "warning" });
}
