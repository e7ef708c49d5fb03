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
    for x, name, weight, packed, side in (
        (110, "their model", "linear1.weight", "in_proj_weight …", 90),
        (410, "our model", "expand.weight", "q_proj.weight …", -90),
    ):
        canvas.text(x, 18, name, bold=True)
        canvas.box(x - 90, 36, 180, 50, weight, sub=packed)
        canvas.arrow((x, 86), (x, 128))
        canvas.box(x - 90, 130, 180, 46, "forward", fill=0.05)
        canvas.arrow((260, 153), (x + side, 153), role="source")
        canvas.arrow((x, 176), (x, 218))
        canvas.box(x - 90, 220, 180, 32, "logits, gradients", size=14)
    canvas.arrow((200, 61), (318, 61), width=2.4)
    canvas.text(259, 44, "rename", bold=True)
    canvas.text(259, 80, "and split", bold=True)
    canvas.box(214, 138, 92, 30, "one batch", "source", size=14, solid=True)
    canvas.arrow((200, 236), (320, 236), head=False)
    canvas.arrow((260, 236), (260, 276))
    canvas.text(260, 292, "largest difference: only rounding?", bold=True)
    return canvas


def split_diagram() -> Canvas:
    """One packed matrix, cut into the projections of query, key and value."""
    canvas = Canvas(520, 290)
    canvas.text(120, 20, "in_proj_weight", bold=True)
    canvas.text(120, 40, "(36, 12)", mono=True)
    for number, role in enumerate(("query", "key", "value")):
        first, y, top = 12 * number, 60 + 72 * number, 46 + 84 * number
        canvas.box(60, y, 120, 72, f"rows {first}–{first + 11}", role)
        name = f"{role[0]}_proj.weight"
        canvas.box(330, top, 120, 60, name, role, sub="(12, 12)", size=14)
        canvas.arrow((180, y + 36), (328, top + 30), role=role, width=2)
    return canvas


def conventions_diagram() -> Canvas:
    """One padding mask in five conventions: a row of values for each."""
    canvas = Canvas(520, 220)
    canvas.titles(36, {166 + 76 * j: w for j, w in enumerate(WORDS)}, role="source")
    padding = [word == "<pad>" for word in WORDS]
    values = [[pair[hidden] for hidden in padding] for pair in CONVENTIONS.values()]
    shades = [[0.2 * hidden for hidden in padding]] * len(values)
    canvas.grid(128, 52, values, cell=(76, 30), shades=shades, rows=CONVENTIONS,
                size=14)  # fmt: skip
    return canvas
