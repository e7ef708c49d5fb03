"""Diagrams of generation: the loop, the rows of a batch of beams, a tree of targets."""

from transformer_book.diagrams.canvas import Canvas

LOOP = (
    ("<bos>", "A"),
    ("<bos> A", "dog"),
    ("<bos> A dog", "is"),
    ("…", "…"),
    ("<bos> A dog is playing in the snow .", "<eos>"),
)
# Probability of a target so far, its height, that of its parent, whether it is kept.
FIRST = {
    "a": (0.50, 74, 142, True),
    "the": (0.40, 190, 142, True),
    "dog": (0.10, 251, 142, False),
}
SECOND = {
    "a dog": (0.20, 42, 74, True),
    "a puppy": (0.175, 84, 74, False),
    "a hound": (0.125, 126, 74, False),
    "the dog": (0.36, 168, 190, True),
    "the puppy": (0.04, 210, 190, False),
}


def loop_diagram() -> Canvas:
    """Draw what the decoder reads in each step, and the token that it predicts."""
    canvas = Canvas(520, 236)
    canvas.text(8, 18, "the decoder reads", "target", bold=True, anchor="start")
    canvas.text(452, 18, "predicts", bold=True)
    widths = [20 + 8.6 * len(read) for read, _ in LOOP]
    for number, (read, predicted) in enumerate(LOOP):
        y, width = 36 + 40 * number, widths[number]
        if read == "…":
            canvas.text(150, y + 14, "…", size=18)
            canvas.text(452, y + 14, "…", size=18)
            continue
        canvas.box(8, y, width, 28, read, "target", size=14)
        canvas.arrow((8 + width, y + 14), (414, y + 14))
        canvas.box(416, y, 72, 28, predicted, fill=0.04, size=14)
        if number < 2:
            ends = (430, y + 28), (widths[number + 1] - 6, y + 39)
            canvas.arrow(*ends, role="target", dashed=True, width=1.2)
    return canvas


def rows_diagram() -> Canvas:
    """Draw four rows, two beams of two sentences, and what reorder and select do."""
    canvas = Canvas(520, 220)
    before, after = ("A", "The", "Two", "Some"), ("The", "The", "Two", "Some")
    for x, title, words, sentences in (
        (8, "after step", before, "0011"),
        (196, "reorder", after, "0011"),
        (384, "select", after[2:], "11"),
    ):
        canvas.text(x + 62, 18, title, bold=True)
        for row, (word, sentence) in enumerate(zip(words, sentences, strict=True)):
            y = 40 + 38 * row
            canvas.box(x, y, 54, 28, f"src {sentence}", "source", size=14)
            canvas.box(x + 60, y, 68, 28, word, "target", size=14)
    moves = (138, ((1, 0), (1, 1), (2, 2), (3, 3))), (326, ((2, 0), (3, 1)))
    for x, pairs in moves:
        for start, end in pairs:
            canvas.arrow((x, 54 + 38 * start), (x + 56, 54 + 38 * end))
    canvas.text(166, 206, "parents [[1, 1], [0, 1]]")
    canvas.text(420, 206, "sentences [1]")
    return canvas


def tree_diagram() -> Canvas:
    """Draw the first two steps of a search with two beams through a small table."""
    canvas = Canvas(520, 276)
    canvas.box(8, 128, 64, 28, "<bos>", "target", size=14)
    canvas.titles(16, {190: "step 1", 420: "step 2"})
    for start, x, width, step in ((72, 140, 100, FIRST), (240, 338, 172, SECOND)):
        for word, (p, y, parent, kept) in step.items():
            canvas.arrow((start, parent), (x - 2, y), lit=kept)
            role = "target" if kept else "ink"
            canvas.box(x, y - 15, width, 30, role=role, lit=kept, dashed=not kept)
            canvas.text(x + 10, y, word, anchor="start", lit=kept)
            told = f"{p:.3f}".removesuffix("0")
            canvas.text(x + width - 10, y, told, anchor="end", lit=kept, bold=kept)
    return canvas
