// @ts-check
// What the signs in a picture stand for, and how what is in it is counted.

/** @typedef {{ src_labels: string[], tgt_labels: string[] }} Labels */

/** Each with what tells that it is there @type {[RegExp, (label: string) => string][]} */
const SIGNS = [
  [/^<eos>$/, () => "<eos> is the token that ends a sentence."],
  [/^\p{L}/u, (label) => `A rare word is cut into pieces: “…${label}” goes on with the piece before it.`],
  [/^<[0-9A-F]{2}>$/, (label) => `${label} is one byte of a letter that is no token by itself.`],
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

/** How it is counted, where layers, heads and features are first met: of each level
 *  @type {string[]} */
export const COUNTED = [
  "Layers, heads and positions are counted from 1; in code, layer 1 is layers[0]. The sentence above " +
    "cites one layer to be short, and layers can look at different words: open another one to compare.",
  "Heads are counted from 1; in code, head 1 has the index 0.",
];
