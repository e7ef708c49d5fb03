"""Diagrams of the decoder: shifting right, cross-attention, the layer, the stack."""

from collections.abc import Callable, Sequence

from transformer_book.diagrams.canvas import Canvas

SOURCE = ["im", "schnee", "spielt", "ein", "hund"]
PREDICTS = ["a", "dog", "plays", "in", "the", "snow", "<eos>"]
READS = ["<bos>", *PREDICTS[:-1]]
# How the step that predicts "dog" weighs SOURCE, in the pencil model's first head.
DOG = (0.01, 0.00, 0.04, 0.09, 0.87)


def shifting_right() -> Canvas:
    """Draw what each step reads above what it predicts, one position apart."""
    canvas = Canvas(520, 176)
    left, step, width = 78.0, 63.0, 55.0
    canvas.text(8, 52, "reads", "target", bold=True, anchor="start")
    canvas.text(8, 128, "predicts", bold=True, anchor="start")
    for i, (read, predicted) in enumerate(zip(READS, PREDICTS, strict=True)):
        x = left + i * step
        middle = x + width / 2
        canvas.text(middle, 18, str(i))
        canvas.box(x, 38, width, 28, read, "target", size=14)
        canvas.arrow((middle, 66), (middle, 112))
        canvas.box(x, 114, width, 28, predicted, fill=0.04, size=14)
        if i + 1 < len(READS):
            start, end = (x + width - 6, 113), (x + step + 6, 67)
            canvas.arrow(start, end, role="target", dashed=True, width=1.3)
    note = "dashed: read as input one step later"
    canvas.text(left, 162, note, "target", anchor="start")
    return canvas


def look_across(weights: Sequence[float] = DOG) -> Canvas:
    """Draw one query of the target, and the keys and values of the memory.

    Args:
        weights: of the query, one for each source word.
    """
    canvas = Canvas(520, 352)
    left, step = 106.0, 83.0
    canvas.box(left, 72, 5 * step - 8, 30, "weighted sum of the values", "value")
    middle = left + (5 * step - 8) / 2
    canvas.arrow((middle, 72), (middle, 40), role="value")
    canvas.text(middle, 24, "what the step takes from the source", bold=True)

    canvas.box(4, 286, 86, 28, "a → dog", "target", size=14)
    canvas.text(46, 336, "target", "target", bold=True)
    canvas.text(middle, 336, "memory", "memory", bold=True)
    canvas.box(20, 152, 52, 30, "q", "query")
    canvas.arrow((46, 286), (46, 184), role="query")

    before = 72.0
    for j, (word, weight) in enumerate(zip(SOURCE, weights, strict=True)):
        x = left + j * step
        canvas.arrow((before, 167), (x - 3, 167), role="query")
        before = x + 37
        canvas.box(x, 286, step - 8, 28, word, "memory", size=14)
        canvas.box(x, 216, 34, 28, "k", "key", size=14)
        canvas.box(x + 41, 216, 34, 28, "v", "value", size=14)
        for dx, role in ((17, "key"), (58, "value")):
            canvas.arrow((x + dx, 286), (x + dx, 246), role=role)
        canvas.arrow((x + 17, 216), (x + 17, 184), role="key")
        canvas.grid(x - 3, 152, [[f"{weight:.2f}"]], "highlight", cell=(40, 30),
                    shades=[[0.06 + 0.6 * weight]], size=14)  # fmt: skip
        canvas.arrow((x + 58, 216), (x + 58, 104), role="value",
                     width=1 + 6 * weight)  # fmt: skip
    return canvas


