"""Drawings of the chapter on the encoder."""

from itertools import pairwise

from transformer_book.diagrams.canvas import Canvas


def layer_diagram() -> Canvas:
    """One encoder layer, opened: two sub-layers on a stream that runs past them."""
    canvas = Canvas(520, 430)
    stream, left = 120, 190
    canvas.box(60, 40, 400, 340, "", "source", fill=0.03, dashed=True)
    canvas.text(446, 58, "EncoderLayer", anchor="end", bold=True)
    canvas.arrow((stream, 418), (stream, 12), role="source", width=3)
    canvas.text(stream + 14, 412, "x, one vector per token", "source", anchor="start")
    canvas.text(stream + 14, 18, "the same shape", "source", anchor="start")
    blocks = [
        (366, "self-attention", "gathers from all positions"),
        (206, "feed-forward", "thinks at each position"),
    ]
    for bottom, label, sub in blocks:
        canvas.arrow((stream, bottom), (left + 120, bottom), (left + 120, bottom - 16))
        canvas.box(left, bottom - 66, 240, 50, label, "source", sub=sub)
        canvas.arrow(
            (left + 120, bottom - 66), (left + 120, bottom - 84),
            (stream + 13, bottom - 84),
        )  # fmt: skip
        canvas.circle(stream, bottom - 84, 12, role="page", fill=1)
        canvas.circle(stream, bottom - 84, 12, "+", fill=0.1)
        canvas.box(stream - 42, bottom - 130, 84, 26, role="page", fill=1)
        canvas.box(stream - 42, bottom - 130, 84, 26, "norm", size=14, fill=0.08)
    return canvas


def stack_diagram() -> Canvas:
    """Three layers on top of each other; every one returns the shape it was given."""
    canvas = Canvas(520, 330)
    words = ["im", "schnee", "spielt", "ein", "hund"]
    xs = [70 + 88 * i for i in range(5)]
    for x, word in zip(xs, words, strict=True):
        canvas.text(x, 318, word, "source", bold=True)
        canvas.arrow((x, 308), (x, 288), role="source")
    for number in range(3):
        y = 252 - 72 * number
        label = f"layer {number + 1}"
        canvas.box(26, y, 440, 36, "", "source")
        canvas.text(246, y + 18, label, size=15)
        for x in xs:
            role = "memory" if number == 2 else "source"
            canvas.arrow((x, y), (x, y - 34), role=role)
    for x in xs:
        canvas.box(x - 22, 50, 44, 22, "", "memory", fill=0.5)
    canvas.text(
        246, 28, "memory: one vector for each source token", "memory", bold=True
    )
    return canvas


def detour_diagram() -> Canvas:
    """Two layers: a message that may not go straight goes through a third word."""
    canvas = Canvas(520, 300)
    xs = {"Baseball": 126, "mit": 276, "Schläger": 426}
    rows = [270, 156, 42]  # embedded, after layer 1, after layer 2
    for x in xs.values():
        for below, above in pairwise(rows):
            canvas.arrow((x, below - 18), (x, above + 20), lit=False)
    for level, y in enumerate(rows):
        for word, x in xs.items():
            knows = word == "Baseball" or level > (word == "Schläger")
            fill = 0.4 if knows else 0.03
            canvas.box(x - 50, y - 18, 100, 36, word, "source", size=14.5, fill=fill)
    left, middle, right = xs.values()
    for number, (below, above) in enumerate(pairwise(rows), start=1):
        canvas.text(34, (below + above) / 2, f"layer {number}", bold=True)
        canvas.arrow((left + 50, below - 18), (right - 50, above + 20), dashed=True)
        crossed = below - 18 + 0.65 * (above - below + 38)
        canvas.text(left + 50 + 0.65 * 200, crossed, "✕", size=18, bold=True)
        start = (left, middle)[number - 1]
        canvas.arrow((start + 22, below - 18), (start + 128, above + 20),
                     role="source", width=2.6)  # fmt: skip
    return canvas
