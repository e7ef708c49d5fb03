// @ts-check
// The four levels of the picture, from the whole machine down to one weight. Each is a
// function of what is known of a sentence (a "view") and of where we are; none of them
// reads the page, so the same functions make the pictures for readers without a script.

import { box, COLOR, curve, decimal, door, dot, e, line, percent, picture, shown, strip, text }
  from "./draw.js";

/** @typedef {{ stack: "encoder"|"decoder"|"", layer: number, kind: string, head: number,
 *  key: number }} Place  stack "" is the whole machine, kind "" a layer, head -1 and
 *  key -1 are "none" */

export const WHOLE = { stack: "", layer: 0, kind: "", head: -1, key: -1 };

export const level_of = ({ stack, kind, key }) => (!stack ? 0 : !kind ? 1 : key < 0 ? 2 : 3);
export const name_of = ({ stack, layer, kind }) => `${stack}.layers.${layer}.${kind}`;
export const path_of = ({ stack, layer, kind, head, key }) => (!stack ? ""
  : `/${stack}/${layer}${kind ? `/${kind}/${head}` : ""}${kind && key >= 0 ? `/${key}` : ""}`);

/** Where a path leads; the whole machine where it names nothing that the model has. */
export function place_of(path, config) {
  const [, stack, layer, kind, head, key] = /** @type {any} */ (path.match(
    /^\/(encoder|decoder)\/(\d{1,2})(?:\/(self_attn|cross_attn)\/(\d{1,2})(?:\/(\d{1,3}))?)?$/)
    || []);
  const known = stack && Number(layer) < config[`n_${stack}_layers`]
    && !(stack === "encoder" && kind === "cross_attn") && Number(head || 0) < config.n_heads;
  return known ? { stack, layer: Number(layer), kind: kind || "", head: kind ? Number(head) : -1,
    key: key ? Number(key) : -1 } : WHOLE;
}

/** The labels of an attention's queries and keys; the decoder reads <bos> first. */
export function axes({ stack, kind }, { src_labels, tgt_labels }) {
  const read = ["<bos>", ...tgt_labels.slice(0, -1)];
  return stack === "encoder" ? [src_labels, src_labels]
    : [read, kind === "cross_attn" ? src_labels : read];
}

const mean_of = (heads) => heads[0].map(
  (_, at) => heads.reduce((sum, head) => sum + head[at], 0) / heads.length);
const range = (n) => [...Array(n).keys()];
export const n_layers = (view, stack) => view.norms[stack].length - 1;
const all_means = new WeakMap(); // of the heads of all attentions: computed once a view
export function means(view) {
  if (!all_means.has(view)) {
    all_means.set(view, Object.fromEntries(
      Object.entries(view.maps).map(([name, heads]) => [name, mean_of(heads)])));
  }
  return all_means.get(view);
}

/** The places that a query looks at most, best first: [[share, key], ...] */
export const most = (weights, row, n_keys, n = 3) => range(n_keys)
  .map((key) => [weights[row * n_keys + key], key]).sort((a, b) => b[0] - a[0]).slice(0, n);

// ---- Level 0: the whole machine

// Where in a layer something happens: it looks at its own sentence, at the other, thinks
const SELF = { encoder: 0.7, decoder: 0.38 }, CROSS = 0.62, FFN = 0.86;
const WIDE = { e: [150, 246, 342, 438], m: 486, d: [660, 764, 868, 972], out: 1006,
  top: 34, size: [1200, 0], lane: [17, 34] };
const TALL = { e: [66, 104, 142, 180], m: 202, d: [272, 312, 352, 392], out: 412,
  top: 26, size: [400, 0], lane: [17, 60] };

// The classes by which a row of the target is shown: written, being written, to come
export const row_id = (i, tall) => `machine-row-${i}-${tall ? "tall" : "wide"}`;
export const row_class = (i, step) => (i < step ? "past" : i === step ? "now" : "to-come");

