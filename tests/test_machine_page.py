"""The machine in the built pages: alive before its model is there, and with it."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import subprocess
import time
from pathlib import Path
from urllib.parse import quote

import pytest
from built_site import SITE, stale
from playwright.sync_api import Page, expect

from book._ext.toc import ROOT
from transformer_book.charts.machine import draw
from transformer_lib import load

if os.environ.get("BOOK_SKIP_BROWSER") == "1":
    pytest.skip("BOOK_SKIP_BROWSER is set", allow_module_level=True)

MODEL = "multi30k-de-en"
SOURCE = ROOT / "book" / "machine"
SENTENCE = "Zwei Kinder laufen am Strand."
CROSS = "decoder.layers.2.cross_attn"
PHONE = {"width": 390, "height": 844}
TELLS = """window.told = [];
addEventListener("DOMContentLoaded", () => new MutationObserver(() => {
  const words = document.querySelector(".machine-changes > span")?.textContent;
  if (words && words !== told.at(-1)) told.push(words);
}).observe(document.body, { childList: true, subtree: true }));"""
LEVELS = ["", "/decoder/1", "/decoder/1/cross_attn/0", "/decoder/1/cross_attn/0/2"]


@pytest.fixture(scope="module", autouse=True)
def current_pages():
    if reason := stale(SITE, ROOT):
        pytest.fail(reason)


@pytest.fixture
def address() -> str:
    return (SITE / "book/translator.html").resolve().as_uri()


def wait(page: Page, condition: str, arg=None) -> None:
    """Wait for a condition; the policy of the pages keeps Playwright from doing it."""
    end = time.monotonic() + 60
    while not page.evaluate(f"(x) => Boolean({condition})", arg):
        assert time.monotonic() < end, condition
        time.sleep(0.05)


def load_model(page: Page) -> None:
    page.evaluate("async () => { await machine.load(); }")


def type_and_wait(page: Page, text: str) -> str:
    """Type a sentence; the model comes by itself."""
    field = page.get_by_label("A German sentence")
    field.fill(text)
    field.press("Enter")
    wait(page, "machine.engine && machine.state.view.source === x", text)
    return page.evaluate("machine.state.view.text")


def go(page: Page, path: str) -> None:
    page.evaluate("(x) => { location.hash = `#machine${x}`; }", path)
    wait(page, "machine.path === x", path)


def listen(page: Page) -> None:
    """Note in `heard` what is said to those who listen."""
    page.evaluate(
        """() => { window.heard = [];
        const live = document.querySelector(".machine-spoken[role=status]");
        new MutationObserver(() => heard.push(live.textContent))
          .observe(live, { childList: true }); }"""
    )


def picture(page: Page):
    return page.locator(".machine-stage > svg")


# --- before the model is there -------------------------------------------------


def test_every_level_is_the_picture_that_stands_without_a_script(page, address) -> None:
    """Stored: the same drawing, whether a page or `make book` draws it."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address)
    stored = page.evaluate(
        "document.querySelector('.machine > script').textContent"
    ).replace("\\u003c", "<")
    numbers = "[...x.querySelectorAll('text')].map((each) => each.textContent).join()"
    for path in LEVELS:
        go(page, path)
        page.evaluate("machine.show({ step: 1 })")
        expect(picture(page)).to_have_count(1)
        still = draw(stored, path, {"step": 1})["svg"]
        other = page.evaluate(
            f"""(svg) => {{ const x = new DOMParser().parseFromString(svg, "text/html");
            return {numbers}; }}""",
            still,
        )
        here = picture(page).evaluate(f"(x) => {numbers}")
        assert here == other and len(here) > 40, path
    assert not any(MODEL in url for url in asked)


