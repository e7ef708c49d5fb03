"""Rules for one open page of the built book; each returns its complaints.

A rule takes a page in the browser and answers with a list of sentences, empty if all is
well. axe knows what makes a page accessible; the rules besides are the book's own.
`tests/test_site.py` applies them to every page, and breaks pages to see each complain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page
from playwright.sync_api import TimeoutError as TookTooLong

Rule = Callable[[Page], list[str]]


def axe(page: Page, context: dict[str, Any], **options: Any) -> list[str]:
    """What axe-core finds wrong with a part of a page."""
    if not page.locator(context["include"]).count():
        return []  # axe refuses to look at nothing
    options = {"resultTypes": ["violations"], "preload": False, **options}
    found = Axe().run(page, context, options).response["violations"]
    return [
        f"{kind['id']}, {len(kind['nodes'])} times, first: "
        f"{kind['nodes'][0]['html']:.150} {kind['nodes'][0]['failureSummary']:.200}"
        for kind in found
    ]


def accessibility(page: Page) -> list[str]:
    """Headings, names, contrast and the keyboard are as axe wants them.

    Code and formulas consist of thousands of parts: `code` and `mathematics` look at
    these, in a tenth of the time.
    """
    parts = {"include": "html", "exclude": ["mjx-container", "pre"]}
    # The theme's box around the logo; the corner of a table with names on two sides.
    left_out = {name: {"enabled": False} for name in ("region", "empty-table-header")}
    return axe(page, parts, rules=left_out)


def code(page: Page) -> list[str]:
    """Code that scrolls can be scrolled with the keyboard."""
    return axe(page, {"include": "pre"}, runOnly=["scrollable-region-focusable"])


def code_colors(page: Page) -> list[str]:
    """Every color of code and outputs stands out from what is behind it.

    axe looks at one part of each look: thousands of others are like it.
    """
    page.evaluate(
        """() => {
          const behind = (part) => {
            for (let each = part; each; each = each.parentElement) {
              const color = getComputedStyle(each).backgroundColor;
              if (!/^rgba\\(.* 0\\)$|^transparent$/.test(color)) return color;
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
        }"""
    )
    return axe(page, {"include": "[data-look]"}, runOnly=["color-contrast"])


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


def diagrams(page: Page) -> list[str]:
    """Drawn diagrams lie on the page's own color, and fit into their column."""
    return page.evaluate(
        """() => [...document.querySelectorAll("svg.diagram")].flatMap((svg) => {
          if (!svg.checkVisibility()) return [];
          const paper = getComputedStyle(document.body).backgroundColor;
          const column = svg.closest("article").getBoundingClientRect();
          const seen = new Set([getComputedStyle(svg.querySelector("rect")).fill]);
          for (let part = svg; !part.matches("article"); part = part.parentElement)
            seen.add(getComputedStyle(part).backgroundColor);
          seen.delete("rgba(0, 0, 0, 0)");
          seen.delete(paper);
          const wrong = [...seen].map((color) => `${color} behind, the page: ${paper}`);
          if (svg.getBoundingClientRect().right > column.right + 1)
            wrong.push("wider than its column");
          return wrong.map((text) => `${text}: ${svg.ariaLabel ?? ""}`);
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


RULES: list[Rule] = [
    accessibility,
    code,
    mathematics,
    charts,
    pictures,
    diagrams,
    width,
]


def complaints(page: Page, rules: Sequence[Rule] = RULES) -> list[str]:
    """Apply rules to an open page; each complaint starts with the rule's name."""
    return [f"{rule.__name__}: {text}" for rule in rules for text in rule(page)]


def visit(page: Page, address: str) -> None:
    """Go to a page and wait until its mathematics and charts are drawn."""
    page.goto(address)
    page.evaluate(
        """async () => {
          await document.fonts.ready;
          if (document.querySelector(".math") && window.MathJax)
            await MathJax.startup.promise;
        }"""
    )
    undrawn = "div.vega-chart:not(.vega-drawn)"
    with suppress(TookTooLong):  # the rules of the page tell what is missing
        page.wait_for_function(
            f"() => !document.querySelector('{undrawn}')", timeout=10_000
        )