export function whole(view, { step = 0, tall = false, before = null, ids = false } = {}) {
  const { src_labels, tgt_labels, norms, layers } = view, L = tall ? TALL : WIDE;
  const S = src_labels.length, T = tgt_labels.length, average = means(view);
  const n_enc = n_layers(view, "encoder"), n_dec = n_layers(view, "decoder");
  // u goes along the flow, v across it: a lane for each token
  const at = (u, v) => (tall ? [v, u] : [u, v]);
  const along = tall ? L.size[0] - 2 * L.top : 440;
  const lane = (n) => Math.max(L.lane[0], Math.min(L.lane[1], along / Math.max(1, n - 1)));
  const middle = (n) => (tall ? Math.max(L.top, (L.size[0] - (n - 1) * lane(n)) / 2) : L.top);
  const sv = (i) => middle(S) + i * lane(S), tv = (i) => middle(T) + i * lane(T);
  const end = Math.max(sv(S - 1), tv(T - 1), tall ? along + L.top : 0);
  const strand = (from, to, color, width, opacity, more) => {
    const [u, v] = from, [x, y] = to, half = (u + x) / 2;
    return curve([at(u, v), at(half, v), at(half, y), at(x, y)], color, width, opacity, more);
  };
  const label = (u, v, words, fill, anchor, more = {}) => (tall
    ? text(v + 4, u + 2, words, { size: 14, fill, anchor, turn: -58, ...more })
    : text(u, v + 5, words, { fill, anchor, ...more }));
  const think = (u, v, color) => { // the small network of a layer, in its lane
    const [x, y] = at(u, v);
    return tall ? box(x - 5, y - 1.5, 10, 3, color) : box(x - 1.5, y - 5, 3, 10, color);
  };
  const looks = (weights, row, n_keys, threshold, draw) => range(n_keys).map((key) => {
    const weight = weights[row * n_keys + key];
    return weight > threshold && draw(key, weight);
  });
  // The junctions of all layers, and the flow through them
  const lanes = range(S).map((i) => e("g", { class: "lane", tabindex: -1 },
    range(n_enc).map((l) => {
      const [from, to] = [L.e[l], L.e[l + 1]], gap = to - from;
      return e("g", { class: `flow-${l}` },
        looks(average[`encoder.layers.${l}.self_attn`], i, S, 0.07, (j, w) => j !== i && strand(
          [from, sv(j)], [from + SELF.encoder * gap, sv(i)], "source", 0.5 + 8 * w, 0.12 + 0.5 * w)),
        line([at(from, sv(i)), at(to, sv(i))], "source", 1 + norms.encoder[l + 1][i] / 22, 0.4),
        think(from + FFN * gap, sv(i), "source"), dot(...at(to, sv(i)), "source", tall ? 2.4 : 3));
    }),
    line([at(L.e[n_enc], sv(i)), at(L.m, sv(i))], "memory", 2.2, 0.6, { class: "flow-3" }),
    dot(...at(L.m, sv(i)), "memory", tall ? 3 : 4), dot(...at(L.e[0], sv(i)), "source", 3),
    label(L.e[0] - 10, sv(i), shown(src_labels[i]), "source", tall ? "start" : "end",
      { weight: 500 })));

  const rows = range(T).map((i) => {
    const read = i ? shown(tgt_labels[i - 1]) : "‹start›";
    const trunk = range(n_dec).map((l) => {
      const [from, to] = [L.d[l], L.d[l + 1]], gap = to - from;
      return [
        looks(average[`decoder.layers.${l}.self_attn`], i, T, 0.06, (j, w) => j < i && strand(
          [from, tv(j)], [from + SELF.decoder * gap, tv(i)], "target", 0.5 + 8 * w, 0.2 + 0.55 * w)),
        line([at(from, tv(i)), at(to, tv(i))], "target", 2.2, 0.7),
        think(from + FFN * gap, tv(i), "target"), dot(...at(to, tv(i)), "target", 3)];
    });
    const asks = range(n_dec).map((l) => {
      const x = L.d[l] + CROSS * (L.d[l + 1] - L.d[l]), weights = average[`decoder.layers.${l}.cross_attn`];
      return e("g", { class: `ask ask-${l}` }, looks(weights, i, S, 0.05, (j, w) => curve(
        [at(L.m, sv(j)), at(L.m + (tall ? 40 : 100), sv(j)),
        at(x - 20, tv(i) + 46),
        at(x, tv(i))], "memory", 0.6 + 11 * w, 0.15 + 0.75 * w,
        { class: "ask-strand" })));
    });
    const answers = range(n_dec).map((l) => {
      const [best] = layers[l + 1][i];
      return !tall && text(L.d[l + 1], tv(i) - 9, shown(best.label),
        { size: 12.5, fill: "target", anchor: "middle" });
    });
    return e("g", { class: `row ${row_class(i, step)}`, "data-row": i,
      id: ids && row_id(i, tall) },
      e("g", { class: "trunk" }, trunk, dot(...at(L.d[0], tv(i)), "target", 3),
        !tall && text(L.d[n_dec] + 10, tv(i) + 5, shown(tgt_labels[i]),
          { size: 13, fill: "soft", class: "written" })),
      e("g", { class: "asks" }, asks, answers, answer(view, i, { L, tall, at, tv, end, before })),
      label(L.d[0] - 9, tv(i), read, "target", tall ? "start" : "end", { class: "read" }));
  });
  const height = end + (tall ? 0 : 62);
  const [band_x, band_y] = at(L.m - 9, sv(0) - 13);
  const [band_u, band_v] = [18, (S - 1) * lane(S) + 26];
  const caption = (u, words, more = {}) => !tall && text(u, height - 8, words,
    { size: 13, fill: "soft", anchor: "middle", ...more });
  const layer_door = (stack, l) => {
    const xs = stack === "encoder" ? L.e : L.d, edge = end + 18;
    const [x, y] = at(xs[l] + 3, tall ? 4 : L.top - 20), [far, deep] = at(xs[l + 1] - 3, tall ? 398 : edge);
    return door(path_of({ ...WHOLE, stack, layer: l }), `Into ${stack} layer ${l}`,
      box(x, y, far - x, (tall ? deep : height - 26) - y, "page", 1, { class: "door-ground", rx: 6 }),
      tall ? text(396, (xs[l] + xs[l + 1]) / 2 + 4, String(l), { size: 12, fill: "soft", anchor: "end" })
        : caption((xs[l] + xs[l + 1]) / 2, `layer ${l}`, { y: edge + 8 }));
  };
  const size = tall ? [Math.max(400, end + 26), L.out + 96] : [1200, height];
  return picture(...size, `The machine at work: ${S} German tokens, ${T} English ones`,
    range(n_enc).map((l) => layer_door("encoder", l)),
    range(n_dec).map((l) => layer_door("decoder", l)),
    box(band_x, band_y, tall ? band_v : band_u, tall ? band_u : band_v, "memory", 0.16, { rx: 9 }),
    e("g", { class: "lanes" }, lanes), e("g", { class: "rows" }, rows),
    caption(L.e[0] - 40, "German"), caption((L.e[1] + L.e[2]) / 2, "encoder"),
    caption(L.m, "memory"), caption((L.d[1] + L.d[2]) / 2, "decoder"),
    caption(L.out + 50, "next word"));
}