def test_words_keys_and_the_slider_go_through_the_translation(page, address) -> None:
    page.goto(address)
    says = page.locator(".machine-beneath .machine-says")
    words = page.get_by_role("toolbar", name="The translation, word by word")
    words.get_by_role("button", name="dog").click()
    expect(says).to_contain_text("Writing “dog”")
    for key, word in ("ArrowRight", "is"), ("Home", "A"), ("End", "<eos>"):
        page.keyboard.press(key)
        expect(says).to_contain_text(f"Writing “{word}”")
        expect(words.locator(":focus")).to_have_text(word)
    slider = page.get_by_label("Step of the translation")
    slider.fill("4")
    expect(says).to_contain_text("Writing “playing”")
    told = "playing, 4 of 9; looked most at “spielt”"
    assert slider.evaluate("(x) => x.ariaValueText").startswith(told)
    assert page.locator(".machine-stage .row.to-come").count() == 5
    go(page, LEVELS[3])
    page.locator(".machine-stage").focus()
    for path, door in zip(LEVELS[2::-1], LEVELS[3:0:-1], strict=True):
        page.keyboard.press("Escape")
        wait(page, "machine.path === x", path)
        expect(page.locator(f'.machine-stage a[href="#machine{door}"]')).to_be_focused()


def test_a_stored_change_is_shown_before_the_model_is_there(page) -> None:
    page.goto((SITE / "book/04_masks.html").resolve().as_uri())
    changes = page.locator(".machine-changes")
    expect(changes).to_contain_text("the causal mask off")
    expect(changes).to_contain_text("Without changes: “A dog is playing in the snow.”")
    expect(page.locator(".machine-results")).to_contain_text(
        "Untouched 0.37, now 2.46."
    )


@pytest.mark.browser_context_args(viewport=PHONE)
def test_the_guide_goes_to_eight_places_and_predicting_hides_the_answer(
    page, address
) -> None:
    page.goto(address)
    page.get_by_role("button", name="Guide").click()
    caption, seen = page.locator(".machine-guide"), set()
    for number in range(1, 9):
        expect(caption).to_contain_text(f"{number} of 8")
        seen.add(page.evaluate("machine.path"))
        name = "Next" if number < 8 else "Done"
        on = caption.get_by_role("button", name=name, exact=True)
        expect(on).to_be_focused()
        expect(on).to_be_in_viewport(ratio=1)
        lit = page.locator(".machine-live .machine-lit")  # what is spoken of
        expect(lit).to_be_in_viewport()
        assert lit.bounding_box()["y"] < caption.bounding_box()["y"]
        on.press("Enter")
    assert len(seen) == 5
    expect(caption).to_be_hidden()
    expect(page.get_by_role("button", name="Guide")).to_be_focused()
    go(page, "/decoder/1")
    page.wait_for_timeout(300)
    listen(page)
    page.get_by_role("button", name="Predict first").click()
    asks = page.locator(".machine-predict")
    expect(asks.get_by_role("button").first).to_be_focused()
    for path, what in ("", ".row.now .answer"), ("/decoder/1", ".said"):
        go(page, path)
        expect(page.locator(f".machine-stage {what}").first).to_be_hidden()
    question = "decoder, layer 1. Step 1 of 9. What is likeliest next?"
    wait(page, "heard.at(-1)?.trim() === x", question)
    slider = page.get_by_label("Step of the translation")
    assert slider.evaluate("(x) => x.ariaValueText") == "1 of 9"
    assert page.locator(".machine").get_attribute("aria-label").endswith("Hund.”")
    asks.get_by_role("button", name="A", exact=True).click()
    expect(asks).to_contain_text("Yes: “A”")
    expect(page.locator(".machine-stage .said").first).to_be_visible()
    wait(page, "heard.at(-1).startsWith('Yes: “A”')")


# --- with the model ------------------------------------------------------------


