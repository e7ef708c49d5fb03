"""Diagrams of the chapter on embeddings: the lookup, the clocks, the sum."""

import math

from transformer_book.diagrams.canvas import Canvas, Row, Table, Words, written


def lookup(words: Words, ids: Row, names: Words, table: Table) -> Canvas:
    """Draw how the ids of a sentence pick rows of the embedding matrix.

    Args:
        words: of the sentence.
        ids: their numbers: rows of the table.
        names: of the rows that are shown, from row 0 on.
        table: those rows, each with four numbers.
    """
    n, width = len(table), len(table[0])
    canvas, right = Canvas(520, 88 + 26 * n), 196 + 52 * width
    roles = [["source" if i in ids else "ink"] * width for i in range(n)]
    shades = [[0.3 * (i in ids)] * width for i in range(n)]
    canvas.grid(196, 48, table, roles, cell=(52, 26), shades=shades, decimals=1,
                rows=map(str, range(n)), size=14)  # fmt: skip
    middle = (196 + right) / 2
    canvas.text(middle, 20, "the table: one row for each token", bold=True)
    canvas.text(middle, 64 + 26 * n, "…", size=18)
    for i, name in enumerate(names):
        place, style = (right + 10, 61 + 26 * i), {"anchor": "start", "lit": i in ids}
        canvas.text(*place, name, roles[i][0], **style)
    canvas.text(52, 20, "word, id", bold=True)
    y = 68 + 13 * n - 20 * len(words)
    for word, number in zip(words, ids, strict=True):
        canvas.box(8, y - 14, 76, 28, word, "source")
        canvas.text(102, y, str(number), "source", size=15, bold=True)
        canvas.arrow((116, y), (172, 61 + 26 * number), role="source")
        y += 40
    return canvas


def clocks(n_positions: int, d_model: int) -> Canvas:
    """Draw a hand for each pair of features, at each of the first positions.

    A hand starts upright and turns clockwise, so its tip is at (sin, cos).

    Args:
        n_positions: number of columns, at most 5 for a phone.
        d_model: number of features; d_model / 2 rows of clocks.
    """
    radius, step, block = 34, 100, 156
    canvas = Canvas(20 + step * n_positions, 30 + block * (d_model // 2))
    canvas.titles(16, {60 + step * i: f"position {i}" for i in range(n_positions)})
    for pair in range(d_model // 2):
        speed, top = 10_000 ** (-2 * pair / d_model), 34 + block * pair
        told = f"features {2 * pair} and {2 * pair + 1}: {speed:g} rad per position"
        canvas.text(14, top + 8, told, anchor="start", italic=True)
        for position in range(n_positions):
            sin, cos = math.sin(speed * position), math.cos(speed * position)
            x, y = 10 + step * (position + 0.5), top + 24 + radius
            canvas.circle(x, y, radius, fill=0.04)
            canvas.arrow((x, y), (x + radius * sin, y - radius * cos), width=2.6)
            canvas.text(x, y + radius + 14, f"sin = {written(sin, 2)}", size=14)
            canvas.text(x, y + radius + 32, f"cos = {written(cos, 2)}", size=14)
    return canvas


def token_plus_position(word: str, row: Row, position: int, wave: Row) -> Canvas:
    """Draw the sum that makes a word's vector.

    Args:
        word: of the sentence.
        row: its row of the table, four numbers.
        position: of the word.
        wave: the vector of the position.
    """
    scale = math.sqrt(len(row))
    scaled = [scale * number for number in row]
    total = [a + b for a, b in zip(scaled, wave, strict=True)]
    lines = [
        (f"row of “{word}”", row, "source", ""),
        ("times √d_model", scaled, "source", f"× {scale:g}"),
        (f"position {position}", wave, "ink", "+"),
        (f"vector of “{word}”", total, "source", "="),
    ]
    canvas = Canvas(520, 220)
    for y, (name, numbers, role, sign) in zip((14, 64, 114, 164), lines, strict=True):
        last = sign == "="
        canvas.text(8, y + 16, name, role, size=15, anchor="start", bold=last)
        canvas.text(218, y + 16, sign, size=17, anchor="end", bold=True)
        canvas.grid(232, y, [numbers], role, cell=(68, 32), decimals=2, size=15,
                    shades=0.3 if last else 0.12)  # fmt: skip
    return canvas