/** The five likeliest next tokens of a row, with what the untouched model gave them. */
function answer(view, i, { L, tall, at, tv, end, before }) {
  const five = view.next[i].slice(0, tall ? 4 : 5), n_dec = n_layers(view, "decoder");
  const old = before && before.next[i];
  const [x, first] = tall ? [24, L.out + 20] : [L.out, Math.max(24, Math.min(tv(i), end - 92))];
  const long = tall ? 190 : 62, gap = tall ? 21 : 23;
  return e("g", { class: "answer" },
    curve([at(L.d[n_dec], tv(i)), at(L.d[n_dec] + 14, tv(i)), tall ? [x + 60, L.out - 14] : [x - 18, first],
      tall ? [x + 60, L.out + 6] : [x - 4, first]], "target", 2.2, 0.8),
    five.map(({ id, label, p }, k) => {
      const y = first + k * gap, was = old && old.find((each) => each.id === id);
      const changed = was && percent(was.p) !== percent(p);
      return e("g", { class: `choice${k ? "" : " first"}`, "data-id": id, "data-rank": k },
        box(x, y - 8, Math.max(2, long * p), 16, "target", k ? 0.35 : 0.92, { rx: 3 }),
        changed && box(x + long * was.p - 1, y - 10, 2, 20, "ink"),
        text(x + Math.max(2, long * p) + 7, y + 5, [e("tspan", {}, shown(label)), " ",
          e("tspan", { class: changed ? "changed" : null }, percent(p)),
          changed && e("tspan", { fill: COLOR.soft, dx: 4 }, `was ${percent(was.p)}`)],
        { size: k ? 13.5 : 16, weight: k ? 400 : 600, fill: k ? "soft" : "target" }));
    }));
}

