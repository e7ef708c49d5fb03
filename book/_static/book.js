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
    } else {
      part.removeAttribute("role");
      part.removeAttribute("aria-label");
    }
  };
  const observer = new ResizeObserver((entries) => {
    for (const entry of entries) {
      const part = entry.target.closest("[data-watched]");
      if (part) update(part); // a chart that is drawn anew leaves its parts behind
    }
  });
  for (const part of parts) {
    part.dataset.watched = "";
    observer.observe(part);
    if (part.firstElementChild) observer.observe(part.firstElementChild);
  }
});

/* A link opens what folds away the place it leads to: a cell, a text or a section. */
const followHash = () => {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  let part =
    target?.querySelector(":scope > details.hide") ??
    target?.closest("details") ??
    target?.closest("section")?.querySelector(":scope > details.from-the-sources");
  if (!part) return;
  for (; part; part = part.parentElement.closest("details")) part.open = true;
  target.scrollIntoView();
};
document.addEventListener("DOMContentLoaded", followHash);
window.addEventListener("hashchange", followHash);

/* The theme's buttons say what they do in words, which the pages' policy does not run. */
const actions = {
  "toggleFullScreen()": () => window.toggleFullScreen(),
  "window.print()": () => window.print(),
};
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-onclick]");
  if (button) actions[button.dataset.onclick]();
});

/* Paper is white and cannot be opened: print in light colors what is hidden too. */
let restore = () => {};
window.addEventListener("beforeprint", () => {
  const page = document.documentElement;
  const theme = page.dataset.theme;
  const closed = [...document.querySelectorAll("details:not([open])")];
  page.dataset.theme = "light";
  for (const part of closed) part.open = true;
  restore = () => {
    page.dataset.theme = theme;
    for (const part of closed) part.open = false;
  };
});
window.addEventListener("afterprint", () => restore());
