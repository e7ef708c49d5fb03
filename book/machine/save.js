// @ts-check
// A view as a file for a slide: the picture in the page's colors; below, what it is and where.

import { COLOR, e, h, markup, picture } from "./draw.js";

/** @param {SVGSVGElement} drawn @param {string[]} told @param {"svg"|"png"} kind */
export async function save(drawn, told, kind) {
  const { height: end } = drawn.viewBox.baseVal, { x, width: long } = drawn.getBBox();
  const width = Math.ceil(x + long) + 32, n = Math.floor(width / 6.5); // letters, of a wide font
  const pieces = new RegExp(`.{1,${n}}(?=\\s|$)|.{1,${n}}`, "gsu"); // whole words, if it can be
  const lines = told.flatMap((words) => words.match(pieces) || []), height = end + 10 + 14 * lines.length;
  const page = h("div");
  page.innerHTML = markup(picture(width, height, drawn.ariaLabel || "",
    e("rect", { width: "100%", height: "100%", fill: COLOR.page }),
    lines.map((words, i) =>
      e("text", { x: 8, y: end + 16 + 14 * i, "font-size": 10, fill: "#8a8a8a" }, words))));
  const sheet = page.children[0];
  sheet.children[0].after(...drawn.cloneNode(true).childNodes);
  const unseen = ".to-come, .past .asks, .past .sparse, .now .written";
  for (const each of sheet.querySelectorAll(unseen)) each.remove();
  for (const each of sheet.querySelectorAll(".past > :not(text)")) each.setAttribute("opacity", "0.4");
  const color_of = (/** @type {string} */ variable) => { // as it is now, light or dark
    drawn.style.color = variable;
    return getComputedStyle(drawn).color;
  };
  const svg = new XMLSerializer().serializeToString(sheet).replace(
    /var\(--[\w-]+,[^)]*\)/g, color_of);
  drawn.style.color = "";
  const data = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  const href = kind === "svg" ? data : await as_png(data, width, height);
  h("a", { href, download: `machine.${kind}` }).click();
}

/** @param {string} data @param {number} width @param {number} height */
async function as_png(data, width, height) {
  const image = new Image();
  image.src = data;
  await image.decode();
  const canvas = h("canvas", { width: 2 * width, height: 2 * height });
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
  return canvas.toDataURL("image/png");
}
