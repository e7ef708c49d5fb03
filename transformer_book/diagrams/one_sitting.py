"""Diagrams of the chapter that builds the whole Transformer in one sitting."""

from collections.abc import Sequence
from typing import NamedTuple

from transformer_book.diagrams.canvas import Canvas


def look_up(
    query: Sequence[float],
    names: Sequence[str],
    keys: Sequence[Sequence[float]],
    weights: Sequence[float],
    values: Sequence[Sequence[float]],
    output: Sequence[float],
) -> Canvas:
    """Draw one query that compares itself with keys and averages their values.

    Args:
        query: its numbers.
        names: the token of each key.
        keys: the numbers of each key.
        weights: one for each key; they sum to 1.
        values: the numbers of each value.
        output: the weighted average of the values.
    """
    canvas = Canvas(520, 74 + 48 * len(names))
    titles = {"query": 60, "keys": 190, "weights": 306, "values": 398, "output": 484}
    for word, x in titles.items():
        role = word.removesuffix("s")
        role = role if role in ("query", "key", "value") else "ink"
        canvas.text(x, 20, word, role, bold=True)
    middle = 58 + 24 * (len(names) - 1)
    canvas.grid(30, middle - 12, [query], "query", cell=(30, 24))
    for row, (name, weight) in enumerate(zip(names, weights, strict=True)):
        y = 58 + 48 * row
        canvas.arrow((93, middle), (155, y), role="query", width=1.1)
        canvas.grid(160, y - 12, [keys[row]], "key", cell=(30, 24))
        canvas.text(190, y + 22, name, "source", size=13)
        canvas.box(272, y - 9, max(68 * weight, 1), 18, fill=0.45)
        canvas.text(306, y + 20, f"{weight:.2f}", size=13)
        canvas.arrow((223, y), (266, y), role="key", width=1.1)
        canvas.grid(368, y - 12, [values[row]], "value", cell=(30, 24))
        style = {"role": "value", "width": 0.6 + 3.4 * weight, "head": False}
        canvas.arrow((431, y), (459, middle), **style)
    canvas.grid(462, middle - 12, [output], decimals=1, cell=(26, 24))
    return canvas


def split_heads() -> Canvas:
    """Draw the projections split into heads that attend on their own, then joined."""
    canvas = Canvas(520, 322)
    canvas.box(190, 288, 140, 28, "x", "source")
    for i, role in enumerate(("query", "key", "value")):
        left = 72 + 140 * i
        canvas.arrow((220 + 40 * i, 288), (left + 58, 262), role="source", width=1.2)
        canvas.box(left, 232, 116, 30, f"{role[0]}_proj", role)
        style = {"width": 28, "height": 26, "gap": 1, "size": 13}
        for head, x in enumerate(canvas.row(left, 194, role[0] * 4, role, **style)):
            end = (58 + 118 * head + 24 * i, 150)
            canvas.arrow((x, 194), end, role=role, width=1)
        canvas.arrow((left + 58, 232), (left + 58, 220), role=role, head=False)
    heads = [f"head {number}" for number in (1, 2, 3, 4)]
    above = canvas.row(172, 60, "1234", width=44, height=26, gap=0, fill=0.06, size=13)
    below = canvas.row(32, 116, heads, width=100, height=34, gap=18, fill=0.06, size=15)
    for start, end in zip(below, above, strict=True):
        canvas.arrow((start, 116), (end, 86), width=1.1)
    canvas.text(162, 73, "join", anchor="end", italic=True)
    canvas.text(64, 207, "split", anchor="end", italic=True)
    canvas.arrow((260, 60), (260, 42))
    canvas.box(190, 8, 140, 34, "out_proj", fill=0.06)
    return canvas


def shifting_right(target: Sequence[str]) -> Canvas:
    """Draw what the decoder reads at each position, and what it must predict there."""
    pairs = list(zip(["<bos>", *target], [*target, "<eos>"], strict=True))
    lengths = [max(len(read), len(predicted), 3) for read, predicted in pairs]
    letter = (512 - 17 * len(pairs)) / sum(lengths)  # pixels for each
    canvas = Canvas(520, 214)
    canvas.text(4, 12, "tgt_out: what it must predict", anchor="start")
    canvas.text(4, 204, "tgt_in: what it reads", anchor="start")
    canvas.box(4, 82, 512, 48, "", "target")
    canvas.text(12, 117, "decoder", "target", anchor="start", size=13)
    x, before = 4.0, 0.0
    for i, (read, predicted) in enumerate(pairs):
        width = letter * lengths[i] + 12
        middle = x + width / 2
        canvas.box(x, 158, width, 26, read, "target", size=12.5)
        canvas.box(x, 28, width, 26, predicted, "target", size=12.5, fill=0.3)
        canvas.arrow((middle, 158), (middle, 130), role="target", width=1.2)
        canvas.arrow((middle, 82), (middle, 54), role="target", width=1.2)
        if i:
            canvas.arrow((before + 9, 58), (middle - 9, 153), dashed=True, width=1)
        x, before = x + width + 5, middle
    return canvas


class Candidate(NamedTuple):
    """A way to go on with a beam, as `beam_tree` draws it.

    Attributes:
        token: the new token.
        log_prob: of all tokens so far.
        parent: row of the candidate of the step before that it continues.
        kept: whether it stays in the beam.
    """

    token: str
    log_prob: float
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
        for row, (token, log_prob, parent, kept) in enumerate(step):
            y = 30 + 46 * row
            role, fill = ("target", 0.3) if kept else ("ink", 0.04)
            if number:
                ends = (left - 30, 49 + 46 * parent), (left, y + 19)
                canvas.arrow(*ends, role=role, width=1.3, lit=kept)
            canvas.box(left, y, width, 38, token, role, sub=f"{log_prob:.2f}",
                       size=14, fill=fill, lit=kept)  # fmt: skip
    return canvas
