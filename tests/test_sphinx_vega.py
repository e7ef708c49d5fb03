"""Stored charts are live in the pages, without a network and in the page's colors."""

import os
import re
from pathlib import Path

import nbformat
import pytest
import torch
from docutils import nodes
from myst_nb.core.render import load_mime_renders
from playwright.sync_api import Locator, Page
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace

from book_tools import sphinx_vega
from transformer_book import charts
from transformer_book.charts import mime_bundle

SOURCE = ["die", "Katze", "die"]
TARGET = ["<bos>", "cat"]
ALT = 'Grid: who attends to "whom" & <why>.'

needs_browser = pytest.mark.skipif(
    os.environ.get("BOOK_SKIP_BROWSER") == "1", reason="BOOK_SKIP_BROWSER=1"
)


def notebook() -> nbformat.NotebookNode:
    maps = torch.full((3, 2, 3), 1 / 3)
    maps[1] = torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    bundles = [
        mime_bundle(charts.attention_explorer(maps, TARGET, SOURCE), "Heat map."),
        mime_bundle(charts.mask_explorer(SOURCE, TARGET), ALT),
    ]
    outputs = [nbformat.v4.new_output("display_data", data=data) for data in bundles]
    outputs.insert(1, nbformat.v4.new_output("stream", name="stdout", text="between\n"))
    cell = nbformat.v4.new_code_cell("show(...)", outputs=outputs)
    kernel = {
        "kernelspec": {"name": "python3", "display_name": "Python 3"},
        "language_info": {"name": "python", "pygments_lexer": "ipython3"},
    }
    title = nbformat.v4.new_markdown_cell("# Charts")
    return nbformat.v4.new_notebook(cells=[title, cell], metadata=kernel)


def build(folder: Path, builder: str) -> Path:
    """Build a book of two pages, one of them with charts; warnings are errors."""
    source = folder / "source"
    source.mkdir()
    nbformat.write(notebook(), source / "charts.ipynb")
    text = "# Start\n\n```{toctree}\ncharts\n```\n"
    (source / "index.md").write_text(text, encoding="utf-8")
    settings = {
        "extensions": ["myst_nb", "book_tools.sphinx_vega"],
        "html_theme": "pydata_sphinx_theme",
        "html_context": {"default_mode": "auto"},
        "nb_execution_mode": "off",
        "nb_merge_streams": True,
    }
    target = folder / builder
    with docutils_namespace():
        app = Sphinx(
            source,
            None,
            target,
            folder / "doctrees",
            builder,
            settings,
            status=None,
            warningiserror=True,
        )
        app.build()
    return target


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("book"), "html")


@pytest.fixture(scope="module")
def page_source(site: Path) -> str:
    return (site / "charts.html").read_text(encoding="utf-8")


def test_vega_is_loaded_only_where_there_are_charts(site: Path, page_source) -> None:
    assert sphinx_vega.VEGA in page_source and "vega_charts.css" in page_source
    assert "vega" not in (site / "index.html").read_text(encoding="utf-8")
    assert (site / "_static" / sphinx_vega.VEGA).stat().st_size > 500_000


def test_a_chart_has_its_picture_its_caption_and_its_numbers(page_source: str) -> None:
    assert page_source.count('class="vega-chart"') == 2
    assert len(re.findall(r"<img[^>]* class=\"dark-light", page_source)) == 2
    escaped = "Grid: who attends to &quot;whom&quot; &amp; &lt;why&gt;."
    assert f'alt="{escaped}"' in page_source
    assert f'aria-label="{escaped}"' in page_source
    assert "<td>decoder self-attention</td><td>yes</td><td>no</td>" in page_source
    assert "weights of the keys die, Katze, die" in page_source


def test_other_builders_take_the_picture(tmp_path: Path) -> None:
    before = list(load_mime_renders())
    folder = build(tmp_path, "latex")
    assert load_mime_renders() == before  # nothing is left for another book
    (tex,) = folder.glob("*.tex")
    assert tex.read_text(encoding="utf-8").count("includegraphics") == 2
    assert "vegaEmbed" not in tex.read_text(encoding="utf-8")


def test_other_outputs_are_left_to_others() -> None:
    data = sphinx_vega.MimeData("text/plain", "a text")
    assert sphinx_vega.VegaLiteRenderer.handle_mime(None, data, False) is None


def test_a_long_table_is_cut_and_says_so() -> None:
    rows = [{"a": i, "b": None} for i in range(90)]
    table = sphinx_vega.data_table({"data": {"name": "d"}, "datasets": {"d": rows}})
    assert "the first 40 of 90 rows" in table
    assert table.count("<tr>") == 41
    assert sphinx_vega.data_table({"data": {"url": "elsewhere.csv"}}) == ""


def test_a_specification_cannot_end_its_script() -> None:
    class Writer:
        body: list = []

    node = sphinx_vega.chart(spec={"x": "</script><b>"}, label="", key="k")
    sphinx_vega.depart_chart(Writer, node)
    assert isinstance(node, nodes.Element)
    assert "</script><b>" not in "".join(Writer.body)


