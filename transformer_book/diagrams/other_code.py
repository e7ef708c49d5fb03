"""A diagram of the chapter on other people's code."""

from transformer_book.diagrams.canvas import Canvas


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
        canvas.box(x - 90, 220, 180, 32, "logits", size=14)
    canvas.arrow((200, 61), (318, 61), width=2.4)
    canvas.text(259, 44, "rename", bold=True)
    canvas.text(259, 80, "and split", bold=True)
    canvas.box(214, 138, 92, 30, "one batch", "source", size=14, solid=True)
    canvas.arrow((200, 236), (320, 236), head=False)
    canvas.arrow((260, 236), (260, 276))
    canvas.text(260, 292, "largest difference: only rounding?", bold=True)
    return canvas


def split_diagram(d_model: int) -> Canvas:
    """One packed tensor of 3 * d_model rows is cut into those of q, k and v."""
    canvas = Canvas(520, 246)
    canvas.text(120, 18, "in_proj_weight", bold=True)
    for n, (letter, role) in enumerate(
        {"q": "query", "k": "key", "v": "value"}.items()
    ):
        rows = f"rows {n * d_model}–{(n + 1) * d_model - 1}"
        canvas.box(40, 36 + 64 * n, 160, 64, rows, role, size=14)
        canvas.arrow((200, 68 + 64 * n), (316, 44 + 88 * n), role=role)
        name, shape = f"{letter}_proj.weight", f"({d_model}, {d_model})"
        canvas.box(318, 16 + 88 * n, 180, 56, name, role, sub=shape)
    return canvas
