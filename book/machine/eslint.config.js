import js from "@eslint/js";
import globals from "globals";

export default [js.configs.recommended, {
  languageOptions: { globals: { ...globals.browser } },
  rules: {
    "max-len": "off",
    "no-unused-vars": ["error", { args: "after-used" }],
    "prefer-const": ["error", { destructuring: "all" }],
    eqeqeq: "error",
    "require-yield": "off", // a task is a generator, whether it pauses or not
  },
}, { files: ["build.js"], languageOptions: { globals: { ...globals.node } } }];
