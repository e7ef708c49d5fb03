"""The desks in the built pages: where they are, and what a reader does at one.

What needs no page is tested by Node, in book/machine/tests.
"""

from __future__ import annotations

import gzip
import json
import re
from contextlib import contextmanager

import lxml.html
import nbformat
import pytest
from built_site import SITE
from playwright.sync_api import Page, expect

from book._ext.page_rules import accessibility, complaints, sideways, width
from book._ext.toc import ROOT
from transformer_book.yours.parts import PARTS

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("browser_wanted", "current_pages"),
]

PART = PARTS["attention"]
CHAPTER = f"book/{PART.chapter}"
PHONE = pytest.mark.browser_context_args(
    viewport={"width": 320, "height": 700}, has_touch=True, is_mobile=True
)
SECONDS = 60_000  # ms that Python may take to come
WRONG = """\
def scaled_dot_product_attention(
    query, key, value, mask=None, dropout=0.0
):
    scores = query @ key.transpose(-2, -1)
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = scores.softmax(dim=-1)
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)
    return weights @ value, weights"""
RIGHT = WRONG.replace("(-2, -1)", "(-2, -1) / math.sqrt(query.size(-1))")
ENDLESS = f"{WRONG}\n\n\nwhile True:\n    pass"
REFUSES = """Storage.prototype.setItem = function () {{
  throw new DOMException("no", "{}");
}};"""
FORBIDS = """Object.defineProperty(window, "localStorage", {
  get() { throw new DOMException("no", "SecurityError"); } });"""


@pytest.fixture
def address() -> str:
    return (SITE / f"{CHAPTER}.html").resolve().as_uri()


@pytest.fixture
def desk(page: Page, address):
    """The desk of chapter 2."""
    page.goto(f"{address}#yours-attention")
    return at(page)


def at(page: Page):
    desk = page.locator("#yours-attention")
    expect(desk).to_have_class(re.compile("yours-ready"))
    return desk


def button(desk, name: str):
    return desk.get_by_role("button", name=name, exact=True)


def field(desk):
    return desk.locator(".cm-content")


def enter(desk) -> None:
    button(desk, "Write it here").click()
    expect(field(desk)).to_be_focused()


def write(desk, text: str) -> None:
    """Write a text in the place of what is there, as by pasting it."""
    if button(desk, "Write it here").is_visible():
        enter(desk)
    field(desk).focus()
    desk.page.keyboard.press("ControlOrMeta+A")
    desk.page.keyboard.insert_text(text)


def text_of(desk) -> str:
    lines = desk.locator(".cm-line").all_text_contents()
    return "\n".join(lines).rstrip()


def check(desk, text: str):
    """Have a text checked; the sentence."""
    write(desk, text)
    button(desk, "Check").click()
    says = desk.locator(".yours-says")
    expect(says).to_be_visible(timeout=SECONDS)
    return says


# --- what is written into the pages -----------------------------------------------


@pytest.mark.parametrize("name", PARTS)
def test_a_part_has_one_desk_before_its_folded_cell(name):
    part = PARTS[name]
    notebook = nbformat.read(ROOT / f"book/{part.chapter}.ipynb", as_version=4)
    [cell] = [
        cell
        for cell in notebook.cells
        if f"yours-{name}" in cell.metadata.get("tags", [])
    ]
    html = lxml.html.parse(SITE / f"book/{part.chapter}.html")
    [desk] = html.xpath(f"//div[@id='yours-{name}']")
    for defined in part.defines:
        assert defined in desk.xpath("string(p[1])")
    [stub] = desk.xpath("div[@class='yours-field']//pre")
    assert stub.text_content().strip() == part.stub.strip()
    data = json.loads(desk.xpath("string(script)"))
    assert data["solution"] == part.solution.strip()
    tries = desk.xpath(".//div[contains(@class, 'yours-tries')]/button/text()")
    assert [each["label"] for each in data["tries"]] == tries
    [fold] = desk.getnext().xpath("details")
    assert fold.xpath("string(summary)") == "Read it instead: the book’s own"
    assert fold.xpath("string(.//pre)").strip() == cell.source.strip()
    assert fold.xpath(".//details") == []
    loose = desk.getnext().xpath("div[contains(@class, 'cell_output')]")
    assert bool(loose) == (bool(cell.outputs) and name != "attention")
    needs = "one line before the softmax" if name == "attention" else "translate with"
    assert needs in desk.xpath("string(p[2])")


