"""Each rule can fail: one mistake is planted at a time, and named by its rule."""

import nbformat
import pytest
from good_notebook import (
    ADDRESS,
    CHAPTER_NAME,
    DRAWING,
    PAGE_NAME,
    PNG,
    code,
    figure,
    good_chapter,
    good_page,
    markdown,
    number_cells,
)

from book_tools import definitions, notebook_rules
from book_tools.link_rules import anchors, repeated_labels
from book_tools.notebooks import clean
from transformer_book.diagrams.canvas import MIME as DIAGRAM

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


def complaints(book, notebook, name=PAGE_NAME):
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


def tagged(start, **fields):
    """Set fields of the metadata of a cell, or take one away with None."""

    def plant(notebook):
        _, cell = find(notebook, start)
        for key, value in fields.items():
            cell.metadata[key] = nbformat.from_dict(value)
            if value is None:
                del cell.metadata[key]

    return plant


def both(*plants):
    """Several changes, one after the other."""

    def plant(notebook):
        for one in plants:
            one(notebook)

    return plant


def drawn(old, new, png=PNG):
    """Change the drawing of the first diagram."""
    html = DRAWING.format(alt="Map: the box counting is lit", n=1)
    assert old in html
    data = {DIAGRAM: html.replace(old, new), "image/png": png}
    return put("draw_map(1)", outputs=[figure({k: v for k, v in data.items() if v})])


def shown(**data):
    kind = {"html": "text/html", "vega": "application/vnd.vegalite.v5+json"}
    data = {kind.get(name, f"image/{name}"): value for name, value in data.items()}
    return printed(output_type="display_data", data=data, metadata={})


def ends_open(notebook):
    """Put the open exercise before the second one."""
    index, cell = find(notebook, "### Exercise 4.3")
    del notebook.cells[index]
    start, _ = find(notebook, "### Exercise 4.2")
    notebook.cells.insert(start, cell)


def no_asserts(notebook):
    for cell in notebook.cells:
        cell.source = cell.source.replace("assert", "print")


def never_run(notebook):
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.execution_count = None


CODE, ONE = "print(range", "## One"

PAGE_MISTAKES = [  # rule, mistake, what the rule says
    ("heading_levels", change("## Three", "###", "####"), "skips level 3"),
    ("heading_levels", change("## Three", "###", "#"), "second level-1"),
    # cells
    ("width", add(code("x = " + "1" * 69)), "line 1: 73 columns"),
    ("empty", add(code("\n")), "empty"),
    ("metadata", put(ONE, metadata={"ledgr": []}), "unknown metadata 'ledgr'"),
    ("metadata", put(CODE, metadata={"tags": ["hide"]}), "unknown tag 'hide'"),
    ("metadata", put(CODE, metadata={"ledger": "S3-12"}), "must be a list"),
    ("metadata", put(CODE, metadata={"ledger": ["3-12"]}), "no ledger id"),
    ("metadata", put(CODE, metadata={"defines": "masks.causal_mask"}), "no dotted"),
    ("metadata", put(CODE, metadata={"pencil": ""}), "true or a sentence, not ''"),
    ("metadata", put(CODE, metadata={"pencil": False}), "sentence, not False"),
    ("metadata", put(CODE, metadata={"pencil": "Count the scores."}), None),
    ("metadata", put(ONE, metadata={"pencil": True}), "only a code cell can be"),
    ("commands", add(code("!ls")), "shell command or magic: !ls"),
    ("commands", add(code("%pip install torch")), "%pip install torch"),
    ("silenced_warnings", add(code("warnings.filterwarnings('ignore')")), "silences"),
    ("silenced_warnings", add(code("warnings.catch_warnings()")), "silences"),
    ("silenced_warnings", add(code("warnings.catch_warnings(record=True)")), None),
    ("seeds", add(code("x = torch.randn(2, 3)")), "draws numbers (torch.randn(…)"),
    ("seeds", add(code("w.normal_()  # manual_seed(0)")), "draws numbers"),
    ("seeds", add(code("x = np.random.rand(3)")), "draws numbers"),
    ("seeds", add(code("x = torch.randn(2, generator=g)")), None),
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
    ("remote", shown(html='<svg><use href="//a.org/a.svg#b"/></svg>'), "a.org/a.svg"),
    ("remote", shown(html='<svg xmlns="http://www.w3.org/2000/svg"></svg>'), None),
    ("remote", shown(vega={"data": {"url": "https://a.b/c.json"}}), "a.b/c.json"),
    ("addresses", printed(name="stdout", text="<f at 0x7f12aa34bb56>"), "memory addr"),
    ("stored_form", put(CODE, metadata={"execution": {"t": 2024}}), "not stored clean"),
    ("stored_form", put(ONE, source="## One\n" + "word " * 130_000), "must be under"),
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
    ("broken_links", add(f"[four]({PAGE_NAME}#four)"), "no anchor #four in counting"),
    ("broken_links", add("[nothing]()"), "empty link"),
    ("broken_links", add(":::{tip}\n[a](no.md)\n:::"), "no file no.md"),
    ("broken_links", add("[![dots](no.svg)](glossary.md)"), "no file no.svg"),
    ("broken_links", add('<img alt="a" src="no.png">'), "no file no.png"),
    ("broken_links", add("[masks](glossary.md#causal-mask)"), None),
    ("broken_links", add("[a](glossary.md#look-ahead) [b](glossary.md#seen)"), None),
    ("broken_links", add(f"[three]({PAGE_NAME}#three), [two](#two)"), None),
    ("broken_links", add("`[not](a-link)`\n\n```python\nx[0](key)\n```"), None),
]

