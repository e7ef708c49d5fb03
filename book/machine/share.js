// @ts-check
// To keep and to share what is shown: a file for a slide, a link, the whole screen.

import { e, h } from "./draw.js";
import { button, when_changed } from "./kit.js";
import { save } from "./save.js";
import { changes_of, is_current } from "./state.js";

/** @import { App } from "./app.js" */
/** @import { State } from "./types.d.ts" */

/** What is shown, for whoever gets the link: what is changed, and what came out
 *  @param {State} state */
export function caption_of(state) {
  const { view, untouched } = state, changes = is_current(state) && changes_of(state);
  if (!changes) return `A Transformer translates “${view.source}” into “${view.text}”`;
  const came = untouched.text === view.text ? `still becomes “${view.text}”`
    : `becomes “${view.text}” and not “${untouched.text}”`;
  return `I changed a Transformer (${changes.replace(/\byours?\b/g, (word) =>
    (word === "your" ? "my" : "mine"))}): “${view.source}” ${came}`;
}

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

  /** @param {string} words @param {string} name @param {string} copied */
  async function copy(words, name, copied) {
    try {
      await navigator.clipboard.writeText(words);
      note.textContent = copied;
    } catch { // no clipboard in a page opened from a file
      const field = h("input", { readonly: true, value: words, "aria-label": name,
        onfocus: () => { field.select(); } });
      note.replaceChildren(`${name}, to copy: `, field);
    }
    say(note.textContent || "");
  }

  const copy_link = () => copy(app.address, "Address of this view",
    `Copied: the link holds what you typed, the changes, and this place${
      app.state.asked.edits.yours ? ", but none of your code" : ""}.`);
  const copy_caption = () => copy(`${caption_of(app.state)} ${app.address}`, "Caption with its link",
    `Copied, with the link: ${caption_of(app.state)}`);

  const fill_screen = () => (document.fullscreenElement ? document.exitFullscreen()
    : root.requestFullscreen());
  const element = h("details", { class: "machine-more" }, e("summary", {}, "Keep, share"),
    h("div", { class: "machine-row" },
      button("Save as SVG", () => save_as("svg")), button("Save as PNG", () => save_as("png")),
      button("Copy link", copy_link), button("Copy caption and link", copy_caption),
      document.fullscreenEnabled && button("Full screen on/off", fill_screen), note));
  root.addEventListener("fullscreenchange", () => element.scrollIntoView({ block: "nearest" }));
  // A link that was copied is an old one after any move.
  const draw = when_changed((state) => [state.place, state.panel, state.asked],
    () => { note.textContent = ""; });
  return { element, draw };
}
