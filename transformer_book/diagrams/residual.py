"""Diagrams of the frame around a sub-layer: add, norm, and the feed-forward network."""

from transformer_book.diagrams.canvas import Canvas, Table, Words

ROAD = 7  # width of the residual stream


def residual_stream() -> Canvas:
    """Two layers: each sub-layer reads the stream and adds its output to it."""
    canvas, road = Canvas(520, 208), 164
    canvas.arrow((58, road), (450, road), role="source", width=ROAD, head=False)
    canvas.arrow((450, road), (466, road), role="source", width=3)
    for x in (30, 493):
        canvas.text(x, road, "hund", "source", size=15, bold=True)
    canvas.text(256, 194, "the residual stream of one word", "source", italic=True)
    for layer, left in enumerate((60, 262), start=1):
        canvas.box(left, 8, 194, 84, fill=0.03, dashed=True)
        canvas.text(left + 97, 26, f"layer {layer}")
        for x, width, name in ((4, 80, "attention"), (88, 102, "feed-forward")):
            x += left
            canvas.box(x, 46, width, 34, name, size=14)
            reads, writes = x + 18, x + width - 22
            canvas.arrow((reads, road - 4), (reads, 82))
            canvas.arrow((writes, 80), (writes, road - 12), role="source")
            canvas.plus(writes, road)
    return canvas


def layer_and_batch_norm(values: Table, words: Words) -> Canvas:
    """Show which numbers are normalized together: one word's, or one feature's.

    Args:
        values: for each word its features.
        words: as many.
    """
    canvas = Canvas(520, 206)
    word = [[0.08] * 4] * (len(values) - 1) + [[0.45] * 4]
    feature = [[0.45, 0.08, 0.08, 0.08]] * len(values)
    for left, title, reason, shades in (
        (62, "layer norm", "one word, all its features", word),
        (326, "batch norm", "one feature, all words", feature),
    ):
        canvas.text(left + 92, 16, title, size=16, bold=True)
        canvas.text(left + 78, 38, reason)
        canvas.grid(left, 60, values, "source", cell=(46, 26), shades=shades,
                    rows=words, decimals=2, size=13)  # fmt: skip
    return canvas


def two_orders() -> Canvas:
    """Post-norm and pre-norm side by side, two sub-layers each."""
    canvas = Canvas(520, 420)
    for x, norm_first, title, equation in (
        (66, False, "post-norm", "norm(x + f(x))"),
        (326, True, "pre-norm", "x + f(norm(x))"),
    ):
        canvas.text(x + 66, 16, title, size=16, bold=True)
        canvas.text(x + 66, 38, equation, mono=True)
        _layer(canvas, x, norm_first)
    return canvas


def layer_diagram() -> Canvas:
    """One encoder layer, opened: two sub-layers on a stream that runs past them."""
    canvas = Canvas(520, 420)
    canvas.text(260, 24, "norm(x + f(x)), twice", mono=True)
    canvas.box(14, 80, 492, 306, fill=0.03, dashed=True)
    canvas.text(494, 98, "EncoderLayer", anchor="end", bold=True)
    canvas.text(84, 64, "the same shape", "source", anchor="start")
    canvas.text(84, 404, "one vector per token", "source", anchor="start")
    canvas.text(244, 190, "thinks at each position", anchor="start")
    canvas.text(244, 346, "gathers from all positions", anchor="start")
    _layer(canvas, 66, norm_first=False)
    return canvas


def _layer(canvas: Canvas, x: float, norm_first: bool) -> None:
    """Draw the stream at x, from the bottom up, and its two sub-layers."""
    canvas.arrow((x, 398), (x, 74), role="source", width=ROAD, head=False)
    canvas.arrow((x, 76), (x, 62), role="source", width=3)
    canvas.text(x, 408, "x", "source", size=16, bold=True)
    side = x + 106  # the middle of the boxes of sub-layers
    for bottom, name in ((392, "self-attention"), (236, "feed-forward")):
        box = bottom - (90 if norm_first else 62)
        entry, join = bottom - 22 if norm_first else box + 32, box - 22
        canvas.arrow((x, bottom - 12), (side, bottom - 12), (side, entry))
        canvas.box(side - 60, box, 120, 32, name, size=14)
        canvas.arrow((side, box), (side, join), (x + 12, join))
        canvas.plus(x, join)
        if norm_first:
            canvas.arrow((side, bottom - 48), (side, box + 32))
        middle, top = (side, bottom - 48) if norm_first else (x, join - 46)
        canvas.box(middle - 34, top, 68, 26, "norm", "highlight", size=14, solid=True)
