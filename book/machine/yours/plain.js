// @ts-check
// A plain field to write in, where the editor didn't come.

import { h } from "../draw.js";
import { open_place } from "./text.js";

/** @import { Field, MakeField } from "./types.d.ts" */

/** @type {MakeField} */
export function plain_field(place, { text, label, described, on_type, on_check }) {
  const area = h("textarea", { class: "yours-plain", "aria-label": label,
    "aria-describedby": described, spellcheck: "false", autocapitalize: "off", autocorrect: "off",
    autocomplete: "off", wrap: "off",
    oninput: () => {
      fit();
      on_type(area.value);
    },
    onkeydown: (event) => {
      const { key, ctrlKey, metaKey } = /** @type {KeyboardEvent} */ (event);
      if (key !== "Enter" || !(ctrlKey || metaKey)) return;
      event.preventDefault();
      on_check();
    } });
  const fit = () => { area.rows = area.value.split("\n").length + 1; };
  const start_of = (/** @type {number} */ n) =>
    area.value.split("\n").slice(0, n - 1).reduce((sum, line) => sum + line.length + 1, 0);
  area.value = text;
  place.append(area);
  fit();
  return {
    text: () => area.value,
    set(now) {
      area.value = now;
      fit();
    },
    mark() {}, // it has no lines of its own
    show(n) {
      const start = start_of(n);
      area.focus();
      area.setSelectionRange(start, Math.max(start, start_of(n + 1) - 1));
    },
    focus: () => area.focus(),
    begin() {
      const open = open_place(area.value);
      area.focus({ preventScroll: true });
      if (open) area.setSelectionRange(open.from, open.to);
      const line = parseFloat(getComputedStyle(area).lineHeight) || 0, { top } = area.getBoundingClientRect();
      const at = top + line * area.value.slice(0, open?.from ?? 0).split("\n").length;
      if (at < line * 4 || at > innerHeight - line * 4) scrollBy(0, at - innerHeight / 2);
    },
  };
}
