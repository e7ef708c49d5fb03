"""Each rule can fail: one mistake is planted at a time, and named by its rule."""

import nbformat
import pytest
from good_notebook import (
    ADDRESS,
    FILE_NAME,
    code,
    figure,
    good_notebook,
    markdown,
    number_cells,
)

from book_tools import notebook_rules
from book_tools.link_rules import anchors, repeated_labels
from book_tools.notebooks import clean

GLOSSARY = """# Glossary

(look-ahead)=
## causal mask

```
# no heading
```

<a id="seen"></a>
"""


@pytest.fixture
def book(tmp_path, monkeypatch):
    """A folder with what the good chapter links to."""
    monkeypatch.setattr(notebook_rules.repository, "address", lambda: ADDRESS)
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "three.svg").write_text("<svg/>")
    (tmp_path / "glossary.md").write_text(GLOSSARY)
    return tmp_path


def complaints(book, notebook, name=FILE_NAME):
    nbformat.write(notebook, book / name)
    return notebook_rules.complaints(book / name)


def find(notebook, start):
    """The index of the cell whose source starts so, and the cell."""
    for index, cell in enumerate(notebook.cells):
        if cell.source.startswith(start):
            return index, cell
    raise LookupError(start)


def change(start, old, new):
    """Replace a text in the cell that starts so."""

    def plant(notebook):
        _, cell = find(notebook, start)
        assert old in cell.source
        cell.source = cell.source.replace(old, new)

    return plant


def add(*cells, after="assert 1 + 1"):
    """Insert cells."""

    def plant(notebook):
        index, _ = find(notebook, after)
        notebook.cells[index + 1 : index + 1] = [
            cell if isinstance(cell, nbformat.NotebookNode) else markdown(cell)
            for cell in cells
        ]

    return plant


def remove(start, count=1):
    """Take cells away."""

    def plant(notebook):
        index, _ = find(notebook, start)
        del notebook.cells[index : index + count]

    return plant


def put(start, **fields):
    """Set fields of a cell other than its source."""

    def plant(notebook):
        _, cell = find(notebook, start)
        for key, value in fields.items():
            cell[key] = nbformat.from_dict(value)

    return plant


def printed(**fields):
    """Let a cell have left this behind."""
    return put("print(range", outputs=[{"output_type": "stream", **fields}])


def shown(**data):
    kind = {"html": "text/html", "vega": "application/vnd.vegalite.v5+json"}
    data = {kind.get(name, f"image/{name}"): value for name, value in data.items()}
    return printed(output_type="display_data", data=data, metadata={})


def no_asserts(notebook):
    for cell in notebook.cells:
        cell.source = cell.source.replace("assert", "print")


def never_run(notebook):
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.execution_count = None


CODE, ONE, SUMMARY, READING = "print(range", "## One", "## Summary", "## Further"
TASK, STUB, SOLUTION = "### Exercise 1.2", "answer = None", "# @title Solution 1.2"