def test_the_front_page_leads_to_every_desk():
    html = lxml.html.parse(SITE / "book/index.html")
    links = html.xpath("//div[@class='yours-boxes']//a[@data-part]")
    assert [link.get("data-part") for link in links] == [*PARTS]
    for link in links:
        page, anchor = link.get("href").split("#")
        there = lxml.html.parse(SITE / "book" / page)
        assert there.xpath(f"//div[@class='yours'][@id='{anchor}']")
    [start] = html.xpath("//a[@class='yours-start']/@href")
    assert start == links[0].get("href")


def test_a_page_whose_editor_is_never_entered_loads_a_small_script(page, address):
    loaded = []
    page.on("request", lambda request: loaded.append(request.url.split("/")[-1]))
    page.goto(address)
    at(page)
    page.wait_for_timeout(300)
    assert any(name.startswith("desks.js") for name in loaded)
    late = ("yours.js", "editor.js", "list.js", "python-")
    assert not any(name.startswith(late) for name in loaded)
    script = (SITE / "_static/machine/desks.js").read_bytes()
    assert len(gzip.compress(script, 6)) < 2_500


@pytest.mark.browser_context_args(java_script_enabled=False)
def test_without_a_script_there_are_the_text_and_the_books_own(page, address):
    page.goto(f"{address}#yours-attention")
    desk = page.locator("#yours-attention")
    expect(desk.locator("pre")).to_contain_text("def scaled_dot_product_attention(")
    expect(desk.get_by_text("That needs JavaScript")).to_be_visible()
    assert desk.locator("button >> visible=true").count() == 0
    page.locator(".yours-own summary").click()
    expect(page.locator(".yours-own pre").first).to_contain_text("softmax")


def test_on_paper_the_cell_is_open_and_no_desk(page, desk, address):
    page.emulate_media(media="print")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    expect(desk).to_be_hidden()
    expect(page.locator(".yours-own summary")).to_be_hidden()
    expect(page.locator(".yours-own .cell_input pre")).to_be_visible()


# --- writing -----------------------------------------------------------------------


def test_nothing_moves_when_the_field_is_entered(desk):
    place = desk.locator(".yours-field")
    page_height = "document.body.scrollHeight"
    before, height = place.bounding_box(), desk.page.evaluate(page_height)
    enter(desk)
    assert place.bounding_box() == before
    hint = desk.locator(".yours-hint").bounding_box()["height"]
    assert desk.page.evaluate(page_height) - height < 2 * hint + 2
    assert text_of(desk) == PART.stub.rstrip()


@pytest.mark.parametrize("size", [(1280, 900), (390, 844)], ids=["wide", "phone"])
def test_who_begins_stands_at_the_first_open_place(page, size):
    page.set_viewport_size({"width": size[0], "height": size[1]})
    page.goto((SITE / f"book/{PARTS['sublayers'].chapter}.html").resolve().as_uri())
    desk = page.locator("#yours-sublayers")
    expect(desk).to_have_class(re.compile("yours-ready"))
    height = desk.locator(".yours-field").bounding_box()["height"]
    enter(desk)
    assert page.evaluate("getSelection().toString()") == "..."
    expect(desk.locator(".cm-line").get_by_text("...").first).to_be_in_viewport()
    assert desk.locator(".yours-field").bounding_box()["height"] >= height
    page.keyboard.type("pass")
    assert "pass" in text_of(desk)
    assert page.evaluate("document.activeElement.className").startswith("cm-content")


