"""The machine in the built pages on the reader's own parts; a Python that is made up.

What needs no page is tested by Node, in book/machine/tests/parts.test.js; Python itself
by test_yours_page.py.
"""

from __future__ import annotations

import json
import re

import pytest
from built_site import SITE
from playwright.sync_api import Page, expect

from book._ext.page_rules import wait_until
from book._ext.sphinx_yours_machine import PAGE, VIEW, stored_machine
from book._ext.toc import ROOT
from transformer_book.charts.machine import read_choices


def in_browser(test):
    """Mark a test that opens pages: `make test-slow` runs it."""
    marks = pytest.mark.usefixtures("browser_wanted", "current_pages"), pytest.mark.slow
    return marks[0](marks[1](test))


SENTENCE = "Zwei Kinder laufen am Strand."
WITH_MACHINE, WITHOUT = "02_scaled_dot_product_attention", "05_layer_norm_and_residuals"
NAMES = re.findall(
    r"^  (\w+): \{ owned", (ROOT / "book/machine/yours/parts.js").read_text(), re.M
)
SOURCE = "def answer(x):\n\n    return x\n"  # two lines of code

# A Python that answers as the engine does with heads cut: window.does says what else.
FAKE = """window.does = {};
for (const part of PARTS) {
  localStorage.setItem(`yours-${part}`, JSON.stringify({ text: "x", best: SOURCE }));
}
const engine = () => [window.machine, window.second].find((app) => app?.engine).engine;
const cut = { "decoder.layers.1.cross_attn": [0, 1, 2, 3, 4] };
const moment = () => new Promise((done) => setTimeout(done, 20));
let is_ended = false;
const python = {
  worker: 1, asked: [],
  async start(on_progress) {
    on_progress({ loaded: 2e6, total: 6.3e6 });
    await moment();
  },
  async ask(task, question, { on_progress } = {}) {
    python.asked.push([task, question]);
    await moment();
    const [name, message] = does.fails || [];
    if (name) throw Object.assign(new Error(message), { name });
    if (task === "load" || task === "use") return {};
    is_ended = false;
    do {
      on_progress?.(0.5);
      await moment();
    } while (does.lasts && !is_ended);
    if (is_ended) throw Object.assign(new Error("Stopped."), { name: "Stopped" });
    const answer = await engine()(task, { ...question, edits: { without: cut } });
    return { ...answer, ...does[task] };
  },
  stop() { is_ended = true; },
};
let own; // the page's, with another Python
Object.defineProperty(window, "machine_yours", { get: () => own,
  set({ shared, completed }) {
    const Shared = shared.constructor;
    own = { completed, python: () => python, shared: new Shared(() => python) };
  } });
window.python = python;
"""


def open_page(page: Page, name: str, parts: list[str], once: bool = False) -> None:
    script = FAKE.replace("PARTS", json.dumps(parts)).replace(
        "SOURCE", json.dumps(SOURCE)
    )
    page.add_init_script(f"(() => {{ {script} }})();")
    page.goto((SITE / "book" / f"{name}.html").resolve().as_uri())


def wait(page: Page, condition: str) -> None:
    """Wait for a condition."""
    wait_until(page, f"Boolean({condition})", seconds=60)


def switch(page: Page):
    return page.get_by_label("Run on your parts")


def switch_on(page: Page) -> None:
    switch(page).check()
    wait(page, "!machine.state.is_busy && machine.state.is_ready")


def changes(page: Page) -> str:
    return page.locator(".machine-changes").inner_text()


# --- one machine ------------------------------------------------------------------


@in_browser
def test_without_parts_of_ones_own_there_is_no_switch(page) -> None:
    open_page(page, "translator", [])
    wait(page, "document.querySelector('.machine-alive')")
    expect(page.locator(".machine-yours")).to_be_hidden()
    assert page.locator("script[src*='yours.js']").count() == 0


@in_browser
def test_the_machine_runs_on_parts_of_ones_own_until_they_are_switched_off(
    page,
) -> None:
    open_page(page, "translator", ["masks", "attention"])
    expect(page.locator(".machine-yours")).to_have_text("Run on your parts (2 of 9)")
    expect(switch(page)).not_to_be_checked()
    assert page.locator("script[src*='yours.js']").count() == 0
    switch_on(page)
    assert page.evaluate("python.asked.map(([task]) => task)") == [
        *("load", "use", "write", "look")
    ]
    view = page.evaluate("[machine.state.view.text, machine.state.untouched.text]")
    now, before = view
    assert now != before
    assert changes(page).startswith(
        "Changed: your attention, your masks; the rest is the book’s. "
        f"Now: “{now}” instead of “{before}”"
    )
    door = page.locator(".machine-stage [aria-label^='Open decoder layer 2']")
    assert door.get_attribute("aria-label").endswith(": your attention, your masks")
    assert "yours" in door.text_content() and "yours" not in page.url
    page.get_by_role("button", name="Undo all").click()
    wait(page, "!machine.state.is_busy")
    expect(switch(page)).not_to_be_checked()
    assert page.evaluate("machine.state.view.text") == before


