"""Diagrams of decoding step by step: repeated work, one step, beams, two caches."""

from transformer_book.diagrams.canvas import Canvas
from transformer_book.diagrams.decoder import weigh

READS = ["<bos>", "A", "dog", "is", "playing", "in", "the", "snow", "."]
# How the step that reads "the" weighs what was read, in the pencil model's second head.
PENCIL = {"<bos>": 0.06, "a": 0.01, "dog": 0.51, "plays": 0.41, "in": 0.01, "the": 0.0}
BEFORE, AFTER = ["A dog", "The snow", "A snow", "There is"], (0, 1, 0, 0)


def repeated_rows() -> Canvas:
    """Draw which rows each step computes, and which of them are new."""
    canvas = Canvas(520, 279)
    for i, word in enumerate(READS):
        y = 46 + 25 * i
        canvas.text(91 + 50 * i, 32, word, "target")
        canvas.text(58, y + 12.5, f"step {i + 1}", anchor="end")
        style = {"cell": (50, 25), "size": 14}
        canvas.grid(66, y, [["again"] * i], shades=0.05, **style)
        canvas.grid(66 + 50 * i, y, [["new"]], "highlight", shades=0.55, **style)
    return canvas


def one_step() -> Canvas:
    """Draw the query of the newest token, and the keys and values it meets."""
    canvas = Canvas(520, 372)
    canvas.box(8, 66, 448, 30, "weighted sum of the values", "value")
    canvas.arrow((232, 66), (232, 38), role="value")
    canvas.text(232, 22, "output of the newest position", bold=True)
    canvas.box(474, 146, 40, 30, "q", "query")
    canvas.arrow((456, 294), (494, 294), (494, 178), role="query")
    before = 8
    for x, (word, weight) in zip(range(8, 464, 76), PENCIL.items(), strict=True):
        new, fill = word == "the", 0.3 if word == "the" else 0.05
        canvas.box(x, 280, 68, 28, word, "target", fill=fill)
        weigh(canvas, x, weight, top=146, middle=16, value=52)
        for middle, role in ((16, "key"), (52, "value")):
            place = (x + middle - 16, 210, 32, 28)
            canvas.box(*place, role[0], role, fill=fill, dashed=not new)
            if new:
                canvas.arrow((x + middle, 280), (x + middle, 240), role=role)
        if x > 8:  # the query goes from the right to the left
            canvas.arrow((x - 3, 161), (before + 37, 161), role="query")
        before = x
    canvas.arrow((474, 161), (425, 161), role="query")
    canvas.text(194, 328, "read earlier:", bold=True)
    canvas.text(194, 348, "keys and values come from the cache")
    canvas.text(428, 328, "new", bold=True)
    return canvas


def beams_move() -> Canvas:
    """Draw which rows of a cache are copied where when beams change places."""
    canvas = Canvas(520, 230)
    canvas.titles(18, {140: "before reorder", 444: "after reorder"})
    for i, (words, parent) in enumerate(zip(BEFORE, AFTER, strict=True)):
        y = 40 + i * 46
        canvas.text(62, y + 16, f"row {i}", anchor="end")
        if i in AFTER:
            canvas.box(72, y, 136, 32, words, "target", fill=0.15)
        else:
            canvas.box(72, y, 136, 32, words, dashed=True, fill=0)
        canvas.box(376, y, 136, 32, BEFORE[parent], "target")
        role = "target" if i == parent else "highlight"
        canvas.arrow((208, 56 + parent * 46), (375, y + 16), role=role, width=2)
    return canvas


def two_caches() -> Canvas:
    """Draw the two caches of a decoder layer: one grows, the other doesn't."""
    canvas = Canvas(520, 236)
    canvas.titles(18, {168: "step 1", 306: "step 2", 444: "step 3"})
    for y, name, role in ((66, "self-", "target"), (166, "cross-", "memory")):
        canvas.text(4, y + 6, name, anchor="start", bold=True)
        canvas.text(4, y + 24, "attention", anchor="start", bold=True)
        for step, x in enumerate((112, 250, 388)):
            kept, new = (step, 1) if role == "target" else (5, 0) if step else (0, 5)
            shades = [[0.1] * kept + [0.6] * new]
            canvas.grid(x, y, [[""] * (kept + new)], role, cell=(22, 30), shades=shades)
            canvas.text(x, y + 48, f"{new} new, {kept} kept", role, anchor="start")
    return canvas


def reserved_room() -> Canvas:
    """Draw the keys and values of one attention, with the room that is still free."""
    canvas = Canvas(522, 246)
    canvas.titles(18, {243: "kept", 393: "new", 468: "free"})
    shades = [[0.15] * 5 + [0.6, 0.0, 0.0]] * 2
    for y, name, role in ((36, "keys", "key"), (106, "values", "value")):
        canvas.text(4, y + 28, name, role, anchor="start", bold=True)
        canvas.grid(118, y, [[""] * 8] * 2, role, cell=(50, 28), shades=shades,
                    rows=["row 0", "row 1"], size=14)  # fmt: skip
    canvas.arrow((393, 196), (393, 168), role="highlight")
    canvas.text(393, 210, "position = length")
    canvas.text(4, 210, "capacity 8; when it's full,", anchor="start")
    canvas.text(4, 228, "the room is doubled", anchor="start")
    return canvas