def decoder_layer() -> Canvas:
    """Draw the three sub-layers of a decoder layer, their masks, and the memory."""
    canvas = Canvas(520, 470)
    left, width = 214.0, 200.0
    middle, right = left + width / 2, left + width + 24
    names = ("masked self-attention", "cross-attention", "feed-forward")
    mottos = ("1. look back", "2. look across", "3. think")
    bottom = 426.0
    canvas.text(middle, 452, "one vector per target token", "target", bold=True)
    for number, (name, motto) in enumerate(zip(names, mottos, strict=True)):
        top = bottom - 84
        attends = "attention" in name
        canvas.arrow((middle, bottom + 12), (middle, top + 42),
                     role="query" if attends else "target")  # fmt: skip
        canvas.arrow((middle, bottom + 12), (middle, bottom - 14), role="target",
                     head=False)  # fmt: skip
        if attends:
            canvas.text(middle + 12, top + 56, "q", "query", bold=True)
        if number == 0:
            _mask(canvas, "tgt_mask", top, left, lambda i, j: j <= i)
            _fork(canvas, middle, bottom - 14, top + 42, (-44, 58))
        if number == 1:
            _mask(canvas, "src_mask", top, left, lambda i, j: j < 4)
            y = bottom - 14
            canvas.arrow((8, y), (middle - 80, y), role="memory", head=False, width=2.4)
            canvas.text(8, y - 13, "memory", "memory", bold=True, anchor="start")
            canvas.text(8, y + 15, "one vector per source token", "memory", size=14,
                        anchor="start")  # fmt: skip
            _fork(canvas, middle - 80, y, top + 42, (0, 36))
        canvas.box(left, top, width, 40, name, "target")
        canvas.arrow((middle, top), (middle, top - 12), role="target", head=False)
        canvas.box(left, top - 36, width, 24, "add & norm", fill=0.06, size=14)
        canvas.arrow((middle, bottom + 4), (right, bottom + 4), (right, top - 24),
                     (left + width, top - 24), width=1.2)  # fmt: skip
        canvas.text(8, top + 6, motto, bold=True, anchor="start")
        bottom = top - 50
    canvas.arrow((middle, bottom + 14), (middle, 12), role="target")
    return canvas


def _mask(
    canvas: Canvas, name: str, top: float, right: float, open_: Callable[..., bool]
) -> None:
    """Draw a small mask with its name, and an arrow from it to the box at right."""
    n, cell = 5, 9.0
    x, y = right - 20 - n * cell, top - 5
    shades = [[0.6 if open_(i, j) else 0.04 for j in range(n)] for i in range(n)]
    canvas.grid(x, y, [[""] * n] * n, "highlight", cell=(cell, cell), shades=shades)
    canvas.text(x + n * cell / 2, y - 13, name, mono=True)
    canvas.arrow((x + n * cell + 3, top + 20), (right - 1, top + 20))


def _fork(
    canvas: Canvas, x: float, y: float, top: float, offsets: tuple[float, float]
) -> None:
    """Draw a key and a value that lead from one line to a box above it."""
    for dx, name, role in zip(offsets, "kv", ("key", "value"), strict=True):
        canvas.arrow((x, y), (x + dx, y), (x + dx, top), role=role)
        canvas.text(x + dx + 11, top + 14, name, role, bold=True)


def one_memory(n_layers: int = 3) -> Canvas:
    """Draw an encoder whose last output enters every layer of the decoder.

    Args:
        n_layers: of each side.
    """
    step, width = 62.0, 168.0
    canvas = Canvas(520, 96 + step * n_layers)
    base = 52 + step * n_layers
    for x, side, role in ((8.0, "encoder", "source"), (344.0, "decoder", "target")):
        middle = x + width / 2
        tokens = "source tokens" if role == "source" else "target tokens"
        canvas.text(middle, base + 26, tokens, role, bold=True)
        for layer in range(n_layers):
            y = base - 12 - step * layer
            canvas.arrow((middle, y + 22), (middle, y), role=role)
            canvas.box(x, y - 40, width, 40, f"{side} layer {layer}", role)
    top = base - 12 - step * (n_layers - 1) - 40
    canvas.arrow((428, top), (428, 8), role="target")
    points = ((92, top), (92, 26), (260, 26), (260, base - 32))
    canvas.arrow(*points, role="memory", head=False, width=2.4)
    canvas.text(176, 12, "memory", "memory", bold=True)
    for layer in range(n_layers):
        y = base - 32 - step * layer
        canvas.arrow((259, y), (343, y), role="memory", width=2.4)
        canvas.text(300, y - 14, "k", "key", bold=True)
        canvas.text(318, y - 14, "v", "value", bold=True)
    return canvas
