"""The map of the whole model, with the parts of a chapter lit."""

from collections.abc import Iterable

from transformer_book.diagrams.canvas import Canvas

# What can be lit: the parts of the model, as chapters name them.
PARTS = {
    "embeddings": "token ids become vectors",
    "positions": "each vector learns its position",
    "encoder self-attention": "source tokens look at each other",
    "decoder self-attention": "target tokens look back",
    "cross-attention": "target tokens look at the source",
    "masks": "who may look at whom",
    "add & norm": "residual connection and layer norm",
    "feed-forward": "each position by itself",
    "decoder feed-forward": "each target position by itself",
    "encoder": "the whole left stack",
    "decoder": "the whole right stack",
    "lm_head": "features become scores of the next token",
    "softmax": "scores become probabilities",
}
SOURCE = "Im Schnee spielt ein Hund ."
TARGET_IN = "<bos> A dog is playing in …"
TARGET_OUT = "A dog is playing in the …"
STACK = 386.0  # height of the lower edge of both stacks


def model_map(
    lit: Iterable[str] = PARTS,
    *,
    source: str = SOURCE,
    target_in: str = TARGET_IN,
    target_out: str = TARGET_OUT,
) -> Canvas:
    """Draw the encoder-decoder Transformer, with some of its parts lit.

    Args:
        lit: names of PARTS; the rest is faded. "encoder" and "decoder" light a whole
            stack.
        source: the tokens that the encoder reads.
        target_in: the tokens that the decoder reads.
        target_out: the tokens that it predicts.

    Raises:
        ValueError: there is no part of this name.
    """
    lit = set(lit)
    if unknown := sorted(lit - set(PARTS)):
        raise ValueError(f"no part is called {unknown[0]!r}; there are {list(PARTS)}")
    canvas = Canvas(520, 520)
    memory = _column(canvas, lit, 44, "source", source)
    top = _column(canvas, lit, 300, "target", target_in)
    # The memory's way from the encoder's end into every cross-attention.
    leads = bool(lit & {"encoder", "decoder", "cross-attention"})
    way = (134, memory + 18), (134, memory - 22), (256, memory - 22), (256, 273)
    canvas.arrow(*way, (300, 273), role="memory", width=2.4, lit=leads)
    canvas.text(134, memory - 36, "memory", "memory", bold=True, lit=leads)
    # What turns the decoder's features into probabilities.
    head, last = {"role": "target", "lit": "lm_head" in lit}, "softmax" in lit
    canvas.arrow((390, top + 18), (390, top - 14), **head)
    canvas.box(300, top - 46, 180, 32, "lm_head", name="lm_head", **head)
    canvas.arrow((390, top - 46), (390, top - 58), role="target", lit=last)
    softmax = {"role": "target", "lit": last, "name": "softmax"}
    canvas.box(300, top - 90, 180, 32, "softmax", **softmax)
    canvas.arrow((390, top - 90), (390, top - 106), role="target", lit=last)
    canvas.text(390, top - 118, target_out, "target", bold=True, lit=last)
    return canvas


def draw_map(*lit: str, alt: str = "") -> None:
    """Display the map; see `model_map`.

    Args:
        lit: the parts to light; all of them if none is named.
        alt: the picture in words; by default made of the parts.
    """
    what = ", ".join(lit) or "every part"
    told = f"Map of the encoder-decoder Transformer; lit: {what}."
    model_map(lit or PARTS).show(alt or told)


def _column(canvas: Canvas, lit: set, left: float, role: str, tokens: str) -> float:
    """Draw one stack, from its tokens upward; return the height at which it ends."""
    side = "encoder" if role == "source" else "decoder"
    across = ["cross-attention"] * (side == "decoder")
    steps = [f"{side} self-attention", *across, f"{side} feed-forward"]
    middle, whole = left + 90, side in lit
    embedded, placed = whole or "embeddings" in lit, whole or "positions" in lit
    canvas.places[f"{role} ids"] = left - 22, 495, 224, 24
    canvas.text(middle, 506, tokens, role, bold=True)
    canvas.arrow((middle, 494), (middle, 480), role=role, lit=embedded)
    for label, top, height, on in (
        ("embeddings", 448, 32, embedded),
        ("+ positions", 412, 28, placed),
    ):
        name = f"{role} {label.removeprefix('+ ')}"
        canvas.box(left, top, 180, height, label, role, lit=on, name=name)
    canvas.arrow((middle, 412), (middle, STACK), role=role, lit=placed)
    top = STACK - 76 * len(steps) - 28
    canvas.box(left - 22, top, 224, STACK - top, fill=0.03, lit=whole, dashed=True)
    canvas.text(left - 15, top + 13, side, size=13, anchor="start", lit=whole)
    canvas.text(left + 195, top + 13, "N layers", size=13, anchor="end", lit=whole)
    y = STACK
    for step in steps:
        y = _step(canvas, lit, left, y - 8, step, role)
    return y - 20


def _step(
    canvas: Canvas, lit: set[str], left: float, bottom: float, step: str, role: str
) -> float:
    """Draw one sub-layer with its residual connection; return its upper edge."""
    middle, top = left + 90, bottom - 38
    side = "encoder" if role == "source" else "decoder"
    whole = side in lit
    label = step.removeprefix("encoder ").removeprefix("decoder ")
    on, norm = whole or bool({step, label} & lit), whole or "add & norm" in lit
    named = f"{side}: {label}"
    canvas.box(left, top, 180, 34, label, role, lit=on, name=named)
    if "attention" in step:  # a mask: causal, or the last key hidden
        masked, causal = "masks" in lit, step == "decoder self-attention"
        ends = range(4) if causal else [2] * 4
        shades = [[0.85 * (j <= end) for j in range(4)] for end in ends]
        style = {"cell": (5.5, 5.5), "shades": shades, "lit": masked or on}
        mask, color = [[""] * 4] * 4, "highlight" if masked else "ink"
        canvas.grid(left + 154, top + 7, mask, color, **style)
    style = {"fill": 0.06, "lit": norm, "size": 13}
    named = f"{side}: add & norm after {label}"
    canvas.box(left, top - 28, 180, 22, "add & norm", name=named, **style)
    canvas.arrow((middle, top), (middle, top - 6), role=role, head=False, lit=norm)
    edge, out = (left + 180, 11) if step == "cross-attention" else (left, -11)
    around = (middle, bottom + 2), (edge + out, bottom + 2), (edge + out, top - 17)
    canvas.arrow(*around, (edge, top - 17), width=1.1, lit=norm)
    canvas.arrow((middle, bottom + 4), (middle, top + 34), role=role, lit=on)
    return top - 30
