"""Diagrams of masks: where the model uses them, and how they are made."""

from collections.abc import Sequence
from html import escape

from transformer_book.diagrams.canvas import Canvas, Point, color

PAD = "<pad>"
SOURCE = ("ein", "hund", "spielt", PAD, PAD)
TARGET = ("<bos>", "a", "dog", "plays", PAD, PAD, PAD)
CELL = 22.0


def three_masks() -> Canvas:
    """Draw the masks of the three attention blocks, for one sentence pair."""
    canvas = Canvas(520, 530)
    _block(canvas, (84, 358), "encoder self-attention", "source", SOURCE, SOURCE)
    _block(canvas, (326, 358), "decoder self-attention", "target", TARGET, TARGET)
    _block(canvas, (326, 90), "cross-attention", "memory", TARGET, SOURCE)

    canvas.arrow((139, 278), (139, 167), (260, 167), role="memory", width=2.4)
    canvas.text(148, 220, "memory", "memory", bold=True, anchor="start")
    way = ((486, 435), (508, 435), (508, 167), (446, 167))
    canvas.arrow(*way, role="target", width=2.4)

    canvas.grid(
        24, 20, [[""], ["p"], ["f"]], "ink", cell=(CELL, CELL),
        shades=[[0.5], [0.0], [0.0]],
    )  # fmt: skip
    for row, text in enumerate(("may attend", "hidden: padding", "hidden: future")):
        canvas.text(54, 31 + CELL * row, text, anchor="start")
    canvas.text(24, 108, "row: query, column: key", anchor="start")
    return canvas


def broadcast() -> Canvas:
    """Draw how a padding mask covers every query and every head of its sentence."""
    canvas = Canvas(520, 366)
    canvas.text(75, 20, "padding mask", bold=True)
    canvas.text(75, 40, "(2, 1, 1, 5)", mono=True)
    canvas.text(387, 20, "fits the scores", bold=True)
    canvas.text(387, 40, "(2, 2, 5, 5)", mono=True)
    for number, n_real in enumerate((5, 3)):
        top = 62 + 150 * number
        row = [_sign(False, key >= n_real) for key in range(5)]
        _cells(canvas, (20, top + 72), [row], "source")
        canvas.text(75, top + 58, f"sentence {number + 1}")
        canvas.arrow((142, top + 83), (312, top + 83))
        canvas.text(227, top + 68, "the same row for")
        canvas.text(227, top + 100, "all queries, all heads")
        for head, shift in (("second", 14), ("first", 0)):  # the first in front
            x, y = 332 + shift, top + 28 - shift
            canvas.box(x, y, 110, 110, "", "page", fill=1)
            _cells(canvas, (x, y), [row] * 5, "source")
            side = (x + 110, y - 10) if shift else (x - 8, y + 11)
            canvas.text(*side, f"{head} head", size=13, anchor="end")
    return canvas


def joined() -> Canvas:
    """Draw a padding mask, a causal mask, and the two joined by &."""
    canvas = Canvas(520, 226)
    n, step, top = len(TARGET), 17.0, 90.0
    middle = top + n * step / 2
    for x, title, shape, causal, padding in (
        (10, "padding", "(batch, 1, 1, 7)", False, True),
        (216, "causal", "(7, 7)", True, False),
        (376, "both", "(batch, 1, 7, 7)", True, True),
    ):
        canvas.text(x + n * step / 2, 14, title, bold=True)
        canvas.text(x + n * step / 2, 33, shape, mono=True, size=12.5)
        signs = [
            [_sign(causal and j > i, padding and TARGET[j] == PAD) for j in range(n)]
            for i in range(n)
        ]
        rows = signs if causal else signs[:1]
        upper = top if causal else middle - step / 2
        _cells(canvas, (x, upper), rows, "target", step)
        for j, word in enumerate(TARGET):
            _slanted(canvas, (x + (j + 0.5) * step, upper - 6), word, "target")
    for i, word in enumerate(TARGET):
        place = (210, top + (i + 0.5) * step)
        canvas.text(*place, word, "target", size=13, anchor="end")
    canvas.text(146, middle, "&", size=20, bold=True)
    canvas.text(355, middle, "=", size=20, bold=True)
    return canvas


def shifted(reads: Sequence[str], predicts: Sequence[str]) -> Canvas:
    """Draw what each position reads and predicts, and who reads its answer."""
    canvas = Canvas(520, 196)
    width, left = 60.0, 97.0
    for name, y in (("must predict", 45), ("reads", 131)):
        canvas.text(left - 8, y, name, size=13, anchor="end")
    canvas.text(left - 8, 176, "position", size=13, anchor="end")
    for position, (word, answer) in enumerate(zip(reads, predicts, strict=True)):
        x = left + width * position
        canvas.box(x + 3, 30, width - 6, 30, answer, "target", fill=0.25)
        canvas.box(x + 3, 116, width - 6, 30, word, "target")
        canvas.arrow((x + width / 2, 116), (x + width / 2, 60))
        canvas.text(x + width / 2, 176, str(position), size=13)
        if position:  # its input is the answer of the position to its left
            ends = (x - width / 2 + 8, 60), (x + width / 2 - 8, 116)
            canvas.arrow(*ends, role="highlight", dashed=True)
    canvas.text(left, 12, "dashed: the answer is the next position's input",
                "highlight", size=14, anchor="start")  # fmt: skip
    return canvas


def _block(
    canvas: Canvas,
    corner: Point,
    title: str,
    role: str,
    queries: Sequence[str],
    keys: Sequence[str],
) -> None:
    """Draw one block's mask; its queries are rows, its keys columns."""
    x, y = corner
    causal = title == "decoder self-attention"
    signs = [
        [_sign(causal and j > i, key == PAD) for j, key in enumerate(keys)]
        for i in range(len(queries))
    ]
    _cells(canvas, corner, signs, role)
    side = "target" if queries is TARGET else "source"
    for i, word in enumerate(queries):
        canvas.text(x - 8, y + (i + 0.5) * CELL, word, side, anchor="end")
    for j, word in enumerate(keys):
        _slanted(canvas, (x + (j + 0.5) * CELL, y - 6), word, role)
    canvas.text(x + len(keys) * CELL / 2, y - 62, title, role, size=15, bold=True)


def _sign(future: bool, padding: bool) -> str:
    """What is written into a cell: nothing where the query may attend."""
    return "p" if padding else "f" if future else ""


def _cells(
    canvas: Canvas,
    corner: Point,
    signs: Sequence[Sequence[str]],
    role: str,
    step: float = CELL,
) -> None:
    shades = [[0.0 if sign else 0.5 for sign in row] for row in signs]
    canvas.grid(*corner, signs, role, cell=(step, step), shades=shades)


def _slanted(canvas: Canvas, foot: Point, word: str, role: str) -> None:
    """Write a word that rises to the right from above the middle of a column."""
    x, y = foot
    canvas.parts.append(
        f'<text transform="translate({x:.1f} {y:.1f}) rotate(-55)" '
        f'style="fill:{color(role)};font-size:13px">{escape(word)}</text>'
    )
