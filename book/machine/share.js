// @ts-check
// To keep and to share what is shown: a file for a slide, a link, the whole screen.

import { e, h } from "./draw.js";
import { button, when_changed } from "./kit.js";
import { save } from "./save.js";
import { changes_of } from "./state.js";

/** @import { App } from "./app.js" */

/** @param {App} app @param {HTMLElement} root @param {HTMLElement} stage
 *  @param {(words: string) => void} say */
export function share(app, root, stage, say) {
  const note = h("small");

  /** @param {"svg"|"png"} kind */
  async function save_as(kind) {
    const svg = stage.querySelector("svg"), changes = changes_of(app.state);
    if (!svg) return; // of a weight whose numbers aren't there
    const what = [root.ariaLabel || "", changes && `Changed: ${changes}`,
      decodeURIComponent(app.address)];
    await save(svg, what.filter(Boolean), kind);
    note.textContent = `Saved as machine.${kind}, for a slide.`;
    say(note.textContent);
  }

  async function copy_link() {
    try {
      await navigator.clipboard.writeText(app.address);
      note.textContent = "Copied: the link holds what you typed, the changes, and this place.";
    } catch { // no clipboard in a page opened from a file
      const link = h("input", { readonly: true, value: app.address,
        "aria-label": "Address of this view", onfocus: () => { link.select(); } });
      note.replaceChildren("Copy this address: ", link);
    }
    say(note.textContent || "");
  }

  const fill_screen = () => (document.fullscreenElement ? document.exitFullscreen()
    : root.requestFullscreen());
  const element = h("details", { class: "machine-more" }, e("summary", {}, "Keep, share"),
    h("div", { class: "machine-row" },
      button("Save as SVG", () => save_as("svg")), button("Save as PNG", () => save_as("png")),
      button("Copy link", copy_link),
      document.fullscreenEnabled && button("Full screen on/off", fill_screen), note));
  root.addEventListener("fullscreenchange", () => element.scrollIntoView({ block: "nearest" }));
  // A link that was copied is an old one after any move.
  const draw = when_changed((state) => [state.place, state.panel, state.asked],
    () => { note.textContent = ""; });
  return { element, draw };
}
