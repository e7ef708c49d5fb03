// node build.js: bundles the script of the pages and the one that draws stills.
// Both are committed, so that the book is built without Node.

import { build } from "esbuild";

const shared = { bundle: true, minify: true, target: "es2022", format: "iife", charset: "utf8",
  legalComments: "none", logLevel: "warning" };
const to = process.argv[2] || "../..";
await build({ ...shared, entryPoints: ["page.js"], outfile: `${to}/book/_static/machine/machine.js` });
await build({ ...shared, entryPoints: ["still.js"], outfile: `${to}/transformer_book/charts/machine_still.js` });