@pytest.mark.parametrize("how", ["from a file", "over HTTP"])
def test_a_typed_sentence_is_translated(
    page, address, pages_server, trouble, how
) -> None:
    if how == "over HTTP":
        page.context.set_offline(False)  # the server is on this machine
        address = f"{pages_server}/book/translator.html"
    page.goto(address)
    assert type_and_wait(page, SENTENCE) == load(MODEL).translate([SENTENCE])[0]
    warning = page.locator(".machine-warning").first
    expect(warning).to_be_hidden()
    type_and_wait(page, SENTENCE.lower())
    expect(warning).to_contain_text("nouns begin with a capital letter")
    page.locator("#machine-field").fill("")  # what is shown is of another sentence
    expect(page.locator(".machine-waiting .machine-warning")).to_be_visible()
    type_and_wait(page, "A dog runs.")
    expect(warning).to_contain_text("looks like English")
    type_and_wait(page, "Hund")
    expect(warning).not_to_contain_text("nouns begin with a capital letter")
    wrong = "machine.engine('tokens', {text: ' '}).catch((e) => e.message)"
    assert page.evaluate(wrong) == "a sentence needs at least 1 word"
    trouble[:] = [line for line in trouble if pages_server not in line]


def test_only_steps_that_read_the_same_words_are_compared(page, address) -> None:
    page.goto(address)
    text = "Meine Tante backt am Sonntag einen Kuchen für vier Kinder."
    type_and_wait(page, text)
    before = page.evaluate("machine.state.view.tgt")
    go(page, "/decoder/1/cross_attn/7")
    page.get_by_role("button", name="Cut this head").click()
    wait(page, "machine.state.view.tgt.join() !== x.join()", before)
    other = page.evaluate(
        "(x) => machine.state.view.tgt.findIndex((t, i) => t !== x[i])", before
    )
    changed = picture(page).locator(".changed")
    page.evaluate("(step) => machine.show({ step })", other)
    expect(changed).not_to_have_count(0)
    page.evaluate("(step) => machine.show({ step })", other + 1)
    expect(changed).to_have_count(0)


def test_a_removed_head_and_a_forced_token_change_what_is_shown(page, address) -> None:
    page.goto(address)
    load_model(page)
    before = page.evaluate("machine.state.view.log_probs")
    go(page, "/decoder/2/cross_attn/1")
    page.get_by_role("button", name="Cut this head").click()
    wait(page, "machine.state.view.log_probs.join() !== x.join()", before)
    expect(page.get_by_role("button", name="Put this head back")).to_be_focused()
    expect(page.locator(".machine-stage .changed").first).to_have_text("0%")
    expect(page.locator(".machine-changes")).to_contain_text("1 head cut.")
    says, bold = page.locator(".machine-beneath .machine-says"), "[font-weight='600']"
    expect(says).to_contain_text("This head is cut")
    expect(picture(page)).to_contain_text("the head is cut: no sum")
    doors = page.locator(f".machine-stage .machine-door {bold}")
    expect(doors).to_have_count(0)  # no key is the one that is looked at most
    go(page, "/decoder/2/cross_attn/1/2")
    expect(picture(page)).to_contain_text(": the head is cut")
    assert not re.search(r"\.\d*,\d", picture(page).text_content())
    go(page, "/decoder/2")  # what the layer would answer, and would have answered
    expect(picture(page).locator(".changed")).not_to_have_count(0)
    go(page, "/decoder/2/cross_attn/1")
    page.get_by_role("button", name="Undo all").click()
    wait(page, "machine.state.view.log_probs.join() === x.join()", before)
    expect(doors).to_have_count(3)  # its word, its score, its weight
    expect(says).to_contain_text("The closer a key matches")
    go(page, "")
    page.evaluate("machine.show({ step: 0 })")
    choices = page.locator(".machine-stage .row.now .choice")
    written = choices.locator(bold)
    expect(written).to_have_count(1)
    expect(written).to_contain_text("A ")
    word = choices.nth(1).locator("tspan").first.text_content()
    choices.nth(1).focus()
    page.keyboard.press("Tab")
    expect(choices.nth(2)).to_be_focused()
    choices.nth(1).click()
    wait(page, "machine.state.view.tgt[0] === machine.state.asked.forced[0]")
    expect(written).to_contain_text(f"{word} ")
    expect(page.locator(".machine-changes")).to_contain_text("a word chosen by hand")


