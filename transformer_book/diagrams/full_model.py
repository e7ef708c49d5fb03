"""Diagrams of the whole model: one matrix in three places, shapes, costs."""

from collections.abc import Mapping

from transformer_book.diagrams.canvas import Canvas

# Rows of the pencil model's table, and their logits at the position that reads "dog".
ROWS = {
    "hund": ((0.1, -0.3, -0.1, 0.1), -0.22),
    "dog": ((1.4, -2.3, 1.0, -0.1), 1.31),
    "plays": ((0.3, -0.2, 0.6, -2.9), 5.44),
}
FEATURES = (0.88, 0.27, 0.54, -1.69)
ROLES = {"encoder": "source", "decoder": "target"}  # of other parts: "ink"


def one_matrix() -> Canvas:
    """Draw the table of token vectors with its three jobs."""
    canvas = Canvas(520, 372)
    left, top, width, height = 176.0, 142.0, 44.0, 30.0
    right, middle = left + 5 * width, left + 3 * width
    canvas.text(middle, 24, "3  score the next token", bold=True)
    canvas.text(left + width - 8, 59, "features", anchor="end")
    canvas.grid(left + width, 44, [[f"{x:.2f}" for x in FEATURES]], "target",
                cell=(width, height), size=14)  # fmt: skip
    canvas.arrow((middle, 74), (middle, top - 4))
    canvas.text(middle - 12, 108, "dot product with each row", anchor="end")
    canvas.text(right + 70, top - 14, "logits", bold=True)

    names = ["…", "hund", "…", "dog", "plays", "…"]
    for i, name in enumerate(names):
        y = top + i * height
        numbers, logit = ROWS.get(name, ((), 0.0))
        cells = [name, *(f"{x:.1f}" for x in numbers)] if numbers else [name, *[""] * 4]
        role = "source" if name == "hund" else "target" if numbers else "ink"
        canvas.grid(left, y, [cells], role, cell=(width, height), size=14,
                    shades=[[0.16 if numbers else 0.03] * 5])  # fmt: skip
        if numbers:
            canvas.arrow((right + 3, y + 15), (right + 40, y + 15))
            shades = [[0.04 + 0.09 * max(logit, 0)]]
            canvas.grid(right + 42, y, [[f"{logit:.2f}"]], "highlight", size=14,
                        cell=(56, height), shades=shades)  # fmt: skip
    below = top + len(names) * height
    canvas.text(left + 2.5 * width, below + 20, "the embedding matrix: a row per token")

    for number, (word, stack, role, title) in enumerate(
        (("hund", "encoder", "source", -43), ("dog", "decoder", "target", 43)), start=1
    ):
        y = top + names.index(word) * height + 15
        canvas.arrow((left - 2, y), (122, y), role=role)
        canvas.box(8, y - 24, 112, 48, stack, role, sub="2 × row + pos.")
        canvas.text(8, y + title, f"{number}  embed the {role}", role, bold=True,
                    anchor="start")  # fmt: skip
    return canvas


def shape_flow() -> Canvas:
    """Draw the way from ids to probabilities, with the pencil model's shapes."""
    canvas = Canvas(520, 540)
    source, target, half = 114.0, 392.0, 106.0
    stacks = {
        "encoder": (source, "source", 5, ("chapters 2 to 6", "mask (1, 1, 1, 5)")),
        "decoder": (target, "target", 7, ("chapters 2 to 7", "mask (1, 1, 7, 7),",
                                          "for the memory (1, 1, 1, 5)")),
    }  # fmt: skip
    for stack, (x, role, length, lines) in stacks.items():
        _rise(canvas, x, 510, 484, role, f"ids (1, {length})")
        canvas.box(x - half, 438, 2 * half, 46, "embeddings", role, sub="chapter 1")
        _rise(canvas, x, 438, 388, role, f"(1, {length}, 4)")
        canvas.box(x - half, 294, 2 * half, 94, "", role)
        for y, line in zip((334, 354, 373), lines, strict=False):
            canvas.text(x, y, line, size=13.5)
        canvas.text(x, 311, stack, size=15, bold=True)
    canvas.text(source, 527, "im schnee spielt ein hund", "source", bold=True)
    canvas.text(target, 527, "<bos> a dog plays in the snow", "target", bold=True)

    turn = source + half + 20
    canvas.arrow((source, 294), (source, 262), (turn, 262), (turn, 330),
                 (target - half, 330), role="memory", width=2.4)  # fmt: skip
    canvas.text(source, 244, "memory (1, 5, 4)", "memory", bold=True)
    _rise(canvas, target, 294, 236, "target", "features (1, 7, 4)", left=True)
    canvas.box(target - half, 190, 2 * half, 46, "lm_head", sub="this chapter")
    _rise(canvas, target, 190, 136, "target", "logits (1, 7, 17)", left=True)
    canvas.box(target - half, 90, 2 * half, 46, "softmax", sub="chapter 2")
    _rise(canvas, target, 90, 38, "target", "probabilities (1, 7, 17)", left=True)
    canvas.text(target, 20, "a dog plays in the snow <eos>", "target", bold=True)
    return canvas


def cost_bars(bars: Mapping[str, Mapping[str, float]]) -> Canvas:
    """Draw what each part has of a total, one bar for each total.

    Args:
        bars: title of a bar -> name of a part -> its amount.
    """
    canvas = Canvas(520, 8 + 84 * len(bars))
    left, width = 10.0, 500.0
    for number, (title, parts) in enumerate(bars.items()):
        y = 6 + 84 * number
        canvas.text(left, y + 8, title, bold=True, anchor="start")
        x, total = left, sum(parts.values())
        for name, amount in parts.items():
            share = amount / total
            role = ROLES.get(name, "ink")
            canvas.box(x, y + 22, share * width, 44, name, role,
                       sub=f"{share:.0%}", fill=0.2)  # fmt: skip
            x += share * width
    return canvas


def _rise(
    canvas: Canvas, x: float, start: float, end: float, role: str, label: str,
    *, left: bool = False,
) -> None:  # fmt: skip
    """Draw an arrow upward, with a shape on one side of it."""
    canvas.arrow((x, start), (x, end), role=role)
    side, anchor = (x - 10, "end") if left else (x + 10, "start")
    canvas.text(side, (start + end) / 2 + 1, label, anchor=anchor)
