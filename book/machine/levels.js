// @ts-check
// The four levels of the picture, from the whole machine down to one weight. Each is a
// function of what is known of a sentence (a "view") and of where we are; none of them
// reads the page, so the same functions make the pictures for readers without a script.

import { box, COLOR, curve, decimal, door, dot, drawn_share, e, line, mean_of, percent, picture,
  piece, short, shown, strip, sum_of, text } from "./draw.js";
import { mark, PARTS, whose, yours_in } from "./yours/parts.js";

/** @import { Attributes, Edits, How, Inside, Numbers, Place, Point, Sizes, Table, Token, Vectors,
 *    View } from "./types.d.ts" */
/** @import { Color } from "./draw.js" */
/** @typedef {"encoder"|"decoder"} Stack */
/** @typedef {"self_attn"|"cross_attn"} Kind */

/** @type {Place} */
export const WHOLE = { stack: "", layer: 0, kind: "", head: -1, key: -1 };
/** @type {{ [kind: string]: string }} */
export const ATTENTIONS = { self_attn: "self-attention", cross_attn: "cross-attention" };

/** @param {string} name of an attention */
export function attention_in_words(name) {
  const [stack, , layer, kind] = name.split(".");
  return `${stack} layer ${Number(layer) + 1}, ${ATTENTIONS[/** @type {"self_attn"} */ (kind)]}`;
}
const STACKS = /** @type {const} */ (["encoder", "decoder"]);
/** @type {{ [stack: string]: Kind[] }} */
const KINDS = { encoder: ["self_attn"], decoder: ["self_attn", "cross_attn"] };
/** @type {{ [stack: string]: "source"|"target" }} */
const COLORS = { encoder: "source", decoder: "target" };
const PATH = /^\/(encoder|decoder)\/(\d+)(?:\/(self_attn|cross_attn)\/(\d+)(?:\/(\d{1,3}))?)?$/;

/** @param {Place} place */
export const level_of = ({ stack, kind, key }) => [stack, kind, key >= 0].filter(Boolean).length;

/** The name of its attention @param {Place} place */
export const name_of = ({ stack, layer, kind }) => `${stack}.layers.${layer}.${kind}`;

/** The path of a place, or of what is around it at a higher level. @param {Place} place */
export function path_of(place, level = level_of(place)) {
  const { stack, layer, kind, head, key } = place, n_parts = [1, 3, 5, 6][level];
  return ["", stack, layer, kind, head, key].slice(0, n_parts).join("/");
}

/** Where a path leads; the whole machine where it names nothing that the model has.
 *  @param {string} path @param {Sizes} sizes @returns {Place} */
export function place_of(path, sizes) {
  const [, stack, layer, kind = "", head = -1, key = -1] = path.match(PATH) || [];
  const n_layers = stack === "encoder" ? sizes.n_encoder_layers : sizes.n_decoder_layers;
  const known = stack && Number(layer) < n_layers && Number(head) < sizes.n_heads
    && (!kind || KINDS[stack].some((each) => each === kind));
  return known ? { stack, layer: Number(layer), kind, head: Number(head), key: Number(key) } : WHOLE;
}

/** Whether the head of a place is cut in what a view shows
 *  @param {{ edits?: Edits }} view @param {Place} place */
export const is_cut = ({ edits }, place) => edits?.without?.[name_of(place)]?.includes(place.head);

/** @typedef {{ src_labels: string[], tgt_labels: string[] }} Labels */

/** The labels of an attention's queries and keys; the decoder reads <bos> first.
 *  @param {{ stack: string, kind?: string }} place @param {Labels} view */
export function axes({ stack, kind }, { src_labels, tgt_labels }) {
  const read = ["<bos>", ...tgt_labels.slice(0, -1)];
  if (stack === "encoder") return [src_labels, src_labels];
  return [read, kind === "cross_attn" ? src_labels : read];
}

const is_own = (/** @type {Place} */ { stack, kind }) => stack === "decoder" && kind === "self_attn";
/** The keys that a query can look at: in the decoder, no word of its own that comes later
 *  @param {Place} place @param {Labels} view @param {number} row */
export const keys_of = (place, view, row) =>
  axes(place, view)[1].slice(0, is_own(place) ? row + 1 : undefined);

/** @param {{ stack: string }} place @param {Labels} view @param {number} row */
const query_of = (place, view, row) => shown(axes(place, view)[0][row]);
/** Whether another view has read the same words up to this row: only then it can be compared.
 *  @param {{ stack: string }} place @param {Labels} view @param {Labels} other @param {number} row */
const is_alike = (place, view, other, row) =>
  range(row + 1).every((i) => axes(place, view)[0][i] === axes(place, other)[0][i]);

const range = (/** @type {number} */ n) => [...Array(n).keys()];
const largest = (/** @type {number[][]} */ lists) =>
  Math.max(...lists.flat().filter(Number.isFinite).map(Math.abs), 1e-9);
/** How wide the stream is drawn, of a vector of this length @param {number} length */
const width_of = (length) => (length > 0 ? Math.min(length / 22, 16) : 0);
/** @param {View} view @param {Stack} stack */
const n_layers = (view, stack) => view.norms[stack].length - 1;
export const middle_layer = (/** @type {View} */ view) => n_layers(view, "decoder") >> 1;

const MEANS = /** @type {WeakMap<View, { [attention: string]: number[] }>} */ (new WeakMap());

/** What an attention looks at, all heads together that are left; computed once a view.
 *  @param {View} view @param {string} name */
function heads_together(view, name) {
  const all = view.maps[name], cut = view.edits?.without?.[name] || [];
  const means = MEANS.get(view) || {};
  MEANS.set(view, means);
  const heads = cut.length < all.length ? all.filter((_, head) => !cut.includes(head)) : all;
  return means[name] ||= Array.from(heads[0], (_, i) => mean_of(heads.map((each) => each[i])));
}

export const rank = (/** @type {number} */ share) => (Number.isNaN(Number(share)) ? -Infinity : share);

/** The places that a query looks at most, best first: [[share, key], ...]; what is no number
 *  comes last
 *  @param {Numbers} weights @param {number} row @param {number} n_keys
 *  @returns {[number, number][]} */
