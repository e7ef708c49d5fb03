"""The machine in the built pages: alive before its model is there, and with it.

What needs no page is tested by Node, in book/machine/tests.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from urllib.parse import quote

import pytest
from built_site import SITE, stale
from playwright.sync_api import Page, expect
from quick_cases import some_now

from book._ext.browser_model import SISTER
from book._ext.page_rules import open_optional, wait_until
from book._ext.toc import ROOT
from transformer_book.charts.machine import draw, read_choices
from transformer_book.gloss import gloss, meaning
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
LISTEN = """() => { window.heard = [];
  const live = document.querySelector(".machine-spoken[role=status]");
  new MutationObserver(() => heard.push(live.textContent))
    .observe(live, { childList: true }); }"""


@pytest.fixture(scope="module", autouse=True)
def current_pages():
    if reason := stale(SITE, ROOT):
        pytest.fail(reason)


@pytest.fixture
def address() -> str:
    return (SITE / "book/translator.html").resolve().as_uri()


@pytest.fixture
def translator(page, address) -> Page:
    """The translator's page."""
    page.goto(address)
    return page


@pytest.fixture
def loaded(translator) -> Page:
    """The same, with its model."""
    load_model(translator)
    return translator


def wait(page: Page, condition: str, arg=None) -> None:
    """Wait for a condition."""
    wait_until(page, f"(x) => Boolean({condition})", arg, seconds=60)


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


def show_step(page: Page, step: int) -> None:
    page.evaluate("(step) => machine.show({ step })", step)


def wait_for_change(page: Page, act) -> None:
    """Act, and wait until the model has answered."""
    page.evaluate("() => { window.shown_before = machine.state.view; }")
    act()
    wait(page, "machine.state.view !== shown_before && !machine.state.is_busy")


def hear(page: Page, start: str) -> list[str]:
    """Wait until this is said to those who listen; return, and forget, all that was."""
    wait(page, "heard.some((words) => words.trim().startsWith(x))", start)
    return page.evaluate("heard.splice(0)")


def picture(page: Page):
    return page.locator(".machine-stage > svg")


def button(page: Page, name: str):
    return page.get_by_role("button", name=name, exact=True)


def step_slider(page: Page):
    return page.get_by_label("Step of the translation")


# --- before the model is there -------------------------------------------------


@pytest.mark.parametrize("path", LEVELS)
def test_a_level_is_the_picture_that_stands_without_a_script(translator, path) -> None:
    """Stored: the same drawing, whether a page or `make book` draws it."""
    stored = translator.evaluate(
        "document.querySelector('.machine > script').textContent"
    ).replace("\\u003c", "<")
    numbers = "[...x.querySelectorAll('text')].map((each) => each.textContent).join()"
    go(translator, path)
    show_step(translator, 1)
    expect(picture(translator)).to_have_count(1)
    still = draw(stored, path, {"step": 1})["svg"]
    other = translator.evaluate(
        f"""(svg) => {{ const x = new DOMParser().parseFromString(svg, "text/html");
        return {numbers}; }}""",
        still,
    )
    here = picture(translator).evaluate(f"(x) => {numbers}")
    assert here == other and len(here) > 40


def test_the_model_comes_only_when_it_is_wanted(page, address) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address)
    for path in LEVELS:
        go(page, path)
    assert not any(MODEL in url for url in asked)
    page.get_by_label("A German sentence").focus()
    wait(page, "machine.engine")
    assert any(MODEL in url for url in asked)


def test_words_are_chosen_by_click_and_by_key(translator) -> None:
    says = translator.locator(".machine-beneath .machine-says")
    name = "The translation, word by word"
    words = translator.get_by_role("toolbar", name=name)
    words.get_by_role("button", name="dog").click()
    expect(says).to_contain_text("Writing “dog”")
    for key, word in ("ArrowRight", "is"), ("Home", "A"), ("End", "<eos>"):
        translator.keyboard.press(key)
        expect(says).to_contain_text(f"Writing “{word}”")
        expect(words.locator(":focus")).to_have_text(word)


def test_the_slider_goes_through_the_translation_and_speaks(translator) -> None:
    slider = step_slider(translator)
    slider.fill("4")
    says = translator.locator(".machine-beneath .machine-says")
    expect(says).to_contain_text("Writing “playing”")
    told = "playing, 4 of 9; looked most at “spielt”"
    assert slider.evaluate("(x) => x.ariaValueText").startswith(told)
    assert translator.locator(".machine-stage .row.to-come").count() == 5


def test_escape_goes_up_to_the_door_that_was_opened(translator) -> None:
    go(translator, LEVELS[3])
    translator.locator(".machine-stage").focus()
    for path, door in zip(LEVELS[2::-1], LEVELS[3:0:-1], strict=True):
        translator.keyboard.press("Escape")
        wait(translator, "machine.path === x", path)
        link = translator.locator(f'.machine-stage a[href="#machine{door}"]')
        expect(link).to_be_focused()


