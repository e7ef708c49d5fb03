// @ts-check
// What the browser keeps of what a reader has written: one entry for each part. It can be
// forbidden or full; then a sentence says so, and the page goes on.

/** @import { Kept } from "./types.d.ts" */

const PREFIX = "yours-";
export const CHANGED = "machine-parts"; // the event of the window after each change

export const FORBIDDEN = "This browser keeps nothing of this page. Save your text as a file " +
  "before you close it.";
export const FULL = "The browser has no room left to keep your text. Save it as a file before " +
  "you close this page.";

/** What was kept, whatever it looks like: a text is never thrown away @param {string} stored
 *  @returns {Kept} */
export function parsed(stored) {
  let found;
  try {
    found = JSON.parse(stored);
  } catch {
    // as it is
  }
  if (!found || typeof found.text !== "string") found = { text: stored };
  const text_or = (/** @type {unknown} */ x) => (typeof x === "string" ? x : "");
  return { text: found.text, edition: text_or(found.edition), best: text_or(found.best),
    attempts: Number(found.attempts) || 0, away: typeof found.away === "string" ? found.away : null };
}

export class Store {
  /** @param {() => Storage} storage may throw, as a browser does that forbids it */
  constructor(storage = () => localStorage) {
    this.storage = storage;
  }

  /** @param {string} name of the part @returns {Kept|null} */
  read(name) {
    try {
      const stored = this.storage().getItem(PREFIX + name);
      return stored === null ? null : parsed(stored);
    } catch {
      return null;
    }
  }

  /** Keep it, or with null nothing any longer. @param {string} name @param {Kept|null} kept
   *  @returns {string} what is wrong, if it can't be kept */
  write(name, kept) {
    try {
      if (kept) this.storage().setItem(PREFIX + name, JSON.stringify(kept));
      else this.storage().removeItem(PREFIX + name);
      window.dispatchEvent(new Event(CHANGED));
      return "";
    } catch (error) {
      return error instanceof DOMException && error.name === "QuotaExceededError" ? FULL : FORBIDDEN;
    }
  }

  /** Of each part that is the reader's, the last text that was right
   *  @returns {{ [part: string]: string }} */
  sources() {
    let keys;
    try {
      keys = Object.keys(this.storage()).filter((key) => key.startsWith(PREFIX));
    } catch {
      return {};
    }
    const found = keys.map((key) => key.slice(PREFIX.length)).map((name) =>
      /** @type {const} */ ([name, this.read(name)?.best || ""]));
    return Object.fromEntries(found.filter(([, best]) => best));
  }

  /** Tell what another tab does to a part. null: it was forgotten
   *  @param {string} name @param {(kept: Kept|null) => void} act */
  watch(name, act) {
    window.addEventListener("storage", ({ key, newValue }) => {
      if (key === null || key === PREFIX + name) act(newValue === null ? null : parsed(newValue));
    });
  }
}

/** What the machine can run on: of each part that is the reader's, the last text that was right */
export const sources = () => new Store().sources();
