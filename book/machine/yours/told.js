// @ts-check
// What goes wrong, in a sentence that stands by itself. By its name, since two scripts of a page
// have a class each.

/** @param {string} sentence */
export const told = (sentence) => Object.assign(new Error(sentence), { name: "Told" });

/** @param {unknown} error @returns {error is Error} */
export const is_told = (error) => error instanceof Error && error.name === "Told";