MISTAKES = [  # rule, mistake, what the rule says
    # the parts of a chapter
    ("title", change("# 1.", "# 1. Counting", "# Counting"), "must start with a title"),
    ("title", change("# 1.", "How far can we count?", ""), "no sentence"),
    ("number", change("# 1.", "# 1.", "# 2."), "title says 2, the file is 01_"),
    ("template", remove(SUMMARY), "'## Summary' is missing"),
    ("template", change("## Common", "Common mistakes", "Summary"), "is repeated"),
    ("template", add("## Summary", after="## What"), "'## Summary' is repeated"),
    ("template", remove(ONE, count=6), "own sections)' is missing"),
    ("template", add("## Late", after=SUMMARY), "own sections)' is repeated, or not"),
    ("template", change("## What", "**You need**", "You"), "**You need** is missing"),
    (
        "template",
        change("## What", "**You will build**", "**You need** **You will build**"),
        None,
    ),
    (
        "template",
        change("## What", "**You will learn**", "**You need** and"),
        "**You will learn** is missing, or out of order",
    ),
    ("template", change(READING, "https://", "../"), "](http is missing"),
    ("heading_levels", change("## Three", "###", "####"), "skips level 3"),
    ("heading_levels", change("## Three", "###", "#"), "second level-1"),
    ("setup", remove("import torch"), "1 code cells, not 2"),
    ("setup", put("import torch", metadata={}), "must carry the tag 'hide-input'"),
    ("setup", add(code("print(1)"), after="## What"), "code before Setup"),
    ("exercises", change(TASK, "1.2", "1.7"), "not 'Exercise 1.2 — Title'"),
    ("exercises", change(TASK, " — Count", ""), "not 'Exercise 1.2 — Title'"),
    ("exercises", remove(SOLUTION), "a stub and a solution must follow"),
    ("exercises", change(STUB, "check_count_1(answer)", "answer"), "must end with"),
    ("exercises", put(STUB, outputs=[]), "must print 'not attempted yet'"),
    ("exercises", change(SOLUTION, "1.2", "1.3"), "not '# @title Solution 1.2'"),
    ("exercises", change(SOLUTION, "count_2", "other"), "the check of its stub"),
    ("exercises", put(SOLUTION, metadata={}), "'tags': ['hide-cell']"),
    ("exercises", put(SOLUTION, metadata={}), "'jupyter': {'source_hidden': True}"),
    ("exercises", add(code("# @title Solution 1.9")), "outside the Exercises"),
    ("stamped", change("try:", "owner", "other"), "the first code cell must be"),
    ("stamped", change("# 1.", "owner", "other"), "must hold [Open this chapter"),
    # cells
    ("width", add(code("x = " + "1" * 69)), "line 1: 73 columns"),
    ("empty", add(code("\n")), "empty"),
    ("metadata", put(ONE, metadata={"ledgr": []}), "unknown metadata 'ledgr'"),
    ("metadata", put(CODE, metadata={"tags": ["hide"]}), "unknown tag 'hide'"),
    ("metadata", put(CODE, metadata={"ledger": "S3-12"}), "must be a list"),
    ("metadata", put(CODE, metadata={"ledger": ["3-12"]}), "no ledger id"),
    ("commands", add(code("!ls")), "shell command or magic: !ls"),
    ("commands", add(code("%pip install torch")), "%pip install torch"),
    ("silenced_warnings", add(code("warnings.filterwarnings('ignore')")), "silences"),
    ("silenced_warnings", add(code("warnings.catch_warnings()")), "silences"),
    ("silenced_warnings", add(code("warnings.catch_warnings(record=True)")), None),
    ("seeds", add(code("x = torch.randn(2, 3)")), "draws numbers (torch.randn(…)"),
    ("seeds", add(code("w.normal_()  # manual_seed(0)")), "draws numbers"),
    ("seeds", add(code("x = np.random.rand(3)")), "draws numbers"),
    ("seeds", add(code("x = torch.randn(2, generator=g)")), None),
    ("asserts", no_asserts, "no assert in the chapter"),
    # outputs
    ("order", never_run, "never executed: make notebooks"),
    ("order", put(CODE, execution_count=9), "execution count 9, expected"),
    ("order", put(CODE, execution_count=None), "execution count None"),
    ("errors", printed(name="stderr", text="UserWarning"), "wrote to stderr: 'UserW"),
    (
        "errors",
        printed(output_type="error", ename="ValueError", evalue="no", traceback=[]),
        "stored an error: ValueError: no",
    ),
    ("alt_text", put("plt.show", metadata={}), "figure without alt text"),
    ("alt_text", put("plt.show", outputs=[figure(), figure()]), "2 figures in one"),
    ("alt_text", put("plt.show", outputs=[]), "alt text, but no figure"),
    ("alt_text", shown(vega={"mark": "bar"}), "figure without alt text"),
    ("alt_text", shown(vega={"description": "Bars rise"}), None),
    ("mime_types", shown(jpeg="AAAA"), "output of type image/jpeg"),
    ("remote", shown(html='<script src="vega.js"></script>'), "needs a script"),
    ("remote", shown(html='<img src="https://a.org/a.png">'), "a.org/a.png"),
    ("remote", shown(html='<link href="https://a.org/a.css">'), "needs a script"),
    ("remote", shown(html="<style>@import url(//a.org/a.css)</style>"), "@import"),
    ("remote", shown(html='<a href="https://a.org">a link is fine</a>'), None),
    ("remote", shown(vega={"data": {"url": "https://a.b/c.json"}}), "a.b/c.json"),
    ("addresses", printed(name="stdout", text="<f at 0x7f12aa34bb56>"), "memory addr"),
    ("stored_form", put(CODE, metadata={"execution": {"t": 2024}}), "not stored clean"),
    ("stored_form", put(ONE, source="## One\n" + "word " * 100_000), "must be under"),
    # links and pictures
    ("pictures", change("## Three", "three dots", ""), "three.svg without alt text"),
    ("pictures", add("![a](https://a.org/a.svg)"), "picture from another site"),
    ("pictures", add('<img src="a.png">'), "a.png without alt text"),
    ("pictures", add('<img alt="a" src="//a.org/a.png">'), "from another site"),
    ("pictures", add("[![](a.svg)](glossary.md)"), "a.svg without alt text"),
    ("link_text", add("Read [here](glossary.md)."), "link text 'here'"),
    ("colab_markdown", add("see {ref}`masks`"), "instead of {ref}`masks`"),
    ("colab_markdown", add("```{note}\nhi\n```"), "directive ```{note}"),
    ("colab_markdown", add(":::{figure} a\n:::"), "directive :::{figure}"),
    ("colab_markdown", add(":::{note}\nhi\n:::"), None),
    ("broken_links", add("[masks](04_masks.ipynb)"), "no file 04_masks.ipynb"),
    ("broken_links", add("[masks](glossary.md#mask)"), "no anchor #mask in glossary"),
    ("broken_links", add("[masks](glossary.md#no-heading)"), "no anchor #no-heading"),
    ("broken_links", add("[four](#four)"), "no anchor #four in this page"),
    ("broken_links", add(f"[four]({FILE_NAME}#four)"), "no anchor #four in 01_"),
    ("broken_links", add("[nothing]()"), "empty link"),
    ("broken_links", add(":::{tip}\n[a](no.md)\n:::"), "no file no.md"),
    ("broken_links", add("[![dots](no.svg)](glossary.md)"), "no file no.svg"),
    ("broken_links", add('<img alt="a" src="no.png">'), "no file no.png"),
    ("broken_links", add("[masks](glossary.md#causal-mask)"), None),
    ("broken_links", add("[a](glossary.md#look-ahead) [b](glossary.md#seen)"), None),
    ("broken_links", add(f"[three]({FILE_NAME}#three), [two](#two)"), None),
    ("broken_links", add("`[not](a-link)`\n\n```python\nx[0](key)\n```"), None),
    # terms, more of them in test_term_rules.py
    ("unlinked_terms", add("A causal mask."), "first use of 'causal mask' is no link"),
]
RULES = [
    *notebook_rules.RULES,
    *notebook_rules.FILE_RULES,
    *notebook_rules.CHAPTER_RULES,
    *notebook_rules.CHAPTER_FILE_RULES,
]