def test_the_film_plays_stops_and_goes_on(translator) -> None:
    button(translator, "Play").click()
    expect(translator.locator(".machine-words .unseen")).not_to_have_count(0)
    wait(translator, "machine.state.asked.step === 1")
    button(translator, "Pause").click()
    expect(translator.locator(".machine-words .unseen")).to_have_count(0)
    translator.evaluate("machine.dispatch({ type: 'tick' })")  # that was on its way
    step = translator.evaluate("machine.state.asked.step")
    button(translator, "Play").click()
    assert translator.evaluate("machine.state.asked.step") == step
    go(translator, "/decoder/1")
    expect(button(translator, "Play")).to_be_visible()


def test_a_stored_change_is_shown_before_the_model_is_there(page) -> None:
    page.goto((SITE / "book/04_masks.html").resolve().as_uri())
    open_optional(page)
    changes = page.locator(".machine-changes")
    expect(changes).to_contain_text("the causal mask off")
    expect(changes).to_contain_text("Without changes: “A dog is playing in the snow.”")
    expect(page.locator(".machine-results")).to_contain_text(
        "Untouched 0.37, now 2.46."
    )


@pytest.mark.browser_context_args(viewport=PHONE)
def test_the_guide_goes_to_eight_places_and_lights_what_it_speaks_of(
    translator,
) -> None:
    guide = button(translator, "Guide")
    guide.click()
    caption, seen = translator.locator(".machine-guide"), set()
    for number in range(1, 9):
        expect(caption).to_contain_text(f"{number} of 8")
        seen.add(translator.evaluate("machine.path"))
        name = "Next" if number < 8 else "Done"
        on = caption.get_by_role("button", name=name, exact=True)
        expect(on).to_be_focused()
        expect(on).to_be_in_viewport(ratio=1)
        lit = translator.locator(".machine-live .machine-lit")
        expect(lit).to_be_in_viewport()
        assert lit.bounding_box()["y"] < caption.bounding_box()["y"]
        on.press("Enter")
    assert len(seen) == 5
    expect(caption).to_be_hidden()
    expect(guide).to_be_focused()


# --- predict first -------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "what"), [("", ".row.now .answer"), (LEVELS[1], ".said")]
)
def test_predicting_hides_the_answer_until_there_is_a_guess(
    translator, path, what
) -> None:
    go(translator, path)
    button(translator, "Predict first").click()
    asks = translator.locator(".machine-predict")
    expect(asks.get_by_role("button").first).to_be_focused()
    answer = translator.locator(f".machine-stage {what}").first
    expect(answer).to_be_hidden()
    speaks = step_slider(translator).evaluate("(x) => x.ariaValueText")
    assert speaks == "1 of 9"
    label = translator.locator(".machine").get_attribute("aria-label")
    assert label.endswith("Hund.”")
    asks.get_by_role("button", name="A", exact=True).click()
    expect(asks).to_contain_text("Yes: “A”")
    expect(answer).to_be_visible()


def test_a_question_and_its_answer_are_told(translator) -> None:
    go(translator, "/decoder/1")
    translator.evaluate(LISTEN)
    button(translator, "Predict first").click()
    hear(translator, "Step 1 of 9. What is likeliest next?")
    go(translator, "")
    go(translator, "/decoder/1")
    hear(translator, "decoder, layer 2. Step 1 of 9. What is likeliest next?")
    asks = translator.locator(".machine-predict")
    asks.get_by_role("button", name="A", exact=True).click()
    hear(translator, "Yes: “A”")


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
    trouble[:] = [line for line in trouble if pages_server not in line]


def test_a_warning_is_of_the_sentence_that_is_shown(loaded) -> None:
    warning = loaded.locator(".machine-warning").first
    for text, told in [
        (SENTENCE, ""),
        (SENTENCE.lower(), "nouns begin with a capital letter"),
        ("Ich liebe dich.", "expect nonsense"),
    ]:
        type_and_wait(loaded, text)
        expect(warning).to_contain_text(told)
        expect(warning).to_be_visible(visible=bool(told))
    loaded.locator("#machine-field").fill("")  # of what is shown, nothing is told there
    expect(warning).to_be_hidden()


def test_signs_that_nobody_sees_change_no_translation(loaded) -> None:
    plain = type_and_wait(loaded, "Zwei Mädchen spielen.")
    ids = loaded.evaluate("machine.state.view.src")
    odd = "\ufeffZwei  Ma\u0308dchen\u00a0spie\u00adlen.\u200b"
    assert type_and_wait(loaded, odd) == plain
    assert loaded.evaluate("machine.state.view.src") == ids