@in_browser
def test_the_tab_keeps_it_and_an_address_does_not(page) -> None:
    open_page(page, "translator", ["attention"])
    switch_on(page)
    page.reload()
    wait(page, "machine.state.view.edits.yours")
    expect(switch(page)).to_be_checked()
    held = json.dumps({"edits": {"yours": ["attention"]}})
    page.evaluate("() => sessionStorage.clear()")
    page.goto((SITE / "book/errata.html").resolve().as_uri())
    page.goto(f"{(SITE / 'book/translator.html').resolve().as_uri()}#machine?{held}")
    status = page.locator(".machine-status")
    expect(status).to_contain_text("The address holds a state that can’t be read")
    expect(switch(page)).not_to_be_checked()


@in_browser
@pytest.mark.parametrize(
    ("does", "says"),
    [
        ({"fails": ["Problem", "Your attention gave a list."]}, "gave a list."),
        ({"fails": ["TooLong", "Ten seconds went by."]}, "Ten seconds went by."),
        ({"write": {"ids": [], "text": ""}}, "Your code wrote nothing"),
    ],
)
def test_what_goes_wrong_is_a_sentence(page, does, says) -> None:
    open_page(page, "translator", ["attention"])
    page.evaluate("(does) => Object.assign(window.does, does)", does)
    switch_on(page)
    expect(page.locator(".machine-status")).to_contain_text(says)
    assert "Not done" in changes(page)
    page.evaluate("() => { window.does = {}; }")
    page.get_by_role("button", name="Undo all").click()
    wait(page, "!machine.state.is_busy && !machine.state.status")


@in_browser
def test_a_run_can_be_stopped_and_the_page_goes_on_meanwhile(page) -> None:
    open_page(page, "translator", ["attention"])
    page.evaluate("async () => { does.lasts = true; await machine.load(); }")
    switch(page).check()
    stop = page.get_by_role("button", name="Stop", exact=True)
    expect(stop).to_be_visible()
    page.evaluate("machine.show({ step: 3 })")
    expect(page.locator(".machine-words .now")).to_have_text("playing")
    stop.click()
    expect(page.locator(".machine-status")).to_contain_text("Stopped.")
    expect(page.locator(".machine progress")).to_be_hidden()


@in_browser
def test_code_of_ones_own_alone_says_so(page) -> None:
    open_page(page, "translator", NAMES)
    page.evaluate("() => { does.write = { ms: 849, cut: true }; }")
    switch_on(page)
    n = page.evaluate("machine.state.view.tgt.length")
    assert changes(page).startswith(
        "This sentence was translated by your code alone: 18 lines, 0.8 s. "
        f"It was cut after {n} tokens, since it never ended by itself. Now: “"
    )


@in_browser
@pytest.mark.parametrize(
    ("maps", "says"), [("NaN", "NaN"), ("unknown", "not shown")], ids=["NaN", "unknown"]
)
def test_what_is_no_number_is_drawn_as_that(page, maps, says) -> None:
    open_page(page, "translator", ["attention"])
    switch_on(page)
    page.evaluate(
        """(maps) => { does.look = { maps: maps === "unknown" ? {} : Object.fromEntries(
        Object.entries(machine.state.view.maps).map(([name, heads]) =>
          [name, heads.map((head) => head.map(() => NaN))])) };
        return machine.ask({}); }""",
        maps,
    )
    for path in "", "/decoder/1", "/decoder/1/cross_attn/6", "/encoder/0/self_attn/0":
        page.evaluate("(x) => { location.hash = `#machine${x}`; }", path)
        wait(page, f"machine.path === '{path}' && machine.state.found !== undefined")
        svg = page.locator(".machine-stage > svg").inner_html()
        assert not re.search(r'="[^"]*(NaN|undefined)[^"]*"', no_labels(svg))
        assert "NaN%" not in svg and "undefined" not in svg
        if path == "/decoder/1":
            assert f"Open head 3 of cross-attention: {says}" in svg


def no_labels(svg: str) -> str:
    return re.sub(r'aria-label="[^"]*"', "", svg)


@in_browser
def test_a_part_that_is_forgotten_elsewhere_is_switched_off(page) -> None:
    open_page(page, "translator", ["attention"])
    switch_on(page)
    page.evaluate(
        """() => { localStorage.removeItem("yours-attention");
        dispatchEvent(new Event("machine-parts")); }"""
    )
    wait(page, "!machine.state.is_busy && !machine.state.view.edits.yours")
    expect(page.locator(".machine-yours")).to_be_hidden()