@pytest.fixture
def charts_page(site: Path, page: Page) -> Page:
    """The page with charts, on a phone."""
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto((site / "charts.html").as_uri())
    page.wait_for_function("document.querySelectorAll('.vega-drawn svg').length == 2")
    return page


def settle(page: Page) -> None:
    """Wait until every chart has drawn what was asked of it."""
    page.evaluate(
        "Promise.all([...document.querySelectorAll('.vega-chart')]"
        ".map((chart) => chart.drawn.view.runAsync())).then(() => null)"
    )


def signs(chart: Locator) -> str:
    settle(chart.page)
    return "".join(chart.locator("svg .mark-text.role-mark text").all_text_contents())


def fills(chart: Locator) -> list[str]:
    settle(chart.page)
    paths = chart.locator("svg .mark-rect.role-mark path")
    return paths.evaluate_all("all => all.map(path => path.getAttribute('fill'))")


@needs_browser
def test_a_slider_moved_by_a_key_changes_the_map(charts_page: Page) -> None:
    chart = charts_page.locator(".vega-chart").first
    before = fills(chart)
    chart.get_by_label("head").press("ArrowRight")
    assert len(set(before)) == 1
    assert len(set(fills(chart))) == 2
    chart.get_by_label("head").press("ArrowLeft")
    assert fills(chart) == before


@needs_browser
def test_a_click_on_a_cell_and_the_list_choose_the_same_row(charts_page: Page) -> None:
    chart = charts_page.locator(".vega-chart").first
    queries = chart.get_by_role("combobox", name="query")
    chart.locator("svg .mark-rect.role-mark path").nth(4).click()
    settle(charts_page)
    assert queries.evaluate("list => list.selectedOptions[0].label") == "1: cat"
    faded = chart.locator("svg .mark-rect.role-mark path[opacity='0.2']")
    assert faded.count() == 3
    queries.select_option("all")
    settle(charts_page)
    assert faded.count() == 0


@needs_browser
def test_hovering_names_query_key_and_weight(charts_page: Page) -> None:
    cells = charts_page.locator(".vega-chart").first.locator(
        "svg .mark-rect.role-mark path"
    )
    cells.nth(5).hover()
    charts_page.locator("#vg-tooltip-element.visible").wait_for()
    text = re.sub(r"\s+", " ", charts_page.locator("#vg-tooltip-element").inner_text())
    assert text.strip() == "query cat key die weight 0.333"


@needs_browser
def test_masks_follow_the_inputs_there_and_back(charts_page: Page) -> None:
    chart = charts_page.locator(".vega-chart").nth(1)
    first = signs(chart)
    assert first == "✓×✓×"  # causal, and the second target token is padding
    chart.get_by_label("padding mask").uncheck()
    assert signs(chart) == "✓×✓✓"
    chart.get_by_role("combobox", name="block").select_option("cross-attention")
    assert signs(chart) == "✓✓✓✓✓✓"
    chart.get_by_label("padding mask").check()
    assert signs(chart) == "✓××✓××"  # two of the three source tokens are padding
    chart.get_by_role("combobox", name="block").select_option("decoder self-attention")
    assert signs(chart) == first


@needs_browser
def test_the_dark_page_redraws_and_keeps_the_choices(charts_page: Page) -> None:
    chart = charts_page.locator(".vega-chart").first
    chart.get_by_label("head").press("ArrowRight")
    light = fills(chart)
    charts_page.evaluate("document.documentElement.dataset.theme = 'dark'")
    charts_page.wait_for_function(
        "light => document.querySelector('.vega-chart .mark-rect.role-mark path')"
        ".getAttribute('fill') !== light",
        arg=light[0],
    )
    assert chart.get_by_label("head").input_value() == "1"
    assert len(set(fills(chart))) == 2
    assert chart.locator(".vega-inputs input").count() == 1


@needs_browser
def test_charts_fit_a_phone(charts_page: Page) -> None:
    widths = charts_page.locator(".vega-view").evaluate_all(
        "views => views.map(view => [view.scrollWidth, view.clientWidth])"
    )
    assert all(inner <= outer for inner, outer in widths)


@needs_browser
def test_print_shows_the_pictures(charts_page: Page) -> None:
    charts_page.emulate_media(media="print")
    assert all(
        img.is_visible() for img in charts_page.locator(".vega-picture img").all()
    )
    assert not any(
        view.is_visible() for view in charts_page.locator(".vega-view").all()
    )


@needs_browser
@pytest.mark.browser_context_args(java_script_enabled=False)
def test_without_scripts_the_picture_is_shown(site: Path, page: Page, trouble) -> None:
    page.goto((site / "charts.html").as_uri())
    pictures = page.locator(".vega-picture img")
    assert pictures.count() == 2 and pictures.first.is_visible()
    assert not page.locator(".vega-inputs").first.is_visible()
    trouble.clear()  # scripts that were not run
