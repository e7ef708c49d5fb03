"""The translator in the built pages: alive before its model is there, and with it."""

from __future__ import annotations

import gzip
import json
import os
import time
from pathlib import Path
from urllib.parse import quote

import pytest
from built_site import SITE, stale
from playwright.sync_api import Page, expect

from book_tools.toc import ROOT
from transformer_book.charts.translator import PARTS
from transformer_lib import load

if os.environ.get("BOOK_SKIP_BROWSER") == "1":
    pytest.skip("BOOK_SKIP_BROWSER is set", allow_module_level=True)

MODEL = "multi30k-de-en"
SENTENCE = "Zwei Kinder laufen am Strand."
FRESH = {
    "text": "Im Schnee spielt ein Hund.", "edits": {}, "method": "greedy", "seed": 1,
    "n_beams": 4, "length_penalty": 1, "temperature": 1, "top_p": 1, "forced": [],
    "reference": "",
}  # fmt: skip
PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="module", autouse=True)
def current_pages():
    if reason := stale(SITE, ROOT):
        pytest.fail(reason)


@pytest.fixture
def address() -> str:
    return (SITE / "book/translator.html").resolve().as_uri()


def part(page: Page, name: str):
    return page.locator(f'.translator[data-part="{name}"]')


def wait(page: Page, condition: str, arg=None) -> None:
    """Wait for a condition; the policy of the pages keeps Playwright from doing it."""
    end = time.monotonic() + 60
    while not page.evaluate(f"(x) => Boolean({condition})", arg):
        assert time.monotonic() < end, condition
        time.sleep(0.05)


def load_model(page: Page) -> None:
    """Press the button, and wait until the sentence of the page is translated."""
    part(page, "type").get_by_role("button", name="Load the model").click()
    wait(page, "translator_app.engine && translator_app.view.read.pieces")


def type_and_wait(page: Page, text: str) -> str:
    field = part(page, "type").get_by_label("A German sentence")
    field.fill(text)
    field.press("Enter")
    wait(page, "translator_app.view.source === x", text)
    return page.evaluate("translator_app.view.text")


def test_every_part_is_alive_before_the_model_is_there(page, address) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address)
    for name in PARTS:
        text = part(page, name).locator(".tr-part").inner_text()
        assert len(text) > 20, name
        expect(part(page, name).locator("img")).to_be_hidden()
    assert not any(url.endswith(f"{MODEL}.js") for url in asked)
    part(page, "alive").get_by_role("button", name="dog").click()
    says = part(page, "alive").locator(".tr-says")
    expect(says).to_contain_text("While writing “dog”, the model looked at “Hund”")


@pytest.mark.parametrize("how", ["in a worker", "in the same thread", "over HTTP"])
def test_a_typed_sentence_is_translated(
    page, address, pages_server, trouble, how
) -> None:
    has_worker = how != "in the same thread"
    if how == "over HTTP":
        page.context.set_offline(False)  # the server is on this machine
        address = f"{pages_server}/book/translator.html"
    if not has_worker:
        page.add_init_script("window.translator_without_worker = true")
    page.goto(address)
    load_model(page)
    assert page.evaluate("translator_app.engine.worker !== null") == has_worker
    assert type_and_wait(page, SENTENCE) == load(MODEL).translate([SENTENCE])[0]
    chips = part(page, "type").locator("ol").first.locator("li")
    assert chips.count() == 7
    warning = part(page, "type").locator(".tr-warning")
    expect(warning).to_be_hidden()
    type_and_wait(page, SENTENCE.lower())
    expect(warning).to_contain_text("nouns begin with a capital letter")
    wrong = "translator_app.engine.ask('tokens', {text: ' '}).catch((e) => e.message)"
    assert page.evaluate(wrong) == "a sentence needs at least 1 word"
    trouble[:] = [line for line in trouble if pages_server not in line]


def test_a_removed_head_and_a_forced_token_change_the_view(page, address) -> None:
    page.goto(address)
    load_model(page)
    before = page.evaluate("translator_app.view.log_probs")
    heads = part(page, "heads")
    heads.get_by_role("button", name="Remove this head").click()
    wait(page, "translator_app.view.log_probs.join() !== x.join()", before)
    expect(heads.get_by_role("button", name="Put this head back")).to_be_visible()
    heads.get_by_role("button", name="Undo all").click()
    wait(page, "translator_app.view.log_probs.join() === x.join()", before)
    page.evaluate("translator_app.set({ forced: [translator_app.view.next[0][1].id] })")
    wait(page, "translator_app.view.tgt[0] === translator_app.state.forced[0]")


def test_the_address_holds_the_state(page, address) -> None:
    page.goto(address)
    load_model(page)
    page.evaluate("translator_app.edit({ hide: [1], tgt_positions: false })")
    wait(page, "location.hash.startsWith('#translator=')")
    shared, text = page.evaluate(
        """async () => { await translator_app.update();
        return [location.href, translator_app.view.text]; }"""
    )
    page.goto("about:blank")
    page.goto(shared)
    state = page.evaluate("translator_app.state.edits")
    assert state == {"hide": [1], "tgt_positions": False}
    assert page.evaluate("translator_app.beside") == ""  # nothing was computed yet
    load_model(page)
    assert page.evaluate("translator_app.view.text") == text
    changes = part(page, "alive").locator(".tr-changes")
    expect(changes).to_contain_text("1 source token hidden, target positions off.")
    page.evaluate("location.hash = '#translator=%7B%7D'")  # another link
    expect(changes).to_be_hidden()