def test_the_keyboard_leads_in_and_out(desk):
    button(desk, "Write it here").press("Enter")
    expect(field(desk)).to_be_focused()
    press = desk.page.keyboard.press
    press("ControlOrMeta+End")
    press("Enter")
    press("Tab")
    desk.page.keyboard.type("x = (1")
    assert text_of(desk).endswith("    x = (1)")  # closed by itself
    press("Shift+Tab")
    press("ControlOrMeta+z")
    expect(field(desk)).to_be_focused()
    expect(desk.locator(".yours-hint")).to_contain_text("Escape, then Tab leaves")
    press("Escape")
    expect(desk.locator(".yours-keys")).to_have_text("Tab leaves the field now.")
    press("Tab")
    expect(button(desk, "Check")).to_be_focused()
    expect(desk.locator(".yours-spoken")).to_have_text("Tab leaves the field now.")
    text = text_of(desk)
    press("Shift+Tab")
    expect(field(desk)).to_be_focused()
    press("Tab")  # until something is typed
    expect(button(desk, "Check")).to_be_focused()
    assert text_of(desk) == text
    press("Shift+Tab")
    desk.page.keyboard.type("y")
    press("Tab")
    expect(field(desk)).to_be_focused()
    press("Escape")
    press("Shift+Tab")
    expect(field(desk)).not_to_be_focused()


def test_what_is_pasted_from_elsewhere_is_made_fit(desk):
    enter(desk)
    desk.page.keyboard.press("ControlOrMeta+Home")
    desk.page.evaluate(
        """() => {
          const data = new DataTransfer();
          data.setData("text/plain", "if True:\\r\\n\\tx\\u00a0= 1\\r\\n");
          document.activeElement.dispatchEvent(new ClipboardEvent("paste",
            { clipboardData: data, bubbles: true, cancelable: true }));
        }"""
    )
    assert text_of(desk).startswith("if True:\n    x = 1\n")
    expect(desk.get_by_text("plain spaces now").first).to_be_visible()


@PHONE
def test_on_a_phone_text_wraps_as_in_the_editor_and_buttons_are_in_reach(desk):
    lines = """() => [...document.querySelectorAll(
      ".yours-field :is(pre > span, .cm-line)")].map(
      (line) => Math.round(line.getBoundingClientRect().height))"""
    title = desk.locator(".yours-title")
    title.evaluate("(each) => each.scrollIntoView()")
    expect(button(desk, "Write it here")).to_be_in_viewport(ratio=1)
    heights = desk.page.evaluate(lines)
    assert len(heights) == len(PART.stub.strip().splitlines()) and len({*heights}) > 2
    enter(desk)
    assert desk.page.evaluate(lines) == heights
    title.evaluate("(each) => each.scrollIntoView()")
    expect(title).to_be_in_viewport()
    expect(button(desk, "Check")).to_be_in_viewport(ratio=1)


@PHONE
def test_on_a_phone_nothing_scrolls_sideways_and_nothing_zooms_in(desk):
    write(desk, f"{RIGHT}\n# {'x' * 300}")
    assert complaints(desk.page, [sideways, width]) == []
    size = "(each) => parseFloat(getComputedStyle(each).fontSize)"
    assert field(desk).evaluate(size) >= 16
    for name in ("autocorrect", "autocapitalize", "autocomplete"):
        assert field(desk).get_attribute(name) == "off"
    for each in desk.locator("button >> visible=true").all():
        assert each.bounding_box()["height"] >= 44


def test_a_desk_is_accessible(desk):
    says = check(desk, WRONG + "\nprint('seen')")
    expect(says).to_be_visible()
    assert complaints(desk.page, [accessibility]) == []


# --- what is kept ------------------------------------------------------------------