export const most = (weights, row, n_keys, n = 3) => range(n_keys)
  .map((key) => /** @type {[number, number]} */ ([weights[row * n_keys + key], key]))
  .sort(([a], [b]) => rank(b) - rank(a) || 0).slice(0, n);

/** The same of a step of the translation, in the source, by the middle of the decoder
 *  @param {View} view @param {number} step @param {number} [n] */
export const looked_at = (view, step, n) => most(heads_together(view,
  `decoder.layers.${middle_layer(view)}.cross_attn`), step, view.src_labels.length, n);

/** What a step dealt out there, and how much of it to padding behind the source, which isn't drawn
 *  @param {View} view @param {number} step */
export function dealt(view, step) {
  const name = `decoder.layers.${middle_layer(view)}.cross_attn`, n_keys = view.src_labels.length;
  const cut = view.edits?.without?.[name] || [], all = view.padded?.[name] || [];
  const heads = cut.length < all.length ? all.filter((_, head) => !cut.includes(head)) : all;
  const padded = heads.length ? mean_of(heads.map((each) => each[step])) : 0;
  const weights = heads_together(view, name).slice(step * n_keys, (step + 1) * n_keys);
  return { total: sum_of(Array.from(weights)) + padded, padded };
}

/** A token beside what it was in the untouched model @typedef {Token & { was?: number }} Compared */

const named = (/** @type {{ label: string, p: number }} */ { label, p }) => `${piece(label)} ${percent(p)}`;
/** @param {number} p @param {number} [was] @returns {was is number} */
const differ = (p, was) => was !== undefined && percent(was) !== percent(p);

/** A probability, and what the untouched model says where that is another one.
 *  @param {number} p @param {number} [was] @returns {Inside} */
function compared(p, was) {
  if (!differ(p, was)) return e("tspan", {}, percent(p));
  return [e("tspan", { class: "changed" }, percent(p)), " ",
    e("tspan", { fill: COLOR.soft, "font-size": 12 }, `was ${percent(was)}`)];
}

/** @param {Compared} token @returns {Inside} */
const in_words = ({ label, p, was }) => [e("tspan", {}, piece(label)), " ", compared(p, was)];

/** Likely tokens after a row, with what the untouched model gave them where it read the same
 *  @param {View} view @param {View|null} before @param {number} row
 *  @param {(view: View) => Token[]} tokens_of @returns {Compared[]} */
function beside(view, before, row, tokens_of) {
  const old = before && is_alike({ stack: "decoder" }, view, before, row) ? tokens_of(before) : [];
  return tokens_of(view).map((each) => ({ ...each, was: old.find(({ id }) => id === each.id)?.p }));
}

/** The picture of a place; found: the numbers of its head, as far as they are known
 *  @param {View} view @param {Place} place @param {Vectors|null} found @param {How} how */
export function draw(view, place, found, how) {
  const levels = [whole, layer, head, weight];
  return levels[level_of(place)](view, { found, ...how }, place);
}

/** @typedef {How & { found: Vectors|null }} Known */

// ---- Level 0: the whole machine

// Along the flow: where layers begin and end, the memory, the answers. Across it: the first
// lane, the narrowest and widest lanes, and the room for all; then the edges of doors.
const WIDE = { encoder: [108, 204, 300, 396], memory: 444, decoder: [618, 722, 826, 930],
  out: 1006, top: 34, lane: [17, 34], room: 440, reach: 100, captions: [[68, "German"],
    [252, "encoder"], [444, "memory"], [774, "decoder"], [1056, "next word"]] };
// Layers are high enough for a finger.
const TALL = { encoder: [66, 120, 174, 228], memory: 250, decoder: [320, 374, 428, 482],
  out: 502, top: 26, lane: [2, 60], room: 348, reach: 40, captions: [] };
// Where in a layer it has looked at its own sentence, at the other, and has thought
const SELF = { encoder: 0.7, decoder: 0.38 }, CROSS = 0.62, FFN = 0.86;

/** The classes by which a row of the target is shown: written, being written, to come
 *  @param {number} i @param {number} step */
export const row_class = (i, step) => ["past", "now", "to-come"][1 + Math.sign(i - step)];

/** @typedef {ReturnType<typeof plan_of>} Plan */

/** Where things are: u goes along the flow, v across it, with a lane for each token.
 *  @param {View} view @param {boolean} tall */
function plan_of(view, tall) {
  const plan = tall ? TALL : WIDE, { top, room, lane: [narrow, wide] } = plan;
  const lanes = (/** @type {string[]} */ { length }) => {
    const lane = Math.max(narrow, Math.min(wide, room / Math.max(1, length - 1)));
    const first = tall ? Math.max(top, (400 - (length - 1) * lane) / 2) : top;
    return range(length).map((i) => first + i * lane);
  };
  const source = lanes(view.src_labels), target = lanes(view.tgt_labels);
  const end = Math.max(...source.slice(-1), ...target.slice(-1), tall ? room + top : 0);
  const layers = (/** @type {Stack} */ stack) =>
    range(n_layers(view, stack)).map((l) => /** @type {Point} */ (plan[stack].slice(l, l + 2)));
  /** @type {(u: number, v: number) => Point} */
  const at = (u, v) => (tall ? [v, u] : [u, v]);
  const pitch = { source: source[1] - source[0], target: target[1] - target[0] };
  const every = (/** @type {"source"|"target"} */ side) => (tall && Math.ceil(9.5 / pitch[side])) || 1; // lane has a label
  return { ...plan, view, tall, at, source, target, end, pitch,
    every: { source: every("source"), target: every("target") }, means: meanings_of(view),
    layers: { encoder: layers("encoder"), decoder: layers("decoder") } };
}

/** What each token of the source means: the first piece of a word says it
 *  @param {View} view @returns {string[]} */
export function meanings_of({ src_labels, gloss = [] }) {
  const words = gloss.values();
  let left = ""; // of the word that the pieces before have begun
  return src_labels.map((label) => {
    const letters = label.replace(/^▁|[^\p{L}]/gu, ""), [word, meaning] = (!left && letters
      && words.next().value) || [left, ""];
    const is_it = word.startsWith(letters);
    left = is_it ? word.slice(letters.length) : "";
    return is_it ? meaning : "";
  });
}

