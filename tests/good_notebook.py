"""A tiny page and a tiny chapter that follow every rule, for tests that break one."""

import nbformat

from book_tools.notebooks import clean
from book_tools.repository import bootstrap, colab_link
from book_tools.template import CHECKS_METADATA, SOLUTION_METADATA
from transformer_book.diagrams.canvas import MIME as DIAGRAM

ADDRESS = "https://github.com/owner/name"
PAGE_NAME = "counting.ipynb"
CHAPTER_NAME = "04_counting.ipynb"
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"


def markdown(source):
    return nbformat.v4.new_markdown_cell(source)


def code(source, printed="", **metadata):
    outputs = [nbformat.v4.new_output("stream", text=printed)] if printed else []
    return nbformat.v4.new_code_cell(source, metadata=metadata, outputs=outputs)


def figure(data=None):
    data = data or {"image/png": PNG, "text/plain": "<Figure 640x480>"}
    return nbformat.v4.new_output("display_data", data=data)


def good_page():
    """A fresh copy, as it is stored."""
    drawn = code("plt.show()", mystnb={"image": {"alt": "Bars: counts rise to 3"}})
    drawn.outputs = [figure()]
    cells = [
        markdown(
            "# Counting\n\n[Open this chapter in Colab]"
            f"({colab_link(ADDRESS, PAGE_NAME)})\n\nHow far can we count?"
        ),
        code(bootstrap(ADDRESS), tags=["remove-cell"]),
        code("import torch", tags=["hide-input"]),
        markdown("## One\n\nA first idea, see [the third](#three)."),
        code("torch.manual_seed(0)\nprint(torch.rand(1))", "tensor([0.496])\n"),
        markdown("## Two\n\n$$x = 2 \\tag{1.1}$$"),
        drawn,
        markdown("## Three\n\n### Detail\n\n![three dots](figures/three.svg)"),
        code("assert 1 + 1 == 2, 'counting'"),
        code("assert max(1, 2) == 2", ledger=["S3-12"]),
        code("print(range(3)[-1])", "2\n"),
    ]
    return stored(cells)


DRAWING = (
    '<svg role="img" aria-label="{alt}" viewBox="0 0 9 9"><defs>'
    '<path id="tip-{n}" d="M0 0"/></defs><use href="#tip-{n}"/></svg>'
)


def drawing(number, alt):
    """A cell that draws a diagram."""
    metadata = {"tags": ["hide-input"], "mystnb": {"image": {"alt": alt}}}
    cell = code(f"draw_map({number})", **metadata)
    html = DRAWING.format(alt=alt, n=number)
    cell.outputs = [figure({DIAGRAM: html, "image/png": PNG})]
    return cell


def prompt(number):
    """A question, its folded answer, and the folded reason."""
    return [
        markdown(
            f"Prompt {number}.\n\n> **Before you run the next cell.** What will be\n"
            "> printed?"
        ),
        code(
            f"print({number})",
            f"{number}\n",
            tags=["hide-cell"],
            mystnb={"code_prompt_show": "Show what happens"},
        ),
        markdown("<details><summary>Why?</summary>\n\nIt counts.\n\n</details>"),
    ]


def step(number, level):
    """An exercise: the last step of the ladder is open."""
    task = f"### Exercise 4.{number} — Count\n\n{level}\n\nCount to three."
    if level.endswith("open"):
        return [markdown(task)]
    hints = [
        f"<details><summary>Hint {n}</summary>\n\nIt is {n}.\n\n</details>"
        for n in (1, 2)
    ]
    solution = f"# @title Solution 4.{number}\ncheck_count(3)"
    return [
        markdown("\n\n".join([task, *hints])),
        code(
            f"def count_{number}():\n    ...  # your turn\n\n\n"
            f"check_count(count_{number})",
            "… Not attempted yet.\n",
        ),
        code(solution, "✓ You can count.\n", **SOLUTION_METADATA),
    ]


PADDING_MASK = """\
def padding_mask(ids, pad_id):
    return (ids != pad_id)[:, None, None, :]"""
CAUSAL_MASK = """\
def causal_mask(length, device=None):
    return torch.ones(
        length, length, dtype=torch.bool, device=device
    ).tril()"""
MASKS = "transformer_lib.model.masks"


def good_chapter():
    """A fresh copy, as it is stored."""
    cells = [
        markdown(
            "# 4. Counting\n\n*How far can `we` count?*\n\nCore path 35 minutes, "
            "everything 60 minutes · [Open this chapter in Colab]"
            f"({colab_link(ADDRESS, CHAPTER_NAME)})"
        ),
        code(bootstrap(ADDRESS), tags=["remove-cell"]),
        code("import torch", tags=["hide-input"]),
        markdown("## Where we are\n\nThis is the map."),
        drawing(1, "Map: the box counting is lit"),
        markdown("Here is the goal."),
        code("print(1, 2, 3)", "1 2 3\n"),
        markdown(
            "By the end, you'll be able to\n\n- count,\n- count a causal mask\n"
            "  on, and\n\n- count back."
        ),
        markdown("## One\n\nA first idea."),
        *prompt(1),
        markdown("## Two *(optional)*\n\nBesides."),
        drawing(2, "Dots: three in a row"),
        markdown("## Three\n\nFunctions follow."),
        code(PADDING_MASK, defines=f"{MASKS}.padding_mask"),
        code("# @title Checks\nx = 1\nassert x == 1", **CHECKS_METADATA),
        *prompt(2),
        markdown("## The function\n\nFrom here on we import it."),
        code(CAUSAL_MASK, defines=[f"{MASKS}.causal_mask"], pencil=True),
        markdown("## Common bugs\n\nThree.\n\n**One is missing.** Off by one."),
        code("print(range(3)[-1])", "2\n"),
        markdown("**Nothing is counted.** Zero."),
        code("print(0)", "0\n"),
        markdown("**All is counted.** Too much."),
        code("print(100)", "100\n"),
        markdown("## What you can do now\n\n- Count. See [the third](#three) next."),
        markdown("## Exercises\n\nEach has a check."),
        *step(1, "●○○ 5 minutes"),
        *step(2, "●●● 20 minutes"),
        *step(3, "●●● open"),
        markdown("## From the sources\n\nOne document starts with one."),
        code("assert range(3)[0] == 0", ledger=["S3-12"]),
        markdown(
            "## Further reading\n\n- [One](https://example.org/1): zero.\n- [Two]"
            "(https://example.org/2): one.\n- [Three](https://example.org/3): two.\n\n"
            "Next: [A counted page](glossary.md)"
        ),
    ]
    return stored(cells)


def stored(cells):
    """A notebook with these cells, run and stored."""
    notebook = nbformat.v4.new_notebook(cells=cells)
    number_cells(notebook)
    return clean(notebook)


def number_cells(notebook):
    """Number the code cells as a run from top to bottom does."""
    code_cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for count, cell in enumerate(code_cells, start=1):
        cell.execution_count = count
