// The pages made of the source documents: open or close all sections, and show some
// verdicts only.
(() => {
  const sections = [...document.querySelectorAll("details.source-section")];

  const setOpen = (open) => sections.forEach((section) => (section.open = open));

  const shows = {
    "All items": () => true,
    "Mistakes only": (card) => card.matches(".verdict-wrong, .verdict-ambiguous"),
  };

  const show = (name) => {
    for (const section of sections) {
      const cards = [...section.querySelectorAll(".source-item")];
      for (const card of cards) card.hidden = !shows[name](card);
      section.hidden = cards.every((card) => card.hidden);
    }
  };

  const button = (text, onClick) => {
    const element = document.createElement("button");
    element.type = "button";
    element.textContent = text;
    element.addEventListener("click", () => onClick(element));
    return element;
  };

  const addControls = () => {
    const bar = document.createElement("div");
    bar.className = "source-controls";
    bar.setAttribute("role", "group");
    bar.setAttribute("aria-label", "What to show");
    const filters = Object.keys(shows).map((name) =>
      button(name, (pressed) => {
        show(name);
        if (name !== "All items") setOpen(true);
        for (const other of filters) other.ariaPressed = String(other === pressed);
      }),
    );
    filters.forEach((filter, index) => (filter.ariaPressed = String(index === 0)));
    bar.append(
      ...filters,
      button("Open all sections", () => setOpen(true)),
      button("Close all sections", () => setOpen(false)),
    );
    sections[0]?.closest("section").before(bar);
  };

  if (document.querySelector(".verdict-correct")) addControls(); // not on the errata
})();
