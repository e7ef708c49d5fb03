"""Drawings of the chapter on training."""

from transformer_book.diagrams.canvas import Canvas


def training_cycle() -> Canvas:
    """The model in its training loop: predict, compare, blame, change the weights."""
    canvas = Canvas(520, 330)
    canvas.box(20, 262, 150, 50, "source", "source", sub="German ids")
    canvas.box(20, 186, 150, 50, "tgt_in", "target", sub="<bos> a dog …")
    canvas.box(20, 20, 150, 50, "tgt_out", "target", sub="a dog … <eos>")
    canvas.box(225, 186, 120, 126, "model", "memory", sub="chapters 1–8")
    canvas.box(225, 20, 120, 50, "loss", "highlight", sub="one number")
    canvas.box(416, 20, 96, 50, "gradient", sub="backward")
    canvas.box(416, 224, 96, 50, "optimizer", sub="step")
    canvas.arrow((170, 287), (225, 287), role="source")
    canvas.arrow((170, 211), (225, 211), role="target")
    canvas.arrow((170, 45), (225, 45), role="target")
    canvas.arrow((285, 186), (285, 70))
    canvas.arrow((345, 45), (416, 45), role="highlight")
    canvas.arrow((464, 70), (464, 224))
    canvas.arrow((416, 249), (345, 249), width=2.6)
    canvas.text(276, 128, "logits", anchor="end")
    canvas.text(381, 268, "new")
    canvas.text(381, 285, "weights")
    canvas.arrow((464, 304), (464, 274))
    canvas.text(464, 314, "learning rate", italic=True)
    return canvas
