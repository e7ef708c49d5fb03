"""Drawings of the chapter on training."""

from collections.abc import Sequence

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
    canvas.text(456, 146, "learning rate", anchor="end", italic=True)
    return canvas


def teacher_forcing() -> Canvas:
    """A target cut in two ways: each position reads one token, predicts the next."""
    canvas = Canvas(520, 300)
    target = ["<bos>", "a", "dog", "plays", "<eos>"]
    for y, words, name in (
        (262, target, "target"),
        (196, target[:-1], "tgt_in"),
        (28, target[1:], "tgt_out"),
    ):
        canvas.text(92, y, name, anchor="end", bold=True)
        xs = canvas.row(108, y - 15, words, "target", width=70, gap=12, height=30,
                        size=15)  # fmt: skip
    canvas.box(102, 98, 328, 46, "", "memory", fill=0.08)
    canvas.text(260, 121, "decoder, all positions at once", size=15)
    for x in xs:
        canvas.arrow((x, 181), (x, 144))
        canvas.arrow((x, 98), (x, 43))
        canvas.arrow((x, 247), (x, 211), dashed=True, head=False)
    canvas.text(92, 70, "must predict", anchor="end", size=13)
    canvas.text(92, 162, "reads", anchor="end", size=13)
    return canvas


def smoothed_label(words: Sequence[str], right: str, smoothing: float = 0.1) -> Canvas:
    """What the model is asked for at one position, without and with smoothing.

    Args:
        words: the vocabulary.
        right: the one of them that is the answer.
        smoothing: share of probability given away.
    """
    canvas = Canvas(520, 210)
    step, floor, full = 220 / len(words), 164, 118
    for left, title, share in (
        (30, "plain", 0.0),
        (280, f"smoothing {smoothing:g}", smoothing),
    ):
        canvas.text(left + 110, 16, title, bold=True)
        for i, word in enumerate(words):
            asked = share / len(words) + (1 - share) * (word == right)
            x, top = left + i * step, floor - full * asked
            role = "target" if word == right else "ink"
            canvas.box(x + 3, top, step - 6, floor - top, "", role, fill=0.5)
            canvas.text(x + step / 2, top - 12, f"{asked:.2f}", size=13)
            canvas.text(x + step / 2, floor + 16, word, size=13)
    return canvas
