"""Drawings of the chapter on the encoder."""

from itertools import pairwise

from transformer_book.diagrams.canvas import Canvas
from transformer_book.diagrams.decoder import SOURCE as WORDS


def layer_diagram() -> Canvas:
    """One encoder layer, opened: two sub-layers on a stream that runs past them."""
    canvas = Canvas(520, 430)
    canvas.box(60, 40, 400, 340, "", "source", fill=0.03, dashed=True)
    canvas.text(446, 58, "EncoderLayer", anchor="end", bold=True)
    canvas.arrow((120, 418), (120, 12), role="source", width=3)
    canvas.text(134, 412, "x, one vector per token", "source", anchor="start")
    canvas.text(134, 18, "the same shape", "source", anchor="start")
    for bottom, label, sub in (
        (366, "self-attention", "gathers from all positions"),
        (206, "feed-forward", "thinks at each position"),
    ):
        join = bottom - 84
        canvas.arrow((120, bottom), (310, bottom), (310, bottom - 16))
        canvas.box(190, bottom - 66, 240, 50, label, "source", sub=sub)
        canvas.arrow((310, bottom - 66), (310, join), (133, join))
        canvas.plus(120, join)
        canvas.box(78, join - 46, 84, 26, "norm", size=14, fill=0.08, solid=True)
    return canvas


def stack_diagram() -> Canvas:
    """Three layers on top of each other; every one returns the shape it was given."""
    canvas = Canvas(520, 330)
    xs = range(70, 500, 88)
    for x, word in zip(xs, WORDS, strict=True):
        canvas.text(x, 318, word, "source", bold=True)
        canvas.arrow((x, 308), (x, 288), role="source")
        canvas.box(x - 22, 50, 44, 22, "", "memory", fill=0.5)
    for number, y in enumerate((252, 180, 108), start=1):
        canvas.box(26, y, 440, 36, f"layer {number}", "source")
        for x in xs:
            role = "memory" if number == 3 else "source"
            canvas.arrow((x, y), (x, y - 34), role=role)
    title = "memory: one vector for each source token"
    canvas.text(246, 28, title, "memory", bold=True)
    return canvas


def detour_diagram() -> Canvas:
    """Two layers: a message that may not go straight goes through a third word."""
    canvas = Canvas(520, 300)
    xs = {"Baseball": 126, "mit": 276, "Schläger": 426}
    rows = [270, 156, 42]  # embedded, after layer 1, after layer 2
    left, middle, right = xs.values()
    for level, y in enumerate(rows):
        for word, x in xs.items():
            knows = word == "Baseball" or level > (word == "Schläger")
            fill = 0.4 if knows else 0.03
            canvas.box(x - 50, y - 18, 100, 36, word, "source", size=14.5, fill=fill)
    for number, (below, above) in enumerate(pairwise(rows), start=1):
        start, end = below - 18, above + 20
        for x in xs.values():
            canvas.arrow((x, start), (x, end), lit=False)
        canvas.text(34, (below + above) / 2, f"layer {number}", bold=True)
        canvas.arrow((left + 50, start), (right - 50, end), dashed=True)
        crossed = start + 0.65 * (end - start)
        canvas.text(left + 180, crossed, "✕", size=18, bold=True)
        x = (left, middle)[number - 1] + 22
        canvas.arrow((x, start), (x + 106, end), role="source", width=2.6)
    return canvas
