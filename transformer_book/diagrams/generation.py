"""Diagrams of generation: the loop, the rows of a batch of beams, a tree of targets."""

from transformer_book.diagrams.canvas import Canvas

LOOP = (
    ("<bos>", "A"),
    ("<bos> A", "dog"),
    ("<bos> A dog", "is"),
    ("…", "…"),
    ("<bos> A dog is playing in the snow .", "<eos>"),
)
# Probabilities of a target so far, and whether two beams keep it.
FIRST = (("a", 0.50, True), ("the", 0.40, True), ("dog", 0.10, False))
SECOND = (
    ("a dog", 0.20, 0, True),
    ("a puppy", 0.175, 0, False),
    ("a hound", 0.125, 0, False),
    ("the dog", 0.36, 1, True),
    ("the puppy", 0.04, 1, False),
)


def loop_diagram() -> Canvas:
    """Draw what the decoder reads in each step, and the token that it predicts."""
    canvas = Canvas(520, 236)
    canvas.text(8, 18, "the decoder reads", "target", bold=True, anchor="start")
    canvas.text(452, 18, "predicts", bold=True)
    for number, (read, predicted) in enumerate(LOOP):
        y = 36 + 40 * number
        if read == "…":
            canvas.text(150, y + 14, "…", size=18)
            canvas.text(452, y + 14, "…", size=18)
            continue
        width = 20 + 8.6 * len(read)
        canvas.box(8, y, width, 28, read, "target", size=14)
        canvas.arrow((8 + width, y + 14), (414, y + 14))
        canvas.box(416, y, 72, 28, predicted, fill=0.04, size=14)
        if number < 2:
            end = (8 + 20 + 8.6 * len(LOOP[number + 1][0]) - 14, y + 39)
            canvas.arrow((430, y + 28), end, role="target", dashed=True, width=1.2)
    return canvas


def rows_diagram() -> Canvas:
    """Draw four rows, two beams of two sentences, and what reorder and select do."""
    canvas = Canvas(520, 220)
    before = ("A", "The", "Two", "Some")
    moved = ("The", "The", "Two", "Some")
    columns = (
        (8.0, "after step", before, ("0", "0", "1", "1")),
        (196.0, "reorder", moved, ("0", "0", "1", "1")),
        (384.0, "select", moved[2:], ("1", "1")),
    )
    for x, title, words, sentences in columns:
        canvas.text(x + 62, 18, title, bold=True)
        for row, (word, sentence) in enumerate(zip(words, sentences, strict=True)):
            y = 40 + 38 * row
            canvas.box(x, y, 54, 28, f"src {sentence}", "source", size=14)
            canvas.box(x + 60, y, 68, 28, word, "target", size=14)
    for start, end in ((1, 0), (1, 1), (2, 2), (3, 3)):
        canvas.arrow((138, 54 + 38 * start), (194, 54 + 38 * end))
    for start, end in ((2, 0), (3, 1)):
        canvas.arrow((326, 54 + 38 * start), (382, 54 + 38 * end))
    canvas.text(166, 206, "parents [[1, 1], [0, 1]]", size=14)
    canvas.text(420, 206, "sentences [1]", size=14)
    return canvas


def tree_diagram() -> Canvas:
    """Draw the first two steps of a search with two beams through a small table."""
    canvas = Canvas(520, 276)
    canvas.box(8, 128, 64, 28, "<bos>", "target", size=14)
    canvas.text(190, 16, "step 1", bold=True)
    canvas.text(420, 16, "step 2", bold=True)
    heights = (74.0, 190.0, 251.0)
    for (word, p, kept), y in zip(FIRST, heights, strict=True):
        canvas.arrow((72, 142), (138, y), lit=kept)
        _leaf(canvas, 140, y, 100, word, f"{p:.2f}", kept)
    for number, (word, p, parent, kept) in enumerate(SECOND):
        y = 42 + 42 * number
        canvas.arrow((240, heights[parent]), (336, y), lit=kept)
        p_text = f"{p:.3f}".rstrip("0").ljust(4, "0")
        _leaf(canvas, 338, y, 172, word, p_text, kept)
    return canvas


def _leaf(
    canvas: Canvas, x: float, y: float, width: float, word: str, p: str, kept: bool
) -> None:
    role = "target" if kept else "ink"
    canvas.box(x, y - 15, width, 30, role=role, lit=kept, dashed=not kept)
    canvas.text(x + 10, y, word, anchor="start", lit=kept)
    canvas.text(x + width - 10, y, p, anchor="end", lit=kept, bold=kept)
