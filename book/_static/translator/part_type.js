"use strict";
// A sentence to type, its tokens, and the translation as it is written.

translator_part("type", (element, app) => {
  const { h, shown, percent } = translator_kit;
  const MANY = 1.9; // pieces a word: more than nearly every caption has
  // Mean probability of the tokens: a tenth of the captions has less, and is translated
  // much worse; so have nine tenths of the captions without capital letters.
  const SURE = 0.55;
  const ENGLISH = /\b(the|is|are|and|of|with|this)\b/i; // no German words
  const EXAMPLES = [
    "Ein Hund spielt im Schnee.",
    "Im Wasser schwimmt ein brauner Hund.",
    "Zwei Kinder spielen am Strand Fußball.",
    "Eine Frau mit einem roten Hut liest in der Sonne ein Buch.",
    "Drei Männer mit Helmen stehen vor einem Gebäude.",
  ];
  const field = h("textarea", { rows: 2, maxlength: 600, lang: "de", spellcheck: "false",
    id: "tr-field" });
  const { button, status, go } = app.sentence(field);
  field.addEventListener("focus", () => { // with what it changes, where that fits
    if (element.clientHeight < innerHeight) element.scrollIntoView({ block: "nearest" });
  });
  const examples = h("select", { "aria-label": "Example sentences", onchange: () => {
    if (!examples.value) return;
    field.value = examples.value;
    if (app.engine) go();
    else mark_stale();
  } }, h("option", { value: "" }, "or choose an example"),
  EXAMPLES.map((text) => h("option", { value: text }, text)));
  field.addEventListener("input", () => {
    examples.value = "";
    mark_stale();
  });
  const warning = h("p", { class: "tr-warning", hidden: true });
  const stale = h("p", { class: "tr-note", hidden: true });
  const source = h("ol", { class: "tr-chips", "aria-label": "Tokens of the sentence" });
  const target = h("ol", { class: "tr-chips", "aria-label": "Tokens of the translation" });
  const words = h("p", { class: "tr-words", lang: "en" });
  const result = h("div", {}, source, words, target);
  element.append(
    h("label", { for: "tr-field" }, "A German sentence"), field,
    h("div", { class: "tr-row" }, button, examples), status,
    h("p", { class: "tr-note" },
      "The model has read photo captions and nothing else. It translates sentences " +
      "like those; give it news or poems, and it makes up words. Its data, Multi30k, is " +
      "for research and education; the captions and photos come from Flickr30k."),
    warning, stale, result);

  // Pieces of one word stand close together
  const chip = (label, id, kind, note) => h("li", {
    class: `tr-chip ${kind}${/^[▁<]/.test(label) ? "" : " joined"}` },
  h("span", {}, shown(label)), h("small", {}, note || String(id)));

  function mark_stale() { // pieces of one sentence under another
    stale.hidden = field.value.trim() === app.view.source || button.disabled;
    stale.textContent = app.engine ? "The previous sentence is still shown below."
      : "The stored sentence is still shown below. Yours appears once the model is loaded.";
    result.classList.toggle("tr-stale", !stale.hidden);
  }

  function warn(text, pieces, sure = 1) {
    const why = ENGLISH.test(text)
      ? "This looks like English. The model reads German; it mistakes English words for " +
        "German ones that it hardly knows."
      : pieces > MANY
        ? `This sentence splits into ${pieces.toFixed(1)} pieces per word. The model has ` +
          "hardly ever seen words like these: don’t trust what it writes."
        : /[.!?]\s+\S/.test(text)
          ? "There are several sentences here. The model has learned from single captions and " +
            "may leave some of your sentences out."
          : sure < SURE
            ? "The model is unsure: on average, it gave a token that it wrote a probability " +
              `of ${percent(sure)}.` +
              (/.\p{Lu}/u.test(text) ? "" : " German nouns begin with a capital letter, and " +
                "it has learned them like that.") : "";
    warning.hidden = !why;
    warning.textContent = why;
  }

  let reading = { pieces: 0 };
  app.on("writing", ({ read, text, token, label, log_prob }) => {
    if (read !== reading) target.replaceChildren(); // the first token of a translation
    reading = read;
    target.append(chip(label, token, "target", percent(Math.exp(log_prob))));
    source.replaceChildren(...read.src.map((id, i) => chip(read.src_labels[i], id, "source")));
    words.textContent = text;
    warn(app.state.text, read.pieces);
  });
  // With which probability a token was written; tokens that were given have the other
  function written_with(i) {
    const { written: { log_probs = [] } = {}, log_probs: read, tgt } = app.view;
    const given = tgt.length - log_probs.length;
    return i < given ? read[i] : log_probs[i - given];
  }

  app.on("view", () => {
    mark_stale();
    const { src, tgt, src_labels, tgt_labels, text, log_probs } = app.view;
    if (!src) return;
    words.textContent = text;
    source.replaceChildren(...src.map((id, i) => chip(src_labels[i], id, "source")));
    target.replaceChildren(...tgt.map((id, i) => chip(
      tgt_labels[i], id, "target", log_probs && percent(Math.exp(written_with(i))))));
    if (!log_probs || !tgt.length) return;
    const total = tgt.reduce((sum, _, i) => sum + written_with(i), 0);
    warn(app.view.source, reading.pieces, Math.exp(total / tgt.length));
  });
});
