"""Diagrams of the chapter on embeddings: the lookup, the clocks, the sum."""

import math
from collections.abc import Sequence

from transformer_book.diagrams.canvas import Canvas

Row = Sequence[float]


def lookup(
    words: Sequence[str], ids: Sequence[int], names: Sequence[str], table: Sequence[Row]
) -> Canvas:
    """Draw how the ids of a sentence pick rows of the embedding matrix.

    Args:
        words: of the sentence.
        ids: their numbers: rows of the table.
        names: of the rows that are shown, from row 0 on.
        table: those rows, each with four numbers.
    """
    top, height, left, width = 48, 26, 196, 52
    canvas = Canvas(520, top + height * len(table) + 40)
    shades = [[0.3 if i in ids else 0.0] * len(row) for i, row in enumerate(table)]
    roles = [
        ["source" if i in ids else "ink"] * len(row) for i, row in enumerate(table)
    ]
    values = [[_text(number, 1) for number in row] for row in table]
    rows = [str(i) for i in range(len(table))]
    size = (width, height)
    canvas.grid(left, top, values, roles, cell=size, shades=shades, rows=rows, size=14)
    right = left + width * len(table[0])
    canvas.text((left + right) / 2, 20, "the table: one row for each token", bold=True)
    for i, name in enumerate(names):
        middle = top + (i + 0.5) * height
        role, lit = ("source", True) if i in ids else ("ink", False)
        canvas.text(right + 10, middle, name, role, anchor="start", lit=lit)
    canvas.text((left + right) / 2, top + height * len(table) + 16, "…", size=18)

    canvas.text(52, 20, "word, id", bold=True)
    gap = 40
    first = top + height * len(table) / 2 - gap * (len(words) - 1) / 2
    for i, (word, number) in enumerate(zip(words, ids, strict=True)):
        y = first + i * gap
        canvas.box(8, y - 14, 76, 28, word, "source")
        canvas.text(102, y, str(number), "source", size=15, bold=True)
        row = top + (number + 0.5) * height
        canvas.arrow((116, y), (left - 24, row), role="source")
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
    for position in range(n_positions):
        canvas.text(10 + step * (position + 0.5), 16, f"position {position}", bold=True)
    for pair in range(d_model // 2):
        speed = 10_000 ** (-2 * pair / d_model)
        top = 34 + block * pair
        told = f"features {2 * pair} and {2 * pair + 1}: {speed:g} rad per position"
        canvas.text(14, top + 8, told, anchor="start", italic=True)
        for position in range(n_positions):
            sin, cos = math.sin(speed * position), math.cos(speed * position)
            x, y = 10 + step * (position + 0.5), top + 24 + radius
            canvas.circle(x, y, radius, fill=0.04)
            tip = (x + radius * sin, y - radius * cos)
            canvas.arrow((x, y), tip, width=2.6)
            canvas.text(x, y + radius + 14, f"sin = {_text(sin, 2)}", size=14)
            canvas.text(x, y + radius + 32, f"cos = {_text(cos, 2)}", size=14)
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
    left, width, height, gap = 232, 68, 32, 18
    canvas = Canvas(520, 20 + len(lines) * (height + gap))
    for i, (name, numbers, role, sign) in enumerate(lines):
        y = 14 + i * (height + gap)
        last = i == len(lines) - 1
        canvas.text(8, y + height / 2, name, role, size=15, anchor="start", bold=last)
        canvas.text(left - 14, y + height / 2, sign, size=17, anchor="end", bold=True)
        values = [[_text(number, 2) for number in numbers]]
        shades = [[0.3 if last else 0.12] * len(row)]
        cell = (width, height)
        canvas.grid(left, y, values, role, cell=cell, shades=shades, size=15)
    return canvas


def _text(number: float, decimals: int) -> str:
    """Write a number with a real minus sign."""
    return f"{number:.{decimals}f}".replace("-", "−")