def test_a_search_is_told_when_there_is_one_and_a_change_moves_no_control(
    page, address
) -> None:
    page.goto(address)
    load_model(page)
    listen(page)
    type_and_wait(page, SENTENCE)
    wait(page, "heard.at(-1)?.startsWith('Translation: Two children')")
    page.evaluate("machine.show({ step: 1 })")
    page.wait_for_timeout(300)
    page.evaluate("heard.length = 0")
    go(page, "/search")  # at the step where the picture was
    wait(page, "machine.state.search && heard.length")
    (told,) = page.evaluate("heard")
    step = "Beam search. Step 2: 4 kept, 4 dropped. The path of greedy "
    assert told.startswith(step)
    assert "left the beam" not in told
    slider = page.get_by_label("Step of the search")
    assert slider.evaluate("(x) => x.ariaValueText").startswith("children, 2 of ")
    slider.fill("3")  # the sentence above goes along
    third = page.locator(".machine-words button").nth(2)
    expect(third).to_have_class("machine-word now")
    page.get_by_label("Beams").select_option("2")
    page.get_by_role("button", name="Search again").click()
    wait(page, "heard.at(-1).startsWith('First of ')")
    go(page, "/operate")
    cut = page.get_by_role("group", name="Cut cross-attention").get_by_role("button")
    cut.nth(1).focus()
    top = cut.nth(1).bounding_box()["y"]
    page.keyboard.press("Space")
    changes = page.locator(".machine-changes")
    expect(changes).to_contain_text("Changed: cross-attention cut in layer 1.")
    wait(page, "machine.state.view.edits.without && !machine.state.is_busy")
    page.wait_for_timeout(300)
    expect(cut.nth(1)).to_be_focused()
    assert cut.nth(1).bounding_box()["y"] == pytest.approx(top, abs=2)
    go(page, "/search")
    page.get_by_role("button", name="Undo all").press("Enter")
    expect(page.get_by_role("button", name="Next", exact=True)).to_be_focused()


def test_the_address_holds_the_state_and_the_place(page, address) -> None:
    page.goto(address)
    load_model(page)
    page.evaluate("machine.edit({ hide: [1], tgt_positions: false })")
    go(page, "/decoder/2/cross_attn/1")
    wait(page, "location.hash.includes('hide')")
    shared, text = page.evaluate(
        """async () => { await machine.update();
        return [location.href, machine.state.view.text]; }"""
    )
    page.evaluate("sessionStorage.clear()")
    page.goto("about:blank")
    page.add_init_script(TELLS)
    page.route(f"**/{MODEL}*", lambda route: None)  # it waits
    page.goto(shared, wait_until="commit")
    wait(page, "window.machine?.loading")
    expect(page.locator(".machine-stage")).to_be_hidden()  # it shows another sentence
    page.unroute(f"**/{MODEL}*")
    assert page.evaluate("machine.path") == "/decoder/2/cross_attn/1"
    edits = {"hide": [1], "tgt_positions": False}
    assert page.evaluate("machine.state.asked.edits") == edits
    changes = page.locator(".machine-changes")
    told = "hidden: “Schnee”, target positions off"
    # Nothing is compared before the model is there, which the link asks for.
    news = "document.querySelector('.machine-changes').textContent"
    assert page.evaluate(f"machine.engine !== null || !{news}.includes('Without')")
    load_model(page)
    assert page.evaluate("machine.state.view.text") == text
    first, *_, last = page.evaluate("told")  # and no other sentence on the way
    assert first.startswith("Waiting for the model (hidden: ")
    assert [each for each in page.evaluate("told") if "Now: " in each] == [last]
    expect(changes).to_contain_text(f"Changed: {told}. Now: “{text}”")
    expect(page.locator(".machine-stage")).to_be_visible()
    page.evaluate("location.hash = '#machine?%7B%7D'")  # another link
    expect(changes).to_be_hidden()


