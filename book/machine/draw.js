// @ts-check
// Trees of elements that become a document or a text: the page, a picture for readers
// without a script, and a file for a slide are drawn by the same functions.

/** @import { Attributes, Branch, Inside, Leaf, Numbers, Point, Table } from "./types.d.ts" */

/** A node of a tree: its children can stand in lists, and what is nothing falls out.
 *  @param {string} tag @param {Attributes} attributes @param {Inside[]} children
 *  @returns {Branch} */
export function e(tag, attributes = {}, ...children) {
  const all = /** @type {Inside[]} */ (children.flat(4));
  return { tag, attributes, children: /** @type {Leaf[]} */ (all.filter(
    (child) => child !== null && child !== undefined && child !== false && child !== "")) };
}

const escaped = (/** @type {unknown} */ text) => String(text).replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
const given = (/** @type {Attributes} */ attributes) => Object.entries(attributes).filter(([, value]) =>
  value !== null && value !== undefined && value !== false);

/** The tree as HTML. @param {Leaf} node @returns {string} */
export function markup(node) {
  if (typeof node !== "object") return escaped(node);
  const { tag, attributes, children } = /** @type {Branch} */ (node);
  const marks = given(attributes).map(([name, value]) =>
    ` ${name}="${value === true ? "" : escaped(value)}"`).join("");
  return `<${tag}${marks}>${children.map(markup).join("")}</${tag}>`;
}

/** What can stand in a document: of a tree, an element of HTML with its handlers. @param {Leaf} node */
function in_document(node) {
  if (typeof node !== "object") return String(node);
  return node instanceof globalThis.Node ? node : h(/** @type {"b"} */ (node.tag), node.attributes, node.children);
}

/** An element at once: h("button", { onclick: act }, "text")
 *  @template {keyof HTMLElementTagNameMap} Tag
 *  @param {Tag} tag @param {Attributes} attributes @param {Inside[]} children
 *  @returns {HTMLElementTagNameMap[Tag]} */
export function h(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of given(attributes)) {
    if (typeof value === "function") made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...e(tag, {}, ...children).children.map(in_document));
  return /** @type {HTMLElementTagNameMap[Tag]} */ (made);
}

// ---- Words and numbers

/** @typedef {string} Label of a token */

/** @param {Label} token */
export const shown = (token) => (token === "▁" ? "␣" : token.replace(/^▁/, ""));
/** To the one before it? @param {Label} token */
export const is_joined = (token) => !/^[▁<]/.test(token);
/** Alone @param {Label} token */
export const piece = (token) => (/^\p{L}/u.test(token) ? `…${token}` : shown(token));
/** A share, as it came out @param {number|undefined} p what is not known is undefined */
export function percent(p) {
  if (p === undefined) return "?";
  if (p > 0 && p < 0.005) return "<1%";
  return Number.isFinite(p) ? `${Math.round(100 * p)}%`.replace("-", "−") : decimal(p);
}
/** As wide as it can be drawn: of 1 at most, and 0 of what is no number @param {number} p */
export const drawn_share = (p) => (p > 0 ? Math.min(1, p) : 0);
/** @param {number|undefined} x what is not known is undefined */
export const decimal = (x, digits = 2) => x === undefined ? "?" :
  x.toFixed(digits).replace(/^-(0\.0*)$/, "$1").replace("-", "−").replace("Infinity", "∞");

/** @param {string} words @param {number} n letters at most */
export const short = (words, n) => (words.length > n ? `${words.slice(0, n - 1)}…` : words);
/** @param {number[]} numbers */
export const sum_of = (numbers) => numbers.reduce((sum, x) => sum + x, 0);
/** @param {number[]} numbers */
export const mean_of = (numbers) => sum_of(numbers) / numbers.length;

// ---- Colors, lines and letters of all levels

const name = (/** @type {string} */ variable, /** @type {string} */ light) => `var(--machine-${variable},${light})`;
export const COLOR = {
  ink: name("ink", "#22252b"), soft: name("soft", "#6d7077"), hair: name("hair", "#d9d5ca"),
  page: name("page", "#fdfcf8"), source: name("source", "#2f5fb3"),
  memory: name("memory", "#12806a"), target: name("target", "#b4570f"),
  plus: name("plus", "#7d3fa5"), minus: name("minus", "#8a7a00"),
};

/** @typedef {keyof typeof COLOR} Color */