# --- where code is written --------------------------------------------------------

SECOND = """async () => {
  const load = (name) => new Promise((onload) => document.head.append(Object.assign(
    document.createElement("script"), { src: `../_static/machine/${name}`, onload })));
  if (!window.machine_second) await load("machine.js");
  await load("view.js");
  const root = document.createElement("div"), view = { ...machine_view };
  for (const name of ["model", "sister"]) {
    view[name] = JSON.stringify(JSON.parse(view[name]).map((each) =>
      new URL(each, new URL("../_static/machine/", location.href)).href));
  }
  root.id = "desk";
  document.querySelector("main").prepend(root);
  window.second = machine_second(root, view);
}"""


def run(page: Page, sources: dict[str, str], label: str, text: str) -> dict:
    return page.evaluate(
        "([sources, label, text]) => second.run(sources, label, text)",
        [sources, label, text],
    )


@in_browser
@pytest.mark.parametrize("name", [WITH_MACHINE, WITHOUT])
def test_a_second_machine_tells_what_came_out(page, name) -> None:
    open_page(page, name, [])
    page.evaluate(SECOND)
    root = page.locator("#desk")
    assert page.evaluate("second.state.view.text").startswith("A man wearing")
    came = run(page, {"attention": "wrong"}, "leave out √d", SENTENCE)
    assert came["before"].startswith("Two children")
    assert came["text"] == page.evaluate("second.state.view.text")
    words = "the book’s attention with a mistake: “leave out √d”"
    assert (came["words"], came["cut"]) == (words, False)
    assert page.evaluate("python.asked.find(([task]) => task === 'use')[1].parts") == {
        "attention": "wrong"
    }
    expect(root.locator(".machine-changes")).to_be_hidden()
    root.locator("[aria-label^='Open decoder layer 2']").focus()
    page.keyboard.press("Enter")
    expect(root.locator(".machine-crumbs")).to_contain_text("decoder, layer 2")
    assert "#" not in page.url
    page.evaluate("second.undo_all()")
    wait(page, "!second.state.is_busy && !second.state.view.edits.yours")


@in_browser
def test_two_machines_share_the_model_and_python(page) -> None:
    open_page(page, WITH_MACHINE, ["attention"])
    page.locator(".machine").scroll_into_view_if_needed()
    page.evaluate(SECOND)
    page.evaluate(
        """([text]) => Promise.all([second.run({ masks: "m" }, "", text),
        machine.switch_yours(true)])""",
        [SENTENCE],
    )
    scripts = "document.querySelectorAll('script[src*=multi30k-de-en]').length"
    n_parts = len(page.evaluate("machine.addresses"))
    assert page.evaluate(scripts) == n_parts
    asked = page.evaluate("python.asked.map(([task]) => task)")
    assert asked.count("load") == 1 and asked.count("use") >= 2
    assert page.evaluate("second.state.view.edits.yours") == ["masks"]
    assert page.evaluate("machine.state.view.edits.yours") == ["attention"]
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map((x) => x.id)")
    assert len(ids) == len(set(ids))


# --- what is written beside the pages -------------------------------------------------


def test_the_first_picture_is_the_one_that_the_front_page_stores() -> None:
    written = (SITE / "_static" / "machine" / VIEW).read_text("utf-8")
    view = json.loads(re.fullmatch(r"window\.machine_view=(.*);\n", written)[1])
    assert view["stored"] == stored_machine(PAGE)["stored"]
    folder = SITE / "_static" / "machine"
    for address in json.loads(view["model"]) + json.loads(view["sister"]):
        assert (folder / address.partition("?")[0]).is_file()
    assert json.loads(view["words"])["choices"] == [] and read_choices()


def test_a_notebook_without_a_machine_is_named() -> None:
    path = ROOT / "book" / "05_layer_norm_and_residuals.ipynb"
    with pytest.raises(ValueError, match="05_layer_norm.*stores no machine"):
        stored_machine(path)


def test_parts_are_the_same_in_both_languages() -> None:
    parts = pytest.importorskip("transformer_book.yours.parts").PARTS
    script = (ROOT / "book/machine/yours/parts.js").read_text("utf-8")
    entry = r'^  (\w+): \{ owned: "([^"]*)",\s+boxes: (\[[^\]]*\])'
    found = {
        name: (owned, tuple(json.loads(boxes)))
        for name, owned, boxes in re.findall(entry, script, re.M)
    }
    assert list(found) == list(parts)
    assert found == {
        name: (part.owned, tuple(part.boxes)) for name, part in parts.items()
    }
