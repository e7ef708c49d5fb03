/* What page_rules.py asks of an open page: each function returns its complaints. */
({
  /* Every color of code and outputs stands out from what is behind it. */
  markLooks: () => {
    const behind = (part) => {
      for (let each = part; each; each = each.parentElement) {
        const color = getComputedStyle(each).backgroundColor;
        if (!/^rgba\(.* 0\)$|^transparent$/.test(color)) return color;
      }
    };
    const looks = new Set();
    for (const part of document.querySelectorAll("pre, pre *")) {
      const says = [...part.childNodes].some(
        (child) => child.nodeType === Node.TEXT_NODE && child.data.trim());
      if (!says || !part.checkVisibility()) continue;
      const { color, fontSize, fontWeight, opacity } = getComputedStyle(part);
      const look = [color, fontSize, fontWeight, opacity, behind(part)].join();
      if (!looks.has(look)) part.setAttribute("data-look", "");
      looks.add(look);
    }
  },

  /* Every formula is typeset, and none is left as source. */
  mathematics: () => {
    const wrong = [];
    for (const formula of document.querySelectorAll(".math")) {
      const set = formula.querySelector(".katex-html");
      const source = formula.textContent.slice(0, 60);
      if (!set || !set.getBoundingClientRect().width)
        if (formula.checkVisibility()) wrong.push(`not typeset: ${source}`);
    }
    const text = document.querySelector("article")?.innerText ?? "";
    const code = [...document.querySelectorAll("article :is(pre, code)")]
      .map((part) => part.innerText).join("\n");
    for (const sign of ["\\(", "\\[", "$$"])
      if (text.split(sign).length > code.split(sign).length)
        wrong.push(`${sign} left in the text`);
    return wrong;
  },

  /* Every interactive chart is drawn, and changes when its inputs are used. */
  charts: async () => {
    const wrong = [];
    for (const chart of document.querySelectorAll("div.vega-chart")) {
      const key = chart.getAttribute("aria-labelledby");
      const drawing = () => chart.querySelector("svg");
      const size = drawing()?.getBoundingClientRect();
      if (!size?.width || !size?.height) {
        wrong.push(`${key} is not drawn`);
        continue;
      }
      const use = async (input, value) => {
        if (input.type === "checkbox") input.checked = value;
        else input.value = value;
        for (const kind of ["input", "change"])
          input.dispatchEvent(new Event(kind, { bubbles: true }));
        await chart.drawn?.view.runAsync();
        return drawing().outerHTML;
      };
      const other = (input) =>
        input.type === "checkbox" ? !input.checked
        : input.matches("select")
          ? [...input.options].find((one) => !one.selected).value
        : input.value === input.max ? input.min : input.max;
      const answers = async (input) => {
        const before = drawing().outerHTML;
        const old = input.type === "checkbox" ? input.checked : input.value;
        const after = await use(input, other(input));
        await use(input, old);
        return before !== after;
      };
      const selects = [...chart.querySelectorAll("select")];
      for (const input of chart.querySelectorAll("select, input")) {
        if (!input.matches("select, [type=range], [type=checkbox]"))
          wrong.push(`${key} has an input that this rule cannot try`);
        let answered = await answers(input);
        // An input may matter for one choice only: try the others too.
        for (const select of selects.filter((one) => one !== input)) {
          const old = select.value;
          for (const option of select.options) {
            if (answered) break;
            await use(select, option.value);
            answered = await answers(input);
          }
          await use(select, old);
        }
        if (!answered)
          wrong.push(`${key} does not answer to its input ${input.name}`);
      }
    }
    return wrong;
  },

  /* Every picture has loaded and says in words what it shows. */
  pictures: () => [...document.querySelectorAll("img, svg.plot")].flatMap((img) => {
    const words = (img.alt ?? img.ariaLabel ?? "").trim();
    const name = (img.src ?? words).slice(-60);
    const wrong = [];
    if (!words || words.endsWith(".png"))
      wrong.push(`picture without words: ${name}`);
    if (img.checkVisibility() && img.complete && !img.naturalWidth)
      wrong.push(`picture not loaded: ${name}`);
    return wrong;
  }),

  /* Drawn diagrams lie on the page's own color, and fit into their place. */
  diagrams: () => [...document.querySelectorAll("svg.diagram")].flatMap((svg) => {
    if (!svg.checkVisibility()) return [];
    const paper = getComputedStyle(document.body).backgroundColor;
    const column = svg.closest(".drawing, article").getBoundingClientRect();
    const seen = new Set([getComputedStyle(svg.querySelector("rect")).fill]);
    for (let part = svg; !part.matches("article"); part = part.parentElement)
      seen.add(getComputedStyle(part).backgroundColor);
    seen.delete("rgba(0, 0, 0, 0)");
    seen.delete(paper);
    const wrong = [...seen].map((color) => `${color} behind, the page: ${paper}`);
    if (svg.getBoundingClientRect().right > column.right + 1)
      wrong.push("wider than its column");
    return wrong.map((text) => `${text}: ${svg.ariaLabel ?? ""}`);
  }),

  /* The page itself never scrolls sideways. */
  width: () => {
    const limit = document.documentElement.clientWidth;
    const wide = document.documentElement.scrollWidth;
    if (wide <= limit) return [];
    const scrolls = (part) => part && part !== document.body &&
      (getComputedStyle(part).overflowX !== "visible" ||
        scrolls(part.parentElement));
    const guilty = [...document.querySelectorAll("article *")]
      .filter((part) => part.getBoundingClientRect().right > limit + 1)
      .filter((part) => !scrolls(part))
      .map((part) => `${part.tagName} ${part.className}`).slice(0, 3);
    return [`${wide} pixels wide, the window has ${limit}: ${guilty.join("; ")}`];
  },

  /* On the way of a chapter, something is shown at least every five screens. */
  stretches: () => {
    const end = document.querySelector("#what-you-can-do-now");
    if (!end) return [];
    const shown = document.querySelectorAll(
      "article :is(svg, canvas, img, table, .cell_output)");
    const last = end.getBoundingClientRect().top;
    const places = [...shown]
      .filter((part) => part.checkVisibility() &&
        (!part.matches(".cell_output") || /\d/.test(part.textContent)))
      .map((part) => part.getBoundingClientRect())
      .filter(({ top, height }) => height > 24 && top < last)
      .sort((a, b) => a.top - b.top);
    const wrong = [];
    let from = document.querySelector("article").getBoundingClientRect().top;
    for (const { top, bottom } of [...places, { top: last, bottom: last }]) {
      if (top - from > 4500) {
        const below = [...document.querySelectorAll("article :is(h1, h2, h3)")]
          .filter((heading) => heading.getBoundingClientRect().top <= from).pop();
        wrong.push(`${Math.round(top - from)} pixels of text alone, ` +
          `below "${below?.textContent}"`);
      }
      from = Math.max(from, bottom);
    }
    return wrong;
  },
})
