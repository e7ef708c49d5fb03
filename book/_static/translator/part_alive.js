"use strict";
// One sentence, its translation, and where the model looked: alive before any model is.

translator_part("alive", (element, app) => {
  const { h, shown, percent, roving } = translator_kit;
  const LAYER = "decoder.layers.1.cross_attn"; // the second of three, all heads together
  let chosen = -1; // at first, the word whose picture is clearest

  function weights_of(row) {
    const { maps, src, alignment } = app.view, heads = (maps || {})[LAYER];
    if (!heads) return alignment.slice(row * src.length, (row + 1) * src.length);
    return src.map((_, k) => heads.reduce(
      (sum, head) => sum + head[row * src.length + k], 0) / heads.length);
  }

  function draw() {
    const { src_labels, tgt_labels } = app.view;
    if (!src_labels) return;
    if (chosen < 0 || chosen >= tgt_labels.length) {
      const peaks = tgt_labels.map((_, row) => Math.max(...weights_of(row)));
      chosen = peaks.indexOf(Math.max(...peaks));
    }
    const sources = src_labels.map((label) =>
      h("span", { class: "tr-chip source" }, shown(label)));
    const says = h("p", { class: "tr-says" });
    const blind = (app.state.edits || {}).causal === false && app.engine;
    const show = (row, stays = true) => {
      if (stays) chosen = row;
      const weights = weights_of(row);
      sources.forEach((chip, k) =>
        chip.style.setProperty("--weight", `${(100 * weights[k]).toFixed(0)}%`));
      targets.forEach((chip, i) => chip.setAttribute("aria-pressed", String(i === row)));
      const before = says.textContent;
      const best = [...weights.keys()].sort((a, b) => weights[b] - weights[a]).slice(0, 2);
      says.textContent = weights[best[0]] === 0
        ? `While writing “${shown(tgt_labels[row])}”, the model couldn’t look anywhere.`
        : `While ${blind ? "reading the finished translation again, at" : "writing"} ` +
          `“${shown(tgt_labels[row])}”, the model looked at ` +
        best.map((k) => `“${shown(src_labels[k])}” (${percent(weights[k])})`)
          .join(" and ") + ".";
      if (stays && before && before !== says.textContent) app.say(says.textContent);
    };
    const targets = tgt_labels.map((label, i) => h("button", {
      type: "button", class: "tr-chip target", onclick: () => show(i),
      onfocus: () => show(i), onpointerenter: () => show(i, false),
    }, shown(label)));
    const row = h("div", { class: "tr-chips", role: "toolbar",
      "aria-label": "Words of the translation", onpointerleave: () => show(chosen),
    }, targets);
    element.replaceChildren(
      h("div", { class: "tr-chips", "aria-label": "Source sentence", role: "group" }, sources),
      row, says);
    roving(row, "button");
    show(chosen);
  }

  app.on("view", draw);
});