// ---- Level 1: a layer, its heads and its small network

const STATION = { width: 312, mini: [70, 92] };

export function layer(view, place, { row, tall = false }) {
  const { stack, layer: l } = place, kinds = stack === "encoder" ? ["self_attn"] : ["self_attn", "cross_attn"];
  const [queries] = axes({ ...place, kind: "self_attn" }, view);
  const color = stack === "encoder" ? "source" : "target", norms = view.norms[stack];
  const word = row || stack === "encoder" ? shown(queries[row]) : "‹start›";
  const stream = tall ? 34 : 330, parts = [];
  const width = (x) => 2 + x / 22;
  // Along the stream: v is across it, u along it
  const at = (u, v) => (tall ? [stream + v, u] : [u, stream - v]);
  let u = tall ? 60 : 176;
  const start = u, flow = [norms[l][row], norms[l + 1][row]];
  const station = (title, long, ...inside) => { // out of the stream, through a norm, back
    const [a, b] = [u + 12, u + long - 12];
    parts.push(curve([at(a, 0), at(a, 16), at(a, 20), at(a, 34)], color, 2, 0.7),
      curve([at(b, 34), at(b, 20), at(b, 16), at(b, 0)], color, 2, 0.7),
      dot(...at(b, 0), color, 6), text(at(b, 0)[0], at(b, 0)[1] + 4.5, "+",
        { size: 13, anchor: "middle", fill: "page", stroke: "none" }),
      text(at(a, 0)[0] + (tall ? 8 : 7), at(a, 0)[1] + (tall ? 15 : -12), "norm", { size: 12, fill: "soft" }),
      text(tall ? 66 : u + 4, tall ? u + 8 : 24, title, { size: 15, weight: 600 }), ...inside);
    u += long + (tall ? 14 : 10);
  };
  for (const kind of kinds) {
    const here = { ...place, kind }, [, keys] = axes(here, view), heads = view.maps[name_of(here)];
    const tone = kind === "cross_attn" ? "memory" : color;
    station(kind === "self_attn" ? "self-attention: its own sentence" : "cross-attention: the memory",
      tall ? 268 : STATION.width, heads.map((weights, head) => {
        const [w, hgt] = STATION.mini, x = (tall ? 66 : u + 4) + (head % 4) * (w + 6);
        const y = (tall ? u + 18 : 38) + Math.floor(head / 4) * (hgt + 30);
        const [[share, best]] = most(weights, row, keys.length, 1);
        const yk = (k) => y + 6 + k * (hgt - 12) / Math.max(1, keys.length - 1);
        return door(path_of({ ...here, head }), `Into head ${head}: it looks most at “${shown(keys[best])}”, ${percent(share)}`,
          box(x, y, w, hgt, "page", 1, { class: "door-ground", rx: 5, stroke: COLOR.hair }),
          keys.map((_, k) => {
            const weight = weights[row * keys.length + k];
            return [dot(x + 9, yk(k), tone, 1.6), weight > 0.03 && curve([[x + 9, yk(k)],
              [x + w / 2, yk(k)], [x + w / 2, y + hgt / 2], [x + w - 10, y + hgt / 2]],
            tone, 0.5 + 7 * weight, 0.2 + 0.7 * weight)];
          }),
          dot(x + w - 10, y + hgt / 2, color, 3.2),
          text(x + w / 2, y + hgt + 14, [e("tspan", { "font-weight": 600 }, String(head)),
            share > 0 ? ` ${shown(keys[best]).slice(0, 8)} ${percent(share)}` : " removed"],
          { size: 11.5, fill: "soft", anchor: "middle" }));
      }));
  }
  const [d_model, d_ff] = [view.sizes.d_model, view.sizes.d_ff];
  const fx = tall ? 66 : u + 20, fy = tall ? u + 14 : 60;
  const mid = fy + (tall ? 42 : 84), sizes = [16, 40, 16], stack_x = (part) => fx + part * 66;
  station("feed-forward: alone", tall ? 118 : 190,
    [0, 1].map((part) => e("path", { fill: COLOR[color], opacity: 0.1,
      d: `M${stack_x(part) + 10} ${mid - sizes[part]}L${stack_x(part + 1)} ${mid - sizes[part + 1]}V${
        mid + sizes[part + 1]}L${stack_x(part) + 10} ${mid + sizes[part]}Z` })),
    sizes.map((half, part) => range(half / 2).map((k) =>
      box(stack_x(part), mid - half + 4 * k, 10, 2.4, color, 0.8))),
    text(fx - 4, mid + 64, `${d_model} → ${d_ff} → ${d_model} numbers`, { size: 12.5, fill: "soft" }));
  const stop = u + (tall ? 4 : 24);
  const body = [line([at(start - (tall ? 22 : 40), 0), at(start + 4, 0)], color, width(flow[0]), 0.7),
    line([at(start, 0), at(stop, 0)], color, (width(flow[0]) + width(flow[1])) / 2, 0.5)];
  const length = (x) => `length ${decimal(x, 1)}`;
  const ends = tall
    ? [text(14, 22, word, { weight: 600, fill: color }), text(14, stop + 22, length(flow[1]), { size: 12, fill: "soft" }),
      text(96, 22, length(flow[0]), { size: 12, fill: "soft" })]
    : [text(start - 50, stream + 5, word, { anchor: "end", size: 17, weight: 600, fill: color }),
      text(start - 50, stream + 24, length(flow[0]), { anchor: "end", size: 12, fill: "soft" }),
      text(stop + 8, stream + 24, length(flow[1]), { size: 12, fill: "soft" })];
  const first = stack === "decoder" && view.layers[l][row][0], after = stack === "decoder" ? view.layers[l + 1][row] : [];
  const says = [
    first && text(tall ? 14 : start - 50, tall ? 40 : stream - 14, `would answer ${shown(first.label)} ${percent(first.p)}`,
      { size: 12.5, fill: "target", anchor: tall ? "start" : "end" }),
    after.map(({ label, p }, k) => text(tall ? 130 : stop + 8, tall ? stop + 22 + 18 * k : stream - 50 + 18 * k,
      `${shown(label)} ${percent(p)}`, { size: k ? 12.5 : 15, weight: k ? 400 : 600, fill: "target" }))];
  return picture(...(tall ? [400, stop + 76] : [stop + 150, 380]), `${stack} layer ${l}, for “${word}”`, body, parts, ends, says);
}

