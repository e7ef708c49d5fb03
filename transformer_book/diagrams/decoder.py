"""Diagrams of the decoder: cross-attention, the layer, the stack."""

from collections.abc import Collection, Mapping

from transformer_book.diagrams.canvas import Canvas, Point, Words

# How the step that predicts "dog" weighs the source, in the pencil model's head 1.
DOG = {"im": 0.01, "schnee": 0.00, "spielt": 0.04, "ein": 0.09, "hund": 0.87}


def shifted(reads: Words, predicts: Words, marked: Collection[int] = ()) -> Canvas:
    """Draw what the decoder reads at each position, and what it predicts there.

    A dashed arrow leads from each prediction to the next position, which reads it.

    Args:
        reads: a token for each position.
        predicts: likewise.
        marked: numbers of the positions that are highlighted.
    """
    pairs = list(zip(reads, predicts, strict=True))
    lengths = [max(*map(len, pair), 3) for pair in pairs]
    letter = min(13, (512 - 17 * len(pairs)) / sum(lengths))  # pixels for each
    size = min(14, 1.55 * letter)
    canvas, total = Canvas(520, 214), letter * sum(lengths) + 17 * len(pairs) - 5
    left = (520 - total) / 2
    canvas.text(left, 12, "what the decoder predicts (tgt_out)", anchor="start")
    canvas.text(left, 204, "what it reads (tgt_in)", anchor="start")
    canvas.box(left, 82, total, 48, "", "target")
    canvas.text(left + 8, 117, "decoder", anchor="start", size=13)
    x, before = left, 0.0
    for i, pair in enumerate(pairs):
        width = letter * lengths[i] + 12
        middle, lit = x + width / 2, i in marked
        style = {"role": "highlight" if lit else "target"}
        for word, y, start, fill in ((pair[0], 158, 158, 0.1), (pair[1], 28, 82, 0.3)):
            fill = 0.6 if lit else fill
            canvas.box(x, y, width, 26, word, size=size, fill=fill, **style)
            ends = (middle, start), (middle, start - 28)
            canvas.arrow(*ends, width=1.2 + lit, **style)
        if i:
            canvas.arrow((before + 9, 58), (middle - 9, 153), dashed=True, width=1)
        x, before = x + width + 5, middle
    return canvas


def look_across() -> Canvas:
    """Draw one query of the target, and the keys and values of the memory."""
    canvas = Canvas(520, 352)
    canvas.box(106, 72, 407, 30, "weighted sum of the values", "value")
    canvas.arrow((309, 72), (309, 40), role="value")
    canvas.text(309, 24, "what the step takes from the source", bold=True)
    canvas.box(4, 286, 86, 28, "a → dog", "target", size=14)
    canvas.text(46, 336, "target", "target", bold=True)
    canvas.text(309, 336, "memory", "memory", bold=True)
    canvas.box(20, 186, 52, 30, "q", "query")
    canvas.arrow((46, 286), (46, 218), role="query")
    canvas.arrow((72, 201), (454, 201), role="query", head=False)
    keys_and_values(canvas, (106, 152), 83, DOG, "memory")
    return canvas


def keys_and_values(
    canvas: Canvas, corner: tuple[float, float], step: float,
    weights: Mapping[str, float], role: str, n_kept: int = 0,
) -> None:  # fmt: skip
    """Draw the words that a query meets: key, weight, and what is taken of the value.

    Args:
        canvas: to draw on.
        corner: left edge of the first word, upper edge of the weights.
        step: from one word to the next.
        weights: word -> its weight, from 0 to 1.
        role: of the words.
        n_kept: words whose keys and values are kept from earlier; then the query comes
            from the right, where the new word is. Otherwise, its line is drawn at the
            height of `top + 49`, where it meets the keys.
    """
    left, top = corner
    for i, (word, weight) in enumerate(weights.items()):
        x, kept = left + i * step, i < n_kept
        fill = 0.05 if kept else 0.2
        canvas.box(x, top + 134, step - 8, 28, word, role, size=14, fill=fill)
        key, value = x + 16, x + step - 24
        for middle, part in ((key, "key"), (value, "value")):
            place = (middle - 16, top + 64, 32, 28)
            canvas.box(*place, part[0], part, size=14, fill=fill, dashed=kept)
            if not kept:
                canvas.arrow((middle, top + 134), (middle, top + 94), role=part)
        if n_kept and i:
            ends = [(key - 20, top + 15), (key + 20 - step, top + 15)]
            canvas.arrow(*ends, role="query")
        canvas.arrow((key, top + 64), (key, top + 32), role="key")
        if not n_kept:  # the query's line meets each key; each weight, its value
            canvas.circle(key, top + 49, 3.5, "query", fill=1)
            canvas.arrow((key + 20, top + 15), (value - 2, top + 15), width=1.2)
        canvas.grid(key - 20, top, [[weight]], "highlight", cell=(40, 30), decimals=2,
                    shades=0.06 + 0.6 * weight, size=14)  # fmt: skip
        ends = (value, top + 64), (value, top - 48)
        canvas.arrow(*ends, role="value", width=1 + 6 * weight)