// What is no number, as models that were changed have it, isn't seen.
const n = (/** @type {number} */ x) => (Number.isFinite(x) ? Math.round(10 * x) / 10 : 0);

/** A text with a rim in the color of the page, so that it can stand on lines.
 *  @param {number} x @param {number} y @param {Inside} words
 *  @param {Omit<Attributes, "fill"|"turn"> & { size?: number, fill?: Color, anchor?: string,
 *    weight?: number, turn?: number }} how */
export function text(x, y, words, { size = 15, fill = "ink", anchor = "start", weight = 400,
  turn = 0, ...more } = {}) {
  return e("text", { x: n(x), y: n(y), "font-size": size, fill: COLOR[fill],
    "text-anchor": anchor, "font-weight": weight, stroke: COLOR.page, "stroke-width": 4,
    "stroke-linejoin": "round", "paint-order": "stroke",
    transform: turn ? `rotate(${turn} ${n(x)} ${n(y)})` : null, ...more }, words);
}

const faded = (/** @type {number} */ opacity) => (opacity < 1 ? Math.round(100 * opacity) / 100 : null);
const at = (/** @type {Point} */ [x, y]) => `${n(x)} ${n(y)}`;

/** @param {string} d @param {Color} color @param {number} width @param {number} opacity
 *  @param {Attributes} more */
const path = (d, color, width, opacity, more) => e("path", { d, fill: "none",
  stroke: COLOR[color], "stroke-width": n(width), opacity: faded(opacity),
  "stroke-linecap": "round", "stroke-linejoin": "round", ...more });

/** @param {Point[]} points @param {Color} color @param {number} width @param {number} opacity
 *  @param {Attributes} more */
export const line = (points, color, width, opacity = 1, more = {}) =>
  path(`M${points.map(at).join("L")}`, color, width, opacity, more);

/** A curve: its start, two points that it is drawn to, and its end
 *  @param {Point[]} points @param {Color} color @param {number} width @param {number} opacity
 *  @param {Attributes} more */
export const curve = ([start, ...others], color, width, opacity, more = {}) =>
  path(`M${at(start)}C${others.map(at).join(" ")}`, color, width, opacity, more);

/** @param {number} x @param {number} y @param {Color} color @param {number} r */
export const dot = (x, y, color, r) => e("circle", { cx: n(x), cy: n(y), r, fill: COLOR[color] });

/** @param {number} x @param {number} y @param {number} width @param {number} height
 *  @param {Color} color @param {number} opacity @param {Attributes} more */
export const box = (x, y, width, height, color, opacity = 1, more = {}) => e("rect", {
  x: n(x), y: n(y), width: n(width), height: n(height), fill: COLOR[color],
  opacity: faded(opacity), ...more });

/** A way down: a link to another level, whose name is read aloud.
 *  @param {string} to @param {string} label @param {Inside[]} inside */
export const door = (to, label, ...inside) => e("a", { href: `#machine${to}`,
  "aria-label": label, class: "machine-door" }, e("title", {}, label), ...inside);

/** Signed numbers side by side, each as strong as it is large; what is no number is gray.
 *  @param {number} x @param {number} y @param {Numbers} numbers
 *  @param {{ width?: number, height?: number, most: number, strength?: number }} how */
export function strip(x, y, numbers, { width = 8, height = 20, most, strength = 1 }) {
  return Array.from(numbers, (value, i) => {
    if (Number.isNaN(value * strength)) return box(x + i * width, y, width - 0.6, height, "hair");
    const share = Math.min(1, Math.abs(value) / most) * drawn_share(strength);
    return share < 0.01 ? null : box(x + i * width, y, width - 0.6, height,
      value < 0 ? "minus" : "plus", share);
  });
}

/** @param {number} width @param {number} height @param {string} label @param {Inside[]} inside */
export const picture = (width, height, label, ...inside) => e("svg", {
  viewBox: `0 0 ${n(width)} ${n(height)}`, width: n(width), height: n(height),
  role: "group", "aria-label": label, "font-family": "'Book Sans','Source Sans 3',sans-serif",
}, ...inside);

/** A table of words. @param {Table} found */
export const table_of = ({ caption, head, rows }) => e("table", {},
  caption && e("caption", {}, caption),
  e("thead", {}, e("tr", {}, head.map((words) => e("th", { scope: "col" }, words)))),
  e("tbody", {}, rows.map(([first, ...others]) => e("tr", {}, e("th", { scope: "row" }, first),
    others.map((words) => e("td", {}, words))))));
