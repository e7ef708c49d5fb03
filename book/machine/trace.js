// @ts-check
// What a page or a notebook stores of a sentence.

/** Stored vectors as the engine has them: base64 of 32-bit numbers, or the numbers. */
function numbers_of(stored) {
  if (typeof stored !== "string") return Float32Array.from(stored);
  return new Float32Array(Uint8Array.from(atob(stored), (sign) => sign.charCodeAt(0)).buffer);
}

/** A stored trace, and one with edits where there is one, ready to be drawn. */
export function unpack({ trace, edited }) {
  for (const { heads } of edited ? [trace, edited] : [trace]) {
    for (const kept of Object.values(heads)) {
      for (const which of ["q", "k", "v"]) kept[which] = numbers_of(kept[which]);
    }
  }
  return { trace, edited };
}
