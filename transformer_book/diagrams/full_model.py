"""Diagrams of the whole model: one matrix in three places, shapes, costs."""

from transformer_book.diagrams.canvas import Canvas

# Rows of the pencil model's table, and their logits at the position that reads "dog".
ROWS = {
    "hund": ((0.1, -0.3, -0.1, 0.1), -0.22),
    "dog": ((1.4, -2.3, 1.0, -0.1), 1.31),
    "plays": ((0.3, -0.2, 0.6, -2.9), 5.44),
}
FEATURES = (0.88, 0.27, 0.54, -1.69)


def one_matrix() -> Canvas:
    """Draw the table of token vectors with its three jobs."""
    canvas = Canvas(520, 372)
    style = {"cell": (44, 30), "size": 13}
    canvas.text(308, 24, "3  score the next token", bold=True)
    canvas.text(212, 59, "features", anchor="end")
    canvas.grid(220, 44, [FEATURES], "target", decimals=2, **style)
    canvas.arrow((308, 74), (308, 138))
    canvas.text(296, 108, "dot product with each row", anchor="end")
    canvas.text(466, 128, "logits", bold=True)
    for i, name in enumerate(("…", "hund", "…", "dog", "plays", "…")):
        y = 142 + 30 * i
        if name == "…":
            canvas.grid(176, y, [[name, *[""] * 4]], shades=0.03, **style)
            continue
        numbers, logit = ROWS[name]
        role = "source" if name == "hund" else "target"
        canvas.grid(176, y, [[name, *numbers]], role, decimals=1, shades=0.16, **style)
        canvas.arrow((399, y + 15), (436, y + 15))
        canvas.grid(438, y, [[logit]], "highlight", size=14, cell=(56, 30), decimals=2,
                    shades=0.04 + 0.09 * max(logit, 0))  # fmt: skip
    canvas.text(286, 342, "the embedding matrix: a row per token")
    for y, stack, role, title, above in (
        (187, "encoder", "source", "1  embed the source", -43),
        (247, "decoder", "target", "2  embed the target", 43),
    ):
        canvas.arrow((174, y), (122, y), role=role)
        canvas.box(8, y - 24, 112, 48, stack, role, sub="2 × row + pos.")
        canvas.text(8, y + above, title, role, bold=True, anchor="start")
    return canvas


def shape_flow() -> Canvas:
    """Draw the way from ids to probabilities, with the pencil model's shapes."""
    canvas = Canvas(520, 540)
    for x, role, stack, length, ids, lines in (
        (114, "source", "encoder", 5, "im schnee spielt ein hund",
         ("chapters 2 to 6", "mask (1, 1, 1, 5)")),
        (392, "target", "decoder", 7, "<bos> a dog plays in the snow",
         ("chapters 2 to 7", "mask (1, 1, 7, 7),", "for the memory (1, 1, 1, 5)")),
    ):  # fmt: skip
        canvas.text(x, 527, ids, role, bold=True)
        _rise(canvas, x, 510, 484, role, f"ids (1, {length})")
        canvas.box(x - 106, 438, 212, 46, "embeddings", role, sub="chapter 1")
        _rise(canvas, x, 438, 388, role, f"(1, {length}, 4)")
        canvas.box(x - 106, 294, 212, 94, "", role)
        canvas.text(x, 311, stack, size=15, bold=True)
        for y, line in zip((334, 354, 373), lines, strict=False):
            canvas.text(x, y, line, size=13.5)
    way = (114, 294), (114, 262), (240, 262), (240, 330), (286, 330)
    canvas.arrow(*way, role="memory", width=2.4)
    canvas.text(114, 244, "memory (1, 5, 4)", "memory", bold=True)
    for y, label, box, where in (
        (236, "features (1, 7, 4)", "lm_head", "this chapter"),
        (136, "logits (1, 7, 17)", "softmax", "chapter 2"),
    ):
        _rise(canvas, 392, 294 if y == 236 else 190, y, "target", label, left=True)
        canvas.box(286, y - 46, 212, 46, box, sub=where)
    _rise(canvas, 392, 90, 38, "target", "probabilities (1, 7, 17)", left=True)
    canvas.text(392, 20, "a dog plays in the snow <eos>", "target", bold=True)
    return canvas


def _rise(
    canvas: Canvas, x: float, start: float, end: float, role: str, label: str,
    left: bool = False,
) -> None:  # fmt: skip
    """Draw an arrow upward, with a shape on one side of it."""
    canvas.arrow((x, start), (x, end), role=role)
    side, anchor = (x - 10, "end") if left else (x + 10, "start")
    canvas.text(side, (start + end) / 2 + 1, label, anchor=anchor)