GOAL, CHECKS, HINTS = "print(1, 2, 3)", "# @title Checks", "### Exercise 4.1"
NEW_STUB, NEW_SOLUTION = "def count_1", "# @title Solution 4.1"
PROMISES, WORSE, BUGS = "By the end", "## One", "## Common bugs"
BLOCK, ANSWER, OPEN = "Prompt 1.", "print(1)", "### Exercise 4.3"
HINT = "<details><summary>Hint 1</summary>"

CHAPTER_MISTAKES = [  # the same for a chapter
    # its parts
    ("template", remove("## Where we are", count=5), "'## Where we are' is missing"),
    (
        "template",
        change(PROMISES, PROMISES, "You"),
        "By the end, you'll be able to is missing",
    ),
    ("template", change("## The fun", "function", "cell"), "or ## The model' is missi"),
    ("template", change("## The fun", "import", "use"), "function': import is missing"),
    ("template", change("## The fun", "function", "functions"), None),
    ("template", add("## The class", after=BUGS), "or ## The model' is repeated"),
    ("template", change(BUGS, "Common bugs", "Bugs"), "'## Common bugs' is missing"),
    ("template", change("## What you", "](", "("), "do now': ]( is missing"),
    ("template", change("## From", "From", "In"), "'## From the sources' is missing"),
    ("template", change("## Further", "Next", "Then"), "Next: [ is missing"),
    ("number", change("# 4.", "# 4.", "# 5."), "title says 5, the file is 04_"),
    ("number", change("# 4.", "# 4. ", "# "), "title says None, the file is 04_"),
    ("stamped", change("try:", "owner", "other"), "the first code cell must be"),
    ("title_cell", change("# 4.", "*How far can `we` count?*", "How?"), "cell 0: must"),
    ("title_cell", change("# 4.", "?*", ".*"), "cell 0: must be '# 3. Title'"),
    ("title_cell", change("# 4.", "35 minutes", "35"), "cell 0: must be"),
    ("title_cell", change("# 4.", "35", "65"), "takes 65 minutes, everything 60"),
    ("title_cell", change("# 4.", "can `we`", "can we\nall"), None),
    ("setup_cells", remove("import torch"), "cell 2: must be a code cell with the tag"),
    ("setup_cells", tagged("try:", tags=None), "cell 1: must be a code cell"),
    ("setup_cells", add("Words.", after="# 4."), "cell 1: must be a code cell"),
    ("optional", change("## Two", "*(optional)*", "(optional)"), "ends with '*(opt"),
    ("optional", change("## Two", " *(optional)*", " (Optional)"), "ends with '*(opt"),
    ("where_we_are", tagged("draw_map(1)", tags=None), "no map, drawn by a cell"),
    ("where_we_are", put("draw_map(1)", outputs=[]), "no map, drawn by a cell"),
    ("where_we_are", remove(GOAL), "no visible cell shows the goal"),
    ("where_we_are", tagged(GOAL, tags=["hide-cell"]), "no visible cell shows"),
    ("where_we_are", change(PROMISES, "\n\n- count back", ""), "fewer than 3"),
    ("prompts", change(BLOCK, "> **Before", "**Before"), "must end with the paragraph"),
    ("prompts", change(BLOCK, "printed?", "printed."), "must end with the paragraph"),
    ("prompts", change(BLOCK, "printed?", "printed?\n\nSo."), "must end with the"),
    ("prompts", remove(ANSWER), "with the prompt 'Show what happens' must follow"),
    ("prompts", tagged(ANSWER, tags=None), "tagged hide-cell with the prompt"),
    ("prompts", tagged(ANSWER, mystnb=None), "with the prompt 'Show what happens'"),
    ("prompts", change("<details", "Why?", "So?"), "after the answer must follow"),
    ("prompts", remove(BLOCK), "'Show what happens', but no question before it"),
    ("prompts", remove(BLOCK, count=3), "1 questions"),
    ("prompts", change(WORSE, "One", "One *(optional)*"), "1 questions"),
    ("classes", tagged("def causal", defines=None), "function': no code cell with"),
    ("bugs", remove("print(100)"), "2 texts that begin with a symptom in bold"),
    ("bugs", change("**All", "**All is counted.**", "All."), "2 texts that begin"),
    ("sources", remove("assert range"), "'## From the sources': no code cell"),
    ("reading", change("## Further", "(https://example.org/2)", "(#three)"), "2 links"),
    ("reading", change("## Further", "md)", "md)\n\nBye."), "the last line is 'Bye.'"),
    # its cells
    ("folds", change(HINTS, f"{HINT}\n", HINT), "is a line of its own, and an empty"),
    ("folds", change(HINTS, HINT, f"So: {HINT}"), "is a line of its own, and an empty"),
    ("folds", change(HINTS, HINT, "<details>\n"), "is a line of its own"),
    ("folds", change(HINTS, "It is 1.\n", "It is 1."), "a line of its own after an"),
    ("folds", change(HINTS, "1.\n\n</details>", "1."), "is a line of its own, and an"),
    ("folds", change(HINTS, "2.\n\n</details>", "2."), "<details> is not closed"),
    ("folds", change(HINTS, HINT, ""), "and closes what was opened"),
    ("checks", change(CHECKS, "# @title Checks\n", ""), "must start with the line"),
    ("checks", tagged(CHECKS, tags=None), "must have metadata 'tags': ['hide-cell']"),
    ("checks", tagged(CHECKS, cellView=None), "must have metadata 'cellView': 'form'"),
    ("checks", tagged(CHECKS, mystnb={}), "{'code_prompt_show': 'Show the checks'}"),
    ("checks", tagged(CHECKS, tags=["hide-cell", "nbval-ignore-output"]), None),
    ("checks", change(CHECKS, "assert", "print"), "these checks cannot fail"),
    (
        "checks",
        change(CHECKS, "assert x ==", "assert 1 =="),
        "these checks cannot fail",
    ),
    ("asserts_folded", change(GOAL, ")", ")\nassert GOAL"), "asserts; move them to a"),
    ("asserts_folded", change(GOAL, "print", "t.assert_close"), "asserts; move them"),
    ("asserts_folded", change(ANSWER, ")", ")\nassert GOAL"), "asserts; move them to"),
    (
        "asserts_folded",
        change("def pad", "    ret", "    assert ids\n    ret"),
        "asserts; m",
    ),
    ("asserts_folded", change(NEW_SOLUTION, "check", "assert GOAL\ncheck"), None),
    ("asserts", no_asserts, "no assert in the chapter"),
    ("shows", put(GOAL, outputs=[]), "a visible cell that shows and defines nothing"),
    (
        "shows",
        add(code("import math\nx = 1"), after=WORSE),
        "shows and defines nothing",
    ),
    ("shows", add(code("x = 1", tags=["hide-cell"]), after=WORSE), None),
    ("shows", add(code("def f(x):\n    return x"), after=WORSE), None),
    ("shows", put(ANSWER, outputs=[]), "'Show what happens', but it shows nothing"),
    ("shows", change("assert range", "assert", "x ="), "shows and defines nothing"),
    ("diagrams", tagged("draw_map(2)", tags=None), "needs the tag 'hide-input'"),
    ("diagrams", tagged("draw_map(2)", tags=["hide-cell"]), None),
    ("alt_text", tagged("draw_map(1)", mystnb=None), None),  # it carries its own
    ("drawn", drawn("", "", png=None), "without a picture of it (image/png)"),
    ("drawn", drawn('role="img" ', ""), "drawing without role=img"),
    ("drawn", drawn("<svg", "<div><svg"), "drawing without role=img or group or fi"),
    ("drawn", drawn("<svg role", '<div role="group" aria-label="X"><svg role'), "'X'"),
    ("drawn", drawn("is lit", "is dark"), "the drawing's aria-label is 'Map: the box"),
    ("drawn", tagged("draw_map(1)", mystnb=None), "the alt text is ''"),
    ("drawn", drawn("</svg>", "</svg><svg></svg>"), "2 drawings in one output"),
    ("drawn", drawn("</svg>", "<svg></svg></svg>"), None),
    ("drawn", drawn("tip-1", "tip-2"), "another drawing has the id 'tip-2', too"),
    # its exercises
    ("ladder", change(HINTS, "4.1", "4.7"), "not 'Exercise 4.1 — Title'"),
    ("ladder", change(HINTS, "●○○ 5 minutes", "● 5 minutes"), "below the heading, not"),
    ("ladder", change(HINTS, "●○○ 5 minutes\n\n", ""), "'Count to three.' below the"),
    ("ladder", change(HINTS, "5 minutes", "minutes"), "'●○○ minutes' below the head"),
    ("ladder", change(HINTS, "●○○", "●●●"), None),
    ("ladder", change("### Exercise 4.2", "●●●", "●●○"), None),
    ("ladder", change(OPEN, "●●●", "●●○"), "easier than the exercise before it"),
    ("ladder", change(HINTS, "Hint 2", "Hint 3"), "numbered from 1, not ['Hint 1', 'H"),
    ("ladder", change(HINTS, "Hint", "Tip"), "no hint, <details>"),
    ("ladder", remove(OPEN), "the last exercise is not open"),
    ("ladder", ends_open, "an exercise after the open one, which is the last"),
    ("ladder", change(NEW_STUB, "...  # your turn", "pass"), "stub without the line"),
    ("ladder", remove(NEW_STUB), "a stub and a solution must follow"),
    ("ladder", put(NEW_STUB, outputs=[]), "must print 'not attempted yet'"),
    ("ladder", change(NEW_SOLUTION, "4.1", "4.2"), "not '# @title Solution 4.1'"),
    ("ladder", change(NEW_SOLUTION, "check_count", "print"), "the check of its stub"),
    ("ladder", put(NEW_SOLUTION, metadata={}), "'tags': ['hide-cell']"),
    ("ladder", put(NEW_SOLUTION, outputs=[]), "of the solution does not print ✓"),
    (
        "ladder",
        add(code("# @title Solution 4.9"), after=WORSE),
        "outside the Exercises",
    ),
    # its classes, more of them in test_defines.py
    ("defined", change("def causal", "ones", "zeros"), "causal_mask is not the libr"),
    ("defined", change("def causal", "causal", "cause"), "does not define causal_mask"),
    ("complete", tagged("def causal", defines=None), "'transformer_lib.model.masks.c"),
    # what goes to the page with the whole calculation
    ("pencil", change("def causal", "torch.ones", "np.ones"), "it defines 'np'"),
    (
        "pencil",
        add(code("i = [1 for j in k]", pencil=True), after=WORSE),
        "defines 'k'",
    ),
    ("pencil", add(code("x = [y for y in 'ab']", pencil=True), after=WORSE), None),
    ("pencil", tagged(GOAL, pencil="A sentence."), None),
    ("pencil", both(tagged(GOAL, pencil=True), change(GOAL, "1", "GOAL")), "es 'GOAL'"),
    ("pencil", tagged("draw_map(1)", pencil=True), "draws a figure; book/pencil.ipynb"),
    # its terms
    (
        "unlinked_terms",
        change("Here is", "goal", "causal mask"),
        "is no link to glossa",
    ),
    ("unlinked_terms", change("## What you", "third", "causal mask"), None),
    ("unlinked_terms", change("## What you", "Count", "A causal mask"), "is no link"),
]
RULES = [
    *notebook_rules.RULES,
    *notebook_rules.FILE_RULES,
    *notebook_rules.CHAPTER_RULES,
    *notebook_rules.CHAPTER_FILE_RULES,
]
PLANTED = [
    *((good_page, PAGE_NAME, *mistake) for mistake in PAGE_MISTAKES),
    *((good_chapter, CHAPTER_NAME, *mistake) for mistake in CHAPTER_MISTAKES),
]
BOTH = pytest.mark.parametrize(
    ("make", "name"), [(good_page, PAGE_NAME), (good_chapter, CHAPTER_NAME)]
)


