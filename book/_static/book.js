/* What the pages of the book do. */

/* Light or dark, as the reader chose or the system is: before anything is painted. */
const dark = matchMedia("(prefers-color-scheme: dark)");
const showTheme = () => {
  const chosen = localStorage.getItem("theme");
  document.documentElement.dataset.theme = chosen ?? (dark.matches ? "dark" : "light");
};
showTheme();
dark.addEventListener("change", showTheme);

/* Where a link means a state of the machine, the stored one is not shown meanwhile. */
if (location.hash.startsWith("#machine")) {
  document.documentElement.classList.add("machine-linked");
}

document.addEventListener("DOMContentLoaded", () => {
  const button = document.querySelector(".theme-switch");
  const themes = [null, ...(dark.matches ? ["light", "dark"] : ["dark", "light"])];
  const names = { null: "as the system", light: "light", dark: "dark" };
  const name = () => {
    button.ariaLabel = `Colors: ${names[localStorage.getItem("theme")]}`;
  };
  button.addEventListener("click", () => {
    const next = themes[(themes.indexOf(localStorage.getItem("theme")) + 1) % 3];
    if (next) localStorage.setItem("theme", next);
    else localStorage.removeItem("theme");
    showTheme();
    name();
  });
  name();
  button.hidden = false;
});

/* The contents in the margin scroll away; those of the book then name the sections. */
document.addEventListener("DOMContentLoaded", () => {
  const sections = document.querySelector(".sections");
  if (!sections) return;
  const page = document.documentElement;
  new IntersectionObserver(([{ isIntersecting, boundingClientRect }]) =>
    page.toggleAttribute("data-below-sections", !isIntersecting && boundingClientRect.top < 0)
  ).observe(sections);
  const links = new Map(
    [...document.querySelectorAll("#contents ul ul a")].map((link) => [
      document.getElementById(decodeURIComponent(link.hash.slice(1))), link])
  );
  const read = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries)
      if (isIntersecting) links.get(target).setAttribute("aria-current", "true");
      else links.get(target).removeAttribute("aria-current");
  }, { rootMargin: "-20% 0px -79%" });
  for (const section of links.keys()) if (section) read.observe(section);
});

/* The contents, where they are opened, take the focus, and close where it goes elsewhere:
   they would cover it. */
document.addEventListener("DOMContentLoaded", () => {
  const contents = document.getElementById("contents");
  contents?.addEventListener("toggle", ({ newState }) => {
    if (newState !== "open") return;
    contents.scrollTop = 0; // to what takes it
    contents.querySelector("summary, a").focus({ preventScroll: true });
  });
  contents?.addEventListener("focusout", ({ relatedTarget: to }) => {
    if (to && !contents.contains(to) && contents.matches(":popover-open")) contents.hidePopover();
  });
});

/* What the search needs is loaded when somebody is about to search. */
document.addEventListener("DOMContentLoaded", () => {
  let loaded = false;
  const load = () => {
    if (loaded) return;
    loaded = true;
    for (const name of ["minisearch", "entries", "search"]) {
      const script = document.createElement("script");
      script.async = false; // in this order
      script.src = `${document.documentElement.dataset.content_root}_static/search/${name}.js`;
      document.head.append(script);
    }
  };
  for (const field of document.querySelectorAll("[role=search] input")) {
    field.addEventListener("focus", load);
    if (field === document.activeElement) load();
  }
  if (document.querySelector(".all-found") && location.search) load();
});

/* The slash leads to the search, from everywhere but a place to type in. */
document.addEventListener("keydown", (event) => {
  const types = event.target.closest?.("input, textarea, select, [contenteditable]");
  if (event.key !== "/" || types || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  document.querySelector(".search input").focus();
});

/* Code can be copied, once the page has been drawn. */
document.addEventListener("DOMContentLoaded", () => setTimeout(() => {
  for (const code of document.querySelectorAll("article [class*=highlight-]:not(.output)")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(code.querySelector("pre").innerText);
      button.textContent = "Copied";
      setTimeout(() => (button.textContent = "Copy"), 2000);
    });
    code.append(button);
  }
}));

