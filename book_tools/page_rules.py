"""Rules for one open page of the built book; each returns its complaints.

A rule takes a page in the browser and answers with a list of sentences, empty if all is
well. `tests/test_site.py` applies them to every page, and breaks pages to see each of
them complain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page

Rule = Callable[[Page], list[str]]

# Formulas and code consist of thousands of parts; `mathematics` and `code_colors` look
# at them, in a tenth of the time.
AXE_CONTEXT = {"exclude": [["mjx-container"], ["pre"]]}
AXE_OPTIONS = {"resultTypes": ["violations"], "preload": False}
GRAVE = ("serious", "critical")


def mathematics(page: Page) -> list[str]:
    """Every formula is typeset, without an error, and none is left as source."""
    return page.evaluate(
        r"""() => {
          const wrong = [];
          for (const formula of document.querySelectorAll(".math")) {
            const set = formula.querySelector("mjx-container");
            const error = formula.querySelector("mjx-merror, [data-mjx-error]");
            const source = formula.textContent.slice(0, 60);
            if (!set || !set.getBoundingClientRect().width)
              if (formula.checkVisibility()) wrong.push(`not typeset: ${source}`);
            if (error) wrong.push(`error in a formula: ${error.textContent}`);
          }
          const text = document.querySelector("article")?.innerText ?? "";
          const code = [...document.querySelectorAll("article :is(pre, code)")]
            .map((part) => part.innerText).join("\n");
          for (const sign of ["\\(", "\\[", "$$"])
            if (text.split(sign).length > code.split(sign).length)
              wrong.push(`${sign} left in the text`);
          return wrong;
        }"""
    )


def charts(page: Page) -> list[str]:
    """Every interactive chart is drawn, and changes when its inputs are used."""
    return page.evaluate(
        """async () => {
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
        }"""
    )


def pictures(page: Page) -> list[str]:
    """Every picture has loaded and says in words what it shows."""
    return page.evaluate(
        """() => [...document.querySelectorAll("img")].flatMap((img) => {
          const name = img.src.slice(-60);
          const wrong = [];
          if (!img.alt.trim() || img.alt.endsWith(".png"))
            wrong.push(`picture without words: ${name}`);
          if (img.checkVisibility() && img.complete && !img.naturalWidth)
            wrong.push(`picture not loaded: ${name}`);
          return wrong;
        })"""
    )


def width(page: Page) -> list[str]:
    """The page itself never scrolls sideways."""
    return page.evaluate(
        """() => {
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
        }"""
    )


def structure(page: Page) -> list[str]:
    """One title, no skipped level of headings, a language, a title for the tab."""
    return page.evaluate(
        """() => {
          const wrong = [];
          const levels = [...document.querySelectorAll("main :is(h1,h2,h3,h4,h5,h6)")]
            .filter((heading) => heading.checkVisibility())
            .map((heading) => Number(heading.tagName[1]));
          const titles = levels.filter((level) => level === 1).length;
          if (titles !== 1) wrong.push(`${titles} headings of level 1`);
          levels.forEach((level, i) => {
            if (i && level > levels[i - 1] + 1)
              wrong.push(`heading ${i + 1} skips from ${levels[i - 1]} to ${level}`);
          });
          if (document.documentElement.lang !== "en") wrong.push("no language");
          if (!document.title.trim()) wrong.push("no title");
          return wrong;
        }"""
    )


def hidden_cells(page: Page) -> list[str]:
    """Hidden parts open and close with the keyboard, and are named in words.

    Every hidden cell is tried, and the last of each other kind.
    """
    wrong = []
    summaries = page.query_selector_all("article details.hide > summary")
    for kind in ("vega-data", "source-section"):
        summaries += page.query_selector_all(f"article details.{kind} > summary")[-1:]
    summaries += page.query_selector_all("article details:not([class]) > summary")
    for index, summary in enumerate(summaries):
        opened = "(summary) => summary.parentElement.open"
        before = summary.evaluate(opened)
        summary.focus()
        page.keyboard.press("Enter")
        if summary.evaluate(opened) == before:
            wrong.append(f"hidden part {index + 1} does not open with Enter")
        page.keyboard.press("Space")
        if summary.evaluate(opened) != before:
            wrong.append(f"hidden part {index + 1} does not close with Space")
        if not summary.inner_text().strip() or summary.get_attribute("aria-label"):
            wrong.append(f"hidden part {index + 1} is not named by its own words")
    return wrong


def scrolling_parts(page: Page) -> list[str]:
    """What scrolls sideways can be scrolled with the keyboard."""
    return page.evaluate(
        """() => [...document.querySelectorAll("article *")]
          .filter((part) => part.scrollWidth > part.clientWidth + 1)
          .filter((part) =>
            ["auto", "scroll"].includes(getComputedStyle(part).overflowX))
          .filter((part) => part.checkVisibility() && part.clientWidth > 0)
          .filter((part) => part.tabIndex < 0 && !part.querySelector(
            "a[href], button, input, select, [tabindex='0']"))
          .map((part) => `no key scrolls ${part.tagName} ${part.className}: ` +
            part.textContent.trim().slice(0, 40))"""
    )


def code_colors(page: Page) -> list[str]:
    """Every color of code and outputs stands out 4.5 : 1 from what is behind it."""
    return page.evaluate(
        r"""() => {
          const numbers = (color) => color.match(/[\d.]+/g).map(Number);
          const light = (color) => {
            const [r, g, b] = numbers(color).map((part) => part / 255)
              .map((x) => (x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4));
            return 0.2126 * r + 0.7152 * g + 0.0722 * b;
          };
          const behind = (part) => {
            const color = part && getComputedStyle(part).backgroundColor;
            if (!part) return "rgb(255, 255, 255)";
            return numbers(color)[3] === 0 ? behind(part.parentElement) : color;
          };
          const seen = new Map();
          for (const part of document.querySelectorAll("article pre, article pre *")) {
            const own = [...part.childNodes].find(
              (node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
            if (!own) continue;
            const pair = [getComputedStyle(part).color, behind(part)];
            seen.set(pair.join(" on "), [pair, own.data.trim().slice(0, 30)]);
          }
          return [...seen].flatMap(([name, [pair, text]]) => {
            const [dark, bright] = pair.map(light).sort((a, b) => a - b);
            const ratio = (bright + 0.05) / (dark + 0.05);
            return ratio < 4.5 ? [`${ratio.toFixed(2)} : 1, ${name}: ${text}`] : [];
          });
        }"""
    )


def accessibility(page: Page) -> list[str]:
    """axe-core finds nothing serious."""
    page.evaluate(AXE_SCRIPT)
    run = "([context, options]) => axe.run(context, options)"
    found = page.evaluate(run, [AXE_CONTEXT, AXE_OPTIONS])["violations"]
    return [
        f"{kind['id']} ({kind['impact']}), {len(kind['nodes'])} times, first: "
        f"{kind['nodes'][0]['html'][:150]} {kind['nodes'][0]['failureSummary'][:200]}"
        for kind in found
        if kind["impact"] in GRAVE
    ]


RULES: dict[str, Rule] = {
    rule.__name__: rule
    for rule in (
        mathematics,
        charts,
        pictures,
        width,
        structure,
        hidden_cells,
        scrolling_parts,
        code_colors,
        accessibility,
    )
}


def complaints(page: Page, rules: Sequence[str] = tuple(RULES)) -> list[str]:
    """Apply rules to an open page; each complaint starts with the rule's name."""
    return [f"{name}: {text}" for name in rules for text in RULES[name](page)]
