// @ts-check
// What the signs in a picture stand for, and how what is in it is counted.

/** @typedef {{ src_labels: string[], tgt_labels: string[] }} Labels */

/** Each with what tells that it is there @type {[RegExp, (label: string) => string][]} */
const SIGNS = [
  [/^<eos>$/, () => "<eos> ends a sentence."],
  [/^\p{L}/u, (label) => `A rare word is cut into pieces: “…${label}” goes on with the piece before it.`],
  [/^(<[0-9A-F]{2}>)+$/, (label) => `${label.slice(-4)} is a byte, of a letter that has no token of its own.`],
  [/^▁$/, () => "␣ is a space that is a token by itself."],
];

/** Of the signs that a sentence and its translation have, what each one means
 *  @param {Labels} view */
export function signs_of({ src_labels, tgt_labels }) {
  const labels = [...src_labels, ...tgt_labels];
  return SIGNS.flatMap(([looks, says]) => {
    const label = labels.find((each) => looks.test(each));
    return label === undefined ? [] : says(label);
  });
}

/** How it is counted, and whose look is cited: under the whole, where layers are first met */
export const COUNTED = "Layers, heads and positions are counted from 1: layer 1 is layers[0] in code. " +
  "One layer is cited for all, the middle one; others can look elsewhere: open one to compare.";
