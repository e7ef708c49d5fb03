"""Each rule can fail: one mistake is planted at a time, and named by its rule."""

import nbformat
import pytest
from good_notebook import (
    code,
    exercise,
    figure,
    good_notebook,
    markdown,
)

from book_tools import notebook_rules


def find(notebook, start):
    """The cell whose source starts so, and its index."""
    for index, cell in enumerate(notebook.cells):
        if cell.source.startswith(start):
            return index, cell
    raise LookupError(start)


def change(start, old, new):
    """A mistake: replace a text in the cell that starts so."""

    def plant(notebook):
        _, cell = find(notebook, start)
        assert old in cell.source
        cell.source = cell.source.replace(old, new)

    return plant


def add(*cells, after="assert 1 + 1"):
    """A mistake: cells that should not be there."""

    def plant(notebook):
        index, _ = find(notebook, after)
        notebook.cells[index + 1 : index + 1] = cells

    return plant


def remove(start, count=1):
    """A mistake: cells that are missing."""

    def plant(notebook):
        index, _ = find(notebook, start)
        del notebook.cells[index : index + count]

    return plant


def put(start, **fields):
    """A mistake in the fields of a cell other than its source."""

    def plant(notebook):
        _, cell = find(notebook, start)
        for key, value in fields.items():
            cell[key] = nbformat.from_dict(value)

    return plant


def output(start, **fields):
    """A mistake in what a cell left behind."""
    return put(start, outputs=[fields])


def html(text):
    return output(
        "print", output_type="display_data", data={"text/html": text}, metadata={}
    )


def chart(spec):
    data = {"application/vnd.vegalite.v5+json": spec, "text/plain": "chart"}
    return output("print", output_type="display_data", data=data, metadata={})


def never_executed(notebook):
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.execution_count = None


def no_asserts(notebook):
    for cell in notebook.cells:
        cell.source = cell.source.replace("assert", "print")


SOLUTION = "# @title Solution 1.2"
TASK = "### Exercise 1.2"
STUB = "answer = None"

