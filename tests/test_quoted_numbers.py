"""On pages that read a stored record, cells stand for each number of the text.

After a record has changed, `make notebooks` changes what cells print, and nobody
rereads the text. So a number in the text of a section must be printed by one of its
cells. In a section that uses a record it must be asserted, since among so many printed
numbers another one may be alike: `assert f"{gain:.1f}" == "2.4"`.
"""

import ast
import re

import nbformat
import pytest
from bs4 import BeautifulSoup
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from book._ext.notebook_parts import sections, tags
from book._ext.toc import notebook_pages

READS = re.compile(r"read_(results|card)\(|files\(.transformer_book\.experiments")
USES = re.compile(rf"{READS.pattern}|\brecord\[")
NUMBER = re.compile(r"(?<![\w.,])(?<!\w-)\d(?:[\d,]*\d)?(?:\.\d+)?(?![\w-]|[.,]\d)")
STATES_NOTHING = re.compile(  # what holds digits in a text, but no measured ones
    r"""(?mx)
    ^```[\s\S]*?^``` | `[^`]*` | \[[^]]*\]\([^)]*\)  # code, links
    | \$\$[\s\S]*?\$\$ | \$[^$]+\$ | <[^>]*>  # formulas, tags
    | ^\#.*$ | ^Core\ path.*$  # headings, minutes
    | [Cc]hapters?\ \d+(?:\ (?:to|and)\ \d+)* | \(\d+\.\d+\)  # places
    | (?:[Ss]ection|[Ee]xercise)\ \d[.\d]*\d
    | \b(?:Llama|Gemma|Qwen|OLMo|Mistral)\ \d[.\d]*(?:\ and\ \d)?  # models
    | 95%\ interval | \b(?:19|20)\d\d\b  # a term, years
    """
)
TASKS = ("Exercises", "Further reading")  # sections that report nothing
EXCEPTIONS = {  # page: number: why no cell of its section stands for it
    "10_training": {"25000": "tokens in a step of the paper"},
    "13_quality": {"100": "the top of BLEU's scale"},
    "17_from_2017_to_today": {
        "7": "Zhang and Sennrich measured it",
        "64": "Zhang and Sennrich measured it",
        "1.35": "a slower run on the same machine, not stored",
        "370": "500 steps by 1.35",
        "420": "500 steps by 1.2, of a slower run",
        "32768": "Chen and others measured it",
    },
    "18_a_language_model": {
        "15": "trillion tokens, as the authors of Llama 3 say",
        "20": "Hoffmann and others measured it",
    },
    "performance": {
        "2.00": "an example of how to read the tables",
        "10": "a setting of benchmarks/decoders.py",
        "20": "a setting of benchmarks/decoders.py",
        "37000": "of the paper",
    },
    "translator": {
        "6": "megabytes that the page loads",
        "8": "bits of the weights that it loads",
        "29000": "captions of Multi30k's training part",
    },
}


def read_pages():
    """Name and notebook of each page that reads a record."""
    for path in notebook_pages():
        notebook = nbformat.read(path, as_version=4)
        if any(READS.search(c.source) for c in notebook.cells if c.cell_type == "code"):
            yield path.stem, notebook


def numbers(text):
    """The numbers of a text, without signs and commas: "−1,024.5" gives 1024.5."""
    return {number.replace(",", "") for number in NUMBER.findall(text)}


def text_of(cell):
    """What a cell says in words: a text, or what describes its figure."""
    if cell.cell_type == "markdown":
        return STATES_NOTHING.sub(" ", cell.source)
    mystnb = cell.metadata.get("mystnb", {})
    alt, caption = mystnb.get("image", {}).get("alt"), mystnb.get("figure", {})
    return f"{alt or ''} {STATES_NOTHING.sub(' ', caption.get('caption', ''))}"


def shown(cell):
    """The numbers that a cell prints, or shows in a table."""
    found = set()
    for output in cell.outputs:
        data = output.get("data", {})
        table = BeautifulSoup(data.get("text/html", ""), "html.parser")
        for text in output.get("text"), data.get("text/plain"), table.get_text(" "):
            found |= numbers(text or "")
    return found


