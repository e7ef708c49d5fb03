/* Arrow keys, space and page keys lead from slide to slide; scrolling works without.
   Text that doesn't fit its slide becomes smaller until it does. */

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

function fit() {
  for (const body of document.querySelectorAll(".body")) {
    let percent = 100;
    body.style.fontSize = "";
    while (body.scrollHeight > body.clientHeight + 1 && percent > 40) {
      percent -= 4;
      body.style.fontSize = `${percent}%`;
    }
  }
}

document.fonts.ready.then(fit);
window.addEventListener("resize", fit);
