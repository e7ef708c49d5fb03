"""Diagrams of the chapter that builds the whole Transformer in one sitting."""

from collections.abc import Sequence
from dataclasses import dataclass

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
    for x, word, role in (
        (60, "query", "query"),
        (190, "keys", "key"),
        (306, "weights", "ink"),
        (398, "values", "value"),
        (484, "output", "ink"),
    ):
        canvas.text(x, 20, word, role, bold=True)
    middle = 58 + 24 * (len(names) - 1)
    canvas.grid(30, middle - 12, [query], "query", cell=(30, 24))
    for row, (name, key, weight, value) in enumerate(
        zip(names, keys, weights, values, strict=True)
    ):
        y = 58 + 48 * row
        canvas.arrow((93, middle), (155, y), role="query", width=1.1)
        canvas.grid(160, y - 12, [key], "key", cell=(30, 24))
        canvas.text(190, y + 22, name, "source", size=13)
        canvas.box(272, y - 9, max(68 * weight, 1), 18, role="ink", fill=0.45)
        canvas.text(306, y + 20, f"{weight:.2f}", size=13)
        canvas.arrow((223, y), (266, y), role="key", width=1.1)
        canvas.grid(368, y - 12, [value], "value", cell=(30, 24))
        strength = 0.6 + 3.4 * weight
        canvas.arrow((431, y), (459, middle), role="value", width=strength, head=False)
    canvas.grid(462, middle - 12, [[f"{x:.1f}" for x in output]], cell=(26, 24))
    return canvas


def split_heads(n_heads: int = 4) -> Canvas:
    """Draw the projections split into heads that attend on their own, then joined."""
    canvas = Canvas(520, 322)
    canvas.box(190, 288, 140, 28, "x", "source")
    for i, (role, letter) in enumerate((("query", "q"), ("key", "k"), ("value", "v"))):
        left = 72 + 140 * i
        canvas.arrow((220 + 40 * i, 288), (left + 58, 262), role="source", width=1.2)
        canvas.box(left, 232, 116, 30, f"{letter}_proj", role)
        for head in range(n_heads):
            x, target = left + 29 * head, 32 + 118 * head + 26 + 24 * i
            canvas.arrow((x + 14, 194), (target, 150), role=role, width=1)
            canvas.box(x, 194, 28, 26, letter, role, size=13)
        canvas.arrow((left + 58, 232), (left + 58, 220), role=role, head=False)
    for head in range(n_heads):
        left, part = 32 + 118 * head, 172 + 44 * head
        canvas.box(left, 116, 100, 34, f"head {head + 1}", fill=0.06)
        canvas.arrow((left + 50, 116), (part + 22, 86), width=1.1)
        canvas.box(part, 60, 44, 26, f"{head + 1}", fill=0.06, size=13)
    canvas.text(162, 73, "join", anchor="end", italic=True)
    canvas.text(64, 207, "split", anchor="end", italic=True)
    canvas.arrow((260, 60), (260, 42))
    canvas.box(190, 8, 140, 34, "out_proj", fill=0.06)
    return canvas


def residual_stream() -> Canvas:
    """Draw an encoder layer twice: as in the paper (post-norm), and pre-norm."""
    canvas = Canvas(520, 400)
    for left, title, norm_first in ((0, "post-norm", False), (270, "pre-norm", True)):
        middle = left + 70
        canvas.text(left + 125, 16, title, bold=True)
        canvas.arrow((middle, 392), (middle, 36), role="source", width=3.4)
        canvas.text(middle - 14, 384, "x", "source", bold=True, anchor="end")
        for y, label in ((340, "self-attention"), (178, "feed-forward")):
            _sublayer(canvas, middle, y, label, norm_first)
    return canvas


def _sublayer(
    canvas: Canvas, middle: float, y: float, label: str, norm_first: bool
) -> None:
    """Draw one sub-layer beside the stream, from height y upward."""
    side, width = middle + 44, 126
    plus = y - 88
    x = side + width / 2
    top, height = (y - 72, 32) if norm_first else (y - 66, 66)
    canvas.arrow((middle, y + 16), (x, y + 16), (x, y))
    if norm_first:
        canvas.box(side, y - 26, width, 26, "norm", fill=0.22, size=13)
        canvas.arrow((x, y - 26), (x, y - 40), head=False)
    canvas.box(side, top, width, height, label, fill=0.06)
    canvas.arrow((x, top), (x, plus), (middle + 12, plus))
    canvas.box(middle - 11, plus - 11, 22, 22, "", "page", fill=1)
    canvas.circle(middle, plus, 11, "+", "source")
    if not norm_first:
        canvas.box(middle - 42, plus - 44, 84, 24, "", "page", fill=1)
        canvas.box(middle - 42, plus - 44, 84, 24, "norm", "ink", fill=0.22, size=13)


def shifting_right(
    target: Sequence[str], bos: str = "<bos>", eos: str = "<eos>"
) -> Canvas:
    """Draw what the decoder reads at each position, and what it must predict there."""
    pairs = list(zip([bos, *target], [*target, eos], strict=True))
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


@dataclass(frozen=True)
class Candidate:
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
    height = 46
    column = 520 / len(steps)
    rows = max(map(len, steps))
    canvas = Canvas(520, 36 + height * rows)
    for number, step in enumerate(steps):
        left = column * number + 22
        canvas.text(left + (column - 30) / 2, 14, f"step {number + 1}")
        for row, candidate in enumerate(step):
            y, kept = 30 + height * row, candidate.kept
            if number:
                start = 30 + height * candidate.parent + 19
                canvas.arrow(
                    (left - 30, start), (left, y + 19),
                    role="target" if kept else "ink", width=1.3, lit=kept,
                )  # fmt: skip
            canvas.box(
                left, y, column - 30, 38, candidate.token,
                "target" if kept else "ink", sub=f"{candidate.log_prob:.2f}",
                size=14, fill=0.3 if kept else 0.04, lit=kept,
            )  # fmt: skip
    return canvas
