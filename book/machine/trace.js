// @ts-check
// What a page or a notebook stores of a sentence.

/** Stored vectors as the engine has them: base64 of 32-bit numbers, or the numbers. */
export function unpack(trace) {
  for (const kept of Object.values(trace.heads || {})) {
    for (const which of ["q", "k", "v"]) {
      const stored = kept[which];
      kept[which] = typeof stored !== "string" ? Float32Array.from(stored)
        : new Float32Array(Uint8Array.from(atob(stored), (sign) => sign.charCodeAt(0)).buffer);
    }
  }
  return trace;
}
