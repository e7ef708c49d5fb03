/* Arrow keys, space and page keys lead from slide to slide; scrolling works without. */

const STEPS = {
  ArrowRight: 1, ArrowDown: 1, PageDown: 1, " ": 1,
  ArrowLeft: -1, ArrowUp: -1, PageUp: -1,
  Home: -Infinity, End: Infinity,
};

document.addEventListener("keydown", (event) => {
  const step = STEPS[event.key];
  if (!step || event.altKey || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  const slides = [...document.querySelectorAll("main > section")];
  const here = slides.findLastIndex((slide) => slide.offsetTop <= window.scrollY + 2);
  const next = Math.min(Math.max(here + step, 0), slides.length - 1);
  slides[next].scrollIntoView();
});
