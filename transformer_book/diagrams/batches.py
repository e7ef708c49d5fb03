"""Drawings of the chapter on data and batches."""

from collections.abc import Sequence

from transformer_book.diagrams.canvas import Canvas

PAD = "<pad>"
STAGES = (  # of the way from text to a training step
    ("sentence pairs", "Regen und Hagel", "Rain and hail"),
    ("pieces", "▁Re gen ▁und ▁H age l <eos>", "▁R ain ▁and ▁h ail <eos>"),
    ("batch of ids", "src", "tgt_in, tgt_out"),
)


def pipeline() -> Canvas:
    """Draw the way of a sentence pair to the model; this chapter's part is lit."""
    canvas = Canvas(520, 322)
    left, width, height, step = 12, 150, 46, 66
    for number, (name, source, target) in enumerate(STAGES):
        y = 12 + step * number
        canvas.box(left, y, width, height, name, fill=0.08)
        canvas.text(186, y + 12, source, "source", size=14.5, anchor="start")
        canvas.text(186, y + 34, target, "target", size=14.5, anchor="start")
    later = ("Transformer", "chapters 1 to 8"), ("loss", "chapter 10")
    for number, (name, where) in enumerate(later, start=len(STAGES)):
        y = 12 + step * number
        canvas.box(left, y, width, height - 8, name, fill=0.08, lit=False)
        canvas.text(186, y + 19, where, anchor="start", lit=False)
    for number in range(len(STAGES) + 1):
        y = 12 + step * number + height
        if number == len(STAGES):
            y -= 8
        ends = (left + width / 2, y), (left + width / 2, 12 + step * (number + 1))
        canvas.arrow(*ends, lit=number < len(STAGES))
    return canvas


def joining(steps: Sequence[tuple[str, Sequence[str]]]) -> Canvas:
    """Draw what byte-pair encoding makes of a word, one join below the other.

    Args:
        steps: what is joined, and the pieces of the word after that.
    """
    canvas = Canvas(520, 16 + 40 * len(steps))
    before: list[str] = []
    for number, (join, pieces) in enumerate(steps):
        y = 12 + 40 * number
        canvas.text(12, y + 14, join, anchor="start")
        x = 190.0
        for piece in pieces:
            width = 34.0 * len(piece)
            role = "ink" if not before or piece in before else "highlight"
            canvas.box(x, y, width - 6, 28, piece, role, size=15)
            x += width
        before = list(pieces)
    return canvas


def batch_tensors(tensors: dict[str, Sequence[Sequence[str]]]) -> Canvas:
    """Draw the tensors of a batch as rectangles of tokens; padding is empty.

    Args:
        tensors: name -> rows of token labels; a name that starts with "tgt" has the
            target's color.
    """
    widest = max(len(rows[0]) for rows in tensors.values())
    cell = (min(74.0, 500 / widest), 27.0)
    heights = [44 + cell[1] * len(rows) for rows in tensors.values()]
    canvas = Canvas(520, 8 + sum(heights))
    y = 8.0
    for (name, rows), height in zip(tensors.items(), heights, strict=True):
        role = "target" if name.startswith("tgt") else "source"
        shape = f"({len(rows)}, {len(rows[0])})"
        canvas.text(10, y + 12, name, role, bold=True, mono=True, anchor="start")
        canvas.text(90, y + 12, shape, mono=True, anchor="start")
        words = [["pad" if word == PAD else word for word in row] for row in rows]
        roles = [["ink" if word == PAD else role for word in row] for row in rows]
        shades = [[0.03 if word == PAD else 0.22 for word in row] for row in rows]
        canvas.grid(10, y + 26, words, roles, cell=cell, shades=shades, size=12)
        y += height
    return canvas


def shifted_rows(pairs: Sequence[tuple[str, str]], new: Sequence[bool]) -> Canvas:
    """Draw what each position reads and, above it, what it must predict.

    Args:
        pairs: what a position reads and what it must predict.
        new: which of them are highlighted.
    """
    canvas = Canvas(520, 128)
    width = min(78.0, 410 / len(pairs))
    for name, y in (("predicts", 32), ("reads", 98)):
        canvas.text(94, y, name, anchor="end")
    for number, ((read, answer), lit) in enumerate(zip(pairs, new, strict=True)):
        x, role = 102 + width * number, "highlight" if lit else "target"
        fill = 0.4 if lit else 0.05
        canvas.box(x + 2, 17, width - 4, 30, answer, role, size=13.5, fill=fill)
        canvas.box(x + 2, 83, width - 4, 30, read, role, size=13.5, fill=fill)
        ends = (x + width / 2, 83), (x + width / 2, 49)
        canvas.arrow(*ends, role=role, width=2.4 if lit else 1.6)
    return canvas


def filled(
    plans: dict[str, Sequence[Sequence[int]]], lengths: Sequence[tuple[int, int]]
) -> Canvas:
    """Draw the batches of small plans as rectangles: rows times the longest side.

    Args:
        plans: name -> row numbers of each batch.
        lengths: source and target length of each pair.
    """
    cell, gap = 17.0, 16.0
    tallest = [max(map(len, plan)) for plan in plans.values()]
    canvas = Canvas(520, 8 + sum(58 + cell * rows for rows in tallest))
    y = 8.0
    for (name, plan), rows_high in zip(plans.items(), tallest, strict=True):
        canvas.text(12, y + 12, name, bold=True, anchor="start")
        x = 28.0
        for rows in plan:
            widest = max(max(lengths[row]) for row in rows)
            shades = [[0.4] * max(lengths[r]) for r in rows]
            shades = [row + [0.03] * (widest - len(row)) for row in shades]
            words = [[""] * widest for _ in rows]
            canvas.grid(
                x, y + 26, words, "source", cell=(cell, cell), shades=shades,
                rows=[str(row) for row in rows],
            )  # fmt: skip
            area = f"{len(rows)} · {widest}"
            canvas.text(x + widest * cell / 2, y + 37 + cell * len(rows), area)
            x += widest * cell + gap + 14
        y += 58 + cell * rows_high
    return canvas


def component_split(
    entries: Sequence[tuple[str, Sequence[str]]], held_out: set[str]
) -> Canvas:
    """Draw which part each sentence belongs to, and the components that show it.

    Args:
        entries: sentences, each with the names of its components.
        held_out: the components of the test set.
    """
    names = list(dict.fromkeys(name for _, used in entries for name in used))
    step, top = 58, 36
    canvas = Canvas(520, top + step * len(entries))
    for x, title in ((76, "components"), (288, "sentences"), (463, "part")):
        canvas.text(x, 16, title, bold=True)
    space = step * len(entries) / len(names)
    middle = {name: top + space * (i + 0.5) - 8 for i, name in enumerate(names)}
    for name, y in middle.items():
        role, sub = ("highlight", "held out") if name in held_out else ("ink", "")
        canvas.box(16, y - 22, 120, 44, name, role, sub=sub)
    for number, (sentence, used) in enumerate(entries):
        y = top + step * number + step / 2 - 8
        tested = set(used) <= held_out
        role = "highlight" if tested else "ink"
        canvas.box(208, y - 17, 160, 34, sentence, role, size=14.5)
        canvas.arrow((370, y), (416, y), role=role)
        canvas.text(463, y, "test" if tested else "training", bold=tested)
        for name in used:
            color = "highlight" if name in held_out else "ink"
            canvas.arrow((137, middle[name]), (206, y), role=color)
    return canvas
