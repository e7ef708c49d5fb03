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
    "encoder": "the whole left stack",
    "decoder": "the whole right stack",
    "lm_head": "features become scores of the next token",
    "softmax": "scores become probabilities",
}
SOURCE = "Im Schnee spielt ein Hund ."
TARGET_IN = "<bos> A dog is playing in …"
TARGET_OUT = "A dog is playing in the …"
STACK = 386.0  # height of the lower edge of both stacks


def model_map(lit: Iterable[str] = PARTS) -> Canvas:
    """Draw the encoder-decoder Transformer, with some of its parts lit.

    Args:
        lit: names of PARTS; the rest is faded. "encoder" and "decoder" light a whole
            stack.

    Raises:
        ValueError: there is no part of this name.
    """
    lit = set(lit)
    if unknown := sorted(lit - set(PARTS)):
        raise ValueError(f"no part is called {unknown[0]!r}; there are {list(PARTS)}")
    canvas = Canvas(520, 520)
    _Map(canvas, lit).draw()
    return canvas


def draw_map(*lit: str, alt: str = "") -> None:
    """Display the map; see `model_map`.

    Args:
        lit: the parts to light; all of them if none is named.
        alt: the picture in words; by default made of the parts.
    """
    if not alt:
        what = ", ".join(lit) if lit else "every part"
        alt = f"Map of the encoder-decoder Transformer; lit: {what}."
    model_map(lit or PARTS).show(alt)


class _Map:
    """The drawing itself: two columns, from the tokens at the bottom upward."""

    def __init__(self, canvas: Canvas, lit: set[str]) -> None:
        self.canvas, self.lit = canvas, lit

    def draw(self) -> None:
        memory = self._column(
            left=44,
            role="source",
            side="encoder",
            tokens=SOURCE,
            blocks=("encoder self-attention",),
        )
        top = self._column(
            left=300,
            role="target",
            side="decoder",
            tokens=TARGET_IN,
            blocks=("decoder self-attention", "cross-attention"),
        )
        self._memory(memory)
        self._head(top)

    def _column(
        self, left: float, role: str, side: str, tokens: str, blocks: tuple[str, ...]
    ) -> float:
        """Draw one stack and return the height at which it ends."""
        canvas, middle, width = self.canvas, left + 90, 180
        whole = side in self.lit
        shown = bool(self.lit & {"embeddings", side})
        canvas.text(middle, 506, tokens, role, size=14, bold=True)
        canvas.arrow((middle, 494), (middle, 480), role=role, lit=shown)
        canvas.box(left, 448, width, 32, "embeddings", role, lit=shown)
        position = "positions" in self.lit or whole
        canvas.box(left, 412, width, 28, "+ positions", role, lit=position)
        canvas.arrow((middle, 412), (middle, STACK), role=role, lit=position or whole)

        y = STACK
        steps = [*blocks, "feed-forward"]
        height = 76 * len(steps) + 28
        canvas.box(
            left - 22, y - height, width + 44, height, "", "ink", fill=0.03, lit=whole,
            dashed=True,
        )  # fmt: skip
        top = y - height + 13
        canvas.text(left - 15, top, side, size=13, anchor="start", lit=whole)
        right = left + width + 15
        canvas.text(right, top, "N layers", size=13, anchor="end", lit=whole)
        for step in steps:
            y = self._step(left, y - 8, step, role, whole)
        return y - 20

    def _step(
        self, left: float, bottom: float, step: str, role: str, whole: bool
    ) -> float:
        """Draw one sub-layer with its residual connection; return its upper edge."""
        canvas, middle, width = self.canvas, left + 90, 180
        lit = step in self.lit or whole
        norm = "add & norm" in self.lit or whole
        masked = "masks" in self.lit
        top = bottom - 38
        label = step.removeprefix("encoder ").removeprefix("decoder ")
        canvas.box(left, top, width, 34, label, role, lit=lit)
        if "attention" in step:
            self._mask(left + width - 26, top + 7, step, masked or lit, masked)
        canvas.box(left, top - 28, width, 22, "add & norm", "ink", fill=0.06, lit=norm,
                   size=13)  # fmt: skip
        canvas.arrow((middle, top), (middle, top - 6), role=role, head=False, lit=norm)
        side = left - 11 if step != "cross-attention" else left + width + 11
        edge = left if step != "cross-attention" else left + width
        around = ((middle, bottom + 2), (side, bottom + 2), (side, top - 17))
        canvas.arrow(
            *around, (edge, top - 17),
            role="ink", width=1.1, lit=norm,
        )  # fmt: skip
        canvas.arrow((middle, bottom + 4), (middle, top + 34), role=role, lit=lit)
        return top - 30

    def _mask(self, x: float, y: float, step: str, lit: bool, strong: bool) -> None:
        """Draw a mask of four by four cells: causal, or the last key hidden."""
        causal = step == "decoder self-attention"
        values = [[""] * 4 for _ in range(4)]
        shades = [
            [0.85 if (j <= i if causal else j < 3) else 0.0 for j in range(4)]
            for i in range(4)
        ]
        role = "highlight" if strong else "ink"
        self.canvas.grid(
            x, y, values, role, cell=(5.5, 5.5), shades=shades, lit=lit
        )  # fmt: skip

    def _memory(self, top: float) -> None:
        """Draw the memory's way from the encoder's end into every cross-attention."""
        lit = bool(self.lit & {"encoder", "decoder", "cross-attention"})
        y = STACK - 8 - 76 - 8 - 21  # the middle of the cross-attention's box
        points = ((134, top + 18), (134, top - 22), (256, top - 22), (256, y), (300, y))
        self.canvas.arrow(*points, role="memory", width=2.4, lit=lit)
        self.canvas.text(134, top - 36, "memory", "memory", bold=True, lit=lit)

    def _head(self, top: float) -> None:
        """Draw what turns the decoder's features into probabilities."""
        canvas, middle = self.canvas, 390
        lit = "lm_head" in self.lit
        last = "softmax" in self.lit
        canvas.arrow((middle, top + 18), (middle, top - 14), role="target", lit=lit)
        canvas.box(300, top - 46, 180, 32, "lm_head", "target", lit=lit)
        canvas.arrow((middle, top - 46), (middle, top - 58), role="target", lit=last)
        canvas.box(300, top - 90, 180, 32, "softmax", "target", lit=last)
        canvas.arrow((middle, top - 90), (middle, top - 106), role="target", lit=last)
        canvas.text(middle, top - 118, TARGET_OUT, "target", bold=True, lit=last)