/** @param {View} view @param {How} how */
export function whole(view, { row, tall, before }) {
  const plan = plan_of(view, tall), { at, memory, source, target, end, layers } = plan;
  const marks = marks_of(view, plan), room = marks.length > 0 && !tall ? 18 : 0;
  const [width, height] = tall ? [400, plan.out + 96] : [1200, end + 62 + room];
  const captions = /** @type {[number, string][]} */ (plan.captions);
  const band = [at(memory - 9, source[0] - 13), at(18, source[source.length - 1] - source[0] + 26)];
  const rows = target.map((_, i) => e("g",
    { class: `row ${row_class(i, row)}`, "data-row": i },
    trunk(view, plan, i),
    e("g", { class: "asks" }, looks_ahead(view, plan, i), asks(view, plan, i),
      answer(view, plan, i, before)),
    label(plan, plan.decoder[0] - 9, target[i], query_of({ stack: "decoder" }, view, i), "target",
      { class: i % plan.every.target ? "sparse" : null }))).reverse(); // strands under labels
  return picture(width, height,
    `The machine at work: ${source.length} German tokens, ${target.length} English ones`,
    STACKS.map((stack) => layers[stack].map((_, l) => layer_door(plan, stack, l))),
    box(...band[0], ...band[1], "memory", 0.16, { rx: 9 }),
    e("g", { class: "lanes" }, source.map((_, i) => source_lane(view, plan, i))),
    e("g", { class: "rows" }, rows),
    captions.map(([u, words]) =>
      text(u, end + 54, words, { size: 13, fill: "soft", anchor: "middle" })), marks);
}

/** What is the reader's, below its place; where pictures stand upright, at its edge
 *  @param {View} view @param {Plan} plan */
function marks_of(view, { tall, end, out, captions }) {
  const low = { size: 12, fill: /** @type {const} */ ("plus"), anchor: tall ? "end" : "middle" };
  const start = yours_in(view, "positions"), last = yours_in(view, "lm_head", "search");
  const [encoder, decoder] = STACKS.map((stack) => yours_of({ view }, stack));
  const names = tall ? [start, last] : [start, encoder, [], decoder, last];
  const at = tall ? [12, out + 88] : captions.map(([u]) => Number(u));
  return names.map((names, i) => {
    const words = `${mark(view)}: ${names.map((name) => PARTS[name].short).join(", ")}`;
    return names.length > 0 && (tall ? text(396, at[i], words, low) : text(at[i], end + 71, words, low));
  }).filter(Boolean);
}

const YOURS = { "stroke-width": 1.2, "stroke-dasharray": "5 4", "stroke-opacity": 0.75 }; // a frame round what the reader wrote
/** @param {View} view */
const sign = (view) => e("tspan", { fill: COLOR.plus }, ` · ${mark(view)}`);

/** Parts of the reader's in a layer @param {{ view: View }} plan @param {string} stack */
const yours_of = ({ view }, stack) => yours_in(view, stack, ...LAYER_BOXES, ...KINDS[stack].flatMap(
  (kind) => attention_boxes(view, { stack, kind })));
const LAYER_BOXES = ["norm", "feed_forward", "residual"];
/** What computes an attention: the padding's mask is in all of them, the causal one in the decoder's
 *  own, and a mistake is in one of the two
 *  @param {View} view @param {{ stack: string, kind: string }} place */
function attention_boxes({ trying = "" }, { stack, kind }) {
  const is_own = stack === "decoder" && kind === "self_attn"; // no padding stands behind its words
  const is_masked = kind.endsWith("attn") && (is_own ? !trying.includes("padding") : !trying.includes("causal"));
  return is_masked ? [kind, "masks"] : [kind];
}

/** Whether an attention's weights are by code of the reader's
 *  @param {View} view @param {Place} place */
export const attends = (view, place) => yours_in(view, ...attention_boxes(view, place)).length > 0;

/** @param {View} view */
const code_of = ({ trying }) => (trying ? "the changed code" : "your code");

/** @param {Plan} plan @param {Stack} stack @param {number} l */
function layer_door(plan, stack, l) {
  const { tall, at, end, layers } = plan;
  const [from, to] = layers[stack][l], middle = (from + to) / 2;
  const [top, bottom, gap] = tall ? [4, 398, 1] : [14, end + 36, 3];
  const [x, y] = at(from + gap, top), [right, low] = at(to - gap, bottom), yours = yours_of(plan, stack);
  return door(path_of({ ...WHOLE, stack, layer: l }),
    `Open ${stack} layer ${l + 1}${yours.length ? `: ${whose(plan.view, yours)}` : ""}`,
    box(x, y, right - x, low - y, "page", 1, { class: "door-ground", rx: 6,
      stroke: yours.length ? COLOR.plus : tall ? COLOR.hair : null, ...(yours.length && YOURS) }),
    tall ? [text(392, middle + 5, String(l + 1), { size: 15, fill: "soft", anchor: "end" }),
      yours.length > 0 && text(392, middle + 20, mark(plan.view), { size: 12, fill: "plus", anchor: "end" })]
      : text(middle, end + 26, [`layer ${l + 1}`, yours.length > 0 && sign(plan.view)],
        { size: 13, fill: "soft", anchor: "middle" }));
}

/** @param {Plan} plan @param {number} u @param {number} v @param {string} words
 *  @param {"source"|"target"} fill @param {Omit<Attributes, "weight"> & { weight?: number }} more */
function label({ tall, pitch }, u, v, words, fill, more) {
  const is_dense = pitch[fill] < 17, size = is_dense ? Math.max(9.5, Math.min(12, pitch[fill])) : 14;
  const drawn = short(words, is_dense ? 8 : 9), turn = is_dense ? -80 : -58;
  return tall ? text(v + 4, u + 2, drawn, { size, fill, turn, ...more })
    : text(u, v + 5, words, { fill, anchor: "end", ...more });
}

/** Under a word of the source, or beside it where pictures stand upright, where there is room
 *  @param {Plan} plan @param {number} i */
function meaning({ tall, pitch, encoder, source, means }, i) {
  if (pitch.source < (tall ? 25 : 27)) return null;
  const u = encoder[0] - 10, v = source[i];
  const how = { size: 13, fill: /** @type {const} */ ("soft"), class: "meaning" };
  return tall ? text(v + 17, u + 2, means[i], { ...how, turn: -58 })
    : text(u, v + 18, means[i], { ...how, anchor: "end" });
}