def test_the_text_stays_until_it_is_forgotten(page, desk):
    write(desk, RIGHT)
    page.reload()
    desk = at(page)
    expect(field(desk)).to_be_visible()  # without a click: it was entered before
    assert text_of(desk) == RIGHT
    button(desk, "Start again").click()
    button(desk, "Begin again").click()
    assert text_of(desk) == PART.stub.rstrip()
    page.reload()
    desk = at(page)
    button(desk, "Bring back my text").click()
    expect(field(desk)).to_contain_text("math.sqrt")
    desk.locator(".yours-keep summary").click()
    button(desk, "Forget").click()
    button(desk, "Forget it").click()
    assert page.evaluate("Object.keys(localStorage)") == []
    page.reload()
    expect(button(at(page), "Write it here")).to_be_visible()


def test_an_older_editions_text_is_kept_and_said_to_be_one(page, desk):
    page.evaluate(
        "(text) => localStorage.setItem('yours-attention', JSON.stringify(text))",
        {"text": RIGHT, "edition": "0.1.0"},
    )
    page.reload()
    desk = at(page)
    assert text_of(desk) == RIGHT or field(desk).count() == 0
    expect(desk.get_by_text("edition 0.1.0")).to_be_visible()


def test_two_tabs_lose_nothing(page, desk, address):
    write(desk, WRONG)
    page.wait_for_timeout(600)  # until it's kept
    other = page.context.new_page()
    other.goto(address)
    there = at(other)
    there.scroll_into_view_if_needed()
    expect(field(there)).to_be_visible()
    assert text_of(there) == WRONG
    write(there, RIGHT)
    expect(desk.locator(".yours-asks")).to_contain_text("another tab")
    assert text_of(desk) == WRONG
    button(desk, "Take it").click()
    assert text_of(desk) == RIGHT
    button(desk, "Bring back my text").click()
    assert text_of(desk) == WRONG
    expect(there.locator(".yours-asks")).to_contain_text("another tab")
    button(there, "Keep mine").click()
    expect(desk.locator(".yours-asks")).to_contain_text("another tab")
    assert text_of(there) == RIGHT
    other.close()


def test_an_unanswered_question_of_another_tab_loses_nothing(page, desk, address):
    write(desk, WRONG)
    page.wait_for_timeout(600)
    other = page.context.new_page()
    other.goto(address)
    there = at(other)
    there.scroll_into_view_if_needed()
    expect(field(there)).to_be_visible()
    write(there, RIGHT)
    expect(desk.locator(".yours-asks")).to_contain_text("another tab")
    write(desk, f"{WRONG}\n# more")
    page.reload()
    desk = at(page)
    expect(field(desk)).to_contain_text("math.sqrt")
    button(desk, "Bring back my text").click()
    assert text_of(desk) == f"{WRONG}\n# more"
    assert text_of(there) == RIGHT
    other.close()


@pytest.mark.parametrize(
    ("script", "words"),
    [
        (REFUSES.format("QuotaExceededError"), "no room left"),
        (REFUSES.format("SecurityError"), "keeps nothing"),
        (FORBIDS, "keeps nothing"),
    ],
    ids=["full", "refused", "forbidden"],
)
def test_a_storage_that_refuses_is_told_of_and_the_text_stays(
    page, address, trouble, script, words
):
    page.add_init_script(script)
    page.goto(f"{address}#yours-attention")
    desk = at(page)
    write(desk, RIGHT)
    told = desk.locator(".yours-trouble:not(:empty)")
    expect(told).to_have_count(1)
    expect(told).to_contain_text(words)
    assert text_of(desk) == RIGHT
    trouble[:] = [line for line in trouble if "DOMException" not in line]
    trouble[:] = [
        line for line in trouble if "throws no" not in line
    ]  # of other scripts


def test_a_text_can_be_saved(page, desk):
    write(desk, RIGHT)
    desk.locator(".yours-keep summary").click()
    for name, ending in ("Save as a file", "py"), ("Save as a notebook", "ipynb"):
        with page.expect_download() as found:
            button(desk, name).click()
        assert found.value.suggested_filename == f"my_attention.{ending}"
        text = found.value.path().read_text(encoding="utf-8")
        if ending == "ipynb":
            notebook = nbformat.reads(text, as_version=4)
            nbformat.validate(notebook)
            text = notebook.cells[-1].source
        space = {}
        exec(text, space)
        assert callable(space["scaled_dot_product_attention"])


