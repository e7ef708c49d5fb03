// @ts-check
// A view as a file for a slide: the picture in the page's colors, with its address below.

import { COLOR, e, element, h, SVG } from "./draw.js";

/** @param {SVGSVGElement|null} picture @param {string} address @param {"svg"|"png"} kind */
export async function save(picture, address, kind) {
  if (!picture) return;
  const { width, height: end } = picture.viewBox.baseVal;
  // As many letters a line as fit, of a font that may be a wide one
  const lines = decodeURIComponent(address).match(new RegExp(`.{1,${width / 6.5 | 0}}`, "gsu"));
  const height = end + 10 + 14 * lines.length, copy = /** @type {SVGSVGElement} */ (picture.cloneNode(true));
  const unseen = ".to-come, .past .asks, .past .sparse, .now .written";
  for (const each of copy.querySelectorAll(unseen)) each.remove();
  for (const each of copy.querySelectorAll(".past")) each.setAttribute("opacity", "0.4");
  const size = { viewBox: `0 0 ${width} ${height}`, width, height };
  for (const [name, value] of Object.entries(size)) copy.setAttribute(name, String(value));
  const ground = e("rect", { width: "100%", height: "100%", fill: COLOR.page });
  const below = lines.map((words, i) =>
    e("text", { x: 8, y: end + 16 + 14 * i, "font-size": 10, fill: "#8a8a8a" }, words));
  copy.prepend(element(ground, SVG));
  copy.append(...below.map((each) => element(each, SVG)));
  const color_of = (variable) => { // as it is now, light or dark
    picture.style.color = variable;
    return getComputedStyle(picture).color;
  };
  const svg = new XMLSerializer().serializeToString(copy).replace(
    /var\(--[\w-]+,[^)]*\)/g, color_of);
  picture.style.color = "";
  const data = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  const href = kind === "svg" ? data : await as_png(data, width, height);
  h("a", { href, download: `machine.${kind}` }).click();
}

async function as_png(data, width, height) {
  const image = new Image();
  image.src = data;
  await image.decode();
  const canvas = h("canvas", { width: 2 * width, height: 2 * height });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return canvas.toDataURL("image/png");
}