/** @param {Plan} plan @param {Point} from @param {Point} to @param {Color} color
 *  @param {number} width @param {number} opacity */
function strand({ at }, [u, v], [x, y], color, width, opacity) {
  const half = (u + x) / 2;
  return curve([at(u, v), at(half, v), at(half, y), at(x, y)], color, width, opacity);
}

/** The small network of a layer, in its lane
 *  @param {Plan} plan @param {number} u @param {number} v @param {Color} color */
function think({ tall, at }, u, v, color) {
  const [x, y] = at(u, v);
  return tall ? box(x - 5, y - 1.5, 10, 3, color) : box(x - 1.5, y - 5, 3, 10, color);
}

/** What a row looks at more than a little: draw(key, weight) for each
 *  @param {Numbers} weights @param {number} row @param {number} n_keys @param {number} threshold
 *  @param {(key: number, weight: number) => Inside} draw */
function looks(weights, row, n_keys, threshold, draw) {
  const own = weights.slice(row * n_keys, (row + 1) * n_keys);
  return range(n_keys).map((key) => own[key] > threshold && draw(key, drawn_share(own[key])));
}

/** @param {View} view @param {Plan} plan @param {number} i */
function source_lane(view, plan, i) {
  const { at, tall, source, encoder, memory, layers } = plan, v = source[i];
  const flow = layers.encoder.map(([from, to], l) => {
    const u = from + SELF.encoder * (to - from);
    /** @type {(j: number, weight: number) => Inside} */
    const look = (j, weight) => j !== i && strand(plan, [from, source[j]], [u, v], "source",
      0.5 + 8 * weight, 0.12 + 0.5 * weight);
    return e("g", { class: `flow-${l}` },
      looks(heads_together(view, `encoder.layers.${l}.self_attn`), i, source.length, 0.07, look),
      line([at(from, v), at(to, v)], "source", 1 + width_of(view.norms.encoder[l + 1][i]), 0.4),
      think(plan, from + FFN * (to - from), v, "source"),
      dot(...at(to, v), "source", tall ? 2.4 : 3));
  });
  const [, end] = layers.encoder[layers.encoder.length - 1];
  return e("g", { class: "lane", tabindex: -1 }, flow,
    e("g", { class: "flow-3" }, line([at(end, v), at(memory, v)], "memory", 2.2, 0.6),
      dot(...at(memory, v), "memory", tall ? 3 : 4)), dot(...at(encoder[0], v), "source", 3),
    meaning(plan, i),
    !(i % plan.every.source) && label(plan, encoder[0] - 10, v, shown(view.src_labels[i]),
      "source", { weight: 500, ...(view.edits?.hide?.includes(i)
        && { "text-decoration": "line-through", stroke: "none" }) }));
}

/** From a word of the target to another
 *  @param {Plan} plan @param {number} l @param {number} row @param {number} key @param {number} weight */
function own_strand(plan, l, row, key, weight) {
  const [from, to] = plan.layers.decoder[l], { target } = plan;
  return strand(plan, [from, target[key]], [from + SELF.decoder * (to - from), target[row]],
    "target", 0.5 + 8 * weight, 0.2 + 0.55 * weight);
}

/** Of a word that is written @param {View} view @param {Plan} plan @param {number} i */
function trunk(view, plan, i) {
  const { at, tall, target, decoder, layers } = plan, v = target[i];
  const flow = layers.decoder.map(([from, to], l) => {
    /** @type {(j: number, weight: number) => Inside} */
    const look = (j, weight) => j < i && own_strand(plan, l, i, j, weight);
    const weights = heads_together(view, `decoder.layers.${l}.self_attn`);
    return [looks(weights, i, target.length, 0.06, look),
      line([at(from, v), at(to, v)], "target", 2.2, 0.7),
      think(plan, from + FFN * (to - from), v, "target"), dot(...at(to, v), "target", 3)];
  });
  const [, end] = layers.decoder[layers.decoder.length - 1];
  return [e("g", { class: "trunk" }, flow, dot(...at(decoder[0], v), "target", 3)),
    !tall && text(end + 10, v + 5, shown(view.tgt_labels[i]), { size: 13, class: "written" })];
}

/** Without a causal mask: how earlier words look ahead, in the pass that writes this one
 *  @param {View} view @param {Plan} plan @param {number} i */
const looks_ahead = (view, plan, i) => plan.layers.decoder.map((_, l) => {
  const weights = view.ahead?.[`decoder.layers.${l}.self_attn`]?.[i] || [];
  return range(weights.length && i).map((row) => looks(weights, row, i + 1, 0.06,
    (key, weight) => key > row && own_strand(plan, l, row, key, weight)));
});

/** What it looks at in the memory, and then would answer
 *  @param {View} view @param {Plan} plan @param {number} i */
function asks(view, plan, i) {
  const { at, tall, source, target, memory, reach, layers } = plan, v = target[i];
  const strands = layers.decoder.map(([from, to], l) => {
    const u = from + CROSS * (to - from);
    /** @type {(j: number, weight: number) => Inside} */
    const look = (j, weight) => curve([at(memory, source[j]), at(memory + reach, source[j]),
      at(u - 20, v + 46), at(u, v)], "memory", 0.6 + 11 * weight, 0.15 + 0.75 * weight,
    { class: "ask-strand" });
    return e("g", { class: `ask ask-${l}` },
      looks(heads_together(view, `decoder.layers.${l}.cross_attn`), i, source.length, 0.05, look));
  });
  if (tall) return strands;
  const places = layers.decoder.slice(0, plan.pitch.target < 26 ? -1 : undefined);
  const answers = places.map(([, to], l) => text(to, v - 9,
    [e("title", {}, `what layer ${l + 1} would answer`), shown(view.layers[l + 1][i][0].label)],
    { size: 12.5, fill: "target", anchor: "middle", class: "said" }));
  return [strands, answers];
}

/** The likeliest next tokens of a row, with what the untouched model gave them.
 *  @param {View} view @param {Plan} plan @param {number} i @param {View|null} before */