// ---- Level 2: a head

/** The numbers of one query of a head. found: q, k, v of all positions, or null where a
 *  stored view has no more of this head than its weights */
export function numbers(view, place, found, row) {
  const [queries, keys] = axes(place, view), heads = view.maps[name_of(place)];
  const d = found ? view.sizes.d_model / heads.length : 0;
  const part = (which, i) => (found ? Array.from(found[which].subarray(i * d, (i + 1) * d)) : []);
  const weights = heads[place.head];
  const q = part("q", row);
  // What comes later isn't there yet, with a causal mask or without.
  const allowed = (key) => !(place.stack === "decoder" && place.kind === "self_attn" && key > row);
  const lines = keys.map((label, key) => {
    const k = part("k", key), products = k.map((x, f) => x * q[f]);
    const sum = products.reduce((total, x) => total + x, 0);
    return { key, label, k, v: part("v", key), products, sum, score: sum / Math.sqrt(d),
      weight: weights[row * keys.length + key], allowed: allowed(key) };
  });
  // In a stored view the weights are rounded: from the scores they come with all digits.
  if (!view.live && found) {
    const top = Math.max(...lines.filter((each) => each.allowed).map((each) => each.score));
    const shares = lines.map((each) => (each.allowed ? Math.exp(each.score - top) : 0));
    const total = shares.reduce((sum, x) => sum + x, 0);
    lines.forEach((each, i) => { each.weight = shares[i] / total; });
  }
  const output = q.map((_, f) => lines.reduce((sum, { weight, v }) => sum + weight * v[f], 0));
  return { d, q, query: row || place.stack === "encoder" ? shown(queries[row]) : "‹start›", lines, output };
}