@BOTH
def test_a_good_notebook_breaks_no_rule(book, make, name):
    assert complaints(book, make(), name) == []


@pytest.mark.parametrize(
    ("make", "name", "rule", "plant", "message"),
    PLANTED,
    ids=[f"{name[:2]}-{rule}-{message}" for _, name, rule, _, message in PLANTED],
)
def test_planted_mistake_is_named(book, make, name, rule, plant, message):
    notebook = make()
    plant(notebook)
    found = complaints(book, notebook, name)
    named = [line for line in found if line.startswith(f"{rule}: ")]
    if message is None:
        assert named == []
    else:
        assert any(message in line for line in named), found


def test_every_rule_has_a_planted_mistake():
    mistakes = [*PAGE_MISTAKES, *CHAPTER_MISTAKES]
    assert {rule for rule, _, message in mistakes if message} == {
        rule.__name__ for rule in RULES
    }


@pytest.mark.parametrize(
    ("chapter", "needed"), [("00", 0), ("08", 2), ("12", 1), ("13", 0)]
)
def test_only_the_chapters_about_the_parts_must_have_a_class(book, chapter, needed):
    notebook = good_chapter()
    change("# 4.", "# 4.", f"# {int(chapter)}.")(notebook)
    remove("## From the sources", count=2)(notebook)
    remove("## The function")(notebook)
    found = complaints(book, notebook, f"{chapter}_counting.ipynb")
    named = [line for line in found if line.startswith("template: ")]
    assert len(named) == needed
    assert not any(line.startswith(("number", "title")) for line in found)


