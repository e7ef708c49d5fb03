"""Diagrams of decoding step by step: repeated work, one step, beams, two caches."""

from collections.abc import Sequence

from transformer_book.diagrams.canvas import Canvas

READS = ["<bos>", "A", "dog", "is", "playing", "in", "the", "snow", "."]
# How the step that reads "the" weighs what was read, in the pencil model's second head.
PENCIL = ["<bos>", "a", "dog", "plays", "in", "the"]
THE = (0.06, 0.01, 0.51, 0.41, 0.01, 0.00)
BEFORE = ["A dog", "The snow", "A snow", "There is"]
PARENTS = (0, 1, 0, 0)


def repeated_rows(words: Sequence[str] = READS) -> Canvas:
    """Draw which rows each step computes, and which of them are new.

    Args:
        words: what is read, one token a step.
    """
    n, left, top = len(words), 66.0, 46.0
    width, height = 50.0, 25.0
    canvas = Canvas(left + n * width + 4, top + n * height + 8)
    for j, word in enumerate(words):
        canvas.text(left + (j + 0.5) * width, top - 14, word, "target")
    for i in range(n):
        y = top + i * height
        canvas.text(left - 8, y + height / 2, f"step {i + 1}", anchor="end")
        for j in range(i + 1):
            new = i == j
            canvas.grid(left + j * width, y, [["new" if new else "again"]],
                        "highlight" if new else "ink", cell=(width, height),
                        shades=[[0.55 if new else 0.05]], size=14)  # fmt: skip
    return canvas


def one_step(
    words: Sequence[str] = PENCIL, weights: Sequence[float] = THE
) -> Canvas:  # fmt: skip
    """Draw the query of the newest token, and the keys and values it meets.

    Args:
        words: what has been read; the last one is new.
        weights: of the newest query, one for each word.
    """
    canvas = Canvas(520, 372)
    left, step = 8.0, 76.0
    n = len(words)
    middle = left + (n * step - 8) / 2
    canvas.box(left, 66, n * step - 8, 30, "weighted sum of the values", "value")
    canvas.arrow((middle, 66), (middle, 38), role="value")
    canvas.text(middle, 22, "output of the newest position", bold=True)
    canvas.box(474, 146, 40, 30, "q", "query")
    before = 474.0
    for j in reversed(range(n)):
        x, new = left + j * step, j == n - 1
        canvas.arrow((before, 161), (x + 36, 161), role="query")
        before = x - 3
        canvas.box(x, 280, step - 8, 28, words[j], "target", fill=0.3 if new else 0.05)
        for dx, name, role in ((0, "k", "key"), (36, "v", "value")):
            fill = 0.3 if new else 0.05
            canvas.box(x + dx, 210, 32, 28, name, role, fill=fill, dashed=not new)
            if new:
                canvas.arrow((x + dx + 16, 280), (x + dx + 16, 240), role=role)
        canvas.arrow((x + 16, 210), (x + 16, 178), role="key")
        canvas.grid(x - 3, 146, [[f"{weights[j]:.2f}"]], "highlight", cell=(38, 30),
                    shades=[[0.06 + 0.6 * weights[j]]], size=14)  # fmt: skip
        canvas.arrow((x + 52, 210), (x + 52, 98), role="value",
                     width=1 + 6 * weights[j])  # fmt: skip
    end = left + n * step - 8
    canvas.arrow((end, 294), (494, 294), (494, 178), role="query")
    last = left + (n - 1) * step
    canvas.text((left + last - 8) / 2, 328, "read earlier:", bold=True)
    canvas.text((left + last - 8) / 2, 348, "keys and values come from the cache")
    canvas.text(last + 40, 328, "new", bold=True)
    return canvas


def beams_move(
    before: Sequence[str] = BEFORE, parents: Sequence[int] = PARENTS
) -> Canvas:
    """Draw which rows of a cache are copied where when beams change places.

    Args:
        before: what each row has read.
        parents: the row that each row continues.
    """
    n, step, width = len(before), 46.0, 136.0
    canvas = Canvas(520, 46 + step * n)
    canvas.text(72 + width / 2, 18, "before reorder", bold=True)
    canvas.text(376 + width / 2, 18, "after reorder", bold=True)
    for i, words in enumerate(before):
        y, goes_on = 40 + i * step, i in parents
        canvas.text(62, y + 16, f"row {i}", anchor="end")
        canvas.box(72, y, width, 32, words, "target" if goes_on else "ink",
                   dashed=not goes_on, fill=0.15 if goes_on else 0.0)  # fmt: skip
        canvas.box(376, y, width, 32, before[parents[i]], "target")
    for i, parent in enumerate(parents):
        ends = (72 + width, 56 + parent * step), (375, 56 + i * step)
        canvas.arrow(*ends, role="target" if i == parent else "highlight", width=2)
    return canvas


def two_caches() -> Canvas:
    """Draw the two caches of a decoder layer: one grows, the other doesn't."""
    canvas = Canvas(520, 236)
    columns = (112.0, 250.0, 388.0)
    for x, name in zip(columns, ("step 1", "step 2", "step 3"), strict=True):
        canvas.text(x + 56, 18, name, bold=True)
    for y, line, role in ((66.0, "self-attention", "target"),
                          (166.0, "cross-attention", "memory")):  # fmt: skip
        canvas.text(4, y + 6, line.split("-")[0] + "-", anchor="start", bold=True)
        canvas.text(4, y + 24, line.split("-")[1], anchor="start", bold=True)
        for step, x in enumerate(columns):
            n = step + 1 if role == "target" else 5
            for j in range(n):
                new = j == step if role == "target" else step == 0
                shade = [[0.6 if new else 0.1]]
                canvas.grid(x + j * 22, y, [[""]], role, cell=(22, 30),
                            shades=shade)  # fmt: skip
            new = 1 if role == "target" else 5 * (step == 0)
            canvas.text(x, y + 48, f"{new} new, {n - new} kept", role, anchor="start")
    return canvas


def reserved_room(n_rows: int = 2, n_kept: int = 5, capacity: int = 8) -> Canvas:
    """Draw the keys and values of one attention, with the room that is still free.

    Args:
        n_rows: of the cache.
        n_kept: tokens read before this step.
        capacity: tokens there is room for.
    """
    left, cell = 118.0, (50.0, 28.0)
    canvas = Canvas(left + capacity * cell[0] + 4, 134 + 2 * n_rows * cell[1])
    spans = ((0, n_kept, "kept"), (n_kept, 1, "new"),
             (n_kept + 1, capacity - n_kept - 1, "free"))  # fmt: skip
    for start, length, name in spans:
        canvas.text(left + (start + length / 2) * cell[0], 18, name, bold=True)
    shades = [0.15] * n_kept + [0.6] + [0.0] * (capacity - n_kept - 1)
    y = 36.0
    for name, role in (("keys", "key"), ("values", "value")):
        canvas.text(4, y + n_rows * cell[1] / 2, name, role, anchor="start", bold=True)
        for row in range(n_rows):
            top = y + row * cell[1]
            canvas.text(left - 8, top + cell[1] / 2, f"row {row}", anchor="end")
            canvas.grid(left, top, [[""] * capacity], role, cell=cell, shades=[shades])
        y += n_rows * cell[1] + 14
    middle = left + (n_kept + 0.5) * cell[0]
    canvas.arrow((middle, y + 20), (middle, y - 8), role="highlight")
    canvas.text(middle, y + 34, "position = length")
    canvas.text(4, y + 34, f"capacity {capacity}; when it's full,", anchor="start")
    canvas.text(4, y + 52, "the room is doubled", anchor="start")
    return canvas
