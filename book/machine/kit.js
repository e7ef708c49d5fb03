// @ts-check
// What several views need: one tab stop for many, and regions that scroll.

import { h } from "./draw.js";

// One tab stop for many: arrow keys go on inside. A grid gives the width of a row.
export function roving(container, selector, { width = () => 1 } = {}) {
  const all = () => [...container.querySelectorAll(selector)];
  const mark = (chosen) => {
    for (const each of all()) each.tabIndex = each === chosen ? 0 : -1;
  };
  if (all().length) mark(all()[0]);
  container.addEventListener("keydown", (event) => {
    const items = all(), at = items.indexOf(event.target.closest(selector));
    const grid = width() > 1;
    const step = {
      ArrowRight: 1, ArrowLeft: -1, ArrowDown: width(), ArrowUp: -width(),
    }[event.key];
    let next = at + step;
    if (event.key === "Home") next = grid ? at - (at % width()) : 0;
    else if (event.key === "End") {
      next = grid ? at - (at % width()) + width() - 1 : items.length - 1;
    }
    if (at < 0 || !(next >= 0 && next < items.length)) return;
    event.preventDefault();
    mark(items[next]);
    items[next].focus();
  });
  container.addEventListener("focusin", (event) => {
    const item = event.target.closest(selector);
    if (item) mark(item);
  });
}

// A region that may be too small for what is in it: it fades out where there is more,
// and is a tab stop only then, unless something in it is one already.
const watched = new ResizeObserver((entries) => entries.forEach(({ target }) =>
  show_edges(target.closest(".machine-scroll"))));

function show_edges(region) {
  if (!region) return;
  const { scrollLeft: left, scrollTop: top } = region;
  const right = region.scrollWidth - region.clientWidth - left;
  const below = region.scrollHeight - region.clientHeight - top;
  const edges = { left, right, top, below };
  region.dataset.more = Object.keys(edges).filter((name) => edges[name] > 1).join(" ");
  const stops = region.querySelector("[tabindex='0'], button, input");
  if (region.dataset.more && !stops) region.tabIndex = 0;
  else if (document.activeElement !== region) region.removeAttribute("tabindex");
}

export function scroller(attributes, ...inside) { // the first thing inside stays
  const { class: more = "", ...others } = attributes;
  const region = h("div", { class: `machine-scroll ${more}`, ...others,
    onscroll: () => show_edges(region) }, ...inside);
  watched.observe(region);
  for (const each of region.children) watched.observe(each);
  return region;
}