function answer(view, { at, tall, target, end, out, layers }, i, before) {
  const v = target[i], is_low = v > end - 56, rises = is_low && v >= 100; // the list of choices
  const [x, top] = tall ? [24, out + 20] : [out, is_low && !rises ? end - 56 : v];
  const [n, long, gap] = tall ? [4, 190, 21] : [5, 50, rises ? -23 : 23];
  const near = /** @type {Point[]} */ (tall ? [[x + 60, out - 14], [x + 60, out + 6]] : [[x - 18, top], [x - 4, top]]);
  const [, from] = layers.decoder[layers.decoder.length - 1];
  const found = beside(view, before, i, ({ next }) => next[i]).slice(0, n);
  const choices = found.map((each, k) => {
    const { id, p, was } = each, y = top + k * gap, width = Math.max(2, long * drawn_share(p));
    const is_written = id === view.tgt[i];
    return e("g", { class: `choice${k ? "" : " first"}`, "data-id": id, "data-rank": k },
      box(x, y - 8, width, 16, "target", is_written ? 0.92 : 0.35, { rx: 3 }),
      differ(p, was) && box(x + long * was - 1, y - 10, 2, 20, "ink"),
      text(x + Math.max(width, long * drawn_share(was || 0)) + 7, y + 5, in_words(each),
        is_written ? { size: 16, weight: 600, fill: "target" } : { size: 13.5, fill: "soft" }));
  });
  return e("g", { class: "answer" },
    curve([at(from, target[i]), at(from + 14, target[i]), ...near], "target", 2.2, 0.8), choices);
}

// ---- Level 1: a layer, its heads and its small network

// Across the stream, along it: its place, its start, how long stations are, what is between
const LAYER = {
  wide: { stream: 330, start: 176, attention: 312, feed: 190, gap: 10, head: 14, norm: [7, -12] },
  tall: { stream: 34, start: 60, attention: 268, feed: 118, gap: 14, head: 10, norm: [2, 14] },
};
const MINI = { width: 70, height: 92 }; // the picture of a head

/** @param {View} view @param {How} how @param {Place} place */
export function layer(view, { row, tall, before }, place) {
  const { stack, layer: l } = place, color = COLORS[stack];
  const plan = LAYER[tall ? "tall" : "wide"], { stream, start } = plan;
  /** @type {(u: number, v: number) => Point} */
  const at = (u, v) => (tall ? [stream + v, u] : [u, stream - v]);
  /** @type {(u: number) => Point} */
  const corner = (u) => (tall ? [66, u + 8] : [u + 4, 24]); // of what stands at a station
  /** @type {(u: number, long: number, kind: string, title: string) => Inside} */
  const station = (u, long, kind, title) => { // out of the stream, through a norm, back
    const [a, b] = [u + 12, u + long - 12], [x, y] = at(a, 0), [right, low] = at(b, 0);
    const [left, top] = corner(u);
    const yours = (/** @type {string[]} */ ...places) => yours_in(view, ...places).length > 0 && sign(view);
    return [
      curve([at(a, 0), at(a, 16), at(a, 20), at(a, 34)], color, 2, 0.7),
      curve([at(b, 34), at(b, 20), at(b, 16), at(b, 0)], color, 2, 0.7),
      dot(right, low, color, 6),
      text(right, low + 4.5, "+", { size: 13, anchor: "middle", fill: "page", stroke: "none" }),
      yours("residual") && box(right - 9, low - 9, 18, 18, "plus", 1, { rx: 9, fill: "none", stroke: COLOR.plus }),
      text(x + plan.norm[0], y + plan.norm[1], ["norm", !tall && yours("norm")], { size: 12, fill: "soft" }),
      tall && yours("norm") && text(x + plan.norm[0], y + plan.norm[1] + 13, mark(view), { size: 12, fill: "plus" }),
      text(left, top, [title, yours(...attention_boxes(view, { stack, kind }))], { size: 15, weight: 600 }),
    ];
  };
  const titles = ["self-attention: its own sentence", "cross-attention: the memory"];
  const attentions = KINDS[stack].map((kind, i) => {
    const u = start + i * (plan.attention + plan.gap), [x, y] = corner(u);
    return [station(u, plan.attention, kind, titles[i]),
      heads(view, { ...place, kind }, row, x, y + plan.head)];
  });
  const u = start + attentions.length * (plan.attention + plan.gap), [x, y] = corner(u);
  const feed = [station(u, plan.feed, "feed_forward", "feed-forward: alone"),
    tall ? network(x, y + 48, color, view.sizes) : network(x + 16, y + 120, color, view.sizes)];
  const stop = u + plan.feed + plan.gap + (tall ? 4 : 24);
  const lengths = [l, l + 1].map((each) => view.norms[stack][each][row]);
  const [first, last] = lengths.map((length) => 2 + width_of(length)); // widths of the stream
  const word = query_of(place, view, row);
  return picture(tall ? 400 : stop + 150, tall ? stop + 94 : 380,
    `${stack} layer ${l + 1}, for “${word}”${yours_of({ view }, stack).length
      ? `; in it: ${whose(view, yours_of({ view }, stack))}` : ""}`,
    line([at(start - (tall ? 22 : 40), 0), at(start + 4, 0)], color, first, 0.7),
    line([at(start, 0), at(stop, 0)], color, (first + last) / 2, 0.5),
    attentions, feed, ends(tall, start, stop, word, color, lengths,
      stack === "decoder" && [l, l + 1].map((stage) => beside(view, before, row,
        ({ layers }) => layers[stage][row]).map(in_words))));
}

/** What a query looks at that looks at no key more than this @param {number|undefined} share */
export const none_of = (share) =>
  (share === undefined ? "not shown" : Number.isNaN(share) ? "NaN" : "nothing");

/** Four beside one another, in two rows
 *  @param {View} view @param {Place} place @param {number} row @param {number} left @param {number} top */
