"""Each rule can fail: one mistake is planted in a chapter at a time, and named."""

import copy

import chapter_rules
import nbformat
import notebook_rules
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output

from book._ext.toc import ROOT
from transformer_book.diagrams.canvas import MIME as DIAGRAM

CHAPTER = ROOT / "book" / "04_masks.ipynb"


def find(notebook, text):
    return next(n for n, cell in enumerate(notebook.cells) if text in cell.source)


def edit(old, new):
    """Replace a text in the first cell that holds it."""

    def plant(notebook):
        cell = notebook.cells[find(notebook, old)]
        cell.source = cell.source.replace(old, new, 1)

    return plant


def take(text, start=0, stop=1):
    """Take cells away, counted from the first one that holds a text."""

    def plant(notebook):
        first = find(notebook, text)
        del notebook.cells[first + start : first + stop]

    return plant


def add(source, kind=new_markdown_cell, after="## Where we are", **data):
    """Insert a cell, with an output where data are given."""

    def plant(notebook):
        cell = kind(source)
        if data:
            cell.outputs = [new_output("display_data", data)]
        notebook.cells.insert(find(notebook, after) + 1, cell)

    return plant


def put(text, outputs=None, **metadata):
    """Give another output or other metadata to the first cell that holds a text."""

    def plant(notebook):
        cell = notebook.cells[find(notebook, text)]
        cell.metadata.update(nbformat.from_dict(metadata))
        if outputs is not None:
            cell.outputs = outputs

    return plant


def drawn(notebook):
    """The first cell that draws a diagram."""
    return next(
        cell
        for cell in notebook.cells
        if any(DIAGRAM in o.get("data", {}) for o in cell.get("outputs", []))
    )


def without_picture(notebook):
    del drawn(notebook).outputs[0].data["image/png"]


def visible_drawing(notebook):
    drawn(notebook).metadata.tags = []


def other_words(notebook):
    drawn(notebook).metadata["mystnb"] = {"image": {"alt": "Another picture"}}


def caption(**changes):
    """Change what the first drawing says of itself in its metadata."""

    def plant(notebook):
        drawn(notebook).metadata["mystnb"]["figure"].update(changes)

    return plant


def repeated_caption(notebook):
    figure = drawn(notebook).metadata["mystnb"]["figure"]
    figure["caption"] = notebook_rules.figure_alt(drawn(notebook).outputs[0])


def without_caption(notebook):
    del drawn(notebook).metadata["mystnb"]


def table_beside(notebook):
    drawn(notebook).outputs.append(new_output("display_data", {"text/html": "<p>"}))


def redrawn(word):
    """Write another word into the first drawing."""

    def plant(notebook):
        data = drawn(notebook).outputs[0].data
        data[DIAGRAM] = data[DIAGRAM].replace(">encoder<", f">{word}<")

    return plant


def folded_name(notebook):
    add("print(secret)", new_code_cell)(notebook)
    add("secret = 1", new_code_cell)(notebook)
    put("secret = 1", tags=["hide-cell"])(notebook)


def open_exercise_first(notebook):
    places = [n for n, cell in enumerate(notebook.cells) if "### Ex" in cell.source]
    notebook.cells.insert(places[0], notebook.cells.pop(places[-1]))


HEAD, WHERE, BUGS = "Core path", "## Where we are", "## Common bugs"
CHECKS, SOLUTION, TASK = "# @title Checks", "# @title Solution 4.1", "### Exercise 4.1"
PROMPT, STUB, WHY = "**Before you run the next cell.**", "...  # your turn", "Why?</su"
STDERR = [new_output("stream", name="stderr", text="UserWarning")]
RAISED = [new_output("error", ename="ValueError", evalue="no", traceback=[])]
PRINTED = [new_output("stream", text="layer 0: 0 1 1")]
PNG = {"image/png": "iVBORw0KGgo="}
VEGA = "application/vnd.vegalite.v5+json"

