"""Diagrams of the frame around a sub-layer: add, norm, and the feed-forward network."""

from collections.abc import Sequence

from transformer_book.diagrams.canvas import Canvas

ROAD = 7  # width of the residual stream


def residual_stream() -> Canvas:
    """Two layers: each sub-layer reads the stream and adds its output to it."""
    canvas = Canvas(520, 208)
    road = 164
    canvas.arrow((58, road), (450, road), role="source", width=ROAD, head=False)
    canvas.arrow((450, road), (466, road), role="source", width=3)
    canvas.text(30, road, "hund", "source", size=15, bold=True)
    canvas.text(493, road, "hund", "source", size=15, bold=True)
    canvas.text(256, 194, "the residual stream of one word", "source", italic=True)
    for layer in range(2):
        left = 60 + 202 * layer
        canvas.box(left, 8, 194, 84, "", "ink", fill=0.03, dashed=True)
        canvas.text(left + 97, 26, f"layer {layer + 1}")
        for x, width, name in (
            (left + 4, 80, "attention"),
            (left + 88, 102, "feed-forward"),
        ):
            canvas.box(x, 46, width, 34, name, "ink", size=14)
            reads, writes = x + 18, x + width - 22
            canvas.arrow((reads, road - 4), (reads, 82))
            canvas.arrow((writes, 80), (writes, road - 12), role="source")
            _plus(canvas, writes, road)
    return canvas


def layer_and_batch_norm(
    values: Sequence[Sequence[float]], words: Sequence[str]
) -> Canvas:
    """Show which numbers are normalized together: one word's, or one feature's.

    Args:
        values: for each word its features.
        words: as many.
    """
    canvas = Canvas(520, 206)
    cell = (46, 26)
    rows = [[f"{number:.2f}" for number in row] for row in values]
    for left, title, reason, chosen in (
        (62, "layer norm", "one word, all its features", (len(rows) - 1, None)),
        (326, "batch norm", "one feature, all words", (None, 0)),
    ):
        middle = left + 2 * cell[0]
        canvas.text(middle, 16, title, size=16, bold=True)
        canvas.text(middle - 14, 38, reason)
        shades = [
            [0.45 if i == chosen[0] or j == chosen[1] else 0.08 for j in range(4)]
            for i in range(len(rows))
        ]
        canvas.grid(left, 60, rows, "source", cell=cell, shades=shades, rows=words,
                    size=14)  # fmt: skip
    return canvas


def position_wise(words: Sequence[str]) -> Canvas:
    """Attention connects every word with every word; the network connects none.

    Args:
        words: five of them, at most six letters long.
    """
    canvas = Canvas(520, 236)
    for left, title, reason in (
        (12, "attention", "every word with every word"),
        (274, "feed-forward", "each word by itself"),
    ):
        xs = [left + x for x in (10, 58, 122, 172, 216)]
        canvas.text(left + 117, 14, title, size=16, bold=True)
        canvas.text(left + 117, 36, reason)
        for x, word in zip(xs, words, strict=True):
            canvas.text(x, 224, word, "source", bold=True)
            canvas.arrow((x, 90), (x, 56), role="source")
        if title == "attention":
            for x in xs:
                for other in xs:
                    canvas.arrow((x, 210), (other, 90), width=0.8, head=False)
        else:
            for x in xs:
                canvas.arrow((x, 210), (x, 90), role="source", head=False)
                canvas.box(x - 19, 126, 38, 48, "", "page", fill=1)
                canvas.box(x - 19, 126, 38, 48, "net", "ink", size=14)
    return canvas


def two_orders() -> Canvas:
    """Post-norm and pre-norm side by side, two sub-layers each."""
    canvas = Canvas(520, 420)
    for middle, norm_first, title, equation in (
        (66, False, "post-norm", "norm(x + f(x))"),
        (326, True, "pre-norm", "x + f(norm(x))"),
    ):
        canvas.text(middle + 66, 16, title, size=16, bold=True)
        canvas.text(middle + 66, 38, equation, mono=True)
        top = 62
        canvas.arrow((middle, 398), (middle, top + 12), role="source", width=ROAD,
                     head=False)  # fmt: skip
        canvas.arrow((middle, top + 14), (middle, top), role="source", width=3)
        canvas.text(middle, 408, "x", "source", size=16, bold=True)
        for bottom, name in ((392, "attention"), (236, "feed-forward")):
            _sublayer(canvas, middle, bottom, name, norm_first)
    return canvas


def _sublayer(
    canvas: Canvas, x: float, bottom: float, name: str, norm_first: bool
) -> None:
    """Draw one way around the stream at x, and where its norm sits."""
    side = x + 106  # the middle of the sub-layer's box
    box = bottom - (90 if norm_first else 62)
    join = box - 22
    if norm_first:
        canvas.arrow((x, bottom - 12), (side, bottom - 12), (side, bottom - 22))
        canvas.box(side - 34, bottom - 48, 68, 26, "norm", "highlight", size=14)
        canvas.arrow((side, bottom - 48), (side, box + 32))
    else:
        canvas.arrow((x, bottom - 12), (side, bottom - 12), (side, box + 32))
    canvas.box(side - 54, box, 108, 32, name, "ink", size=14)
    canvas.arrow((side, box), (side, join), (x + 12, join))
    _plus(canvas, x, join)
    if not norm_first:
        canvas.box(x - 34, join - 46, 68, 26, "", "page", fill=1)
        canvas.box(x - 34, join - 46, 68, 26, "norm", "highlight", size=14)


def _plus(canvas: Canvas, x: float, y: float) -> None:
    """Draw a plus sign in a circle that hides the stream behind it."""
    canvas.circle(x, y, 11, "", "page", fill=1)
    canvas.circle(x, y, 11, "+", "source", size=17)
