// @ts-check
// What a page or a notebook stores of a sentence.

/** Stored numbers of 32 bits, as the engine has them. */
export function unpack(trace) {
  for (const kept of Object.values(trace.heads || {})) {
    for (const which of ["q", "k", "v"]) {
      if (typeof kept[which] !== "string") continue;
      const bytes = Uint8Array.from(atob_anywhere(kept[which]), (sign) => sign.charCodeAt(0));
      kept[which] = new Float32Array(bytes.buffer);
    }
  }
  return trace;
}

const SIGNS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
function atob_anywhere(text) { // an engine without a page has no atob
  if (globalThis.atob) return atob(text);
  let bits = 0, held = 0, out = "";
  for (const sign of text.replace(/=+$/, "")) {
    held = (held << 6) | SIGNS.indexOf(sign);
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      out += String.fromCharCode((held >> bits) & 255);
    }
  }
  return out;
}
