"""Drawings of the chapter on the encoder."""

from transformer_lib.diagrams.canvas import Canvas


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
