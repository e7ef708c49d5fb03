"""Drawings of the chapter on data and batches."""

from collections.abc import Sequence

from transformer_book.diagrams.canvas import Canvas, Table, Words

PAD = "<pad>"
STAGES = {  # of the way from text to a training step
    "sentence pairs": ("Regen und Hagel", "Rain and hail"),
    "pieces": ("▁Re gen ▁und ▁H age l <eos>", "▁R ain ▁and ▁h ail <eos>"),
    "batch of ids": ("src", "tgt_in, tgt_out"),
}


def pipeline() -> Canvas:
    """Draw the way of a sentence pair to the model; this chapter's part is lit."""
    canvas = Canvas(520, 322)
    for y, (name, (source, target)) in zip((12, 78, 144), STAGES.items(), strict=True):
        canvas.box(12, y, 150, 46, name, fill=0.08)
        canvas.text(186, y + 12, source, "source", size=14.5, anchor="start")
        canvas.text(186, y + 34, target, "target", size=14.5, anchor="start")
        canvas.arrow((87, y + 46), (87, y + 66))
    rest = (210, "Transformer", "chapters 1 to 8"), (276, "loss", "chapter 10")
    for y, name, where in rest:
        canvas.box(12, y, 150, 38, name, fill=0.08, lit=False)
        canvas.text(186, y + 19, where, anchor="start", lit=False)
    canvas.arrow((87, 248), (87, 276), lit=False)
    return canvas


def batch_tensors(tensors: dict[str, Sequence[Words]]) -> Canvas:
    """Draw the tensors of a batch as rectangles of tokens; padding is gray.

    Args:
        tensors: name -> rows of token labels; a name that starts with "tgt" has the
            target's color.
    """
    width = min(74, 500 / max(len(rows[0]) for rows in tensors.values()))
    canvas = Canvas(520, 8 + sum(44 + 27 * len(rows) for rows in tensors.values()))
    y = 8
    for name, rows in tensors.items():
        role = "target" if name.startswith("tgt") else "source"
        shape = f"({len(rows)}, {len(rows[0])})"
        canvas.text(10, y + 12, name, role, bold=True, mono=True, anchor="start")
        canvas.text(90, y + 12, shape, mono=True, anchor="start")
        words = [["pad" if word == PAD else word for word in row] for row in rows]
        roles = [["ink" if word == PAD else role for word in row] for row in rows]
        shades = [[0.12 if word == PAD else 0.22 for word in row] for row in rows]
        canvas.grid(10, y + 26, words, roles, cell=(width, 27), shades=shades, size=12)
        y += 44 + 27 * len(rows)
    return canvas


def filled(plans: dict[str, Sequence[Sequence[int]]], lengths: Table) -> Canvas:
    """Draw the batches of small plans as rectangles: rows times the longest side.

    Args:
        plans: name -> row numbers of each batch.
        lengths: source and target length of each pair.
    """
    tallest = [max(map(len, plan)) for plan in plans.values()]
    canvas, y = Canvas(520, 8 + sum(58 + 17 * rows for rows in tallest)), 8
    for (name, plan), rows_high in zip(plans.items(), tallest, strict=True):
        canvas.text(12, y + 12, name, bold=True, anchor="start")
        x = 28
        for rows in plan:
            sizes = [max(lengths[row]) for row in rows]
            widest, n = max(sizes), len(rows)
            shades = [[0.4] * size + [0.03] * (widest - size) for size in sizes]
            canvas.grid(x, y + 26, [[""] * widest] * n, "source", cell=(17, 17),
                        shades=shades, rows=map(str, rows))  # fmt: skip
            canvas.text(x + widest * 8.5, y + 37 + 17 * n, f"{n} · {widest}")
            x += widest * 17 + 30
        y += 58 + 17 * rows_high
    return canvas


def component_split(entries: Sequence[tuple[str, Words]], held_out: set[str]) -> Canvas:
    """Draw which part each sentence belongs to, and the components that show it.

    Args:
        entries: sentences, each with the names of its components.
        held_out: the components of the test set.
    """
    canvas = Canvas(520, 36 + 58 * len(entries))
    canvas.titles(16, {76: "components", 288: "sentences", 463: "part"})
    names = list(dict.fromkeys(name for _, used in entries for name in used))
    space = 58 * len(entries) / len(names)
    middle = {name: 28 + space * (i + 0.5) for i, name in enumerate(names)}
    role = {name: "highlight" if name in held_out else "ink" for name in names}
    for name, y in middle.items():
        sub = "held out" if name in held_out else ""
        canvas.box(16, y - 22, 120, 44, name, role[name], sub=sub)
    for number, (sentence, used) in enumerate(entries):
        y, tested = 57 + 58 * number, set(used) <= held_out
        kind, part = ("highlight", "test") if tested else ("ink", "training")
        canvas.box(208, y - 17, 160, 34, sentence, kind, size=14.5)
        canvas.arrow((370, y), (416, y), role=kind)
        canvas.text(463, y, part, bold=tested)
        for name in used:
            canvas.arrow((137, middle[name]), (206, y), role=role[name])
    return canvas
