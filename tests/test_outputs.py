"""Stored charts are live in the pages, without a network and in the page's colors."""

import os

import pytest
from built_site import SITE, stale

from book_tools.sphinx_outputs import MAX_ROWS, as_script, data_table
from book_tools.toc import ROOT

needs_browser = pytest.mark.skipif(
    os.environ.get("BOOK_SKIP_BROWSER") == "1", reason="BOOK_SKIP_BROWSER is set"
)
MASKS = "04_masks"


def test_a_long_table_is_cut_and_says_so() -> None:
    rows = [{"a": i, "b": None, "c": "<b>"} for i in range(90)]
    table = data_table({"data": {"name": "d"}, "datasets": {"d": rows}})
    assert "the first 40 of 90 rows" in table
    assert table.count("<tr>") == MAX_ROWS + 1
    assert "<td>0</td><td>–</td><td>&lt;b&gt;</td>" in table
    assert data_table({"data": {"url": "elsewhere.csv"}}) == ""


def test_stored_data_cannot_end_their_script() -> None:
    assert "</script><b>" not in as_script('{"x": "</script><b>"}')


@pytest.fixture(autouse=True)
def current_pages():
    if reason := stale(SITE, ROOT):
        pytest.skip(reason)


@pytest.fixture
def chart(page):
    """The chart of masks, on a phone."""
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto((SITE / f"book/{MASKS}.html").resolve().as_uri())
    page.locator(".vega-drawn svg").first.wait_for()
    return page.locator(".vega-chart").first


def signs(chart):
    chart.evaluate("chart => chart.drawn.view.runAsync().then(() => null)")
    return "".join(chart.locator("svg .mark-text.role-mark text").all_text_contents())


def test_vega_is_loaded_only_where_there_are_charts() -> None:
    with_chart = (SITE / f"book/{MASKS}.html").read_text(encoding="utf-8")
    without = (SITE / "book/glossary.html").read_text(encoding="utf-8")
    assert "vega_charts.js" in with_chart and "vega" not in without


@needs_browser
def test_masks_follow_the_inputs_there_and_back_in_the_dark_too(chart) -> None:
    block = chart.get_by_role("combobox", name="block")
    first = signs(chart)
    assert {*first} == {"✓", "×"}
    block.select_option("encoder self-attention")
    chart.page.evaluate("document.documentElement.dataset.theme = 'dark'")
    chart.page.wait_for_timeout(500)  # drawn again, with the reader's choices
    assert signs(chart) != first
    assert block.evaluate("list => list.selectedIndex") != 0 or block.input_value()
    chart.get_by_label("padding mask").uncheck()
    assert "×" not in signs(chart)
    chart.get_by_label("padding mask").check()
    block.select_option("decoder self-attention")
    assert signs(chart) == first


@needs_browser
def test_a_chart_fits_a_phone_and_has_caption_and_numbers(chart) -> None:
    view = chart.locator(".vega-view")
    assert view.evaluate("view => view.scrollWidth <= view.clientWidth")
    assert chart.locator(".vega-caption").inner_text() == view.get_attribute(
        "aria-label"
    )
    chart.locator("summary").click()
    assert chart.locator("td").count() > 20


@needs_browser
def test_print_shows_the_picture(chart) -> None:
    chart.page.emulate_media(media="print")
    assert chart.locator(".vega-picture img").is_visible()
    assert not chart.locator(".vega-view").is_visible()


@needs_browser
@pytest.mark.browser_context_args(java_script_enabled=False)
def test_without_scripts_the_picture_is_shown(page, trouble) -> None:
    page.goto((SITE / f"book/{MASKS}.html").resolve().as_uri())
    assert page.locator(".vega-picture img").first.is_visible()
    assert not page.locator(".vega-inputs").first.is_visible()
    trouble.clear()  # scripts that were not run