# --- checking ----------------------------------------------------------------------


def test_a_wrong_answer_gets_its_sentence_and_may_run_anyway(page, desk):
    says = check(desk, f"{WRONG}\n\n\nprint('seen')")
    expect(says).to_have_class(re.compile("feedback-wrong"))
    expect(says).to_contain_text("square root of d_head")
    expect(desk.locator(".yours-printed")).to_contain_text("s")
    expect(desk.locator(".yours-spoken")).to_contain_text("square root")
    expect(desk.locator(".yours-result")).to_be_hidden()
    button(desk, "Run it anyway").click()
    expect(desk.locator(".yours-lines dd").first).to_be_visible(timeout=SECONDS)


def test_a_right_answer_runs_the_machine_and_is_counted(page, desk):
    says = check(desk, RIGHT)
    expect(says).to_have_class(re.compile("feedback-right"))
    first = desk.locator(".yours-lines dd").first
    expect(first).to_contain_text("The same as the book’s", timeout=SECONDS)
    spoken = desk.locator(".yours-spoken")
    expect(spoken).to_contain_text("The same as the book’s")
    write(desk, f"{RIGHT}\n# later")
    expect(desk.locator(".yours-lines dt").first).to_have_text(
        "from your last right text"
    )
    expect(says).to_contain_text("before your last change")
    page.goto((SITE / "book/index.html").resolve().as_uri())
    boxes = page.locator(".yours-boxes")
    expect(boxes).to_contain_text(f"1 of {len(PARTS)} is yours")
    expect(boxes.locator(".is-yours")).to_have_attribute("data-part", "attention")
    start = boxes.get_by_role("link", name="Go on")
    assert start.get_attribute("href").endswith("#yours-positions")


def test_control_enter_checks_and_an_error_leads_to_its_line(page, desk):
    write(desk, f"{RIGHT}\n\n\ndef broken():\n    return (")
    page.keyboard.press("ControlOrMeta+Enter")
    line = desk.get_by_role("button", name="Go to line")
    expect(line).to_be_visible(timeout=SECONDS)
    expect(desk.locator(".yours-says")).to_contain_text("SyntaxError")
    expect(desk.locator(".cm-line.yours-marked")).to_contain_text("return (")
    button(desk, "Check").focus()
    line.click()
    expect(field(desk)).to_be_focused()
    page.keyboard.type("1)")
    expect(desk.locator(".yours-marked")).to_have_count(0)


def test_an_endless_loop_is_stopped_and_the_next_check_works(desk):
    write(desk, ENDLESS)
    button(desk, "Check").click()
    expect(desk.locator(".yours-waits")).to_contain_text("Checking", timeout=SECONDS)
    button(desk, "Stop").click()
    expect(desk.locator(".yours-trouble").first).to_contain_text("You’ve stopped it")
    assert text_of(desk) == ENDLESS
    expect(check(desk, WRONG)).to_contain_text("square root")


@pytest.mark.slow
def test_an_endless_loop_ends_by_itself(desk):
    write(desk, ENDLESS)
    button(desk, "Check").click()
    button(desk, "Stop").focus()
    told = desk.locator(".yours-trouble").first
    expect(told).to_contain_text("ten seconds", timeout=SECONDS)
    expect(button(desk, "Stop")).to_be_focused()  # until the reader goes on
    desk.page.keyboard.press("Tab")
    expect(button(desk, "Stop")).to_be_hidden()


def test_a_sentence_without_words_is_told_at_its_field(desk):
    write(desk, RIGHT)
    button(desk, PART.tries[0].label).click()
    expect(button(desk, "The book’s own again")).to_be_visible(timeout=SECONDS)
    sentence = desk.get_by_role("textbox", name="German", exact=True)
    sentence.fill(" … ")
    button(desk, "Translate").click()
    expect(sentence).to_be_focused()
    expect(sentence).to_have_accessible_description(re.compile("no words in this"))
    sentence.fill("Ein Hund.")
    expect(sentence).to_have_accessible_description("")