def test_the_good_notebook_breaks_no_rule(book):
    assert complaints(book, good_notebook()) == []


@pytest.mark.parametrize(
    ("rule", "plant", "message"),
    MISTAKES,
    ids=[f"{rule}-{message}" for rule, _, message in MISTAKES],
)
def test_planted_mistake_is_named(book, rule, plant, message):
    notebook = good_notebook()
    plant(notebook)
    found = complaints(book, notebook)
    named = [line for line in found if line.startswith(f"{rule}: ")]
    if message is None:
        assert named == []
    else:
        assert any(message in line for line in named), found


def test_every_rule_has_a_planted_mistake():
    assert {rule for rule, _, message in MISTAKES if message} == {
        rule.__name__ for rule in RULES
    }


def test_a_page_that_is_no_chapter_needs_no_template(book):
    cells = [markdown("# A page"), markdown("## Part"), code("print(1)", "1\n")]
    notebook = nbformat.v4.new_notebook(cells=cells)
    number_cells(notebook)
    assert complaints(book, clean(notebook), name="page.ipynb") == []
    assert len(complaints(book, clean(notebook))) > 5
    notebook.cells[1].source = "#### Part"
    assert "skips level" in complaints(book, clean(notebook), name="page.ipynb")[0]


def test_several_sections_of_ones_own_stand_in_one_place(book):
    notebook = good_notebook()
    add("## Four", code("x = 1"))(notebook)
    number_cells(notebook)
    assert complaints(book, clean(notebook)) == []


def test_labels_repeated_in_one_chapter_or_in_two():
    one, two = good_notebook(), good_notebook()
    [message] = repeated_labels({"01.ipynb": one, "02.ipynb": two})
    assert message == "02.ipynb, cell 7: label '1.1' is also in 01.ipynb, cell 7"
    two.cells[7].source = "(here)=\n\n## Two\n\n(here)=\n"
    [message] = repeated_labels({"01.ipynb": one, "02.ipynb": two})
    assert message == "02.ipynb, cell 7: label 'here' is also in 02.ipynb, cell 7"


def test_a_text_can_be_pointed_to_by_its_headings_and_labels():
    assert anchors("# A `b` $c$!\n\n(d)=\n\n[e]{#f}\n\n$$g$$ (h)") == set("dfh") | {
        "a-b-c"
    }
