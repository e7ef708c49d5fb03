/* Draws the charts of a page with the copy of Vega that comes with the book, in the
   page's colors and for its width, and again when the reader changes one of them. Where
   this script does not run, the page shows the chart's picture. */

(() => {
  const themes = BOOK_THEMES;
  const page = document.documentElement;
  const address = document.currentScript.src;

  function themed(spec) {
    const dark = page.dataset.theme === "dark";
    const config = { ...themes[dark ? "dark" : "light"], aria: false };
    return { ...spec, background: "transparent", config };
  }

  /* What the reader has chosen: parameters, and the stores of selections. */
  function choices(view, spec) {
    const names = new Set((spec.params || []).map((param) => param.name));
    return view.getState({
      data: (name) => name.endsWith("_store"),
      signals: (name) => names.has(name.replace(/_(tuple|q)$/, "")),
    });
  }

  /* Vega puts the inputs of selections first; the specification's order is better. */
  function sortInputs(inputs, spec) {
    const names = (spec.params || []).map((param) => param.bind?.name);
    const name = (input) => input.querySelector(".vega-bind-name").textContent;
    const order = (a, b) => names.indexOf(name(a)) - names.indexOf(name(b));
    inputs.append(...[...inputs.querySelectorAll(".vega-bind")].sort(order));
  }

  /* Charts are laid out for a phone. Elsewhere their cells or panels take the room that
     there is: cells up to a size, and panels grow less in height than in width. */
  const CELL = 46;
  const HIGHER = 1.8;
  const isStep = (name) => name.endsWith("step");

  function fill(view, place) {
    const isSize = (name) => isStep(name) || /(width|height)$/i.test(name);
    const { signals } = view.getState({ data: () => false, signals: isSize });
    const beside = place.querySelector("svg").getBoundingClientRect().width - signals.width;
    const growth = (place.clientWidth - beside) / signals.width;
    const hasCells = Object.keys(signals).some(isStep);
    for (const [name, size] of Object.entries(signals)) {
      if (hasCells !== isStep(name) || !size) continue;
      const most = hasCells ? CELL / size : /height$/i.test(name) ? HIGHER : growth;
      view.signal(name, size * Math.min(growth, most));
    }
    return view.runAsync();
  }

  async function draw(chart) {
    const spec = JSON.parse(chart.querySelector("script").textContent);
    delete spec.$schema; // the versions are matched where the book is built
    const inputs = chart.querySelector(".vega-inputs");
    const place = chart.querySelector(".vega-view");
    const state = chart.drawn && choices(chart.drawn.view, spec);
    if (chart.drawn) chart.drawn.finalize();
    inputs.replaceChildren();
    chart.drawn = await vegaEmbed(place, themed(spec), {
      mode: "vega-lite",
      renderer: "svg",
      actions: false,
      ast: true, // expressions are interpreted, since pages let no text become code
      bind: inputs,
      tooltip: { theme: page.dataset.theme === "dark" ? "dark" : "light" },
    });
    sortInputs(inputs, spec);
    if (state) await chart.drawn.view.setState(state).runAsync();
    place.querySelector("svg").setAttribute("aria-hidden", "true"); // its box has a label
    chart.classList.add("vega-drawn"); // the inputs take their place ...
    await fill(chart.drawn.view, place); // ... and the drawing the rest
  }

  async function drawAll() {
    for (const chart of document.querySelectorAll(".vega-chart"))
      if (chart.checkVisibility()) await draw(chart);
  }

  let drawing = Promise.resolve();
  const redraw = () => {
    drawing = drawing.then(drawAll);
  };

  /* Vega is large: it comes when the reader is two screens away from a chart. */
  const near = new IntersectionObserver(
    (entries) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      near.disconnect();
      const vega = document.createElement("script");
      vega.src = new URL(BOOK_VEGA, address);
      vega.onload = async () => {
        await document.fonts.load('12px "Book Sans"'); // Vega measures its words
        redraw();
        const looks = new MutationObserver(redraw);
        looks.observe(page, { attributeFilter: ["data-theme"] });
        document.addEventListener("toggle", ({ target }) => { // what was folded away
          if (target.querySelector?.(".vega-chart:not(.vega-drawn)")) redraw();
        }, true);
        let width = window.innerWidth; // on a phone, the height changes on every scroll
        window.addEventListener("resize", () => {
          if (width !== window.innerWidth) redraw();
          width = window.innerWidth;
        });
      };
      document.head.append(vega);
    },
    { rootMargin: "200% 0px" }
  );
  for (const chart of document.querySelectorAll(".vega-chart")) near.observe(chart);
})();
