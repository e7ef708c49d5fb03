"""Drawings of the chapter on training."""

from transformer_book.diagrams.canvas import Canvas


def training_cycle() -> Canvas:
    """The model in its training loop: predict, compare, blame, change the weights."""
    canvas = Canvas(520, 274)
    canvas.box(20, 206, 150, 50, "source", "source", sub="German ids")
    canvas.box(20, 130, 150, 50, "tgt_in", "target", sub="<bos> a dog …")
    canvas.box(20, 20, 150, 50, "tgt_out", "target", sub="a dog … <eos>")
    canvas.box(225, 130, 120, 126, "model", "memory", sub="chapters 1–8")
    canvas.box(225, 20, 120, 50, "loss", "highlight", sub="one number")
    canvas.box(416, 20, 96, 50, "gradient", sub="backward")
    canvas.box(416, 168, 96, 50, "optimizer", sub="step")
    canvas.arrow((170, 231), (225, 231), role="source")
    canvas.arrow((170, 155), (225, 155), role="target")
    canvas.arrow((170, 45), (225, 45), role="target")
    canvas.arrow((285, 130), (285, 70))
    canvas.arrow((345, 45), (416, 45), role="highlight")
    canvas.arrow((464, 70), (464, 168))
    canvas.arrow((416, 193), (345, 193), width=2.6)
    canvas.text(276, 100, "logits", anchor="end")
    canvas.text(381, 212, "new")
    canvas.text(381, 229, "weights")
    canvas.arrow((464, 248), (464, 218))
    canvas.text(464, 258, "learning rate", italic=True)
    return canvas
