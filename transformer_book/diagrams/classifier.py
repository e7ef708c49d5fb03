"""Drawings of the chapter on the encoder that classifies."""

from transformer_book.diagrams.canvas import Canvas

WORDS = ("<bos>", "dull", "film", "<eos>", "<pad>")
HIDDEN = ((0, 1), (-3, 2), (1, 0), (-2, 1), (4, 6))
POOLED = {"mean": (-1, 1), "maximum": (1, 2), "first": (0, 1), "last": (-2, 1)}


def pipeline_diagram() -> Canvas:
    """From words to two logits: embed, encode, pool, score."""
    canvas = Canvas(520, 424)
    for i, word in enumerate(WORDS):
        x, real = 66 + 86 * i, word != "<pad>"
        canvas.text(x, 410, word, "source", bold=True, lit=real)
        canvas.arrow((x, 398), (x, 378), role="source", lit=real)
        canvas.arrow((x, 330), (x, 304), role="memory", lit=real)
        canvas.box(x - 24, 280, 48, 24, "", "memory", fill=0.5, lit=real)
        if real:
            canvas.arrow((x, 280), (x, 250), role="memory")
    canvas.box(26, 330, 424, 48, "embeddings and encoder", "source")
    canvas.box(26, 206, 340, 44, "pool the real positions", "memory")
    canvas.arrow((196, 206), (196, 180), role="memory")
    canvas.box(172, 156, 48, 24, "", "memory", fill=0.5)
    canvas.text(234, 168, "one vector for the text", "memory", anchor="start")
    canvas.arrow((196, 156), (196, 132), role="memory")
    canvas.box(106, 92, 180, 40, "linear layer")
    for x, label in ((126, "negative"), (266, "positive")):
        canvas.arrow((x, 92), (x, 62))
        canvas.box(x - 56, 32, 112, 30, label, "target")
    canvas.text(344, 47, "two logits", "target", anchor="start")
    return canvas


def pooling_diagram() -> Canvas:
    """Five positions with two features each, and what four poolings make of them."""
    canvas = Canvas(520, 260)
    style = {"role": "memory", "cell": (52, 34), "size": 15}
    shades = [[0.12, 0.12]] * 4 + [[0.0, 0.0]]
    canvas.grid(92, 60, HIDDEN, shades=shades, rows=WORDS, **style)
    canvas.grid(372, 60, [*POOLED.values()], shades=0.4, rows=POOLED, **style)
    canvas.titles(34, {144: "after the encoder", 424: "pooled"})
    canvas.arrow((206, 145), (270, 145), role="memory", width=2.4)
    canvas.text(300, 226, "<pad> takes no part", anchor="start", italic=True)
    canvas.arrow((292, 226), (206, 226), dashed=True)
    return canvas
