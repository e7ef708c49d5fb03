// @ts-check
// The reader's own parts in a machine: one switch, where there are any.

import { h } from "../draw.js";
import { labeled, when_changed } from "../kit.js";
import { NAMES, owned } from "./parts.js";

/** @import { App } from "../app.js" */

/** @param {App} app */
export function own_parts(app) {
  const box = h("input", { type: "checkbox", onchange: () => { app.switch_yours(box.checked); } });
  const words = h("span"), element = h("div", { class: "machine-row machine-yours", hidden: true },
    labeled("", box, words));

  const draw = when_changed(({ parts, asked }) => [parts, asked.edits, asked.trying], ({ parts, asked }) => {
    const { edits: { yours = [] }, trying } = asked;
    element.hidden = !parts.length;
    box.checked = yours.length > 0 && !trying;
    words.textContent = `Run on your parts (${parts.length} of ${NAMES.length})`;
    element.title = owned(parts);
  });
  return { element, draw };
}