function heads(view, place, row, left, top) {
  const [, keys] = axes(place, view), { width, height } = MINI, kind = ATTENTIONS[place.kind];
  const color = COLORS[place.stack], tone = tone_of(place);
  const frame = attends(view, place) ? { stroke: COLOR.plus, ...YOURS } : { stroke: COLOR.hair };
  return view.maps[name_of(place)].map((weights, head) => {
    const x = left + (head % 4) * (width + 6), y = top + Math.floor(head / 4) * (height + 30);
    const [[share, best]] = most(weights, row, keys.length, 1);
    const middle = /** @type {Point} */ ([x + width / 2, y + height / 2]);
    const end = /** @type {Point} */ ([x + width - 10, y + height / 2]);
    const looks = keys.map((_, key) => {
      /** @type {Point} */
      const start = [x + 9, y + 6 + key * (height - 12) / Math.max(1, keys.length - 1)];
      const weight = drawn_share(weights[row * keys.length + key]);
      const bend = /** @type {Point} */ ([middle[0], start[1]]);
      return [dot(...start, tone, 1.6), weight > 0.03
        && curve([start, bend, middle, end], tone, 0.5 + 7 * weight, 0.2 + 0.7 * weight)];
    });
    const mark = is_cut(view, { ...place, head }) ? " cut" : ` ${none_of(share)}`, word = shown(keys[best]);
    const name = /^\p{P}+$/u.test(word) ? `“${word}”` : short(word, 6);
    const says = share > 0 ? ` ${name} ${percent(share)}` : mark;
    const most_at = `it looks most at “${shown(keys[best])}”, ${percent(share)}`;
    return door(path_of({ ...place, head }),
      `Open head ${head + 1} of ${kind}: ${share > 0 ? most_at : mark.trim()}`,
      box(x, y, width, height, "page", 1, { class: "door-ground", rx: 5, ...frame }),
      looks, dot(...end, color, 3.2),
      text(middle[0], y + height + 14, [e("tspan", { "font-weight": 600 }, String(head + 1)), says],
        { size: 11.5, fill: "soft", anchor: "middle" }));
  });
}

/** Narrow, wide, narrow
 *  @param {number} left @param {number} middle @param {Color} color @param {View["sizes"]} sizes */
function network(left, middle, color, { d_model, d_ff }) {
  const halves = [16, 40, 16], x = (/** @type {number} */ part) => left + part * 66;
  const funnels = [0, 1].map((part) => {
    const [a, b] = halves.slice(part), near = x(part) + 10, far = x(part + 1);
    return e("path", { fill: COLOR[color], opacity: 0.1, d: `M${near} ${middle - a}` +
      `L${far} ${middle - b}V${middle + b}L${near} ${middle + a}Z` });
  });
  const cells = halves.map((half, part) => range(half / 2).map((k) =>
    box(x(part), middle - half + 4 * k, 10, 2.4, color, 0.8)));
  return [funnels, cells, text(left - 4, middle + 64, `${d_model} → ${d_ff} → ${d_model} numbers`,
    { size: 12.5, fill: "soft" })];
}

/** Of the stream: its word, how long its vector is, and what each end would answer
 *  @param {boolean} tall @param {number} start @param {number} stop @param {string} word
 *  @param {Color} color @param {number[]} lengths @param {Inside[][]|false} answers */
function ends(tall, start, stop, word, color, lengths, answers) {
  const [before, after] = lengths.map((length) => `vector length ${decimal(length, 1)}`);
  const small = { size: 12, fill: /** @type {Color} */ ("soft") }, large = { weight: 600, fill: color };
  const { stream } = LAYER.wide, x = start - 50, anchor = "end";
  const [[guess], guesses] = answers || [[], []];
  const [right, top] = tall ? [130, stop + 40] : [stop + 8, stream - 50];
  /** @type {(x: number, y: number, ...words: Inside[]) => Inside} */
  const says = (x, y, ...words) => text(x, y, words, { size: 12.5, fill: "target", class: "said" });
  return [
    tall ? [text(14, 22, word, large), text(14, stop + 22, after, small),
      text(96, 22, before, small)]
      : [text(x, stream + 5, word, { size: 17, anchor, ...large }),
        text(x, stream + 24, before, { anchor, ...small }),
        text(right, stream + 24, after, small)],
    answers && [says(right, top - 19, "would answer"), tall ? says(14, 40, "would answer ", guess)
      : [says(4, stream - 32, "would answer"), says(4, stream - 14, guess)]],
    guesses.map((words, k) => text(right, top + 18 * k, words,
      { fill: "target", class: "said", ...(k ? { size: 12.5 } : { size: 15, weight: 600 }) })),
  ];
}

// ---- Level 2: a head

/** Stored vectors as the engine has them: base64 of 32-bit numbers, or the numbers.
 *  @param {Numbers|string} stored */
function vectors_of(stored) {
  if (typeof stored !== "string") return Float32Array.from(stored);
  return new Float32Array(Uint8Array.from(atob(stored), (sign) => sign.charCodeAt(0)).buffer);
}

/** The numbers of one query of a head. found: q, k, v of all positions, or null where a
 *  stored view has no more of this head than its weights
 *  @param {View} view @param {Place} place @param {Vectors|null} found @param {number} row */
export function numbers(view, place, found, row) {
  const keys = keys_of(place, view, row), heads = view.maps[name_of(place)];
  const n_keys = axes(place, view)[1].length; // of a row of weights, later words too
  const d = found ? view.sizes.d_model / heads.length : 0;
  const none = new Float32Array();
  const [queries, all_keys, values] = found ? [found.q, found.k, found.v].map(vectors_of)
    : [none, none, none];
  const part = (/** @type {Float32Array} */ vectors, /** @type {number} */ i) =>
    Array.from(vectors.slice(i * d, (i + 1) * d));
  const q = part(queries, row);
  const lines = keys.map((label, key) => {
    const k = part(all_keys, key), products = k.map((x, f) => x * q[f]), sum = sum_of(products);
    const is_hidden = !is_own(place) && view.edits?.hide?.includes(key);
    const score = is_hidden ? -Infinity : sum / Math.sqrt(d);
    return { key, label, k, v: part(values, key), products, sum, score,
      weight: (heads[place.head] || [])[row * n_keys + key] };
  });
  const output = q.map((_, f) => sum_of(lines.map(({ weight, v }) => weight * v[f])));
  const one = lines[Math.max(0, Math.min(place.key, lines.length - 1))]; // if the place is one weight
  return { d, q, query: query_of(place, view, row), lines, one, output };
}

/** @param {Place} place @returns {Color} */
const tone_of = ({ stack, kind }) => (kind === "cross_attn" ? "memory" : COLORS[stack]);

