"""Diagrams of multi-head attention: the whole layer, and how heads are split."""

from transformer_book.diagrams.canvas import Canvas
from transformer_book.diagrams.decoder import SOURCE as WORDS

FIRST, SECOND = 0.5, 0.1  # how dark the numbers of the two heads are


def multi_head_layer() -> Canvas:
    """Draw the layer with two heads, from the words at the bottom to the output."""
    canvas = Canvas(520, 500)
    halves = {"cell": (32, 22), "shades": [[FIRST, SECOND]]}
    canvas.text(260, 484, " ".join(WORDS), "source", size=15, bold=True)
    canvas.box(190, 428, 140, 36, "x  (5, 4)", "source")
    for shift, x, role in ((-48, 90, "query"), (0, 260, "key"), (48, 430, "value")):
        canvas.arrow((260, 428), (x, 396), role="source")
        canvas.box(x - 60, 360, 120, 36, f"{role[0]}_proj", role, size=16)
        canvas.grid(x - 32, 310, [["", ""]], role, **halves)
        canvas.arrow((x, 360), (x, 332), role=role)
        canvas.text(x + 46, 321, role[0], role, size=16, bold=True)
        canvas.arrow((x - 16, 310), (150 + shift, 205), role=role)
        canvas.arrow((x + 16, 310), (370 + shift, 205), role=role)
    for x, name, end in ((150, "first head", 244), (370, "second head", 276)):
        canvas.box(x - 80, 159, 160, 46, "attention", sub=name, size=16.5)
        canvas.arrow((x, 159), (end, 132), role="value")
    canvas.grid(228, 110, [["", ""]], "value", **halves)
    canvas.text(304, 121, "side by side: (5, 4)", anchor="start")
    canvas.arrow((260, 110), (260, 88))
    canvas.box(200, 52, 120, 36, "out_proj", size=16)
    canvas.arrow((260, 52), (260, 30))
    canvas.text(260, 18, "output (5, 4), one row for each word", size=15, bold=True)
    return canvas


def head_split() -> Canvas:
    """Draw which numbers of q belong to which head: split right, and by one view."""
    canvas = Canvas(520, 392)
    numbers = [[f"{word}{feature}" for feature in range(4)] for word in range(5)]
    right = [[FIRST, FIRST, SECOND, SECOND]] * 5
    canvas.titles(
        14, {138: "q  (5, 4)", 407: "split  (2, 5, 2)"}, role="query", size=16
    )
    heads = {104: "first", 172: "second", 352: "first head", 464: "second head"}
    canvas.titles(38, heads, bold=False)
    canvas.arrow((214, 105), (252, 105), role="query")
    style = {"role": "query", "cell": (34, 22), "size": 14}
    first, second = [row[:2] for row in numbers], [row[2:] for row in numbers]
    canvas.grid(70, 50, numbers, shades=right, rows=WORDS, **style)
    canvas.grid(318, 50, first, shades=FIRST, rows=WORDS, **style)
    canvas.grid(430, 50, second, shades=SECOND, **style)

    strip = [[number for row in numbers for number in row]]
    by_view = [FIRST] * 10 + [SECOND] * 10
    for y, title, shades in (
        (222, "in memory: 20 numbers, word after word", right[0] * 5),
        (332, "a single view cuts this row in half: two and a half words each",
         by_view),
    ):  # fmt: skip
        canvas.text(20, y - 17, title, anchor="start")
        canvas.grid(20, y, strip, "query", cell=(24, 24), shades=[shades])
    pair = ("first head", "second head")
    for names, y, width in ((WORDS, 256, 96), (pair, 366, 240)):
        for index, name in enumerate(names):
            left = 20 + width * index
            canvas.arrow((left + 3, y), (left + width - 3, y), head=False, role="query")
            canvas.text(left + width / 2, y + 14, name)
    canvas.arrow((260, 325), (260, 363), head=False, role="highlight", width=3)
    return canvas