def test_back_goes_to_the_place_before_and_undoes_nothing(page, address) -> None:
    page.goto(f"{address}#machine/decoder/1?{quote(json.dumps({'step': 3}))}")
    load_model(page)
    page.locator("a[href='#machine/decoder/1/cross_attn/2']").click()
    page.get_by_role("button", name="Cut this head").click()
    expect(page.locator(".machine-changes")).to_contain_text("1 head cut.")
    page.go_back()
    wait(page, "machine.path === '/decoder/1'")
    expect(page.locator(".machine-changes")).to_contain_text("1 head cut.")
    wait(page, "!machine.state.is_busy")
    go(page, "/operate")
    page.get_by_role("button", name="layer 0").focus()
    page.go_back()  # from a control that goes with its view
    expect(page.get_by_role("link", name="The machine", exact=True)).to_be_focused()
    page.evaluate("scrollTo(0, 1500)")
    page.get_by_role("link", name="Chapter 7").first.evaluate("(x) => x.click()")
    page.wait_for_url("**/07_*.html")
    page.go_back()
    wait(page, "machine.state.view.live && !machine.state.is_busy")
    assert page.evaluate("scrollY") == pytest.approx(1500, abs=60)


def test_sentence_and_changes_go_along_and_chapters_offer_them(page, address) -> None:
    page.goto(address)
    type_and_wait(page, SENTENCE)
    page.evaluate("machine.edit({ hide: [1] })")
    page.goto((SITE / "book/14_reading_attention.html").resolve().as_uri())
    wait(page, "machine.engine && machine.state.view.live")
    assert (
        page.evaluate("machine.state.view.text")
        == "A dog is playing a dog in the snow."
    )
    page.wait_for_timeout(300)  # what is said of the chapter's own
    listen(page)
    page.get_by_role("button", name=SENTENCE).click()
    wait(page, "machine.state.view.source === x", SENTENCE)
    wait(page, "heard.length")  # of the new sentence, and of nothing else
    (told,) = page.evaluate("heard")
    assert told.startswith("Changed: 1 head cut, hidden: “Kinder”. Translation:")
    edits = {"without": {CROSS: [1]}, "hide": [1]}  # the chapter's and the reader's
    assert page.evaluate("machine.state.view.edits") == edits
    expect(page.locator(".machine-stage")).to_be_focused()
    page.goto((SITE / "book/index.html").resolve().as_uri())
    wait(page, "machine.engine && machine.state.view.source === x", SENTENCE)


@pytest.mark.parametrize(
    "state",
    [
        *({"n_beams": 99}, {"forced": [8000]}, {"method": "beam"}, {"other": 1}),
        *({"edits": {"without": {"encoder": [1]}}}, {"edits": []}, "nothing", "<b>"),
        {"text": "x" * 5001},
        {"constructor": 1},
    ],
    ids=lambda state: json.dumps(state)[:30],
)
def test_an_address_that_makes_no_sense_changes_nothing(page, address, state) -> None:
    page.goto(address)
    fresh = page.evaluate("machine.state.asked")
    page.goto("about:blank")
    page.goto(f"{address}#machine?{quote(json.dumps(state))}")
    assert page.evaluate("machine.state.asked") == fresh
    status = page.locator(".machine-status")
    expect(status).to_contain_text("The address holds a state that can’t be read")


@pytest.mark.parametrize(
    "path", ["/decoder/9", "/encoder/0/cross_attn/1", "/decoder/0/self_attn/8", "/x%"]
)
def test_an_address_of_no_place_leads_to_the_whole_machine(page, address, path) -> None:
    page.goto(f"{address}#machine{path}")
    assert page.evaluate("machine.path") == ""
    expect(page.locator(".machine-status")).to_contain_text("nothing at that address")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a " * 250, "tokens, and the model reads 128 at most"),
        ("<img src=x onerror=alert(1)>", ""),
        ("👩‍👩‍👧‍👦 שלום עולם", ""),
        ("   ", "a sentence needs at least 1 word"),
    ],
    ids=["500 words", "markup", "other signs", "blank"],
)
def test_any_sentence_leaves_the_page_alive(page, address, text, told) -> None:
    page.goto(address)
    load_model(page)
    field = page.get_by_label("A German sentence")
    field.fill(text)
    field.press("Enter")
    if told:
        expect(page.locator(".machine-status")).to_contain_text(told)
    else:
        wait(page, "machine.state.view.source === x", text)
    assert page.locator(".machine img").count() == 0
    assert type_and_wait(page, SENTENCE).startswith("Two children")


