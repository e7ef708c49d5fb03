"""Diagrams of generation: the rows of a batch of beams, the tree of a beam search."""

from collections.abc import Sequence
from typing import NamedTuple

from transformer_book.diagrams.canvas import Canvas


def rows_diagram() -> Canvas:
    """Draw four rows, two beams of two sentences, and what reorder and select do."""
    canvas = Canvas(520, 220)
    before, after = ("A", "The", "Two", "Some"), ("The", "The", "Two", "Some")
    for x, title, words, sentences in (
        (8, "after step", before, "0011"),
        (196, "reorder", after, "0011"),
        (384, "select", after[2:], "11"),
    ):
        canvas.text(x + 62, 18, title, bold=True)
        for row, (word, sentence) in enumerate(zip(words, sentences, strict=True)):
            y = 40 + 38 * row
            canvas.box(x, y, 54, 28, f"src {sentence}", "source", size=14)
            canvas.box(x + 60, y, 68, 28, word, "target", size=14)
    moves = (138, ((1, 0), (1, 1), (2, 2), (3, 3))), (326, ((2, 0), (3, 1)))
    for x, pairs in moves:
        for start, end in pairs:
            canvas.arrow((x, 54 + 38 * start), (x + 56, 54 + 38 * end))
    canvas.text(166, 206, "parents [[1, 1], [0, 1]]")
    canvas.text(420, 206, "sentences [1]")
    return canvas


class Candidate(NamedTuple):
    """A way to go on with a beam, as `beam_tree` draws it.

    Attributes:
        token: the new token.
        told: how likely all tokens so far are, as it is written.
        parent: row of the candidate of the step before that it continues.
        kept: whether it stays in the beam.
    """

    token: str
    told: str
    parent: int
    kept: bool


def beam_tree(steps: Sequence[Sequence[Candidate]]) -> Canvas:
    """Draw the first steps of a beam search: candidates, and which of them are kept.

    Args:
        steps: the candidates of each step, best first.
    """
    column = 520 / len(steps)
    width = column - 30
    canvas = Canvas(520, 36 + 46 * max(map(len, steps)))
    for number, step in enumerate(steps):
        left = column * number + 22
        canvas.text(left + width / 2, 14, f"step {number + 1}")
        for row, (token, told, parent, kept) in enumerate(step):
            y = 30 + 46 * row
            role, fill = ("target", 0.3) if kept else ("ink", 0.04)
            if number:
                ends = (left - 30, 49 + 46 * parent), (left, y + 19)
                canvas.arrow(*ends, role=role, width=1.3, lit=kept)
            canvas.box(left, y, width, 38, token, role, sub=told, size=14, fill=fill,
                       lit=kept)  # fmt: skip
    return canvas