PLANTED = [  # rule, mistake
    ("stored", add("word " * 100_000)),
    ("stored", put("import transformer_lib", scrolled=True)),
    ("executed", add("print(1)", new_code_cell)),
    ("executed", put(CHECKS, outputs=STDERR)),
    ("executed", put(CHECKS, outputs=RAISED)),
    ("metadata", put(CHECKS, covres=[])),
    ("metadata", put(WHERE, tags=["hide"])),
    ("unfit", add("see {ref}`masks`")),
    ("unfit", add("```{note}\nhi\n```")),
    ("unfit", add(":::{figure} a\n:::")),
    ("unfit", add("Read [here](glossary.md).")),
    ("unfit", add("![](figures/three.svg)")),
    ("unfit", add('<img src="a.png">')),
    ("unfit", add("!ls", new_code_cell)),
    ("unfit", add("%pip install torch", new_code_cell)),
    ("unfit", add("warnings.filterwarnings('ignore')", new_code_cell)),
    ("figures", add("x", new_code_cell, **PNG)),
    ("figures", add("x", new_code_cell, **{VEGA: {"mark": "bar"}})),
    ("figures", put(CHECKS, mystnb={"image": {"alt": "No figure"}})),
    ("figures", without_picture),
    ("figures", edit("use_book_theme()", "")),
    ("figures", visible_drawing),
    ("figures", other_words),
    ("captions", without_caption),
    ("captions", caption(name="Masks")),
    ("captions", caption(caption="a grid")),
    ("captions", caption(german="")),
    ("captions", caption(titel="Masks")),
    ("captions", repeated_caption),
    ("captions", table_beside),
    ("captions", put(CHECKS, mystnb={"figure": {"caption": "No figure."}})),
    ("numbers", caption(caption="It falls to -2.")),
    ("numbers", redrawn("-0.66")),
    ("numbers", redrawn("12500")),
    ("numbers", redrawn("1e4")),
    ("numbers", redrawn("10⁴")),
    ("counting", add("See head 0.")),
    ("counting", edit("scores in head 1", "scores in head 0")),
    ("counting", add("We remove *cross 0.2*.")),
    ("counting", put(CHECKS, outputs=PRINTED)),
    ("counting", caption(caption="In layer 0, all look at *im*.")),
    ("counting", redrawn("head 0")),
    ("title", edit("# 4.", "# 5.")),
    ("title", edit("?*\n", ".*\n")),
    ("title", edit("minutes, everything", "or")),
    ("title", edit("04_masks.ipynb)", "05_masks.ipynb)")),
    ("title", edit('book = "https', 'book = "http')),
    ("title", put("import transformer_lib", tags=[])),
    ("template", edit(WHERE, "## The start")),
    ("template", edit("By the end, you'll", "Then you'll")),
    ("template", add("## Common bugs")),
    ("template", add("## Besides *(optional)*")),
    ("template", edit("That was the core path.", "That was all.")),
    ("template", edit("## From the sources", "## In the sources")),
    ("template", edit("Next: [", "Then: [")),
    ("template", add("## Besides (optional)", after=WHY)),
    ("goal", take(WHERE, 1, 2)),
    ("prompts", edit(PROMPT, "**Before** you run it.")),
    ("prompts", add("Words.", after=PROMPT)),
    ("prompts", edit(WHY, "So?</su")),
    ("bugs", take(BUGS, 1, 12)),
    ("checks", edit("assert", "print")),
    ("checks", add("assert x == 1", new_code_cell)),
    ("folds", edit("</summary>\n\n", "</summary>\n")),
    ("folds", edit("\n\n</details>", "")),
    ("folds", add("</details>")),
    ("recalled", folded_name),
    ("exercises", edit("●○○ ", "●●● ")),
    ("exercises", edit("### Exercise 4.2", "### Exercise 4.3")),
    ("exercises", edit("Hint 1</summary>", "Hint 2</summary>")),
    ("exercises", open_exercise_first),
    ("exercises", take(STUB)),
    ("exercises", edit(STUB, "pass")),
    ("exercises", put(STUB, outputs=[])),
    ("exercises", put(SOLUTION, outputs=[])),
    ("exercises", edit(SOLUTION, "# @title Solution 4.7")),
    ("terms", edit("(glossary.md#mask)", "(glossary.md#padding)")),
]


RULES = {rule.__name__: rule for rule in [*notebook_rules.RULES, *chapter_rules.RULES]}


@pytest.fixture(scope="module")
def chapter():
    return nbformat.read(CHAPTER, as_version=4)


@pytest.mark.parametrize(("rule", "plant"), PLANTED)
def test_a_planted_mistake_is_named(chapter, tmp_path, rule, plant):
    plant(notebook := copy.deepcopy(chapter))
    path = CHAPTER
    if rule == "stored":
        nbformat.write(notebook, path := tmp_path / CHAPTER.name)
    assert not list(RULES[rule](chapter, CHAPTER))
    assert list(RULES[rule](notebook, path))


def test_every_rule_has_a_planted_mistake():
    assert RULES.keys() == {rule for rule, _ in PLANTED}