def test_the_reader_of_the_first_chapter_owns_every_class(book):
    change("# 4.", "# 4.", "# 0.")(notebook := good_chapter())
    found = complaints(book, notebook, "00_counting.ipynb")
    wanted = [line for line in found if line.startswith("complete: ")]
    assert len(wanted) == sum(len(definitions.PARTS[n]) for n in range(1, 9)) - 2


def test_a_page_that_is_no_chapter_needs_no_template(book):
    cells = [markdown("# A page"), markdown("## Part"), code("print(1)", "1\n")]
    notebook = nbformat.v4.new_notebook(cells=cells)
    number_cells(notebook)
    assert complaints(book, clean(notebook), name="page.ipynb") == []
    assert len(complaints(book, clean(notebook), CHAPTER_NAME)) > 5
    notebook.cells[1].source = "#### Part"
    assert "skips level" in complaints(book, clean(notebook), name="page.ipynb")[0]


def test_several_sections_of_ones_own_stand_in_one_place(book):
    notebook = good_page()
    add("## Four", code("x = 1"))(notebook)
    number_cells(notebook)
    assert complaints(book, clean(notebook)) == []


def test_labels_repeated_in_one_chapter_or_in_two():
    one, two = good_page(), good_page()
    [message] = repeated_labels({"01.ipynb": one, "02.ipynb": two})
    assert message == "02.ipynb, cell 5: label '1.1' is also in 01.ipynb, cell 5"
    two.cells[5].source = "(here)=\n\n## Two\n\n(here)=\n"
    [message] = repeated_labels({"01.ipynb": one, "02.ipynb": two})
    assert message == "02.ipynb, cell 5: label 'here' is also in 02.ipynb, cell 5"


def test_a_text_can_be_pointed_to_by_its_headings_and_labels():
    assert anchors("# A `b` $c$!\n\n(d)=\n\n[e]{#f}\n\n$$g$$ (h)") == set("dfh") | {
        "a-b-c"
    }
