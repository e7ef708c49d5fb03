"""Diagrams of reading other people's code: carrying weights, splitting, masks."""

from transformer_book.diagrams.canvas import Canvas

CONVENTIONS = {  # what is written for "may attend" and for "hidden"
    "attend": ("True", "False"),
    "ignore": ("False", "True"),
    "additive": ("0", "-inf"),
    "attend_byte": ("1", "0"),
    "ignore_byte": ("0", "1"),
}
WORDS = ("ein", "hund", "spielt", "<pad>", "<pad>")


def carry_diagram() -> Canvas:
    """Their weights, renamed, enter our model; one batch enters both."""
    canvas = Canvas(520, 310)
    canvas.text(110, 18, "their model", bold=True)
    canvas.text(410, 18, "our model", bold=True)
    canvas.box(20, 36, 180, 50, "linear1.weight", sub="in_proj_weight …")
    canvas.box(320, 36, 180, 50, "expand.weight", sub="q_proj.weight …")
    canvas.arrow((200, 61), (318, 61), width=2.4)
    canvas.text(259, 44, "rename", bold=True)
    canvas.text(259, 80, "and split", bold=True)
    for x in (110, 410):
        canvas.box(x - 90, 130, 180, 46, "forward", fill=0.05)
        canvas.arrow((x, 86), (x, 128))
        canvas.arrow((260, 153), (x + (90 if x < 260 else -90), 153), role="source")
        canvas.arrow((x, 176), (x, 218))
        canvas.box(x - 90, 220, 180, 32, "logits, gradients", size=14)
    canvas.box(214, 138, 92, 30, "", "page", fill=1)
    canvas.box(214, 138, 92, 30, "one batch", "source", size=14)
    canvas.arrow((200, 236), (320, 236), head=False)
    canvas.arrow((260, 236), (260, 276))
    canvas.text(260, 292, "largest difference: only rounding?", bold=True)
    return canvas


def split_diagram() -> Canvas:
    """One packed matrix, cut into the projections of query, key and value."""
    canvas = Canvas(520, 290)
    canvas.text(120, 20, "in_proj_weight", bold=True)
    canvas.text(120, 40, "(36, 12)", mono=True)
    for number, (role, name) in enumerate(
        (("query", "q_proj"), ("key", "k_proj"), ("value", "v_proj"))
    ):
        y = 60 + 72 * number
        canvas.box(60, y, 120, 72, f"rows {12 * number}–{12 * number + 11}", role)
        top = 46 + 84 * number
        canvas.box(330, top, 120, 60, f"{name}.weight", role, sub="(12, 12)", size=14)
        canvas.arrow((180, y + 36), (328, top + 30), role=role, width=2)
    return canvas


def conventions_diagram() -> Canvas:
    """One padding mask in five conventions: a row of values for each."""
    canvas = Canvas(520, 220)
    left, top, cell = 128, 52, (76, 30)
    for j, word in enumerate(WORDS):
        canvas.text(left + (j + 0.5) * cell[0], top - 16, word, "source", bold=True)
    values = [[pair[word == "<pad>"] for word in WORDS] for pair in
              CONVENTIONS.values()]  # fmt: skip
    shades = [[0.2 if word == "<pad>" else 0.0 for word in WORDS]] * len(values)
    canvas.grid(
        left, top, values, "ink", cell=cell, shades=shades, rows=CONVENTIONS, size=14
    )
    return canvas
