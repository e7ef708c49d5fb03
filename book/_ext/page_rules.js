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

  /* A caption stands close under its picture, whatever the margin holds. */
  captions: () => [...document.querySelectorAll("figcaption")].flatMap((caption) => {
    const above = caption.previousElementSibling;
    if (!caption.checkVisibility() || !above) return [];
    const gap = caption.getBoundingClientRect().top - above.getBoundingClientRect().bottom;
    return gap > 40 ? [`${Math.round(gap)} pixels under the picture: ${caption.textContent}`] : [];
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

  /* The words of charts, plots and drawings stand out from what is behind them, which
     axe doesn't see, and on a phone none is smaller than 11 pixels. */
  labels: () => {
    const parse = (color) => {
      const [red, green, blue, alpha = 1] = color.match(/[\d.]+/g).map(Number);
      return { rgb: [red, green, blue], alpha };
    };
    const over = (top, alpha, below) =>
      below.map((value, i) => alpha * top[i] + (1 - alpha) * value);
    const light = (rgb) => rgb
      .map((value) => value / 255)
      .map((value) => value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4)
      .reduce((sum, value, i) => sum + [0.2126, 0.7152, 0.0722][i] * value, 0);
    const contrast = (one, other) => {
      const [more, less] = [light(one), light(other)].sort((a, b) => b - a);
      return (more + 0.05) / (less + 0.05);
    };
    const ink = (part) => {
      const { fill, fillOpacity } = getComputedStyle(part);
      if (!fill.startsWith("rgb")) return { rgb: [0, 0, 0], alpha: 0 };
      let { rgb, alpha } = parse(fill);
      for (let each = part; each.ownerSVGElement; each = each.parentElement)
        alpha *= getComputedStyle(each).opacity;
      return { rgb, alpha: alpha * fillOpacity };
    };
    const paper = parse(getComputedStyle(document.body).backgroundColor).rgb;
    const look = (svg) => {
      const wrong = new Set();
      const behind = []; // what has been drawn so far: its place and its color
      for (const part of svg.querySelectorAll("rect, circle, polygon, path, image, text")) {
        if (!part.checkVisibility()) continue;
        const place = part.getBoundingClientRect();
        if (!part.matches("text")) {
          behind.push([place, part.matches("image") ? null : ink(part)]);
          continue;
        }
        const words = part.textContent.trim();
        const { rgb, alpha } = ink(part);
        if (!words || !alpha) continue;
        const [x, y] = [place.x + place.width / 2, place.y + place.height / 2];
        const below = behind.filter(([box]) =>
          box.left < x && x < box.right && box.top < y && y < box.bottom);
        if (below.every(([, color]) => color)) { // cells are checked with the palette
          const back = below.reduce(
            (color, [, top]) => over(top.rgb, top.alpha, color), paper);
          const ratio = contrast(over(rgb, alpha, back), back);
          if (ratio < 4.5) wrong.add(`contrast ${ratio.toFixed(2)} of "${words}"`);
        }
        const { a, b, c, d } = part.getScreenCTM();
        const scale = Math.sqrt(Math.abs(a * d - b * c));
        for (const each of [part, ...part.querySelectorAll("tspan")]) {
          const size = parseFloat(getComputedStyle(each).fontSize) * scale;
          if (window.innerWidth <= 560 && size < 10.95)
            wrong.add(`${size.toFixed(1)} pixels for "${each.textContent.trim()}"`);
        }
      }
      const name = svg.ariaLabel ?? svg.closest("[aria-label]")?.ariaLabel ?? "";
      return [...wrong].map((text) => `${text}: ${name.slice(0, 60)}`);
    };
    return [...document.querySelectorAll("article svg:is(.diagram, .plot), .vega-view svg")]
      .filter((svg) => svg.checkVisibility()).flatMap(look);
  },

  /* Nothing is cut off at the right, to be scrolled, but columns of an output that say so.
     Tables may scroll where they don't become lists. */
  sideways: () =>
    [...document.querySelectorAll("article *:not(.machine *)")]
      .filter((part) => /auto|scroll/.test(getComputedStyle(part).overflowX))
      .filter((part) => part.checkVisibility() && part.scrollWidth > part.clientWidth + 1)
      .filter((part) => window.innerWidth <= 560 || !part.querySelector("table"))
      .filter((part) => {
        const columns = part.closest(".in-columns");
        return !columns || getComputedStyle(columns, "::before").content === "none";
      })
      .map((part) => `${part.tagName} ${part.className} scrolls: ${part.textContent.trim().slice(0, 50)}`),

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
