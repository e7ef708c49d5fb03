"""Film the pages for the README: attention is written, and the machine runs on it.

    make film

The pages must have been built. The steps are those that a reader takes: write the
function in its chapter, check it, see the machine translate with it, try a mistake.
"""

from __future__ import annotations

import re
from io import BytesIO

from PIL import Image
from playwright.sync_api import Locator, Page, expect, sync_playwright

from book._ext.browser import find_browser
from book._ext.toc import ROOT
from transformer_book.yours.parts import PARTS

PART = PARTS["attention"]
PAGE = ROOT / "_build" / "html" / "book" / f"{PART.chapter}.html"
FILM = ROOT / "book" / "film.webp"
WIDTH, HEIGHT, SHOWN = 1000, 780, 800  # pixels: of what is filmed, and the film
LINE, STEP, END = 500, 500, 3000  # ms: a line is shown, a step, and what it led to
MISTAKE = "softmax over the queries"
MINUTE = 60_000  # ms; the first time, Python and the model are loaded

Frame = tuple[Image.Image, int]  # a picture, and how many ms it is shown


def frame(page: Page, duration: int) -> Frame:
    """Take what is seen now."""
    picture = Image.open(BytesIO(page.screenshot())).convert("RGB")
    return picture.resize((SHOWN, HEIGHT * SHOWN // WIDTH)), duration


def write(page: Page, desk: Locator) -> list[Frame]:
    """Write the function line by line, and check it."""
    desk.get_by_role("button", name="Write it here").click()
    field = desk.locator(".cm-content")
    expect(field).to_be_visible()
    page.keyboard.press("Control+End")
    page.keyboard.press("Shift+Home")
    taken = [frame(page, END)]
    page.keyboard.press("Backspace")
    body = re.sub(r" *#.*", "", PART.solution.rpartition('"""')[2])
    body = [line for line in body.splitlines() if line.strip()]
    for number, line in enumerate(body):
        page.keyboard.insert_text(f"\n{line}" if number else line.strip())
        taken.append(frame(page, LINE))
    page.keyboard.press("Control+Enter")
    expect(desk).to_contain_text("✓", timeout=MINUTE)
    return [*taken, frame(page, END)]


def translate(page: Page, desk: Locator, words: str) -> list[Frame]:
    """Wait for what is translated, and go through its steps."""
    expect(desk).to_contain_text(words, timeout=MINUTE)
    steps = desk.locator(".yours-machine .machine-words button")
    field = desk.get_by_role("textbox", name="German")
    field.evaluate("(it) => scrollBy({ top: it.getBoundingClientRect().top - 90 })")
    taken = [frame(page, END)]
    for step in steps.all()[1:]:
        step.click()
        taken.append(frame(page, STEP))
    return [*taken, frame(page, END)]


def film() -> list[Frame]:
    """Attention is written and the machine translates with it; then it is broken."""
    with sync_playwright() as playwright:
        options = {"args": ["--no-sandbox", "--disable-gpu"]}
        browser = playwright.chromium.launch(executable_path=find_browser(), **options)
        page = browser.new_page(
            viewport={"width": WIDTH, "height": HEIGHT},
            color_scheme="light",
            reduced_motion="reduce",
        )
        page.goto(PAGE.resolve().as_uri())
        desk = page.locator(".yours")
        desk.evaluate("(it) => scrollBy({ top: it.getBoundingClientRect().top - 60 })")
        taken = write(page, desk) + translate(page, desk, "with yours")
        desk.get_by_role("button", name=MISTAKE).click()
        return taken + translate(page, desk, "with the mistake")


if __name__ == "__main__":
    (first, _), *others = frames = film()
    first.save(
        FILM,
        save_all=True,
        append_images=[picture for picture, _ in others],
        duration=[duration for _, duration in frames],
        loop=0,
        quality=70,
        method=6,
    )
    print(f"{FILM}: {FILM.stat().st_size / 1000:.0f} kB, {len(frames)} pictures")