MISTAKES = [
    # the parts of a chapter
    ("title", change("# 1.", "# 1. Counting", "# Counting"), "must start with a title"),
    ("title", change("# 1.", "How far can we count?", ""), "no sentence"),
    ("template", remove("## Summary"), "'## Summary': found 0 times"),
    ("template", change("## Setup", "Setup", "Set up"), "'## Setup': found 0 times"),
    (
        "template",
        change("## What", "## What you will build", "## You will build"),
        "'## What you will build': found 0",
    ),
    (
        "template",
        change("## Common", "Common mistakes", "Summary"),
        "'## Summary': found 2 times",
    ),
    (
        "template",
        add(markdown("## Further reading"), after="## Setup"),
        "must stand before '## Further reading'",
    ),
    (
        "template",
        add(markdown("## Summary"), after="## What"),
        "'## Setup' must stand before '## Summary'",
    ),
    ("template", remove("## One"), "2 idea sections"),
    (
        "template",
        add(*[markdown(f"## More {n}") for n in range(4)]),
        "7 idea sections",
    ),
    (
        "template",
        add(markdown("## Early"), after="## What"),
        "'## Early' must stand after Setup",
    ),
    (
        "template",
        add(markdown("## Late"), after="## Summary"),
        "'## Late' must stand before '## The library's",
    ),
    (
        "promises",
        change("## What", "**You need**", "You need"),
        "You need** is missing",
    ),
    (
        "promises",
        change("## What", "**You will learn**", "**You will build**"),
        "learn",
    ),
    (
        "promises",
        change("## What", "**You will build**", "**You need** **You will build**"),
        "expected the order",
    ),
    (
        "heading_levels",
        change("## Three", "### Detail", "#### Detail"),
        "skips level 3",
    ),
    ("heading_levels", change("## Three", "### D", "# D"), "second level-1"),
    ("setup", remove("import torch"), "1 code cells, expected two"),
    ("setup", put("import torch", metadata={}), "must carry the tag 'hide-input'"),
    ("setup", put("try:", metadata={}), "must carry the tag 'remove-cell'"),
    ("setup", add(code("print(1)"), after="## What"), "code before Setup"),
    ("exercises", change(TASK, "1.2", "1.7"), "expected 'Exercise 1.2"),
    ("exercises", change(TASK, "1.2", "2.2"), "expected 'Exercise 1.2"),
    ("exercises", change(TASK, " — Count", ""), "expected 'Exercise 1.2"),
    ("exercises", remove(SOLUTION), "a stub and a solution must follow"),
    ("exercises", remove("### Exercise 1.1", count=3), "2 exercises"),
    (
        "exercises",
        add(*exercise(4), *exercise(5), *exercise(6), after="# @title Solution 1.3"),
        "6 exercises",
    ),
    ("exercises", change(STUB, "check_count_1(answer)", "answer"), "must end with"),
    ("exercises", put(STUB, outputs=[]), "must print 'not attempted yet'"),
    ("exercises", change(SOLUTION, "# @title ", "# "), "not '# @title Solution 1.2'"),
    ("exercises", change(SOLUTION, "1.2", "1.3"), "not '# @title Solution 1.2'"),
    ("exercises", change(SOLUTION, "check_count_2(answer)", "3"), "calls no check_"),
    ("exercises", change(SOLUTION, "count_2", "other"), "the check of its stub"),
    ("exercises", put(SOLUTION, metadata={"tags": []}), "the tag 'hide-cell'"),
    ("exercises", put(SOLUTION, metadata={"tags": []}), "'cellView': 'form'"),
    ("exercises", put(SOLUTION, metadata={}), "'jupyter': {'source_hidden': True}"),
    ("exercises", put(SOLUTION, metadata={}), "'Show the solution'"),
    ("stray_solutions", add(code(SOLUTION)), "outside the Exercises"),
    ("endings", change("## Summary", "We", "A. B. C. D. We"), "6 sentences"),
    (
        "endings",
        change("## Further", "- [", "<https://a.b> <https://a.c> <https://a.d> ["),
        "4 links",
    ),
    ("endings", change("## Further", "https://example.org/count", "x"), "0 links"),
    # cells
    ("length", add(code("\n".join(["x = 1"] * 21))), "21 lines, at most 20"),
    ("length", add(code("class A:\n" + "    x = 1\n" * 31)), "at most 20"),
    ("width", add(code("x = " + "1" * 69)), "line 1: 73 columns"),
    ("count", add(*[code("x = 1") for _ in range(40)]), "code cells, at most 40"),
    ("empty", add(code("\n")), "empty"),
    ("empty", add(markdown("")), "empty"),
    ("metadata", put("## One", metadata={"ledgr": []}), "unknown metadata 'ledgr'"),
    ("metadata", put("print", metadata={"tags": ["hide"]}), "unknown tag 'hide'"),
    (
        "metadata",
        put("print", metadata={"tags": ["raises-exception"]}),
        "unknown tag 'raises-exception'",
    ),
    ("metadata", put("print", metadata={"ledger": "S3-12"}), "must be a list"),
    ("metadata", put("print", metadata={"ledger": ["3-12"]}), "no ledger id"),
    ("commands", add(code("!ls")), "shell command or magic: !ls"),
    ("commands", add(code("%%bash\nls")), "shell command or magic: %%bash"),
    ("commands", add(code("%pip install torch")), "%pip install torch"),
    (
        "silenced_warnings",
        add(code("import warnings\nwarnings.filterwarnings('ignore')")),
        "silences warnings",
    ),
    (
        "silenced_warnings",
        add(code("with warnings.catch_warnings():\n    f()")),
        "silences warnings",
    ),
    (
        "silenced_warnings",
        add(code("with warnings.catch_warnings(record=True) as seen:\n    f()")),
        None,
    ),
    ("seeds", add(code("x = torch.randn(2, 3)")), "draws numbers (torch.randn(…)"),
    ("seeds", add(code("w.normal_()  # manual_seed(0)")), "draws numbers"),
    ("seeds", add(code("x = np.random.rand(3)")), "draws numbers"),
    ("seeds", add(code("g = f()\nx = torch.randn(2, generator=g)")), None),
    (
        "asserts",
        change("assert max", "assert ", "print"),
        "library's version\": asserts",
    ),
    ("asserts", no_asserts, "no assert in the chapter"),
    # outputs
    ("order", never_executed, "never executed"),
    ("order", put("print(range", execution_count=9), "execution count 9, expected"),
    ("order", put("print(range", execution_count=None), "execution count None"),
    (
        "errors",
        output("print", output_type="stream", name="stderr", text="UserWarning"),
        "wrote to stderr: 'UserWarning'",
    ),
    (
        "errors",
        output("print", output_type="error", ename="ValueError", evalue="no"),
        "stored an error: ValueError: no",
    ),
    ("alt_text", put("plt.show", metadata={}), "figure without alt text"),
    (
        "alt_text",
        put("plt.show", metadata={"mystnb": {"image": {"alt": "x" * 150}}}),
        "alt text of 150 characters",
    ),
    ("alt_text", put("plt.show", outputs=[figure(), figure()]), "2 figures in one"),
    ("alt_text", put("plt.show", outputs=[]), "alt text, but no figure"),
    ("alt_text", chart({"mark": "bar"}), "figure without alt text"),
    ("alt_text", chart({"description": "x" * 150}), "alt text of 150 characters"),
    ("alt_text", chart({"description": "Bars rise"}), None),
    ("mime_types", html("<b>fine</b>"), None),
    (
        "mime_types",
        output("print", output_type="display_data", data={"image/jpeg": "AAAA"}),
        "output of type image/jpeg",
    ),
    ("remote", html('<script src="vega.js"></script>'), "needs a script"),
    ("remote", html('<img src="https://example.org/a.png">'), "example.org/a.png"),
    ("remote", html('<link href="https://example.org/a.css">'), "needs a script"),
    ("remote", html("<style>@import url(//example.org/a.css)</style>"), "@import"),
    ("remote", html('<a href="https://example.org">a link is fine</a>'), None),
    ("remote", chart({"data": {"url": "https://a.b/c.json"}}), "https://a.b/c.json"),
    ("remote", chart({"$schema": "https://vega.github.io/v5.json"}), None),
    (
        "addresses",
        output(
            "print", output_type="stream", name="stdout", text="<f at 0x7f12aa34bb56>"
        ),
        "prints a memory address",
    ),
    # links and pictures
    ("pictures", change("## Three", "three dots", ""), "three.svg without alt text"),
    (
        "pictures",
        change("## Three", "figures/three.svg", "https://example.org/three.svg"),
        "picture from another site",
    ),
    ("pictures", add(markdown('<img src="a.png">')), "picture without alt text"),
    (
        "pictures",
        add(markdown('<img alt="a" src="//example.org/a.png">')),
        "picture from another site",
    ),
    (
        "pictures",
        add(markdown("[![](a.svg)](b.md)")),
        "a.svg without alt text",
    ),
    ("link_text", add(markdown("Read [here](b.md).")), "link text 'here'"),
    ("colab_markdown", add(markdown("see {ref}`masks`")), "instead of {ref}`masks`"),
    ("colab_markdown", add(markdown("{term}`mask`")), "instead of {term}`mask`"),
    ("colab_markdown", add(markdown("```{note}\nhi\n```")), "directive ```{note}"),
    ("colab_markdown", add(markdown(":::{figure} a\n:::")), "directive :::{figure}"),
    ("colab_markdown", add(markdown(":::{note}\nhi\n:::")), None),
]
RULES = {rule.__name__: rule for rule in notebook_rules.RULES}


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_good_notebook_breaks_no_rule(rule):
    assert list(rule(good_notebook())) == []


@pytest.mark.parametrize(
    ("name", "plant", "message"),
    MISTAKES,
    ids=[f"{name}-{message}" for name, _, message in MISTAKES],
)
def test_planted_mistake_is_named(name, plant, message):
    notebook = good_notebook()
    plant(notebook)
    found = list(RULES[name](notebook))
    if message is None:
        assert found == []
    else:
        assert any(message in line for line in found), found


def test_every_rule_has_a_planted_mistake():
    planted = {name for name, _, message in MISTAKES if message}
    assert planted == set(RULES)
