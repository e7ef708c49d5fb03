import js from "@eslint/js";
import globals from "globals";

export default [js.configs.recommended, {
  languageOptions: { globals: { ...globals.browser } },
  rules: {
    "prefer-const": ["error", { destructuring: "all" }],
    eqeqeq: "error",
  },
}, {
  files: ["build.js", "pyodide/make.js", "tests/*.js"],
  languageOptions: { globals: { ...globals.node } },
}];
