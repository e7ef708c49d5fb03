"use strict";
// A sentence to type, its tokens, and the translation as it is written.

translator_part("type", (element, app) => {
  const { h, shown, percent } = translator_kit;
  const MANY = 2.2; // pieces a word: far more than in a caption
  const EXAMPLES = [
    "Ein Hund spielt im Schnee.",
    "Im Wasser schwimmt ein brauner Hund.",
    "Zwei Kinder spielen am Strand Fußball.",
    "Eine Frau mit einem roten Hut liest in der Sonne ein Buch.",
    "Drei Männer mit Helmen stehen vor einem Gebäude.",
  ];
  const field = h("textarea", { rows: 2, maxlength: 600, lang: "de", spellcheck: "false",
    id: "tr-field", value: app.state.text });
  field.value = app.state.text;
  const go = () => {
    if (!field.value.trim()) return app.status("Type a German sentence first.");
    const done = app.set({ text: field.value });
    return app.engine ? done : app.load();
  };
  field.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      go();
    }
  });
  const button = h("button", { type: "button", class: "tr-go",
    onclick: go });
  const status = h("p", { class: "tr-status" });
  const warning = h("p", { class: "tr-warning", hidden: true });
  const source = h("ol", { class: "tr-chips", "aria-label": "Tokens of the sentence" });
  const target = h("ol", { class: "tr-chips", "aria-label": "Tokens of the translation" });
  const words = h("p", { class: "tr-words", lang: "en" });
  element.append(
    h("label", { for: "tr-field" }, "A German sentence"), field,
    h("div", { class: "tr-row" }, button,
      h("select", { "aria-label": "Example sentences", onchange: (event) => {
        if (!event.target.value) return;
        field.value = event.target.value;
        event.target.value = "";
        if (app.engine) go();
      } }, h("option", { value: "" }, "or choose an example"),
      EXAMPLES.map((text) => h("option", { value: text }, text)))),
    status,
    h("p", { class: "tr-note" },
      "The model has read photo captions and nothing else. It translates sentences " +
      "like those; give it news or poems, and it makes up words. Its data, Multi30k, is " +
      "for research and education; the captions and photos come from Flickr30k."),
    warning, source, words, target);

  const chip = (label, id, kind, note) => h("li", { class: `tr-chip ${kind}` },
    h("span", {}, shown(label)), h("small", {}, note || String(id)));

  function name_button() {
    button.textContent = app.engine ? "Translate" : `Load the model (${app.size}) and translate`;
  }

  app.on("status", (text) => {
    status.textContent = app.engine ? "" : text;
    if (app.engine && !/loaded/.test(text)) status.textContent = text;
    name_button();
  });
  app.on("state", () => {
    if (document.activeElement !== field) field.value = app.state.text;
  });
  let reading = null;
  app.on("writing", ({ read, text, token, label, log_prob }) => {
    if (read !== reading) target.replaceChildren(); // the first token of a translation
    reading = read;
    target.append(chip(label, token, "target", percent(Math.exp(log_prob))));
    source.replaceChildren(...read.src.map((id, i) => chip(read.src_labels[i], id, "source")));
    words.textContent = text;
    warning.hidden = read.pieces <= MANY;
    warning.textContent = `This sentence splits into ${read.pieces.toFixed(1)} pieces per ` +
      "word. The model has hardly ever seen words like these: don't trust what it writes.";
  });
  app.on("view", () => {
    name_button();
    const { src, tgt, src_labels, tgt_labels, text, log_probs } = app.view;
    if (!src) return;
    words.textContent = text;
    source.replaceChildren(...src.map((id, i) => chip(src_labels[i], id, "source")));
    target.replaceChildren(...tgt.map((id, i) => chip(
      tgt_labels[i], id, "target", log_probs && percent(Math.exp(log_probs[i])))));
  });
});