// Where the columns are, and how large a feature, a bar and the letters
const HEAD = {
  wide: { word: 160, key: 174, score: 500, bar: 520, value: 760, cell: 8, high: 20, long: 130,
    n_letters: 18, size: 14, title: { weight: 600, size: 15 } },
  tall: { word: 74, key: 80, score: 0, bar: 262, value: 80, cell: 4, high: 14, long: 84,
    n_letters: 9, size: 12, title: { weight: 600, size: 13 } },
};

/** @typedef {typeof HEAD.wide} Columns */

/** @param {View} view @param {Known} known @param {Place} place */
export function head(view, { row, tall, before, found, found_before }, place) {
  const { d, q, query, lines, output } = numbers(view, place, found, row);
  const old = before && found_before && is_alike(place, view, before, row)
    ? numbers(before, place, found_before, row).lines : [];
  const X = { ...HEAD[tall ? "tall" : "wide"], ...(!d && { word: 160, bar: 174 }) };
  X.cell *= d > 32 ? 32 / d : 1; // heads of a reader's can be wider
  const { cell, high, title } = X, width = cell, fill = COLORS[place.stack];
  const gap = Math.max(high + 2, Math.min(26, 520 / lines.length)), top = 86;
  const bottom = top + lines.length * gap, values = tall ? bottom + 40 : top; // where they begin
  const end = values + lines.length * gap;
  const most_k = largest([q, ...lines.map((each) => each.k)]);
  const most_v = largest([output, ...lines.map((each) => each.v)]);
  const best = lines.reduce((a, b) => (b.weight > a.weight ? b : a)), cut = is_cut(view, place);
  const sum = cut ? "the head is cut: no sum" : attends(view, place) ? "their sum, by these weights"
    : "their sum, which the head hands on";
  /** @type {(x: number, y: number, words: string, anchor: string) => Inside} */
  const caption = (x, y, words, anchor) => text(x, y, words, { size: 13, fill: "soft", anchor });
  return picture(tall ? 400 : 1080, tall ? end + 50 : bottom + 46,
    `Head ${place.head + 1}: what “${query}” looks at${attends(view, place) ? `, by ${code_of(view)}` : ""}`,
    text(X.word, 42, d ? `q of “${query}”` : query, { anchor: "end", fill, ...title }),
    strip(X.key, 28, q, { width, height: high, most: most_k }),
    d > 0 && [caption(X.key + d * cell / 2, 74, `keys, ${d} numbers each`, "middle"),
      !tall && caption(X.score, 74, `q · k / √${d}`, "end"),
      caption(X.value + d * cell / 2, values - 12, "values, as strong as their weight", "middle")],
    caption(X.bar, 74, attends(view, place) ? `${view.trying ? "changed" : "your"} weight` : "weight", "start"),
    lines.map((each, i) => key_line(place, X, each, top + i * gap, gap,
      { d, most: most_k, best: each === best && each.weight > 0, was: old[i] && old[i].weight })),
    d > 0 && lines.map(({ label, v, weight }, i) => [
      strip(X.value, values + i * gap, v,
        { width, height: high - 2, most: most_v, strength: weight }),
      tall && text(X.word, values + i * gap + 10, short(shown(label), X.n_letters),
        { anchor: "end", size: X.size, fill: tone_of(place) })]),
    d > 0 && text(X.value - 10, end + 26, tall ? "sum" : sum,
      { anchor: "end", fill, ...title }),
    strip(X.value, end + 12, output, { width, height: high, most: most_v }));
}

/** A key with its score and its weight; it opens.
 *  @param {Place} place @param {Columns} X
 *  @param {ReturnType<typeof numbers>["lines"][number]} line @param {number} y @param {number} gap
 *  @param {{ d: number, most: number, best: boolean, was?: number }} how */
function key_line(place, X, { key, label, k, score, weight }, y, gap, how) {
  const { d, most, best, was } = how, { word, bar, cell, high, long, size } = X;
  const tone = tone_of(place), width = weight > 0 ? Math.max(1.5, long * drawn_share(weight)) : 0;
  const style = { size, weight: best ? 600 : 400 }, fill = best ? "ink" : "soft";
  const old = differ(weight, was) ? `, was ${percent(was)}` : "";
  return door(path_of({ ...place, key }), `${shown(label)}: weight ${percent(weight)}${old}`,
    box(word - 70, y - 2, bar + long + 80 - word, gap, "page", 1, { class: "door-ground", rx: 4 }),
    text(word, y + high - 5, short(shown(label), X.n_letters),
      { anchor: "end", fill: tone, ...style }),
    strip(X.key, y, k, { width: cell, height: high - 2, most }),
    X.score > 0 && d > 0 && text(X.score, y + 15, decimal(score),
      { anchor: "end", fill, ...style }),
    box(bar, y + 1, width, high - 4, tone, best ? 1 : 0.6, { rx: 3 }),
    text(bar + width + 6, y + high - 5, compared(weight, was), { fill, ...style }));
}

// ---- Level 3: one weight

/** @param {number} x */
function grouped(x) {
  if (!Number.isFinite(x)) return decimal(x);
  if (x >= 1e7) return x.toExponential(2).replace("e+", " × 10^");
  if (x < 100) return decimal(x, x < 10 ? 4 : 2);
  return decimal(x, 0).replace(/\B(?=(\d{3})+$)/g, ",");
}

const WEIGHT = { // where features begin, how wide they are, and the letters beside them
  wide: { left: 190, cell: 24, size: 15, small: 13, facts: 190 },
  tall: { left: 56, cell: 10.4, size: 12, small: 12, facts: 20 },
};

