"""Film the machine of the built front page for the README: a translation, then a break.

    make film

The pages must have been built. The steps are those that a reader takes with the keys.
"""

from __future__ import annotations

from io import BytesIO

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from book._ext.browser import find_browser
from book._ext.toc import ROOT
from transformer_book.charts.machine import read_choices

FRONT = ROOT / "_build" / "html" / "book" / "index.html"
FILM = ROOT / "book" / "film.webp"
WIDTH, HEIGHT, SHOWN = 1280, 780, 960  # pixels: of what is filmed, and the film
CHOICE = "head"  # of choices.toml: its sentence, and what breaks it
STEP, END = 700, 3000  # ms that a step is shown, and the last one
STILL = "machine.state.view.live && !machine.state.is_busy"


def frames(page: Page) -> list[Image.Image]:
    """A picture of the machine at each step of what it translates now."""
    steps = page.evaluate("machine.state.view.tgt_labels.length - 1")
    taken = []
    for step in range(steps):
        page.evaluate("(step) => machine.show({ step })", step)
        png = page.screenshot(clip={"x": 0, "y": 0, "width": WIDTH, "height": HEIGHT})
        picture = Image.open(BytesIO(png)).convert("RGB")
        taken.append(picture.resize((SHOWN, picture.height * SHOWN // WIDTH)))
    return taken


def film() -> list[Image.Image]:
    """The sentence of a choice is translated; then the model is changed."""
    [choice] = [each for each in read_choices() if each["name"] == CHOICE]
    with sync_playwright() as playwright:
        options = {"args": ["--no-sandbox", "--disable-gpu"]}
        browser = playwright.chromium.launch(executable_path=find_browser(), **options)
        page = browser.new_page(
            viewport={"width": WIDTH, "height": HEIGHT},
            color_scheme="light",
            reduced_motion="reduce",
        )
        page.goto(FRONT.resolve().as_uri())
        page.evaluate("machine.load()")
        taken = []
        for changes in {"text": choice["text"]}, {"edits": choice["edits"]}:
            page.evaluate("(changes) => machine.ask(changes)", changes)
            page.wait_for_function(STILL)
            page.locator(".machine-live").evaluate("(part) => part.scrollIntoView()")
            taken.append(frames(page))
    return taken


if __name__ == "__main__":
    whole, broken = film()
    times = [STEP] * (len(whole) - 1) + [END] + [STEP] * (len(broken) - 1) + [END]
    first, *others = whole + broken
    first.save(
        FILM,
        save_all=True,
        append_images=others,
        duration=times,
        loop=0,
        quality=70,
        method=6,
    )
    print(f"{FILM}: {FILM.stat().st_size / 1000:.0f} kB, {len(times)} pictures")