def decoder_layer() -> Canvas:
    """Draw the three sub-layers of a decoder layer, their masks, and the memory."""
    canvas = Canvas(520, 470)
    left, middle, right, bottom = 214.0, 314.0, 414.0, 426.0
    canvas.text(middle, 452, "one vector per target token", "target", bold=True)
    for name, motto, role in (
        ("masked self-attention", "1. look back", "query"),
        ("cross-attention", "2. look across", "query"),
        ("feed-forward", "3. think", "target"),
    ):
        top, y = bottom - 84, bottom - 14
        canvas.arrow((middle, bottom + 12), (middle, top + 42), role=role)
        canvas.arrow((middle, bottom + 12), (middle, y), role="target", head=False)
        if role == "query":
            canvas.text(middle + 12, top + 56, "q", "query", bold=True)
        if name == "masked self-attention":
            _mask(canvas, "tgt_mask", top, left)
            _fork(canvas, middle, y, top + 42, (-44, 58))
        if name == "cross-attention":
            _mask(canvas, "src_mask", top, left)
            ends = (8, y), (middle - 80, y)
            canvas.arrow(*ends, role="memory", head=False, width=2.4)
            canvas.text(8, y - 13, "memory", "memory", bold=True, anchor="start")
            note = "one vector per source token"
            canvas.text(8, y + 15, note, "memory", anchor="start")
            _fork(canvas, middle - 80, y, top + 42, (0, 36))
        canvas.box(left, top, 200, 40, name, "target")
        canvas.arrow((middle, top), (middle, top - 12), role="target", head=False)
        canvas.box(left, top - 36, 200, 24, "add & norm", fill=0.06, size=14)
        around = (middle, bottom + 4), (right + 24, bottom + 4), (right + 24, top - 24)
        canvas.arrow(*around, (right, top - 24), width=1.2)
        canvas.text(8, top + 6, motto, bold=True, anchor="start")
        bottom = top - 50
    canvas.arrow((middle, bottom + 14), (middle, 12), role="target")
    return canvas


def _mask(canvas: Canvas, name: str, top: float, right: float) -> None:
    """Draw a small mask with its name, and an arrow from it to the box at right."""
    n, cell, causal = 5, 9, name == "tgt_mask"
    x, y = right - 20 - n * cell, top - 5
    shades = [[0.6 if j <= (i if causal else 3) else 0.04 for j in range(n)]
              for i in range(n)]  # fmt: skip
    cells = [[""] * n] * n
    canvas.grid(x, y, cells, "highlight", cell=(cell, cell), shades=shades)
    canvas.text(x + n * cell / 2, y - 13, name, mono=True)
    canvas.arrow((x + n * cell + 3, top + 20), (right - 1, top + 20))


def _fork(canvas: Canvas, x: float, y: float, top: float, offsets: Point) -> None:
    """Draw a key and a value that lead from one line to a box above it."""
    for dx, role in zip(offsets, ("key", "value"), strict=True):
        canvas.arrow((x, y), (x + dx, y), (x + dx, top), role=role)
        canvas.text(x + dx + 11, top + 14, role[0], role, bold=True)


def one_memory() -> Canvas:
    """Draw an encoder whose last output enters every layer of the decoder."""
    canvas = Canvas(520, 282)
    for x, side, role in ((8, "encoder", "source"), (344, "decoder", "target")):
        canvas.text(x + 84, 264, f"{role} tokens", role, bold=True)
        for layer, y in enumerate((226, 164, 102), start=1):
            canvas.arrow((x + 84, y + 22), (x + 84, y), role=role)
            canvas.box(x, y - 40, 168, 40, f"{side} layer {layer}", role)
    canvas.arrow((428, 62), (428, 8), role="target")
    way = (92, 62), (92, 26), (260, 26), (260, 206)
    canvas.arrow(*way, role="memory", head=False, width=2.4)
    canvas.text(176, 12, "memory", "memory", bold=True)
    for y in (206, 144, 82):
        canvas.arrow((259, y), (343, y), role="memory", width=2.4)
        canvas.text(300, y - 14, "k", "key", bold=True)
        canvas.text(318, y - 14, "v", "value", bold=True)
    return canvas