const largest = (lists) => Math.max(...lists.flat().map(Math.abs), 1e-9);

export function head(view, place, found, { row, tall = false, before = null }) {
  const { d, q, query, lines, output } = numbers(view, place, found, row);
  const tone = place.kind === "cross_attn" ? "memory" : place.stack === "encoder" ? "source" : "target";
  const asks = place.stack === "encoder" ? "source" : "target";
  const cell = tall ? 4 : 8, high = tall ? 14 : 20, gap = Math.max(high + 2, Math.min(26, 520 / lines.length));
  const X = !d ? { word: 160, key: 174, score: 500, bar: 174, value: 760 } : tall ? { word: 74, key: 80, score: 250, bar: 262, value: 80 }
    : { word: 160, key: 174, score: 500, bar: 520, value: 760 };
  const [most_k, most_v] = [largest([q, ...lines.map((each) => each.k)]), largest([output, ...lines.map((each) => each.v)])];
  const top = 86, bottom = top + lines.length * gap, old = before && before.lines;
  const second = tall ? bottom + 40 : top; // where the values begin
  const best = lines.reduce((a, b) => (b.weight > a.weight ? b : a));
  const long = tall ? 84 : 130;
  const title = (x, y, words, anchor = "start") => text(x, y, words, { size: 13, fill: "soft", anchor });
  return picture(tall ? 400 : 1080, (tall ? second + lines.length * gap + 50 : bottom + 46),
    `Head ${place.head}: what “${query}” looks at`,
    text(X.word, 42, d ? `q of ${query}` : query, { anchor: "end", fill: asks, weight: 600, size: tall ? 13 : 15 }),
    strip(X.key, 28, q, { width: cell, height: high, most: most_k }),
    d > 0 && [title(X.key + d * cell / 2, 74, `keys, ${d} numbers each`, "middle"),
      !tall && title(X.score, 74, `q · k / √${d}`, "end"),
      title(X.value + d * cell / 2, second - 12, "values, as strong as their weight", "middle")],
    title(X.bar, 74, "weight"),
    lines.map((each, i) => {
      const y = top + i * gap, chosen = each === best, was = old && old[i];
      const changed = was && percent(was.weight) !== percent(each.weight);
      const style = { weight: chosen ? 600 : 400, size: tall ? 12 : 14 };
      return door(path_of({ ...place, key: i }), `${shown(each.label)}: weight ${percent(each.weight)}`,
        box(X.word - 70, y - 2, X.bar + long + 80 - X.word, gap, "page", 1, { class: "door-ground", rx: 4 }),
        text(X.word, y + high - 5, shown(each.label).slice(0, tall ? 9 : 18), { anchor: "end", fill: tone, ...style }),
        strip(X.key, y, each.k, { width: cell, height: high - 2, most: most_k, strength: each.allowed ? 1 : 0.2 }),
        !tall && d > 0 && text(X.score, y + 15, each.allowed ? decimal(each.score) : "masked", { anchor: "end", fill: chosen ? "ink" : "soft", ...style }),
        each.allowed && box(X.bar, y + 1, Math.max(1.5, long * each.weight), high - 4, tone, chosen ? 1 : 0.6, { rx: 3 }),
        each.allowed && text(X.bar + Math.max(1.5, long * each.weight) + 6, y + high - 5,
          [e("tspan", { class: changed ? "changed" : null }, percent(each.weight)),
            changed && e("tspan", { fill: COLOR.soft, dx: 5 }, `was ${percent(was.weight)}`)], { fill: chosen ? "ink" : "soft", ...style }));
    }),
    d > 0 && lines.map((each, i) => [strip(X.value, second + i * gap, each.v, { width: cell, height: high - 2,
      most: most_v, strength: each.weight }), tall && text(X.word, second + i * gap + 10, shown(each.label).slice(0, 9),
      { anchor: "end", size: 12, fill: tone })]),
    d > 0 && text(X.value - 10, second + lines.length * gap + 26, tall ? "sum" : "their sum, which the head hands on",
      { anchor: "end", fill: asks, weight: 600, size: tall ? 13 : 15 }),
    strip(X.value, second + lines.length * gap + 12, output, { width: cell, height: high, most: most_v }));
}