@pytest.mark.parametrize(
    "state",
    [
        {"n_beams": 99},
        {"forced": [8000]},
        {"method": "beam"},
        {"other": 1},
        {"edits": {"without": {"encoder": [1]}}},
        "nothing",
    ],
    ids=json.dumps,
)
def test_an_address_that_makes_no_sense_changes_nothing(page, address, state) -> None:
    page.goto(f"{address}#translator={quote(json.dumps(state))}")
    assert page.evaluate("translator_app.state") == FRESH
    live = page.locator("p.tr-live")
    expect(live).to_contain_text("The address holds a state that can’t be read")


def test_arrow_keys_go_through_a_map(page, address) -> None:
    page.goto(address)
    grid = part(page, "heads").get_by_role("grid")
    assert grid.locator('[tabindex="0"]').count() == 1, "one tab stop"
    grid.locator('[tabindex="0"]').focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    focused = page.evaluate("document.activeElement.getAttribute('aria-label')")
    assert focused.startswith("A → dog to Schnee")
    page.keyboard.press("Enter")
    expect(part(page, "heads").locator(".tr-bars caption")).to_have_text(
        "“A → dog” looks at"
    )


def test_without_scripts_and_on_paper_the_pictures_stand(
    browser, page, address
) -> None:
    context = browser.new_context(java_script_enabled=False, offline=True)
    plain = context.new_page()
    plain.goto(address)
    for name in PARTS:
        expect(part(plain, name).locator("img")).to_be_visible()
    context.close()
    page.goto(address)
    page.emulate_media(media="print")
    for name in PARTS:
        expect(part(page, name).locator("img")).to_be_visible()
        expect(part(page, name).locator(".tr-part")).to_be_hidden()


@pytest.mark.browser_context_args(viewport=PHONE)
def test_nothing_is_wider_than_a_phone(page, address) -> None:
    page.goto(address)
    load_model(page)
    type_and_wait(page, "Eine Frau mit einem roten Hut liest in der Sonne ein Buch.")
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= PHONE["width"]
    for name in PARTS:
        box = part(page, name).bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= PHONE["width"], name


def test_a_model_that_is_missing_is_named(page, address, tmp_path, trouble) -> None:
    page.goto(address)
    page.evaluate("translator_app.scripts = { engine: 'nowhere.js' }")
    part(page, "type").get_by_role("button", name="Load the model").click()
    status = part(page, "type").locator(".tr-status")
    expect(status).to_contain_text("couldn’t be loaded from nowhere.js")
    trouble.clear()  # it was asked for and missed, as it should


def test_the_scripts_are_small(page, address) -> None:
    """What a page loads, and what comes with the weights when they are asked for."""
    folder = SITE / "_static" / "translator"
    sizes = {
        path.stem: len(gzip.compress(path.read_bytes())) for path in folder.glob("*.js")
    }
    model, late = sizes.pop(MODEL), sizes.pop("engine") + sizes.pop("tasks")
    assert model < 6_300_000 and late < 13_000
    assert sum(sizes.values()) < 40_000
    assert not list(Path(ROOT / "book").rglob(f"{MODEL}.js")), "no weights in git"
    loaded = "[...document.scripts].map((each) => each.src).join()"
    page.goto(address)
    assert "engine.js" not in page.evaluate(loaded)
    load_model(page)
    assert "engine.js" in page.evaluate(loaded)


# --- in the chapters -------------------------------------------------------------

CHAPTERS = {
    "index": "type",
    "00_one_sitting": "type",
    "02_scaled_dot_product_attention": "alive",
    "03_multi_head_attention": "heads",
    "04_masks": "operate",
    "07_decoder_and_cross_attention": "heads",
    "11_generating_a_translation": "search",
    "12_incremental_decoding": "cache",
    "14_reading_attention": "heads",
}


FAST = ("index", "04_masks", "12_incremental_decoding")


@pytest.mark.parametrize(
    "chapter",
    [
        name if name in FAST else pytest.param(name, marks=pytest.mark.slow)
        for name in CHAPTERS
    ],
)
def test_a_chapter_has_one_part_that_works_alone(page, chapter) -> None:
    page.goto((SITE / "book" / f"{chapter}.html").resolve().as_uri())
    only = page.locator(".translator")
    assert only.count() == 1
    assert only.get_attribute("data-part") == CHAPTERS[chapter]
    scripts = page.evaluate("[...document.scripts].map((each) => each.src).join()")
    others = set(PARTS) - {CHAPTERS[chapter]}
    assert not any(f"part_{name}.js" in scripts for name in others)
    field = only.get_by_role("textbox", name="A German sentence")
    field.fill("Zwei Kinder laufen am Strand.")
    only.get_by_role("button", name="Load the model").click()
    wait(page, "translator_app.engine && translator_app.view.source === x", SENTENCE)
    english = CHAPTERS[chapter] in ("search", "operate")
    expect(only).to_contain_text("beach" if english else "Strand")
