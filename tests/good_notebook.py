"""A tiny chapter that follows every rule, for tests that then break one."""

import nbformat

from book_tools.notebooks import clean
from book_tools.repository import bootstrap, colab_link

ADDRESS = "https://github.com/owner/name"
FILE_NAME = "01_counting.ipynb"
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"


def markdown(source):
    return nbformat.v4.new_markdown_cell(source)


def code(source, printed="", **metadata):
    outputs = [nbformat.v4.new_output("stream", text=printed)] if printed else []
    return nbformat.v4.new_code_cell(source, metadata=metadata, outputs=outputs)


def figure(data=None):
    data = {"image/png": PNG, "text/plain": "<Figure size 640x480 with 1 Axes>"}
    return nbformat.v4.new_output("display_data", data=data)


def exercise(number):
    task = f"### Exercise 1.{number} — Count\n\nCount to three. It teaches counting."
    stub = f"answer = None  # your turn\ncheck_count_{number}(answer)"
    solution = f"# @title Solution 1.{number}\nanswer = 3\ncheck_count_{number}(answer)"
    return [
        markdown(task),
        code(stub, "not attempted yet\n"),
        code(
            solution,
            "correct\n",
            tags=["hide-cell"],
            cellView="form",
            jupyter={"source_hidden": True},
            mystnb={"code_prompt_show": "Show the solution"},
        ),
    ]


def good_notebook():
    """A fresh copy, as it is stored."""
    drawn = code("plt.show()", mystnb={"image": {"alt": "Bars: counts rise to 3"}})
    drawn.outputs = [figure()]
    cells = [
        markdown(
            "# 1. Counting\n\n[Open this chapter in Colab]"
            f"({colab_link(ADDRESS, FILE_NAME)})\n\nHow far can we count?"
        ),
        markdown(
            "## What you will build\n\n**You will build** a counter.\n\n"
            "**You will learn** to count.\n\n**You need** nothing."
        ),
        markdown("## Setup"),
        code(bootstrap(ADDRESS), tags=["remove-cell"]),
        code("import torch", tags=["hide-input"]),
        markdown("## One\n\nA first idea, see [the third](#three)."),
        code("torch.manual_seed(0)\nprint(torch.rand(1))", "tensor([0.496])\n"),
        markdown("## Two\n\n$$x = 2 \\tag{1.1}$$"),
        drawn,
        markdown("## Three\n\n### Detail\n\n![three dots](figures/three.svg)"),
        code("assert 1 + 1 == 2, 'counting'"),
        markdown("## The library's version"),
        code("assert max(1, 2) == 2", ledger=["S3-12"]),
        markdown("## Common mistakes\n\n### Off by one"),
        code("print(range(3)[-1])", "2\n"),
        markdown("## Summary\n\nWe counted. It went well, i.e. to 3.5."),
        markdown("## Exercises\n\nEach has a check."),
        *exercise(1),
        *exercise(2),
        *exercise(3),
        markdown(
            "## Further reading\n\n- [A book on counting](https://example.org/count): "
            "why one begins at zero."
        ),
    ]
    notebook = nbformat.v4.new_notebook(cells=cells)
    number_cells(notebook)
    return clean(notebook)


def number_cells(notebook):
    """Number the code cells as a run from top to bottom does."""
    code_cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for count, cell in enumerate(code_cells, start=1):
        cell.execution_count = count