def test_a_part_of_the_model_that_is_missing_is_named(page, address, trouble) -> None:
    page.goto(address)
    page.evaluate("machine.addresses = [machine.addresses[0], 'nowhere.js']")
    page.get_by_label("A German sentence").focus()
    status = page.locator(".machine-status")
    expect(status).to_contain_text("couldn’t be loaded from nowhere.js")
    assert page.evaluate("machine.engine") is None
    trouble.clear()  # it was asked for and missed, as it should


@pytest.mark.parametrize("kind", ["SVG", "PNG"])
def test_a_view_can_be_saved(page, address, kind) -> None:
    page.goto(f"{address}#machine?{quote(json.dumps({'text': 'x' * 600}))}")
    page.locator(".machine-more summary").click()
    page.get_by_role("button", name="Copy link").click()
    note = page.locator(".machine-more small")
    expect(note).not_to_be_empty()
    with page.expect_download() as download:
        page.get_by_role("button", name=f"Save as {kind}").click()
    expect(note).to_have_text(f"Saved as machine.{kind.lower()}, for a slide.")
    content = Path(download.value.path()).read_bytes()
    if kind == "PNG":
        assert content.startswith(b"\x89PNG") and len(content) > 20_000
    else:
        assert b"var(" not in content and b"translator.html#machine" in content
        assert content.count(b"x") > 600 and b">" + b"x" * 150 in content  # by lines


# --- without a script, on paper, small -----------------------------------------


def test_without_scripts_and_on_paper_the_pictures_stand(
    browser, page, address
) -> None:
    context = browser.new_context(java_script_enabled=False, offline=True)
    plain = context.new_page()
    plain.goto(address)
    still = plain.locator(".machine-still")
    expect(still.locator("svg").first).to_be_visible()
    assert still.locator(".wide label").count() <= 16  # as the style sheet knows
    top = plain.evaluate("scrollY")
    still.locator(".wide label", has_text="playing").click()
    expect(still.locator(".wide .row[data-row='3'] .asks")).to_be_visible()
    assert still.locator(".wide .asks >> visible=true").count() == 1
    assert plain.evaluate("scrollY") == top
    assert still.locator("details").count() == 4
    context.close()
    page.goto(address)
    page.emulate_media(media="print")
    expect(page.locator(".machine-still svg").first).to_be_visible()
    assert page.locator(".machine-still .wide .asks >> visible=true").count() == 1
    expect(page.locator(".machine-live")).to_be_hidden()


@pytest.mark.browser_context_args(viewport=PHONE)
def test_nothing_is_wider_than_a_phone(page, address) -> None:
    page.goto(address)
    type_and_wait(page, "Eine Frau mit einem roten Hut liest in der Sonne ein Buch.")
    for path in [*LEVELS, "/search", "/cache", "/operate"]:
        go(page, path)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        box = page.locator(".machine").bounding_box()
        assert box["x"] >= 0 and box["x"] + box["width"] <= PHONE["width"], path


