// @ts-check
// Trees of elements that become a document or a text: the page, a picture for readers
// without a script, and a file for a slide are drawn by the same functions.

/** A node of a tree: its children can stand in lists, and what is nothing falls out. */
export function e(tag, attributes = {}, ...children) {
  return { tag, attributes, children: children.flat(4).filter(
    (child) => child !== null && child !== undefined && child !== false && child !== "") };
}

const escaped = (text) => String(text).replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
const given = (attributes) => Object.entries(attributes).filter(([, value]) =>
  value !== null && value !== undefined && value !== false);

/** The tree as HTML. @returns {string} */
export function markup(node) {
  if (typeof node !== "object") return escaped(node);
  const { tag, attributes, children } = node;
  const marks = given(attributes).map(([name, value]) =>
    ` ${name}="${value === true ? "" : escaped(value)}"`).join("");
  return `<${tag}${marks}>${children.map(markup).join("")}</${tag}>`;
}

/** The tree as an element of HTML, with its handlers. @param {any} node @returns {any} */
export function element(node) {
  if (typeof node !== "object" || node instanceof globalThis.Node) return node;
  const made = document.createElement(node.tag);
  for (const [name, value] of given(node.attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...node.children.map(element));
  return made;
}

/** An element at once: h("button", { onclick: act }, "text") */
export const h = (tag, attributes = {}, ...children) => element(e(tag, attributes, ...children));

// ---- Words and numbers

export const shown = (token) => (token === "▁" ? "␣" : token.replace(/^▁/, ""));
export const is_joined = (token) => !/^[▁<]/.test(token); // to the one before it
export const piece = (token) => (/^\p{L}/u.test(token) ? `…${token}` : shown(token)); // alone
export const percent = (p) => (p > 0 && p < 0.005 ? "<1%" : `${Math.round(100 * p)}%`);
export const decimal = (x, digits = 2) =>
  x.toFixed(digits).replace(/^-(0\.0*)$/, "$1").replace("-", "−").replace("Infinity", "∞");

export const short = (words, n) => (words.length > n ? `${words.slice(0, n - 1)}…` : words);
export const sum_of = (numbers) => numbers.reduce((sum, x) => sum + x, 0);
export const mean_of = (numbers) => sum_of(numbers) / numbers.length;

// ---- Colors, lines and letters of all levels

const name = (variable, light) => `var(--machine-${variable},${light})`;
export const COLOR = {
  ink: name("ink", "#22252b"), soft: name("soft", "#6d7077"), hair: name("hair", "#d9d5ca"),
  page: name("page", "#fdfcf8"), source: name("source", "#2f5fb3"),
  memory: name("memory", "#12806a"), target: name("target", "#b4570f"),
  plus: name("plus", "#7d3fa5"), minus: name("minus", "#8a7a00"),
};

const n = (x) => Math.round(10 * x) / 10;

/** A text with a rim in the color of the page, so that it can stand on lines.
 *  @param {number} x @param {number} y @param {any} words @param {Record<string, any>} [how] */
export function text(x, y, words, { size = 15, fill = "ink", anchor = "start", weight = 400,
  turn = 0, ...more } = {}) {
  return e("text", { x: n(x), y: n(y), "font-size": size, fill: COLOR[fill],
    "text-anchor": anchor, "font-weight": weight, stroke: COLOR.page, "stroke-width": 4,
    "stroke-linejoin": "round", "paint-order": "stroke",
    transform: turn ? `rotate(${turn} ${n(x)} ${n(y)})` : null, ...more }, words);
}

const faded = (opacity) => (opacity < 1 ? Math.round(100 * opacity) / 100 : null);
const at = ([x, y]) => `${n(x)} ${n(y)}`;
const path = (d, color, width, opacity, more) => e("path", { d, fill: "none",
  stroke: COLOR[color], "stroke-width": n(width), opacity: faded(opacity),
  "stroke-linecap": "round", "stroke-linejoin": "round", ...more });

export const line = (points, color, width, opacity = 1, more = {}) =>
  path(`M${points.map(at).join("L")}`, color, width, opacity, more);

/** A curve: its start, two points that it is drawn to, and its end */
export const curve = ([start, ...others], color, width, opacity, more = {}) =>
  path(`M${at(start)}C${others.map(at).join(" ")}`, color, width, opacity, more);

export const dot = (x, y, color, r) => e("circle", { cx: n(x), cy: n(y), r, fill: COLOR[color] });

export const box = (x, y, width, height, color, opacity = 1, more = {}) => e("rect", {
  x: n(x), y: n(y), width: n(width), height: n(height), fill: COLOR[color],
  opacity: faded(opacity), ...more });

/** A way down: a link to another level, whose name is read aloud. */
export const door = (to, label, ...inside) => e("a", { href: `#machine${to}`,
  "aria-label": label, class: "machine-door" }, e("title", {}, label), ...inside);

/** Signed numbers side by side, each as strong as it is large. */
export function strip(x, y, numbers, { width = 8, height = 20, most, strength = 1 }) {
  return Array.from(numbers, (value, i) => {
    const share = Math.min(1, Math.abs(value) / most) * strength;
    return share < 0.01 ? null : box(x + i * width, y, width - 0.6, height,
      value < 0 ? "minus" : "plus", share);
  });
}

export const picture = (width, height, label, ...inside) => e("svg", {
  viewBox: `0 0 ${n(width)} ${n(height)}`, width: n(width), height: n(height),
  role: "group", "aria-label": label, "font-family": "'Book Sans','Source Sans 3',sans-serif",
}, ...inside);

/** A table of words. @param {{ caption?: string, head: any[], rows: any[][] }} found */
export const table_of = ({ caption, head, rows }) => e("table", {},
  caption && e("caption", {}, caption),
  e("thead", {}, e("tr", {}, head.map((words) => e("th", { scope: "col" }, words)))),
  e("tbody", {}, rows.map(([first, ...others]) => e("tr", {}, e("th", { scope: "row" }, first),
    others.map((words) => e("td", {}, words))))));