def test_only_steps_that_read_the_same_words_are_compared(loaded) -> None:
    text = "Meine Tante backt am Sonntag einen Kuchen für vier Kinder."
    type_and_wait(loaded, text)
    before = loaded.evaluate("machine.state.view.tgt")
    go(loaded, "/decoder/1/cross_attn/7")
    wait_for_change(loaded, button(loaded, "Cut this head").click)
    other = loaded.evaluate(
        "(x) => machine.state.view.tgt.findIndex((t, i) => t !== x[i])", before
    )
    changed = picture(loaded).locator(".changed")
    show_step(loaded, other)
    expect(changed).not_to_have_count(0)
    show_step(loaded, other + 1)
    expect(changed).to_have_count(0)


HEAD, BOLD = "/decoder/2/cross_attn/1", "[font-weight='600']"


def test_a_head_is_cut_and_put_back(loaded) -> None:
    before = loaded.evaluate("machine.state.view.log_probs")
    go(loaded, HEAD)
    wait_for_change(loaded, button(loaded, "Cut this head").click)
    assert loaded.evaluate("machine.state.view.log_probs") != before
    expect(button(loaded, "Put this head back")).to_be_focused()
    expect(loaded.locator(".machine-changes")).to_contain_text("cross-attention cut.")
    wait_for_change(loaded, button(loaded, "Undo all").click)
    assert loaded.evaluate("machine.state.view.log_probs") == before
    says = loaded.locator(".machine-beneath .machine-says")
    expect(says).to_contain_text("The closer a key matches")
    doors = loaded.locator(f".machine-stage .machine-door {BOLD}")
    expect(doors).to_have_count(3)  # its word, its score, its weight


def test_a_head_that_is_cut_looks_like_it_at_every_level(loaded) -> None:
    go(loaded, HEAD)
    wait_for_change(loaded, button(loaded, "Cut this head").click)
    expect(loaded.locator(".machine-stage .changed").first).to_have_text("0%")
    says = loaded.locator(".machine-beneath .machine-says")
    expect(says).to_contain_text("This head is cut")
    expect(picture(loaded)).to_contain_text("the head is cut: no sum")
    doors = loaded.locator(f".machine-stage .machine-door {BOLD}")
    expect(doors).to_have_count(0)  # no key is the one that is looked at most
    go(loaded, f"{HEAD}/2")
    expect(picture(loaded)).to_contain_text(": the head is cut")
    assert not re.search(r"\.\d*,\d", picture(loaded).text_content())
    go(loaded, "/decoder/2")  # what the layer would answer, and would have answered
    expect(picture(loaded).locator(".changed")).not_to_have_count(0)


def test_another_word_can_be_chosen(loaded) -> None:
    show_step(loaded, 0)
    choices = loaded.locator(".machine-stage .row.now .choice")
    written = choices.locator(BOLD)
    expect(written).to_have_count(1)
    expect(written).to_contain_text("A ")
    word = choices.nth(1).locator("tspan").first.text_content()
    choices.nth(1).focus()
    loaded.keyboard.press("Tab")
    expect(choices.nth(2)).to_be_focused()
    wait_for_change(loaded, choices.nth(1).click)
    forced = loaded.evaluate("machine.state.asked.forced")
    assert loaded.evaluate("machine.state.view.tgt[0]") == forced[0]
    expect(written).to_contain_text(f"{word} ")
    expect(loaded.locator(".machine-words .forced")).to_have_count(1)
    changes = loaded.locator(".machine-changes")
    expect(changes).to_contain_text("a word chosen by hand")


# --- nothing is locked ----------------------------------------------------------


OPENED = {  # a place: what is done there, and what is another one then
    "/operate": ("Hund", "edits.hide"),
    "/decoder/1/cross_attn/0": ("Cut this head", "edits.without"),
}


@pytest.mark.parametrize("path", OPENED)
def test_a_control_acts_before_the_model_is_there(translator, path) -> None:
    name, changed = OPENED[path]
    go(translator, path)
    translator.locator(".machine-live").get_by_role(
        "button", name=name, exact=True
    ).last.click()
    wait(translator, f"machine.state.view.{changed}")
    expect(translator.locator(".machine-changes")).to_contain_text("Now: ")


@pytest.mark.parametrize("panel", some_now(["search", "cache", "operate"], 0))
def test_a_view_that_needs_the_model_loads_it(page, panel) -> None:
    page.goto((SITE / "book/07_decoder_and_cross_attention.html").resolve().as_uri())
    open_optional(page)
    wait(page, "window.machine?.draws.length")
    shown = "machine.state.losses" if panel == "operate" else "machine.state.search"
    assert not page.evaluate(shown)
    page.locator(f"[data-view={panel}]").click()
    wait(page, shown)
    assert page.evaluate("machine.state.is_ready")


def test_another_word_is_written_before_the_model_is_there(translator) -> None:
    translator.locator(".machine-stage .row.now .choice[role]").first.click()
    wait(translator, "machine.state.view.live?.n_forced")