document.addEventListener("DOMContentLoaded", () => {
  /* What is wider than its place scrolls sideways, with the keyboard too. */
  const parts = [...document.querySelectorAll(
    "article pre, article .katex-display, article span.math, article .table-box, " +
      "article .output.text_html, article .vega-view"
  )];
  const name = (part) =>
    part.matches("pre") ? "Code" : part.closest(".math") ? "Equation" : "Table";
  const isWide = (part) => {
    if (!part.matches("span.math")) return part.scrollWidth > part.clientWidth;
    /* A formula in a line breaks between its parts: it gets a box where one is wider. */
    const line = part.closest("p, li, td, th, dd, dt, h1, h2, h3, figcaption, summary");
    const parts = [...part.querySelectorAll(".base")];
    return line !== null && parts.some((each) => each.offsetWidth > line.clientWidth);
  };
  const measure = (part) => {
    const scrolls = isWide(part);
    const hidden = part.scrollWidth - part.clientWidth - part.scrollLeft;
    return [part, scrolls, scrolls && hidden > 2];
  };
  const show = ([part, scrolls, hasMore]) => {
    part.toggleAttribute("data-more", hasMore);
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
  /* All are measured before any is changed: the page is laid out once, not once for each.
     What is folded away is measured when it is opened. And what else waits has its turn
     between a hundred and the next. */
  const later = window.requestIdleCallback ?? setTimeout;
  const update = (some) => {
    some.slice(0, 100).filter((part) => part.checkVisibility()).map(measure).forEach(show);
    if (some.length > 100) later(() => update(some.slice(100)));
  };
  const sizes = new ResizeObserver((entries) => {
    const found = new Set(entries.map(({ target }) => target.closest("[data-watched]")));
    found.delete(null); // a chart that is drawn anew leaves its parts behind
    update([...found]);
  });
  const watch = (part) => { // an element is measured, too, as soon as it is watched
    for (const child of part.children) sizes.observe(child);
  };
  /* Vega fills a part later than it is found. */
  const contents = new MutationObserver((changes) => {
    for (const { target } of changes) watch(target);
  });
  for (const part of parts) {
    part.dataset.watched = "";
    if (!part.matches("span.math")) sizes.observe(part);
    contents.observe(part, { childList: true });
    part.addEventListener("scroll", () => update([part]), { passive: true });
    watch(part);
  }
  window.addEventListener("resize", () => update(parts));
  document.addEventListener("toggle", ({ target }) =>
    update(parts.filter((part) => target.contains(part))), true);
  setTimeout(() => document.fonts.ready.then(() => update(parts))); // asking lays out the page
});

/* The part of the address that names a place; "%" alone is no escape, but a name too. */
const fragment = () => {
  const text = location.hash.slice(1);
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
};

/* A link opens what folds away the place it leads to: a cell, a text or a section. */
const followHash = () => {
  const target = document.getElementById(fragment());
  let part =
    target?.querySelector(":scope > details:is(.hide, .optional)") ??
    target?.closest("details") ??
    target?.closest("section")?.querySelector(":scope > details.from-the-sources");
  if (!part) return;
  for (; part; part = part.parentElement.closest("details")) part.open = true;
  target.scrollIntoView();
};
document.addEventListener("DOMContentLoaded", followHash);
window.addEventListener("hashchange", followHash);

/* Paper is white and cannot be opened: print in light colors what is hidden too. */
let restore = () => {};
window.addEventListener("beforeprint", () => {
  const page = document.documentElement;
  const theme = page.dataset.theme;
  const closed = [...document.querySelectorAll("details:not([open])")];
  page.dataset.theme = "light";
  for (const part of closed) part.open = true;
  for (const picture of document.images) picture.loading = "eager";
  restore = () => {
    page.dataset.theme = theme;
    for (const part of closed) part.open = false;
  };
});
window.addEventListener("afterprint", () => restore());