/** @param {View} view @param {Known} known @param {Place} place */
export function weight(view, { row, tall, before, found, found_before }, place) {
  const { d, q, query, lines, one } = numbers(view, place, found, row), name = shown(one.label);
  const old = before && found_before && is_alike(place, view, before, row)
    ? numbers(before, place, found_before, row).one : null;
  const { left, cell: most_wide, size, small, facts: facts_at } = WEIGHT[tall ? "tall" : "wide"];
  const cell = most_wide * Math.min(1, 32 / d);
  const tone = tone_of(place), high = 34, right = left + d * cell;
  /** @type {(middle: number, values: number[], most: number, words: string, fill: Color) => Inside} */
  const bars = (middle, values, most, words, fill) => [
    line([[left, middle], [right, middle]], "hair", 1),
    text(left - 10, middle + 5, words, { anchor: "end", fill, weight: 600, size }),
    values.map((value, f) => {
      const long = high * Math.min(1, Math.abs(value) / most), y = value < 0 ? middle : middle - long;
      return box(left + f * cell + cell * 0.12, y, cell * 0.76, Math.max(0.5, long),
        value < 0 ? "minus" : "plus");
    })];
  const most = largest([q, one.k]), { products } = one;
  const sums = products.map((_, f) => sum_of(products.slice(0, f + 1))).filter(Number.isFinite);
  const height = (/** @type {number} */ sum) => 350 - 40 * sum / largest([sums]);
  const parts = lines.map(({ score }) => Math.exp(score)), part = parts[one.key];
  const n_seen = parts.filter(Boolean).length;
  const softmax = `Softmax: e^${decimal(one.score, 4)} ≈ ${grouped(part)}, of ` +
    `${grouped(sum_of(parts))} for ${n_seen} ${n_seen === 1 ? "key" : "keys"}`;
  const is_yours = attends(view, place); // the lines are the formula's, and the weight what came out
  const top = Math.max(...lines.map(({ score }) => score));
  const formula = is_yours && ` = ${percent(Math.exp(one.score - top)
    / sum_of(lines.map(({ score }) => Math.exp(score - top))))}`;
  const facts = [`Sum of the ${d} products: ${decimal(one.sum)}`,
    `Divided by √${d}: ${decimal(one.sum / Math.sqrt(d), 4)}`,
    one.score === -Infinity ? "The word is hidden: its score becomes −∞" : [softmax, formula]];
  return picture(tall ? 400 : 1080, 514, `One weight: “${query}” looks at “${name}”`,
    bars(60, q, most, tall ? "q" : `q of “${query}”`, COLORS[place.stack]),
    bars(150, one.k, most, tall ? "k" : `k of “${name}”`, tone),
    bars(250, products, largest([products]), tall ? "q × k" : "products", "ink"),
    largest_product(one, q, left, cell, high),
    line([[left, 350], [right, 350]], "hair", 1),
    sums.length > 0 && line(sums.map((sum, f) => [left + (f + 0.5) * cell, height(sum)]), "ink", 1.8),
    text(right + 4, height(sums.at(-1) || 0) + 5, tall ? "" : decimal(one.sum), { size: 13 }),
    text(left - 10, 355, tall ? "sum" : "added up so far",
      { anchor: "end", fill: "soft", size: small }),
    facts.map((words, i) => text(facts_at, 404 + 24 * i, words)),
    text(facts_at, 476, [is_yours ? `What ${code_of(view)} gave: ` : "Weight: ", compared(one.weight, old?.weight),
      is_cut(view, place) && ": the head is cut"], { weight: 600, fill: tone }));
}

/** Written out, at its bar
 *  @param {{ k: number[], products: number[] }} one @param {number[]} q
 *  @param {number} left @param {number} cell @param {number} high */
function largest_product({ k, products }, q, left, cell, high) {
  const sizes = products.map(Math.abs), f = sizes.indexOf(Math.max(...sizes));
  if (f < 0) return null; // NaN
  const anchor = ["start", "middle", "end"][Math.floor(3 * f / q.length)];
  return text(left + (f + 0.5) * cell, 250 + (products[f] < 0 ? high + 16 : -high - 6),
    `${decimal(q[f], 3)} × ${decimal(k[f], 3)} = ${decimal(products[f])}`,
    { size: 12.5, anchor, fill: "soft" });
}

// ---- Every level in words: a table

/** @param {[number, number][]} found @param {string[]} keys */
const listed = (found, keys) => found.filter(([p]) => p > 0)
  .map(([p, key]) => named({ label: keys[key], p })).join(", ") || none_of(found[0]?.[0]);

/** What a level shows, for a table
 *  @param {View} view @param {Place} place @param {Vectors|null} found @param {number} row
 *  @returns {Table|null} */
export function table(view, place, found, row) {
  const level = level_of(place);
  if (level === 0) return table_of_steps(view);
  if (level === 1) return table_of_heads(view, place, row);
  if (!found && level === 3) return null;
  const { lines, q, one } = numbers(view, place, found, row);
  if (level === 2) {
    return { caption: `Scores and weights of this head${is_cut(view, place) ? ", which is cut" : ""}`,
      head: ["key", "score", "weight"],
      rows: lines.map(({ label, score, weight }) =>
        [shown(label), found ? decimal(score) : "–", decimal(weight, 3)]) };
  }
  return { caption: `The products of this weight; they add up to ${decimal(one.sum, 3)}`,
    head: ["feature", "q", "k", "product"],
    rows: one.products.map((x, f) => [f + 1, ...[q[f], one.k[f], x].map((y) => decimal(y, 3))]) };
}

/** @param {View} view */
function table_of_steps(view) {
  return { caption: "The five likeliest tokens at each step, and where decoder layer " +
      `${middle_layer(view) + 1} looked, all heads together`,
  head: ["step", "written", "likeliest", "looked at"],
  rows: view.tgt_labels.map((label, i) => [i + 1, shown(label),
    view.next[i].slice(0, 5).map(named).join(", "),
    listed(looked_at(view, i, 2), view.src_labels)]) };
}

/** @param {View} view @param {Place} place @param {number} row */
function table_of_heads(view, place, row) {
  const rows = KINDS[place.stack].flatMap((kind) => {
    const here = { ...place, kind }, [, keys] = axes(here, view);
    return view.maps[name_of(here)].map((weights, i) =>
      [ATTENTIONS[kind], i + 1, is_cut(view, { ...here, head: i }) ? "cut"
        : listed(most(weights, row, keys.length), keys)]);
  });
  const ends = ["before", "after"].map((when, i) => {
    const length = `vector length ${decimal(view.norms[place.stack][place.layer + i][row], 1)}`;
    const answers = place.stack === "decoder" && view.layers[place.layer + i][row].map(named);
    return [when, "", answers ? `${length}; would answer ${answers.join(", ")}` : length];
  });
  return { caption: "What each head looks at most, and the vector before and after the layer",
    head: ["attention", "head", "looks at"], rows: [...rows, ...ends] };
}