def test_operate_removes_one_head(loaded) -> None:
    go(loaded, "/operate")
    loaded.get_by_label("Heads of which attention").select_option(CROSS)
    head = button(loaded, "head 2")
    wait_for_change(loaded, head.click)
    assert loaded.evaluate("machine.state.view.edits.without") == {CROSS: [1]}
    text = "A dog is playing a dog in the snow."
    expect(loaded.locator(".machine-changes")).to_contain_text(f"Now: “{text}”")
    expect(button(loaded, "head 2")).to_be_focused()
    wait(loaded, "machine.state.asked.step === 4")  # the first word that is another one


@pytest.mark.parametrize("height", [720, 900])
def test_hand_and_picture_are_on_one_screen(page, height) -> None:
    page.set_viewport_size({"width": 1280, "height": height})
    page.goto((SITE / "book/index.html").resolve().as_uri())
    page.locator("[data-view=operate]").click()
    wait(page, "machine.state.losses")
    for part in (
        ".machine-controls-of-model",
        ".machine-changes",
        ".machine-stage > svg",
    ):
        expect(page.locator(part)).to_be_in_viewport(ratio=1)


def test_strands_and_source_words_are_doors(translator) -> None:
    stage = translator.locator(".machine-stage")
    strand = stage.locator(".lane .flow-1 path").first
    box = strand.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    translator.mouse.move(x, y)
    expect(translator.locator(".machine-hand")).to_have_text("open")
    expect(stage.locator(".machine-door.hot")).to_have_count(1)
    assert stage.evaluate("(x) => getComputedStyle(x).cursor") == "pointer"
    translator.mouse.move(1, 1)
    expect(translator.locator(".machine-hand")).to_be_hidden()
    lanes = stage.locator(".lane")
    lanes.first.focus()
    translator.keyboard.press("ArrowDown")
    expect(lanes.nth(1)).to_be_focused()
    translator.keyboard.press("Enter")
    wait(translator, "machine.path === '/encoder/0' && machine.state.asked.word === 1")