def test_the_solution_comes_after_two_attempts(page, desk):
    check(desk, WRONG)
    button(desk, "Solution").click()
    expect(desk.get_by_text("1 to go").first).to_be_visible()
    assert text_of(desk) == WRONG
    expect(check(desk, f"{WRONG}\n# again")).to_contain_text("square root")
    button(desk, "Solution").click()
    expect(desk.locator(".yours-asks")).to_contain_text("you can have it back")
    expect(button(desk, "No")).to_be_focused()
    page.keyboard.press("Escape")
    expect(button(desk, "Solution")).to_be_focused()
    assert text_of(desk) == f"{WRONG}\n# again"
    button(desk, "Solution").click()
    button(desk, "Show the book’s").click()
    assert text_of(desk) == PART.solution.strip()
    expect(field(desk)).to_be_focused()
    expect(desk.locator(".yours-spoken")).to_contain_text("stands in the field now")
    button(desk, "Bring back my text").click()
    assert text_of(desk) == f"{WRONG}\n# again"


def test_a_mistake_is_tried_without_touching_the_text(desk):
    label = PART.tries[0].label
    write(desk, RIGHT)
    button(desk, label).click()
    result = desk.locator(".yours-result")
    expect(result).to_contain_text("this sentence", timeout=SECONDS)
    expect(result.locator("dt").first).to_have_text("with the mistake")
    assert text_of(desk) == RIGHT
    expect(button(desk, label)).to_have_attribute("aria-pressed", "true")
    button(desk, "The book’s own again").click()
    expect(result.locator("dt")).to_have_text(["the book’s"])
    expect(desk.locator(".yours-spoken")).to_have_text(
        re.compile("^The book’s own again: ")
    )
    expect(button(desk, "Translate")).to_be_hidden()
    expect(button(desk, "Check")).to_be_focused()
    expect(button(desk, "Check")).to_be_in_viewport()


@PHONE
def test_on_a_phone_what_comes_is_seen(page, desk):
    write(desk, RIGHT)
    page.keyboard.press("ControlOrMeta+Home")
    page.keyboard.press("ControlOrMeta+Enter")
    says = desk.locator(".yours-says")
    expect(says).to_be_in_viewport(timeout=SECONDS)
    expect(desk.locator(".yours-lines dd").first).to_be_in_viewport(timeout=SECONDS)
    expect(says).to_be_in_viewport()
    button(desk, PART.tries[0].label).click()
    term = desk.locator(".yours-lines dt").first
    expect(term).to_have_text("with the mistake", timeout=SECONDS)
    expect(says).to_be_hidden()  # it is of the text, not of the mistake
    expect(desk.locator(".yours-lines dd").first).to_be_in_viewport()
    expect(desk.locator(".yours-tries")).to_be_in_viewport()
    button(desk, "The book’s own again").click()
    expect(says).to_be_visible()


# --- where the editor doesn't come ------------------------------------------------


@contextmanager
def without(page: Page, name: str):
    page.route(f"**/{name}*", lambda route: route.abort())
    yield
    page.unroute(f"**/{name}*")


def test_without_the_editor_a_plain_field_does(page, address, trouble):
    with without(page, "editor.js"):
        page.goto(f"{address}#yours-attention")
        desk = at(page)
        button(desk, "Write it here").click()
        area = desk.locator(".yours-field textarea")
        expect(area).to_be_focused()
        assert area.input_value() == PART.stub.strip()
        area.fill(WRONG)
        area.press("ControlOrMeta+Enter")
        says = desk.locator(".yours-says")
        expect(says).to_contain_text("square root", timeout=SECONDS)
    trouble[:] = [line for line in trouble if "editor.js" not in line]
    trouble[:] = [line for line in trouble if "ERR_FAILED" not in line]
