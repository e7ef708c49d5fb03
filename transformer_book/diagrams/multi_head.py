"""Diagrams of multi-head attention: the whole layer, and how heads are split."""

from transformer_book.diagrams.canvas import Canvas

WORDS = ("im", "schnee", "spielt", "ein", "hund")
FIRST, SECOND = 0.5, 0.1  # how dark the numbers of the two heads are


def multi_head_layer(n_heads: int = 2, shape: str = "") -> Canvas:
    """Draw the layer, from the input at the bottom to the output.

    Args:
        n_heads: at most four.
        shape: of the input and of the output.
    """
    canvas = Canvas(520, 434)
    fade = [0.6, 0.38, 0.2, 0.06] if n_heads > 2 else [FIRST, SECOND]
    parts, cell, room = [[""] * n_heads], 64 / n_heads, 500 / n_heads
    heads = [10 + room * (i + 0.5) for i in range(n_heads)]
    style = {"cell": (cell, 22), "shades": [fade[:n_heads]]}
    canvas.box(190, 388, 140, 36, f"x  {shape}", "source")
    for number, role in enumerate(("query", "key", "value")):
        x, shift = 90 + 170 * number, 0.2 * room * (number - 1)
        canvas.arrow((260, 388), (x, 356), role="source")
        canvas.box(x - 60, 320, 120, 36, f"{role[0]}_proj", role, size=16)
        canvas.grid(x - 32, 270, parts, role, **style)
        canvas.arrow((x, 320), (x, 292), role=role)
        canvas.text(x + 46, 281, role[0], role, size=16, bold=True)
        for i, head in enumerate(heads):
            ends = (x - 32 + cell * (i + 0.5), 270), (head + shift, 205)
            canvas.arrow(*ends, role=role, width=1.3, head=n_heads < 4)
    for i, head in enumerate(heads):
        width = min(160, room - 16)
        canvas.box(head - width / 2, 159, width, 46, "attention", sub=f"head {i + 1}",
                   size=15.5)  # fmt: skip
        canvas.arrow((head, 159), (228 + cell * (i + 0.5), 132), role="value")
    canvas.grid(228, 110, parts, "value", **style)
    canvas.text(304, 121, f"side by side {shape}", anchor="start")
    canvas.arrow((260, 110), (260, 88))
    canvas.box(200, 52, 120, 36, "out_proj", size=16)
    canvas.arrow((260, 52), (260, 30))
    told = f"output {shape}, one row for each word".replace(" ,", ",")
    canvas.text(260, 18, told, size=15, bold=True)
    return canvas


def head_split() -> Canvas:
    """Draw which numbers of q belong to which head: split right, and by one view."""
    canvas = Canvas(520, 392)
    numbers = [[f"{word}{feature}" for feature in range(4)] for word in range(5)]
    right = [[FIRST, FIRST, SECOND, SECOND]] * 5
    shapes = {138: "q  (5, 4)", 407: "split  (2, 5, 2)"}
    canvas.titles(14, shapes, role="query", size=16)
    heads = {104: "head 1", 172: "head 2", 352: "head 1", 464: "head 2"}
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
    for names, y, width in ((WORDS, 256, 96), (("head 1", "head 2"), 366, 240)):
        for index, name in enumerate(names):
            left = 20 + width * index
            canvas.arrow((left + 3, y), (left + width - 3, y), head=False, role="query")
            canvas.text(left + width / 2, y + 14, name)
    canvas.arrow((260, 325), (260, 363), head=False, role="highlight", width=3)
    return canvas