def written(cell):
    """All numbers in a cell's asserts, and the whole ones in its code: its settings."""
    tree, found = ast.parse(re.sub(r"(?m)^( *)%.*", r"\1pass", cell.source)), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            found |= {n for n in numbers(str(node.value)) if float(n).is_integer()}
        called = getattr(getattr(node, "func", None), "id", None)
        if isinstance(node, ast.Assert) or called == "assert_close":
            asserted = [x for x in ast.walk(node) if isinstance(x, ast.Constant)]
            found |= numbers(" ".join(str(x.value) for x in asserted))
    return found


def stands_for(known, number):
    """Whether a number of a cell is that of the text, or would be rounded to it."""
    n_digits, n_known = (len(each.partition(".")[2]) for each in (number, known))
    return n_known >= n_digits and f"{float(known):.{n_digits}f}" == number


def unexplained(notebook):
    """Index of the cell, and number, of all that no cell of the section stands for."""
    for part in sections(notebook):
        if part.title in TASKS:
            continue
        code = [cell for _, cell in part.of_type("code")]
        recorded = any(USES.search(cell.source) for cell in code)
        known = set()
        for cell in code:
            known |= written(cell)
            if not recorded or "nbval-ignore-output" in tags(cell):
                known |= shown(cell)
        for index, cell in part.cells:
            for number in sorted(numbers(text_of(cell))):
                if not any(stands_for(each, number) for each in known):
                    yield index, number


PAGES = dict(read_pages())


@pytest.mark.parametrize("name", PAGES)
def test_every_number_of_the_text_is_that_of_a_cell(name):
    found = list(unexplained(PAGES[name]))
    exceptions = EXCEPTIONS.get(name, {})
    assert [each for each in found if each[1] not in exceptions] == []
    assert exceptions.keys() <= {number for _, number in found}  # none is left over


def test_the_pages_are_found():
    assert PAGES.keys() >= {*EXCEPTIONS, "18_a_language_model"}


TABLE = "<table><tr><td>1,024</td><td>0.5</td></tr></table>"
CASES = [  # text, code, what it prints or shows, numbers that nothing stands for
    ("gains 2.4 points", "show()", "gain 2.4", []),
    ("gains 2.4 points", "show()", "gain 2.41", []),
    ("gains 2.4 points", "show()", "gain 2.46, 12.4, 24", ["2.4"]),
    ("gains 2.0 points", "show()", "gain 2", ["2.0"]),
    ("loses 2.4 points (−3 to −1)", "show()", "-2.4 (-3.0 to +1.0)", []),
    ("1,024 tokens, half of them", "show()", TABLE, []),
    ("takes 1,024 tokens", "show(1024)", "", []),
    ("a rate of 0.5", "show(0.5)", "", ["0.5"]),
    ("a rate of 0.5", "assert rate == 0.5", "", []),
    ("gains 2.4 points", 'assert f"{gain:.1f}" == "2.4"', "", []),
    ("gains 2.4 points", 'record = read_results("x")', "gain 2.4", ["2.4"]),
    ("gains 2.4 points", 'show(record["runs"])', "gain 2.4", ["2.4"]),
    ("gains 2.4 points", 'record["x"]\nassert told == ["2.4 (2.0)"]', "", []),
    ("GPT-2 in 2019, chapters 3 and 4, (17.3), $1.5$, `1.5`", "show()", "", []),
]


@pytest.mark.parametrize(("text", "code", "output", "missing"), CASES)
def test_a_number_that_no_cell_stands_for_is_named(text, code, output, missing):
    kind = "text/html" if output.startswith("<") else "text/plain"
    cell = new_code_cell(code, outputs=[new_output("display_data", {kind: output})])
    notebook = new_notebook(cells=[new_markdown_cell(text), cell])
    assert [number for _, number in unexplained(notebook)] == missing
    notebook.cells.insert(1, new_markdown_cell("## Another section"))
    others = [number for _, number in unexplained(notebook)]
    assert others == sorted(numbers(text_of(notebook.cells[0])))


@pytest.mark.parametrize(
    "words", [{"image": {"alt": "2.4 above"}}, {"figure": {"caption": "2.4 above"}}]
)
def test_what_describes_a_figure_is_read(words):
    cell = new_code_cell("show()", metadata={"mystnb": words})
    assert [*unexplained(new_notebook(cells=[cell]))] == [(0, "2.4")]