CONTRAST = """() => {
  const parts = (color) => color.match(/[\\d.]+/g).map(Number);
  const light = (rgb) => rgb.map((x) => (x /= 255) <= 0.04045 ? x / 12.92
    : ((x + 0.055) / 1.055) ** 2.4).reduce((sum, x, i) =>
    sum + x * [0.2126, 0.7152, 0.0722][i], 0);
  const root = document.querySelector(".machine");
  const page = parts(getComputedStyle(root).backgroundColor).slice(0, 3);
  return [...document.querySelectorAll(".machine-stage .row:not(.to-come) > text")]
    .filter((each) => each.checkVisibility()).map((each) => {
      const { fill, fillOpacity } = getComputedStyle(each);
      let share = Number(fillOpacity);
      for (let at = each; at !== root; at = at.parentElement) {
        share *= getComputedStyle(at).opacity;
      }
      const seen = parts(fill).slice(0, 3)
        .map((x, i) => share * x + (1 - share) * page[i]);
      const [low, high] = [light(seen), light(page)].sort((a, b) => a - b);
      return (high + 0.05) / (low + 0.05);
    });
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_words_of_past_steps_can_be_read(page, address, theme) -> None:
    page.emulate_media(color_scheme=theme)
    page.goto(address)
    show_step(page, 6)
    ratios = page.evaluate(CONTRAST)
    assert len(ratios) > 10 and min(ratios) >= 4.5


def test_play_waits_for_a_guess_and_goes_on(translator) -> None:
    button(translator, "Predict first").click()
    button(translator, "Play").click()
    asks = translator.locator(".machine-predict")
    translator.evaluate("machine.dispatch({ type: 'tick' })")
    assert translator.evaluate("machine.state.asked.step") == 0  # it waits
    asks.get_by_role("button", name="A", exact=True).click()
    wait(translator, "machine.state.asked.step === 1")
    assert translator.evaluate("machine.state.is_predicting && !machine.state.guess")


# --- what is told to those who listen ------------------------------------------


def test_a_translation_and_a_search_are_told_when_they_are_there(loaded) -> None:
    loaded.evaluate(LISTEN)
    type_and_wait(loaded, SENTENCE)
    hear(loaded, "Translation: Two children")
    show_step(loaded, 1)
    go(loaded, "/search")  # at the step where the picture was
    start = "Beam search. Step 2: 4 kept, 4 dropped. The path of greedy "
    (told,) = hear(loaded, start)
    assert "left the beam" not in told


def test_a_search_has_its_own_steps_and_can_be_made_again(loaded) -> None:
    type_and_wait(loaded, SENTENCE)
    show_step(loaded, 1)
    go(loaded, "/search")
    wait(loaded, "machine.state.search")
    slider = loaded.get_by_label("Step of the search")
    assert slider.evaluate("(x) => x.ariaValueText").startswith("children, 2 of ")
    slider.fill("3")  # the sentence above goes along
    third = loaded.locator(".machine-words button").nth(2)
    expect(third).to_have_class("machine-word now")
    loaded.evaluate(LISTEN)
    loaded.get_by_label("Beams").select_option("2")
    button(loaded, "Search again").click()
    hear(loaded, "First of ")
    assert loaded.evaluate("machine.state.search.n_beams") == 2
    expect(button(loaded, "Search again")).to_be_visible()


def test_places_and_steps_are_told_once(translator) -> None:
    translator.evaluate(LISTEN)
    go(translator, "/decoder/1/cross_attn/3")
    start = "decoder, layer 2, cross-attention, head 4. Step 2 of 9: dog"
    assert len(hear(translator, start)) == 1
    go(translator, "/cache")
    assert len(hear(translator, "Cache. Step 2 adds one column")) == 1
    button(translator, "Next").click()
    assert len(hear(translator, "Step 3 adds one column")) == 1
    go(translator, "/decoder/1")  # nothing more is told of the steps before
    assert len(hear(translator, "decoder, layer 2. Step 3 of 9")) == 1


def test_a_change_moves_no_control(loaded) -> None:
    go(loaded, "/operate")
    name = "Cut cross-attention"
    cut = loaded.get_by_role("group", name=name).get_by_role("button")
    cut.nth(1).focus()
    top = cut.nth(1).bounding_box()["y"]
    wait_for_change(loaded, lambda: loaded.keyboard.press("Space"))
    changes = loaded.locator(".machine-changes")
    expect(changes).to_contain_text("Changed: cross-attention cut in layer 2.")
    results = loaded.locator(".machine-results:not([aria-busy])")
    expect(results).to_contain_text(", now ")
    expect(cut.nth(1)).to_be_focused()
    assert cut.nth(1).bounding_box()["y"] == pytest.approx(top, abs=2)


def test_undoing_in_a_search_leaves_the_focus_at_its_steps(loaded) -> None:
    loaded.evaluate("machine.edit({ causal: false })")
    go(loaded, "/search")
    button(loaded, "Undo all").press("Enter")
    expect(button(loaded, "Next")).to_be_focused()


# --- addresses, and what goes along --------------------------------------------


@pytest.fixture
def link(loaded) -> dict[str, str]:
    """An address of a changed machine, and what it writes."""
    loaded.evaluate("machine.edit({ hide: [1], tgt_positions: false })")
    go(loaded, HEAD)
    wait(loaded, "location.hash.includes('hide') && !machine.state.is_busy")
    text = loaded.evaluate("machine.state.view.text")
    shared = loaded.evaluate("location.href")
    loaded.evaluate("sessionStorage.clear()")
    loaded.goto("about:blank")
    return {"address": shared, "text": text}


def test_the_address_holds_the_state_and_the_place(page, link) -> None:
    page.goto(link["address"])
    assert page.evaluate("machine.path") == HEAD
    edits = {"hide": [1], "tgt_positions": False}
    assert page.evaluate("machine.state.asked.edits") == edits
    load_model(page)
    assert page.evaluate("machine.state.view.text") == link["text"]
    changes = page.locator(".machine-changes")
    told = "hidden: “Schnee”, target positions off"
    expect(changes).to_contain_text(f"Changed: {told}. Now: “{link['text']}”")
    page.evaluate("location.hash = '#machine?%7B%7D'")  # another link
    expect(changes).to_be_hidden()


def test_a_link_shows_no_other_sentence_on_the_way(page, link) -> None:
    page.add_init_script(TELLS)
    page.route(f"**/{MODEL}*", lambda route: None)  # it waits
    page.goto(link["address"], wait_until="commit")
    wait(page, "window.machine?.loading")
    stage = page.locator(".machine-stage")
    expect(stage).to_be_hidden()
    expect(page.locator(".machine-changes")).not_to_contain_text("Without changes")
    page.unroute(f"**/{MODEL}*")
    load_model(page)
    expect(stage).to_be_visible()
    first, *_, last = page.evaluate("told")
    assert first.startswith("Waiting for the model (hidden: ")
    assert [each for each in page.evaluate("told") if "Now: " in each] == [last]


def test_back_goes_to_the_place_before_and_undoes_nothing(page, address) -> None:
    page.goto(f"{address}#machine/decoder/1?{quote(json.dumps({'step': 3}))}")
    load_model(page)
    page.locator("a[href='#machine/decoder/1/cross_attn/2']").click()
    button(page, "Cut this head").click()
    changes = page.locator(".machine-changes")
    expect(changes).to_contain_text("cross-attention cut.")
    page.go_back()
    wait(page, "machine.path === '/decoder/1' && !machine.state.is_busy")
    expect(changes).to_contain_text("cross-attention cut.")
    assert page.evaluate("machine.state.asked.step") == 3


def test_the_focus_goes_on_from_a_control_that_goes_with_its_view(loaded) -> None:
    for path in "/decoder/1", "/operate":
        go(loaded, path)
    button(loaded, "layer 1").focus()
    loaded.go_back()
    link = loaded.get_by_role("link", name="The machine", exact=True)
    expect(link).to_be_focused()


def test_back_from_a_chapter_the_page_stands_where_it_was(loaded) -> None:
    loaded.evaluate("scrollTo(0, 1500)")
    chapter = loaded.get_by_role("link", name="Chapter 7").first
    chapter.evaluate("(x) => x.click()")
    loaded.wait_for_url("**/07_*.html")
    loaded.go_back()
    wait(loaded, "machine.state.view.live && !machine.state.is_busy")
    assert loaded.evaluate("scrollY") == pytest.approx(1500, abs=60)


@pytest.fixture
def chapter(loaded) -> Page:
    """A chapter that was come to with a sentence and a change."""
    type_and_wait(loaded, SENTENCE)
    wait_for_change(loaded, lambda: loaded.evaluate("machine.edit({ hide: [1] })"))
    loaded.goto((SITE / "book/14_reading_attention.html").resolve().as_uri())
    open_optional(loaded)
    wait(loaded, "machine.state.view.live && !machine.state.is_busy")
    return loaded


@pytest.mark.slow
def test_a_chapter_offers_the_sentence_and_keeps_its_own(chapter) -> None:
    text = "A dog is playing a dog in the snow."
    assert chapter.evaluate("machine.state.view.text") == text
    expect(button(chapter, f"“{SENTENCE}”")).to_be_visible()
    type_and_wait(chapter, "Ein Ball.")  # another one, so no offer any more
    expect(chapter.locator(".machine-offer")).to_be_hidden()


@pytest.mark.slow
def test_an_offer_is_taken_with_both_changes_and_told_once(chapter) -> None:
    chapter.evaluate(LISTEN)
    button(chapter, f"“{SENTENCE}”").click()
    changed = "head 2 of decoder layer 3, cross-attention cut, hidden: “Kinder”"
    told = hear(chapter, f"Changed: {changed}. Translation:")
    assert len(told) == 1  # of the new sentence, and of nothing else
    edits = {"without": {CROSS: [1]}, "hide": [1]}  # the chapter's and the reader's
    assert chapter.evaluate("machine.state.view.edits") == edits
    expect(chapter.locator(".machine-stage")).to_be_focused()


@pytest.mark.slow
def test_a_page_that_shares_its_state_takes_the_sentence_over(chapter) -> None:
    chapter.goto((SITE / "book/index.html").resolve().as_uri())
    wait(chapter, "machine.engine && machine.state.view.source === x", SENTENCE)


@pytest.mark.parametrize(
    ("end", "told"),
    [
        ("?%7B%22n_beams%22%3A99%7D", "The address holds a state that can’t be read"),
        ("?%3Cb%3E", "The address holds a state that can’t be read"),
        ("/decoder/9", "nothing at that address"),
    ],
)
def test_an_address_that_makes_no_sense_changes_nothing(
    page, address, end, told
) -> None:
    page.goto(address)
    fresh = page.evaluate("machine.state.asked")
    page.goto("about:blank")
    page.goto(f"{address}#machine{end}")
    assert page.evaluate("machine.state.asked") == fresh
    assert page.evaluate("machine.path") == ""
    expect(page.locator(".machine-status")).to_contain_text(told)


@pytest.mark.parametrize(
    ("text", "told"),
    some_now(
        [
            (
                "ein " * 250,
                "has 251 tokens, and the model reads 128 at most. Take a part",
            ),
            ("a dog " * 125, "tokens, and the model reads 128 at most. Take a part"),
            ("<img src=x onerror=alert(1)>", ""),
            ("Der dog is playing im Schnee.", "German and English mixed"),
            ("Un chien joue dans la neige.", "neither German nor English"),
            ("שלום עולם", "neither German nor English"),
            ("👩‍👩‍👧‍👦", "no words in this. Type"),
            ("...?!", "no words in this. Type"),
            ("   ", "no words in this. Type"),
            ("", "no words in this. Type"),
            ("Ein Hund spielt. Ein Kind lacht. Eine Frau singt.", "Several sentences"),
            ("Ich bin müde.", "expect nonsense"),
        ],
        *(0, 2, 6, 8),
    ),
    ids=str.split,
)
def test_any_sentence_gets_a_true_one_and_leaves_the_page_alive(
    loaded, text, told
) -> None:
    field = loaded.get_by_label("A German sentence")
    field.fill(text)
    field.press("Enter")
    if "tokens" in told or "no words" in told:
        expect(loaded.locator(".machine-status")).to_contain_text(told)
        assert field.input_value() == text  # to be mended
        expect(loaded.locator(".machine-changes")).to_be_hidden()  # no waiting
    else:
        wait(loaded, "machine.state.view.source === x", text)
        expect(loaded.locator(".machine-warning")).to_contain_text(told)
    assert loaded.locator(".machine img").count() == 0
    assert type_and_wait(loaded, SENTENCE).startswith("Two children")
    expect(loaded.locator(".machine-status")).to_be_empty()


# --- one tap, and English -----------------------------------------------------


@pytest.mark.parametrize(
    "choice", some_now(read_choices(), 0, 4), ids=lambda choice: choice["name"]
)
def test_a_tap_before_the_model_is_there_shows_what_it_promises(page, choice) -> None:
    page.goto((SITE / "book/index.html").resolve().as_uri())
    chip, belief = button(page, choice["label"]), page.locator(".machine-belief")
    expect(belief).to_be_hidden()
    chip.click()
    expect(belief).to_contain_text(choice["now"])  # at once, before the model has come
    wait(page, "machine.state.view.live && !machine.state.is_busy")
    asked = page.evaluate("machine.state.asked")
    assert (asked["text"], asked["choice"]) == (choice["text"], choice["name"])
    assert page.evaluate("machine.state.view.text") == choice["now"]
    assert page.evaluate("machine.state.untouched.text") == choice["was"]
    expect(belief).to_contain_text(choice["says"])
    expect(chip).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".machine-origin b")).to_have_text(
        f"“{meaning(choice['text'])}”"
    )
    shown = page.locator(".machine-stage .meaning").all_text_contents()
    assert [*filter(None, shown)] == [english for _, english in gloss(choice["text"])]
    why = belief.locator("a")
    assert (SITE / "book" / why.get_attribute("href")).resolve().exists()
    if choice["was"] != choice["now"]:
        ids = page.evaluate("[machine.state.view.tgt, machine.state.untouched.tgt]")
        pairs = [old == new for old, new in zip(*ids, strict=False)]
        wait(page, "machine.state.asked.step === x", pairs.index(False))
    type_and_wait(page, SENTENCE)
    expect(belief).to_be_hidden()
    assert not page.evaluate("machine.state.asked.edits.without")


def test_an_address_with_a_choice_that_is_gone_shows_what_it_holds(page, address):
    held = quote(json.dumps({"choice": "gone", "text": SENTENCE}))
    page.goto(f"{address}#machine?{held}")
    wait(page, "machine.state.view.source === x", SENTENCE)
    assert page.evaluate("machine.state.asked.choice") == ""
    expect(page.locator(".machine-choices button")).to_have_count(len(read_choices()))


@pytest.mark.slow
def test_english_is_written_in_german_by_the_sister_and_read(translator) -> None:
    field = translator.get_by_label("A German sentence")
    asked = "[...document.scripts].filter((each) => each.src.includes(x)).length"
    assert translator.evaluate(f"(x) => {asked}", "multi30k-en-de") == 0
    field.fill("A dog plays in the snow.")
    warning = translator.locator(".machine-warning")
    expect(warning).to_contain_text("English: a sister model")
    load_model(translator)
    translator.evaluate(LISTEN)
    field.press("Enter")
    wait(translator, "machine.state.view.source === x", "Ein Hund spielt im Schnee.")
    told = hear(translator, "Translation: A dog is playing")
    assert not any("being loaded" in words for words in told)
    expect(field).to_have_value("Ein Hund spielt im Schnee.")
    expect(translator.locator(".machine-origin b")).to_have_text(
        "“A dog plays in the snow.”"
    )
    assert translator.evaluate("machine.state.view.text").startswith("A dog is playing")
    assert translator.evaluate(f"(x) => {asked}", "multi30k-en-de") > 10
    kept = translator.evaluate("machine.address")
    translator.goto("about:blank")
    translator.goto(kept)
    expect(translator.locator(".machine-origin b")).to_contain_text("A dog plays")


def test_a_far_sentence_is_told_of_before_it_is_asked_for(translator) -> None:
    told = translator.locator(".machine-warning")
    for text in "I love you.", "Wie geht es dir?", "Good morning!":
        translator.locator("#machine-field").fill(text)
        expect(told).to_contain_text("expect nonsense")
    assert translator.evaluate("machine.state.view.source") != "Wie geht es dir?"


def test_a_sister_that_is_missing_is_named_and_german_goes_on(loaded, trouble) -> None:
    loaded.evaluate("machine.sisters = ['nowhere.js']")
    field = loaded.get_by_label("A German sentence")
    field.fill("A dog plays in the snow.")
    field.press("Enter")
    status = loaded.locator(".machine-status")
    expect(status).to_contain_text("part 1 of 1 of the model didn’t come")
    expect(status).to_contain_text("Type it in German, or try again.")
    assert type_and_wait(loaded, SENTENCE).startswith("Two children")
    trouble.clear()  # it was asked for and missed, as it should


def test_a_part_of_the_model_that_is_missing_is_named(translator, trouble) -> None:
    translator.evaluate("""() => { window.MACHINE_PARTS = machine.addresses;
    machine.addresses = [machine.addresses[0], "nowhere.js"]; }""")
    translator.get_by_label("A German sentence").focus()
    status = translator.locator(".machine-status")
    expect(status).to_contain_text("part 2 of 2 of the model didn’t come")
    assert translator.evaluate("machine.engine") is None
    go(translator, "/decoder/1/cross_attn/0")
    button(translator, "Cut this head").click()  # it is tried again, and told once
    wait(translator, "!machine.loading")
    told = translator.locator(".machine-changes")
    expect(told).to_contain_text(
        "the connection is gone. Not done: head 1 of decoder layer 2, cross-attention"
    )
    expect(status).to_have_text("")
    translator.evaluate("machine.addresses = MACHINE_PARTS")
    button(translator, "Try again").click()
    wait(translator, "machine.state.view.edits.without")  # what was asked for is done
    expect(status).to_be_empty()
    trouble.clear()  # it was asked for and missed, as it should


@pytest.mark.parametrize("kind", ["SVG", "PNG"])
def test_a_view_can_be_saved(page, address, kind) -> None:
    page.goto(f"{address}#machine?{quote(json.dumps({'reference': 'x' * 600}))}")
    page.locator(".machine-more summary").click()
    with page.expect_download() as download:
        button(page, f"Save as {kind}").click()
    note = page.locator(".machine-more small")
    expect(note).to_have_text(f"Saved as machine.{kind.lower()}, for a slide.")
    content = Path(download.value.path()).read_bytes()
    if kind == "PNG":
        assert content.startswith(b"\x89PNG") and len(content) > 20_000
    else:
        assert b"var(" not in content and b"translator.html#machine" in content
        assert content.count(b"x") > 600 and b">" + b"x" * 150 in content  # by lines


def test_a_link_can_be_copied_and_is_an_old_one_after_a_move(translator) -> None:
    translator.locator(".machine-more summary").click()
    button(translator, "Copy link").click()
    note = translator.locator(".machine-more small")
    expect(note).not_to_be_empty()
    go(translator, "/decoder/1")
    expect(note).to_be_empty()


# --- without a script, on paper, small -----------------------------------------


def test_without_scripts_the_pictures_stand(browser, address) -> None:
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
    expect(plain.locator(".machine-choices")).to_have_count(0)  # no dead buttons
    context.close()


def test_on_paper_the_pictures_stand(translator) -> None:
    translator.emulate_media(media="print")
    still = translator.locator(".machine-still")
    expect(still.locator("svg").first).to_be_visible()
    assert still.locator(".wide .asks >> visible=true").count() == 1
    expect(translator.locator(".machine-live")).to_be_hidden()


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
    translator,
) -> None:
    type_and_wait(translator, " ".join([SENTENCE[:-1]] * 7))
    assert translator.evaluate("machine.state.view.src.length") > 35
    doors = translator.locator(".machine-stage .machine-door")
    assert all(door.bounding_box()["height"] >= 44 for door in doors.all())
    stage = "document.querySelector('.machine-stage')"
    assert translator.evaluate(f"{stage}.scrollWidth <= {stage}.clientWidth")


@pytest.mark.browser_context_args(viewport=PHONE)
def test_no_line_of_words_begins_with_a_full_stop(translator) -> None:
    page = translator
    pieces = "[...document.querySelectorAll('.machine-words .joined')]"
    same = "Math.abs(x.offsetTop - x.previousElementSibling.offsetTop) < 9"
    for width in *range(300, 390, 6), 390:
        page.set_viewport_size({**PHONE, "width": width})
        assert page.evaluate(f"{pieces}.length && {pieces}.every((x) => {same})")


@pytest.mark.browser_context_args(viewport=PHONE)
def test_on_a_phone_a_change_is_told_above_its_switch(loaded) -> None:
    page = loaded
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


def test_the_script_is_small_and_the_weights_come_in_parts(page, address) -> None:
    folder = SITE / "_static" / "machine"
    sizes = {
        path.stem: len(gzip.compress(path.read_bytes())) for path in folder.glob("*.js")
    }
    assert sizes.pop("machine") < 46_500
    for name in MODEL, SISTER:
        parts = [size for part, size in sizes.items() if part.startswith(name)]
        assert 10 < len(parts) < 20 and sum(parts) < 6_400_000
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


@pytest.mark.parametrize("chapter", some_now(CHAPTERS, 0))
def test_a_chapter_has_a_machine_that_works_alone(page, chapter) -> None:
    page.goto((SITE / "book" / f"{chapter}.html").resolve().as_uri())
    open_optional(page)
    assert page.locator(".machine").count() == 1
    assert page.evaluate("machine.path") == CHAPTERS[chapter]
    wait(page, "document.querySelector('.machine-live').innerText.length > 100")
    type_and_wait(page, SENTENCE)
    assert page.evaluate("machine.state.view.text").startswith("Two children")