@pytest.mark.browser_context_args(viewport=PHONE)
def test_a_phone_has_doors_for_a_finger_and_room_for_a_long_sentence(
    page, address
) -> None:
    page.goto(address)
    type_and_wait(page, " ".join([SENTENCE[:-1]] * 7))
    assert page.evaluate("machine.state.view.src.length") > 35
    doors = page.locator(".machine-stage .machine-door")
    assert all(door.bounding_box()["height"] >= 44 for door in doors.all())
    stage = "document.querySelector('.machine-stage')"
    assert page.evaluate(f"{stage}.scrollWidth <= {stage}.clientWidth")
    pieces = "[...document.querySelectorAll('.machine-words .joined')]"
    same = "Math.abs(x.offsetTop - x.previousElementSibling.offsetTop) < 9"
    for width in *range(300, 390, 6), 390:  # no line begins with a full stop
        page.set_viewport_size({**PHONE, "width": width})
        assert page.evaluate(f"{pieces}.length && {pieces}.every((x) => {same})")
    go(page, "/operate")
    switch = page.get_by_label("target positions")
    switch.uncheck()
    wait(page, "machine.state.view.edits.tgt_positions === false")
    switch = page.get_by_label("source positions")
    top = "scrollBy({ top: x.getBoundingClientRect().top - 60, behavior: 'instant' })"
    switch.evaluate(f"(x) => {{ x.focus(); {top}; x.click(); }}")
    wait(page, "machine.state.view.edits.src_positions === false")
    changes = page.locator(".machine-changes")
    expect(changes).to_be_in_viewport(ratio=1)
    box = changes.bounding_box()
    assert box["y"] + box["height"] <= switch.bounding_box()["y"]


def test_places_and_steps_are_told_once_to_those_who_listen(page, address) -> None:
    page.goto(address)
    listen(page)
    go(page, "/decoder/1/cross_attn/3")
    wait(page, "heard.length")
    go(page, "/cache")
    wait(page, "heard.length > 1")
    page.get_by_role("button", name="Next", exact=True).click()
    wait(page, "heard.length > 2")
    page.wait_for_timeout(300)
    one, two, three = page.evaluate("heard")
    assert one.startswith("decoder, layer 1, cross-attention, head 3. Step 2 of 9: dog")
    assert two.startswith("Cache. Step 2 adds one column")
    assert three.startswith("Step 3 adds one column")


def test_the_script_is_small_and_the_weights_come_in_parts(page, address) -> None:
    folder = SITE / "_static" / "machine"
    sizes = {
        path.stem: len(gzip.compress(path.read_bytes())) for path in folder.glob("*.js")
    }
    assert sizes.pop("machine") < 40_000
    assert 10 < len(sizes) < 20 and sum(sizes.values()) < 6_400_000
    assert not list(Path(ROOT / "book").rglob(f"{MODEL}*.js")), "no weights in git"


@pytest.mark.skipif(
    not shutil.which("npm"),
    reason="no Node, so nothing here runs `make machine`: the bundles may be old",
)
def test_bundles_are_those_of_the_sources() -> None:
    if not (SOURCE / "node_modules").exists():
        pytest.fail("nothing has compared the bundles: run make machine first")
    command = ["node", "build.js", "--check"]
    done = subprocess.run(command, cwd=SOURCE, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# --- in the chapters -----------------------------------------------------------

CHAPTERS = {
    "index": "",
    "00_one_sitting": "",
    "02_scaled_dot_product_attention": "/decoder/1/cross_attn/1",
    "03_multi_head_attention": "/encoder/0/self_attn/7",
    "04_masks": "/operate",
    "07_decoder_and_cross_attention": "/decoder/2/cross_attn/3",
    "11_generating_a_translation": "/search",
    "12_incremental_decoding": "/cache",
    "14_reading_attention": "/decoder/2",
}
FAST = ("index", "04_masks", "12_incremental_decoding")


@pytest.mark.parametrize(
    "chapter",
    [
        name if name in FAST else pytest.param(name, marks=pytest.mark.slow)
        for name in CHAPTERS
    ],
)
def test_a_chapter_has_a_machine_that_works_alone(page, chapter) -> None:
    page.goto((SITE / "book" / f"{chapter}.html").resolve().as_uri())
    assert page.locator(".machine").count() == 1
    assert page.evaluate("machine.path") == CHAPTERS[chapter]
    page.wait_for_timeout(100)
    assert len(page.locator(".machine-live").inner_text()) > 100
    type_and_wait(page, SENTENCE)
    assert page.evaluate("machine.state.view.text").startswith("Two children")
