"""Drawings of scaled dot-product attention: a lookup, one query, all queries."""

from collections.abc import Mapping

from torch import Tensor

from transformer_book.diagrams.canvas import Canvas, Row, Words


def lookups(query: str, weights: Mapping[str, float], values: Row) -> Canvas:
    """Draw the same query twice: in a dictionary without it, and in attention.

    Args:
        query: what is looked for; no key of the dictionary equals it.
        weights: three keys -> their attention weights.
        values: one for each key.
    """
    canvas = Canvas(520, 210)
    answer = sum(w * v for w, v in zip(weights.values(), values, strict=True))
    for left, name, soft in ((4, "dictionary", False), (256, "attention", True)):
        canvas.text(left + 108, 16, name, size=15, bold=True)
        canvas.box(left, 92, 66, 30, query, "query", size=14)
        pairs = zip(weights.items(), values, strict=True)
        for y, ((key, weight), value) in zip((62, 107, 152), pairs, strict=True):
            width = 1 + 7 * weight if soft else 1.2
            canvas.arrow((left + 66, 107), (left + 124, y), role="query", width=width,
                         dashed=not soft, head=False, lit=soft)  # fmt: skip
            style = {"size": 14, "lit": soft}
            canvas.box(left + 124, y - 14, 50, 28, key, "key", **style)
            canvas.box(left + 184, y - 14, 32, 28, f"{value:.0f}", "value", **style)
            if soft:
                canvas.text(left + 222, y, f"{weight:.2f}", anchor="start")
        told = f"blend: {answer:.2f} legs" if soft else "no matching key: KeyError"
        canvas.text(left + 108, 196, told, size=15)
    return canvas


def one_query(
    words: Words, chosen: str, query: Tensor, keys: Tensor, values: Tensor
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
    top, bottom = 98, 98 + 30 * len(words)
    middle = (top + bottom) / 2
    canvas = Canvas(520, bottom + 74)
    canvas.text(128, 24, f"query of {chosen}", "query", bold=True)
    for x, name in ((128, "keys"), (232, "scores"), (312, "weights"), (430, "values")):
        role = {"keys": "key", "values": "value"}.get(name, "ink")
        canvas.text(x, top - 14, name, role, bold=True)
    canvas.titles(middle, {191: "→", 272: "→", 360: "×"}, size=18, bold=False)
    for x, y, numbers, role, width, style in (
        (78, 40, query[None], "query", 50, {}),
        (78, top, keys, "key", 50, {"rows": words}),
        (204, top, scores[:, None], "ink", 56, {"shades": 0}),
        (284, top, weights[:, None], "query", 56,
         {"shades": (0.75 * weights[:, None]).tolist()}),
        (380, top, values, "value", 50, {}),
        (380, bottom + 32, output[None], "value", 50, {"shades": 0.3}),
    ):  # fmt: skip
        canvas.grid(x, y, numbers.tolist(), role, cell=(width, 30), size=14,
                    decimals=2, **style)  # fmt: skip

    canvas.titles(bottom + 14, {232: "dot ÷ √2", 312: "softmax"}, bold=False)
    canvas.arrow((430, bottom), (430, bottom + 30), role="value")
    canvas.text(418, bottom + 14, "sum", anchor="end")
    told = f"output of {chosen}"
    canvas.text(370, bottom + 47, told, "value", anchor="end", bold=True)
    return canvas


def all_queries(words: Words, chosen: str, weights: Tensor) -> Canvas:
    """Draw the two matrix products of attention, the row of one word framed.

    Args:
        words: length names, of queries and of keys.
        chosen: the word whose row is framed.
        weights: (length, length)
    """
    n = len(words)
    side, row = 24 * n, 24 * words.index(chosen)
    canvas = Canvas(520, 2 * side + 168)
    upper, lower = 44, side + 128

    def matrix(
        x: float, y: float, name: str, role: str, shape: tuple[int, int],
        sign: str = "", shades: float | list = 0.12,
    ) -> None:  # fmt: skip
        width, cells = 24 * shape[1], [[""] * shape[1]] * shape[0]
        canvas.grid(x, y, cells, role, cell=(24, 24), shades=shades)
        canvas.text(x + width / 2, y - 28, name, role, bold=True, size=15)
        canvas.text(x + width / 2, y - 11, str(shape), size=13)
        canvas.text(x + width + 24, y + 12 * shape[0], sign, size=20)
        if name not in ("Kᵀ", "V"):
            canvas.box(x - 1, y + row - 1, width + 2, 26, role="highlight", fill=0)

    for y in (upper, lower):
        for i, word in enumerate(words):
            canvas.text(70, y + 24 * i + 12, word, anchor="end", bold=word == chosen)
    matrix(82, upper, "Q", "query", (n, 2), "×")
    matrix(176, upper + 36, "Kᵀ", "key", (2, n), "=")
    matrix(350, upper, "scores", "ink", (n, n))
    matrix(82, lower, "weights", "query", (n, n), "×", (0.9 * weights).tolist())
    matrix(256, lower, "V", "value", (n, 2), "=")
    matrix(360, lower, "output", "value", (n, 2))
    turn = upper + side + 18
    canvas.arrow((410, turn - 14), (410, turn), (142, turn), (142, turn + 26))
    canvas.text(154, turn + 14, "÷ √2, then softmax along each row", anchor="start")
    canvas.text(272, lower + side + 22, f"framed: the row of {chosen}", bold=True)
    return canvas
