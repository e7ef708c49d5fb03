"""Diagrams of masks: where the model uses them, and how they are made."""

from transformer_book.diagrams.canvas import Canvas, Words

PAD = "<pad>"
SOURCE = ("ein", "hund", "spielt", PAD, PAD)
TARGET = ("<bos>", "a", "dog", "plays", PAD, PAD, PAD)


def three_masks() -> Canvas:
    """Draw the masks of the three attention blocks, for one sentence pair."""
    canvas = Canvas(520, 530)
    for x, y, title, role, queries, keys in (
        (84, 358, "encoder self-attention", "source", SOURCE, SOURCE),
        (326, 358, "decoder self-attention", "target", TARGET, TARGET),
        (326, 90, "cross-attention", "memory", TARGET, SOURCE),
    ):
        _mask(canvas, x, y, _signs(len(queries), keys, "decoder" in title), role, keys)
        side = "target" if queries is TARGET else "source"
        for i, word in enumerate(queries):
            canvas.text(x - 8, y + 22 * i + 11, word, side, anchor="end")
        canvas.text(x + 11 * len(keys), y - 62, title, role, size=15, bold=True)
    way = (139, 278), (139, 167), (260, 167)
    canvas.arrow(*way, role="memory", width=2.4)
    canvas.text(148, 220, "memory", "memory", bold=True, anchor="start")
    way = (486, 435), (508, 435), (508, 167), (446, 167)
    canvas.arrow(*way, role="target", width=2.4)
    _mask(canvas, 24, 20, [[""], ["p"], ["f"]], "ink")
    for row, text in enumerate(("may attend", "hidden: padding", "hidden: future")):
        canvas.text(54, 31 + 22 * row, text, anchor="start")
    canvas.text(24, 108, "row: query, column: key", anchor="start")
    return canvas


def broadcast() -> Canvas:
    """Draw how a padding mask covers every query and every head of its sentence."""
    canvas = Canvas(520, 366)
    shapes = {"padding mask": "(2, 1, 1, 5)", "fits the scores": "(2, 2, 5, 5)"}
    for x, (name, shape) in zip((75, 387), shapes.items(), strict=True):
        canvas.text(x, 20, name, bold=True)
        canvas.text(x, 40, shape, mono=True)
    for top, number, row in ((62, 1, [""] * 5), (212, 2, ["", "", "", "p", "p"])):
        _mask(canvas, 20, top + 72, [row], "source")
        canvas.text(75, top + 58, f"sentence {number}")
        canvas.arrow((142, top + 83), (312, top + 83))
        canvas.text(227, top + 68, "the same row for")
        canvas.text(227, top + 100, "all queries, all heads")
        for x, y in ((346, top + 14), (332, top + 28)):  # head 1 in front
            canvas.box(x, y, 110, 110, "", "page", fill=1)
            _mask(canvas, x, y, [row] * 5, "source")
        canvas.text(456, top + 4, "head 2", size=13, anchor="end")
        canvas.text(324, top + 39, "head 1", size=13, anchor="end")
    return canvas


def _signs(n_rows: int, keys: Words, causal: bool) -> list[list[str]]:
    """Write p for a padding key and f for the future; nothing where one may attend."""
    return [
        ["p" if key == PAD else "f" * (causal and j > i) for j, key in enumerate(keys)]
        for i in range(n_rows)
    ]


def _mask(
    canvas: Canvas, x: float, y: float, signs: list[Words], role: str, keys: Words = ()
) -> None:
    """Draw a mask, dark where one may attend, with its keys above it, slanted."""
    shades = [[0.0 if sign else 0.5 for sign in row] for row in signs]
    canvas.grid(x, y, signs, role, cell=(22, 22), shades=shades)
    for j, word in enumerate(keys):
        left = x + (j + 0.5) * 22
        canvas.text(left, y - 6, word, role, size=13, anchor="start", turn=-55)
