"""Diagrams of multi-head attention: the whole layer, and how heads are split."""

from transformer_book.diagrams.canvas import Canvas

WORDS = ["im", "schnee", "spielt", "ein", "hund"]
FIRST, SECOND = 0.5, 0.1  # how dark the numbers of the two heads are


def multi_head_layer() -> Canvas:
    """Draw the layer with two heads, from the words at the bottom to the output."""
    canvas = Canvas(520, 500)
    canvas.text(260, 484, " ".join(WORDS), "source", size=15, bold=True)
    canvas.box(190, 428, 140, 36, "x  (5, 4)", "source")

    first, second = (150, 205), (370, 205)  # middle of the heads' lower edges
    for shift, middle, role, matrix, name in (
        (-48, 90, "query", "q_proj", "q"),
        (0, 260, "key", "k_proj", "k"),
        (48, 430, "value", "v_proj", "v"),
    ):
        turn = ((260, 428), (middle, 396)) if shift else ((260, 428), (260, 396))
        canvas.arrow(*turn, role="source")
        canvas.box(middle - 60, 360, 120, 36, matrix, role, size=16)
        canvas.grid(
            middle - 32, 310, [["", ""]], role, cell=(32, 22), shades=[[FIRST, SECOND]]
        )
        canvas.arrow((middle, 360), (middle, 332), role=role)
        canvas.text(middle + 46, 321, name, role, size=16, bold=True)
        canvas.arrow((middle - 16, 310), (first[0] + shift, first[1]), role=role)
        canvas.arrow((middle + 16, 310), (second[0] + shift, second[1]), role=role)

    for (middle, bottom), name, side in (
        (first, "first head", -1),
        (second, "second head", 1),
    ):
        canvas.box(middle - 80, bottom - 46, 160, 46, "attention", sub=name, size=16.5)
        canvas.arrow((middle, bottom - 46), (260 + 16 * side, 132), role="value")
    canvas.grid(228, 110, [["", ""]], "value", cell=(32, 22), shades=[[FIRST, SECOND]])
    canvas.text(304, 121, "side by side: (5, 4)", size=14, anchor="start")
    canvas.arrow((260, 110), (260, 88))
    canvas.box(200, 52, 120, 36, "out_proj", size=16)
    canvas.arrow((260, 52), (260, 30))
    canvas.text(260, 18, "output (5, 4), one row for each word", size=15, bold=True)
    return canvas


def head_split() -> Canvas:
    """Draw which numbers of q belong to which head: split right, and by one view."""
    canvas = Canvas(520, 392)
    numbers = [[f"{word}{feature}" for feature in range(4)] for word in range(5)]
    cell, top = (34, 22), 50
    right = [[FIRST, FIRST, SECOND, SECOND]] * 5
    canvas.text(138, 14, "q  (5, 4)", "query", size=16, bold=True)
    canvas.grid(70, top, numbers, "query", cell=cell, shades=right, rows=WORDS, size=14)
    canvas.text(104, 38, "first", size=14)
    canvas.text(172, 38, "second", size=14)
    canvas.arrow((214, top + 55), (252, top + 55), role="query")
    canvas.text(407, 14, "split  (2, 5, 2)", "query", size=16, bold=True)
    for left, columns, name, shade, rows in (
        (318, slice(2), "first head", FIRST, WORDS),
        (430, slice(2, 4), "second head", SECOND, ()),
    ):
        canvas.text(left + 34, 38, name, size=14)
        canvas.grid(
            left, top, [row[columns] for row in numbers], "query", cell=cell,
            shades=[[shade] * 2] * 5, rows=rows, size=14,
        )  # fmt: skip

    strip = [number for row in numbers for number in row]
    by_view = [FIRST] * 10 + [SECOND] * 10
    for y, title, shades in (
        (222, "in memory: 20 numbers, word after word", right[0] * 5),
        (
            332,
            "a single view cuts this row in half: two and a half words each",
            by_view,
        ),
    ):
        canvas.text(20, y - 17, title, size=14, anchor="start")
        canvas.grid(20, y, [strip], "query", cell=(24, 24), shades=[shades], size=13)
    for index, word in enumerate(WORDS):
        left = 20 + 96 * index
        ends = (left + 3, 256), (left + 93, 256)
        canvas.arrow(*ends, head=False, role="query")
        canvas.text(left + 48, 270, word, size=14)
    for left, name in ((20, "first head"), (260, "second head")):
        canvas.arrow((left + 3, 366), (left + 237, 366), head=False, role="query")
        canvas.text(left + 120, 380, name, size=14)
    canvas.arrow((260, 325), (260, 363), head=False, role="highlight", width=3)
    return canvas
