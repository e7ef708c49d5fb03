// @ts-check
// A view as a file for a slide: the picture in the page's colors, with its address below.

import { h } from "./draw.js";

/** @param {SVGSVGElement|null} picture @param {string} address @param {"svg"|"png"} kind */
export async function save(picture, address, kind) {
  if (!picture) return;
  const style = getComputedStyle(picture), copy = /** @type {SVGSVGElement} */ (picture.cloneNode(true));
  for (const each of copy.querySelectorAll(".to-come, .row:not(.now) .asks")) each.remove();
  for (const each of copy.querySelectorAll(".past .trunk")) each.setAttribute("opacity", "0.4");
  const { width, height } = picture.viewBox.baseVal;
  copy.setAttribute("viewBox", `0 0 ${width} ${height + 24}`);
  copy.setAttribute("width", String(width));
  copy.setAttribute("height", String(height + 24));
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  const text = new XMLSerializer().serializeToString(copy).replace(
    /var\((--[\w-]+),([^)]*)\)/g, (_, name, light) => style.getPropertyValue(name).trim() || light);
  const page = style.getPropertyValue("--machine-page").trim() || "#fdfcf8";
  const label = address.replace(/[&<>]/g, "").slice(0, 160);
  const svg = text.replace(/>/, `><rect width="100%" height="100%" fill="${page}"/>`).replace(/<\/svg>$/,
    `<text x="8" y="${height + 16}" font-size="10" fill="#8a8a8a">${label}</text></svg>`);
  const data = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  hand_over(kind === "svg" ? data : await as_png(data, width, height + 24), `machine.${kind}`);
}

async function as_png(data, width, height) {
  const image = new Image();
  image.src = data;
  await image.decode();
  const canvas = /** @type {HTMLCanvasElement} */ (h("canvas", { width: 2 * width, height: 2 * height }));
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return canvas.toDataURL("image/png");
}

function hand_over(href, download) {
  h("a", { href, download }).click();
}
