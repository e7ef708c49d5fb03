// The page of questions: a field that leaves only the questions with all words typed.
(() => {
  const cards = [...document.querySelectorAll(".question")];
  if (!cards.length) return;
  const topics = [...new Set(cards.map((card) => card.closest("section")))];
  const texts = new Map(cards.map((card) => [card, card.textContent.toLowerCase()]));

  const label = document.createElement("label");
  const field = document.createElement("input");
  const found = document.createElement("output");
  label.className = "question-search";
  label.textContent = "Search the questions";
  field.type = "search";
  field.placeholder = "such as: mask nan";
  found.setAttribute("aria-live", "polite");
  label.append(field, found);

  const show = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const card of cards)
      card.hidden = !words.every((word) => texts.get(card).includes(word));
    for (const topic of topics)
      topic.hidden = [...topic.querySelectorAll(".question")].every((c) => c.hidden);
    const left = cards.filter((card) => !card.hidden).length;
    found.textContent = words.length ? `${left} of ${cards.length}` : "";
  };

  field.addEventListener("input", show);
  topics[0].before(label);

  // A link to a question, or the search of the book, leads to a card that is shown.
  addEventListener("hashchange", () => {
    field.value = "";
    show();
    document.getElementById(location.hash.slice(1))?.scrollIntoView();
  });
})();
