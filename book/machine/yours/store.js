// @ts-check
// What the browser keeps of what a reader has written: one entry for each part.

const PREFIX = "yours-";
export const CHANGED = "machine-parts"; // the event of the window after each change

/** What the machine can run on: of each part that is the reader's, the last text that was right
 *  @returns {{ [part: string]: string }} */
export function sources() {
  try {
    const kept = Object.entries(localStorage).filter(([key]) => key.startsWith(PREFIX))
      .map(([key, text]) => [key.slice(PREFIX.length), JSON.parse(text).best]);
    return Object.fromEntries(kept.filter(([, best]) => best));
  } catch {
    return {};
  }
}
