// @ts-check
// What a hand can do in the picture: over a strand it is at the door beneath, and says so; a word
// of the source is a door, too, by pointer and by key.

import { h, shown } from "./draw.js";
import { path_of, WHOLE } from "./levels.js";

/** @import { App } from "./app.js" */

const FIRST = path_of({ ...WHOLE, stack: "encoder" }, 1); // where a word of the source goes in

/** @param {App} app @param {HTMLElement} stage */
export function hand(app, stage) {
  const word = h("span", { class: "machine-hand", "aria-hidden": "true", hidden: true });
  let hot = /** @type {Element|null} */ (null);

  /** The way down at a point: a door, the one beneath a strand, or a word of the source
   *  @param {Element} at @param {number} x @param {number} y */
  function door_at(at, x, y) {
    const door = at.closest(".machine-door");
    if (door || at.closest(".choice") || !at.closest(".lane, .row")) return door;
    const ground = document.elementsFromPoint(x, y).find((each) => each.matches(".door-ground"));
    return ground?.closest("a") || at.closest("text")?.closest(".lane") || null;
  }

  /** @param {Element|null} door @param {string} says */
  function point(door, says) {
    if (hot !== door) hot?.classList.remove("hot");
    hot = door;
    hot?.classList.add("hot");
    stage.style.cursor = says ? "pointer" : "";
    word.hidden = !says;
    word.textContent = says;
  }

  stage.addEventListener("pointermove", ({ target, clientX, clientY, pointerType }) => {
    if (pointerType !== "mouse") return;
    const at = /** @type {Element} */ (target), door = door_at(at, clientX, clientY);
    point(door, door ? "open" : at.closest(".choice[role]") ? "choose" : "");
    const { left, top } = stage.getBoundingClientRect();
    word.style.translate = `${clientX - left + stage.scrollLeft + 14}px ${clientY - top + 14}px`;
  });
  stage.addEventListener("pointerleave", () => point(null, ""));

  /** @param {Element} lane */
  function open_word(lane) {
    app.show({ word: [...lanes()].indexOf(/** @type {SVGGElement} */ (lane)) });
    app.visit(`#machine${FIRST}`);
  }

  const lanes = () => /** @type {NodeListOf<SVGGElement>} */ (stage.querySelectorAll(".lane"));

  stage.addEventListener("click", ({ target, clientX, clientY }) => {
    const at = /** @type {Element} */ (target), lane = at.closest(".lane");
    if (app.state.film) app.dispatch({ type: "stop" }); // going elsewhere ends it
    if (lane) app.show({ word: [...lanes()].indexOf(/** @type {SVGGElement} */ (lane)) });
    if (!at.closest(".lane, .row") || at.closest(".choice")) return; // a door goes by itself
    const door = door_at(at, clientX, clientY);
    if (door?.matches(".lane")) open_word(door);
    else if (door) app.visit(door.getAttribute("href") || "");
  });

  stage.addEventListener("keydown", (event) => {
    const all = [...lanes()], at = all.findIndex((each) => each === event.target);
    if (at < 0) return;
    /** @type {{ [key: string]: number }} */
    const steps = { ArrowDown: 1, ArrowUp: -1 };
    const next = all[at + (steps[event.key] || 0)];
    if (event.key === "Enter") open_word(all[at]);
    else if (steps[event.key] && next) {
      all[at].tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
    } else return;
    event.preventDefault();
  });

  /** To a new picture: its words of the source are links; one of them can be tabbed to
   *  @param {string[]} labels */
  function draw(labels) {
    hot = null;
    stage.append(word);
    point(null, "");
    lanes().forEach((lane, i) => {
      lane.role = "link";
      lane.tabIndex = i ? -1 : 0;
      lane.ariaLabel = `“${shown(labels[i])}”: open encoder layer 1 at this word`;
    });
  }
  return { draw };
}
