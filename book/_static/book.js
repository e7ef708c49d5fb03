/* What a page of the book does beyond the theme. */

document.addEventListener("DOMContentLoaded", () => {
  /* Opened from a folder, a page cannot read other pages: search without excerpts. */
  if (location.protocol === "file:")
    DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;

  /* What is wider than its place scrolls sideways, with the keyboard too. */
  const parts = document.querySelectorAll(
    "article pre, article div.math, article .pst-scrollable-table-container, " +
      "article .output.text_html, article .vega-view"
  );
  const name = (part) =>
    part.matches("pre") ? "Code" : part.matches("div.math") ? "Equation" : "Table";
  const update = (part) => {
    const scrolls = part.scrollWidth > part.clientWidth + 1;
    if (scrolls === part.hasAttribute("data-scrolls")) return;
    part.toggleAttribute("data-scrolls", scrolls);
    if (scrolls) part.tabIndex = 0;
    else part.removeAttribute("tabindex");
    if (part.matches(".vega-view")) return; // has a role and a label of its own
    if (scrolls) {
      part.setAttribute("role", "group");
      part.setAttribute("aria-label", `${name(part)}, scrolls sideways`);
    } else for (const attribute of ["role", "aria-label"]) part.removeAttribute(attribute);
  };
  const observer = new ResizeObserver((entries) =>
    entries.forEach((entry) => update(entry.target.closest("[data-watched]")))
  );
  for (const part of parts) {
    part.dataset.watched = "";
    observer.observe(part);
    if (part.firstElementChild) observer.observe(part.firstElementChild);
  }
});

/* Paper cannot be opened: print what is hidden, then hide it again. */
let opened = [];
window.addEventListener("beforeprint", () => {
  opened = [...document.querySelectorAll("details:not([open])")];
  for (const part of opened) part.open = true;
});
window.addEventListener("afterprint", () => {
  for (const part of opened) part.open = false;
});
