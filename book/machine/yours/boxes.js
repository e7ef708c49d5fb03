// @ts-check
// The boxes of the front page: which parts of the machine are the reader's, and where to go on.

import { h } from "../draw.js";
import { find } from "../kit.js";
import { CHANGED } from "./store.js";

/** @import { Store } from "./store.js" */

const LINK = "a[data-part]";

/** How many there are, in words @param {number} n @param {number} all */
export function count_words(n, all) {
  if (n === 0) return `None of the ${all} is yours yet.`;
  return n === all ? `All ${all} are yours: the machine can run on your code alone.`
    : `${n} of ${all} ${n === 1 ? "is" : "are"} yours.`;
}

/** @param {HTMLElement} root a list of links, made by book/_ext/sphinx_yours.py
 *  @param {Store} store */
export function boxes(root, store) {
  const links = /** @type {HTMLAnchorElement[]} */ ([...root.querySelectorAll(LINK)]);
  const go = /** @type {HTMLAnchorElement} */ (find(root, ".yours-start"));
  const says = find(root, ".yours-count");

  function draw() {
    const own = store.sources();
    for (const link of links) {
      const is_own = (link.dataset.part || "") in own;
      link.classList.toggle("is-yours", is_own);
      link.querySelector(".yours-mark")?.remove();
      if (is_own) link.append(h("span", { class: "yours-mark" }, "✓ yours"));
    }
    const left = links.filter((link) => !link.classList.contains("is-yours"));
    says.textContent = count_words(links.length - left.length, links.length);
    go.textContent = left.length === links.length ? "Start" : left.length ? "Go on" : "See it again";
    go.href = (left[0] || links[0]).href;
  }
  draw();
  addEventListener("storage", draw); // of another tab
  addEventListener(CHANGED, draw);
  addEventListener("pageshow", draw); // on the way back
}