// ---- Level 3: one weight

const grouped = (x) => (x >= 1e7 ? x.toExponential(2).replace("e+", " × 10^")
  : decimal(x, x < 100 ? 2 : 0).replace(/\B(?=(\d{3})+$)/g, ","));

export function weight(view, place, found, { row, tall = false, before = null }) {
  const { d, q, query, lines } = numbers(view, place, found, row), one = lines[Math.min(place.key, lines.length - 1)];
  const tone = place.kind === "cross_attn" ? "memory" : place.stack === "encoder" ? "source" : "target";
  const asks = place.stack === "encoder" ? "source" : "target";
  const x0 = tall ? 56 : 190, cell = tall ? 10.4 : 24, high = 34;
  const most_q = largest([q, one.k]), most_p = largest([one.products]);
  let so_far = 0;
  const sums = one.products.map((x) => (so_far += x)), span = Math.max(...sums.map(Math.abs), 1e-9);
  const bars = (middle, values, scale, words, fill) => [
    line([[x0, middle], [x0 + d * cell, middle]], "hair", 1),
    text(x0 - 10, middle + 5, words, { anchor: "end", fill, weight: 600, size: tall ? 12 : 15 }),
    values.map((value, f) => {
      const size = high * Math.abs(value) / scale;
      return box(x0 + f * cell + cell * 0.12, value < 0 ? middle : middle - size, cell * 0.76, Math.max(0.5, size),
        value < 0 ? "minus" : "plus", 1, {}, );
    })];
  const lead = one.products.map((x, f) => [Math.abs(x), f]).sort((a, b) => b[0] - a[0])[0][1];
  const total = lines.filter((each) => each.allowed).reduce((sum, each) => sum + Math.exp(each.score - one.score), 0);
  const was = before && before.lines[one.key], y = 404, sx = tall ? 20 : x0;
  const facts = [
    `Sum of the ${d} products: ${decimal(one.sum)}`,
    `Divided by √${d}: ${decimal(one.score)}`,
    one.allowed ? `Softmax: e^${decimal(one.score)} = ${grouped(Math.exp(one.score))}, of ${
      grouped(total * Math.exp(one.score))} for all ${lines.length} keys` : "Masked: it may not look there, so its weight is 0",
    `Weight: ${percent(one.weight)}${was && percent(was.weight) !== percent(one.weight) ? `, was ${percent(was.weight)}` : ""}`];
  return picture(tall ? 400 : 1080, y + 110, `One weight: “${query}” looks at “${shown(one.label)}”`,
    bars(60, q, most_q, tall ? "q" : `q of ${query}`, asks),
    bars(150, one.k, most_q, tall ? "k" : `k of ${shown(one.label)}`, tone),
    bars(250, one.products, most_p, tall ? "q × k" : "products", "ink"),
    text(x0 + (lead + 0.5) * cell, 250 + (one.products[lead] < 0 ? high + 16 : -high - 6),
      `${decimal(q[lead])} × ${decimal(one.k[lead])} = ${decimal(one.products[lead])}`, { size: 12.5, anchor: lead > d * 0.7 ? "end" : lead < d * 0.3 ? "start" : "middle", fill: "soft" }),
    line([[x0, 350], [x0 + d * cell, 350]], "hair", 1),
    line(sums.map((sum, f) => [x0 + (f + 0.5) * cell, 350 - 40 * sum / span]), "ink", 1.8),
    text(x0 + d * cell + 4, 350 - 40 * one.sum / span + 5, tall ? "" : decimal(one.sum), { size: 13 }),
    text(x0 - 10, 355, tall ? "sum" : "added up so far", { anchor: "end", fill: "soft", size: tall ? 12 : 13 }),
    facts.map((words, i) => text(sx, y + 24 * i, words, { size: 15, weight: i === 3 ? 600 : 400, fill: i === 3 ? tone : "ink" })));
}

