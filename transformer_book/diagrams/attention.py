"""Drawings of scaled dot-product attention: a lookup, one query, all queries."""

from collections.abc import Mapping, Sequence

from torch import Tensor

from transformer_book.diagrams.canvas import Canvas


def lookups(
    query: str, weights: Mapping[str, float], values: Sequence[float]
) -> Canvas:
    """Draw the same query twice: in a dictionary without it, and in attention.

    Args:
        query: what is looked for; no key of the dictionary equals it.
        weights: key -> its attention weight.
        values: one for each key.
    """
    canvas = Canvas(520, 210)
    answer = sum(w * v for w, v in zip(weights.values(), values, strict=True))
    for left, name, soft in ((4, "dictionary", False), (256, "attention", True)):
        canvas.text(left + 108, 16, name, size=15, bold=True)
        canvas.box(left, 92, 66, 30, query, "query", size=14)
        for i, ((key, weight), value) in enumerate(
            zip(weights.items(), values, strict=True)
        ):
            y = 62 + 45 * i
            width = 1 + 7 * weight if soft else 1.2
            start, tip = (left + 66, 107), (left + 124, y)
            canvas.arrow(start, tip, role="query", width=width, dashed=not soft,
                         head=False, lit=soft)  # fmt: skip
            canvas.box(left + 124, y - 14, 50, 28, key, "key", size=14, lit=soft)
            canvas.box(left + 184, y - 14, 32, 28, f"{value:.0f}", "value", size=14,
                       lit=soft)  # fmt: skip
            if soft:
                canvas.text(left + 222, y, f"{weight:.2f}", size=14, anchor="start")
        told = f"blend: {answer:.2f} legs" if soft else "no matching key: KeyError"
        canvas.text(left + 108, 196, told, size=15)
    return canvas


def one_query(
    words: Sequence[str], chosen: str, query: Tensor, keys: Tensor, values: Tensor
) -> Canvas:
    """Draw how one query becomes an average of the values, with all its numbers.

    Args:
        words: k_len names of keys and values.
        chosen: the word whose query it is.
        query: (2,)
        keys: (k_len, 2)
        values: (k_len, 2)
    """
    scores = keys @ query / query.numel() ** 0.5
    weights = scores.softmax(dim=0)
    output = weights @ values
    row, top, n = 30, 98, len(words)
    canvas = Canvas(520, top + row * n + 74)
    canvas.grid(78, 40, _text(query[None]), "query", cell=(50, 28), size=14)
    canvas.text(128, 24, f"query of {chosen}", "query", bold=True)
    for x, name, role in (
        (128, "keys", "key"),
        (232, "scores", "ink"),
        (312, "weights", "ink"),
        (430, "values", "value"),
    ):
        canvas.text(x, top - 14, name, role, bold=True)
    canvas.grid(78, top, _text(keys), "key", cell=(50, row), rows=words, size=14)
    canvas.grid(204, top, _text(scores[:, None]), cell=(56, row), size=14,
                shades=[[0.0]] * n)  # fmt: skip
    canvas.grid(284, top, _text(weights[:, None]), "query", cell=(56, row), size=14,
                shades=[[0.75 * weight] for weight in weights.tolist()])  # fmt: skip
    canvas.grid(380, top, _text(values), "value", cell=(50, row), size=14)
    middle, bottom = top + row * n / 2, top + row * n
    for x, sign in ((191, "→"), (272, "→"), (360, "×")):
        canvas.text(x, middle, sign, size=18)
    canvas.text(232, bottom + 14, "dot ÷ √2")
    canvas.text(312, bottom + 14, "softmax")
    canvas.arrow((430, bottom), (430, bottom + 30), role="value")
    canvas.text(418, bottom + 14, "sum", anchor="end")
    canvas.grid(380, bottom + 32, _text(output[None]), "value", cell=(50, 30),
                shades=[[0.3, 0.3]], size=14)  # fmt: skip
    canvas.text(370, bottom + 47, f"output of {chosen}", "value", anchor="end",
                bold=True)  # fmt: skip
    return canvas


def all_queries(words: Sequence[str], chosen: str, weights: Tensor) -> Canvas:
    """Draw the two matrix products of attention, the row of one word framed.

    Args:
        words: length names, of queries and of keys.
        chosen: the word whose row is framed.
        weights: (length, length)
    """
    n, cell = len(words), 24
    side, row = n * cell, words.index(chosen)
    canvas = Canvas(520, 2 * side + 168)
    y = 44

    def matrix(
        x: float, y: float, rows: int, columns: int, role: str, name: str, shape: str
    ) -> None:
        canvas.grid(x, y, [[""] * columns] * rows, role, cell=(cell, cell))
        middle = x + columns * cell / 2
        canvas.text(middle, y - 28, name, role, bold=True, size=15)
        canvas.text(middle, y - 11, shape, size=13)

    def frame(x: float, y: float, columns: int) -> None:
        canvas.box(x - 1, y + row * cell - 1, columns * cell + 2, cell + 2,
                   role="highlight", fill=0)  # fmt: skip

    for i, word in enumerate(words):
        for top in (y, y + side + 84):
            canvas.text(70, top + (i + 0.5) * cell, word, anchor="end",
                        bold=word == chosen)  # fmt: skip
    matrix(82, y, n, 2, "query", "Q", f"({n}, 2)")
    canvas.text(150, y + side / 2, "×", size=20)
    matrix(176, y + 1.5 * cell, 2, n, "key", "Kᵀ", f"(2, {n})")
    canvas.text(322, y + side / 2, "=", size=20)
    matrix(350, y, n, n, "ink", "scores", f"({n}, {n})")
    frame(82, y, 2)
    frame(350, y, n)
    turn = y + side + 18
    canvas.arrow((410, turn - 14), (410, turn), (142, turn), (142, turn + 26))
    canvas.text(154, turn + 14, "÷ √2, then softmax along each row", anchor="start")

    y += side + 84
    canvas.text(82 + side / 2, y - 28, "weights", "query", bold=True, size=15)
    canvas.text(82 + side / 2, y - 11, f"({n}, {n})", size=13)
    shades = (0.9 * weights).tolist()
    canvas.grid(82, y, [[""] * n] * n, "query", cell=(cell, cell), shades=shades)
    canvas.text(228, y + side / 2, "×", size=20)
    matrix(256, y, n, 2, "value", "V", f"({n}, 2)")
    canvas.text(330, y + side / 2, "=", size=20)
    matrix(360, y, n, 2, "value", "output", f"({n}, 2)")
    frame(82, y, n)
    frame(360, y, 2)
    canvas.text(272, y + side + 22, f"framed: the row of {chosen}", "highlight")
    return canvas


def _text(numbers: Tensor) -> list[list[str]]:
    """Two decimals each, and a real minus sign."""
    return [[f"{x:.2f}".replace("-", "−") for x in row] for row in numbers.tolist()]