// ---- Every level in words: a table

/** What a level shows, as { caption, head, rows } for a table. */
export function table(view, place, found, { row }) {
  const { src_labels, tgt_labels } = view, level = level_of(place), average = means(view);
  if (level === 0) {
    const S = src_labels.length, middle = n_layers(view, "decoder") >> 1;
    return { caption: `The five likeliest tokens at each step, and where decoder layer ${middle} looked, all heads together`,
      head: ["step", "written", "likeliest", "looked at"],
      rows: tgt_labels.map((label, i) => [String(i + 1), shown(label),
        view.next[i].slice(0, 5).map((each) => `${shown(each.label)} ${percent(each.p)}`).join(", "),
        most(average[`decoder.layers.${middle}.cross_attn`], i, S, 2).map(([share, key]) =>
          `${shown(src_labels[key])} ${percent(share)}`).join(", ")]) };
  }
  if (level === 1) {
    const kinds = place.stack === "encoder" ? ["self_attn"] : ["self_attn", "cross_attn"];
    return { caption: "What each head looks at most", head: ["attention", "head", "looks at"],
      rows: kinds.flatMap((kind) => {
        const [, keys] = axes({ ...place, kind }, view);
        return view.maps[name_of({ ...place, kind })].map((weights, i) => [
          kind === "self_attn" ? "self-attention" : "cross-attention", String(i),
          most(weights, row, keys.length).map(([share, key]) => `${shown(keys[key])} ${percent(share)}`).join(", ")]);
      }) };
  }
  if (!found && level === 3) return null;
  const { lines, q } = numbers(view, place, found, row), one = lines[place.key];
  if (level === 2) {
    return { caption: "Scores and weights of this head", head: ["key", "score", "weight"],
      rows: lines.map((each) => [shown(each.label), each.allowed ? decimal(each.score) : "masked", decimal(each.weight, 3)]) };
  }
  return { caption: `The products of this weight; they add up to ${decimal(one.sum, 3)}`,
    head: ["feature", "q", "k", "product"],
    rows: one.products.map((x, f) => [String(f), ...[q[f], one.k[f], x].map((y) => decimal(y, 3))]) };
}
