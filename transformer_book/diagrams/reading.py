"""Drawings of the chapter on reading attention."""

from collections.abc import Collection, Sequence

from transformer_book.diagrams.canvas import Canvas

Link = tuple[int, int]


def links_diagram(
    source: Sequence[str],
    target: Sequence[str],
    found: Collection[Link],
    gold: Collection[Link],
) -> Canvas:
    """Two sentences, one above the other, and the links between their words.

    Args:
        source: words of the upper row.
        target: words of the lower row.
        found: links (source word, target word); those not in gold are crossed.
        gold: links that should be there; those not in found are dashed.
    """
    canvas = Canvas(520, 210)
    above = _row(canvas, 20, "German", source, "source")
    below = _row(canvas, 130, "English", target, "target")
    for i, j in sorted(set(found) | set(gold)):
        start, end = (above[i], 48), (below[j], 130)
        if (i, j) not in gold:
            canvas.arrow(start, end, role="highlight", head=False, width=2)
            canvas.text((start[0] + end[0]) / 2, 89, "✕", "highlight", bold=True)
        else:
            missed = (i, j) not in found
            canvas.arrow(start, end, role="memory", head=False, dashed=missed,
                         width=1.6 if missed else 3)  # fmt: skip
    canvas.arrow((20, 192), (54, 192), role="memory", head=False, width=3)
    canvas.text(62, 192, "found and right", anchor="start")
    canvas.arrow((220, 192), (254, 192), role="memory", head=False, dashed=True)
    canvas.text(262, 192, "missed", anchor="start")
    return canvas


def _row(
    canvas: Canvas, y: float, name: str, words: Sequence[str], role: str
) -> list[float]:
    """Draw a name and words in boxes across the canvas; return each word's middle."""
    canvas.text(4, y + 14, name, role, anchor="start", bold=True)
    step = (canvas.width - 78) / len(words)
    middles = [74 + (n + 0.5) * step for n in range(len(words))]
    for x, word in zip(middles, words, strict=True):
        canvas.box(x - step / 2 + 4, y, step - 8, 28, word, role, size=14)
    return middles


def two_names_diagram(tokens: Sequence[str], mark: int) -> Canvas:
    """Each row of a decoder's map reads one token and predicts the next.

    Args:
        tokens: the target with its begin and end token; at most five.
        mark: the position in tokens of the word to follow.
    """
    n_rows = len(tokens) - 1
    canvas = Canvas(520, 60 + 44 * n_rows)
    canvas.text(90, 20, "reads", bold=True)
    canvas.text(250, 20, "row of the map", bold=True)
    canvas.text(420, 20, "predicts", bold=True)
    for row, (read, predicted) in enumerate(zip(tokens, tokens[1:], strict=False)):
        y = 40 + 44 * row
        for x, number, word in ((40, row, read), (370, row + 1, predicted)):
            role = "highlight" if number == mark else "target"
            canvas.box(x, y, 100, 30, word, role, fill=0.4 if number == mark else 0.12)
        canvas.grid(190, y + 3, [[""] * 5], "memory", cell=(24, 24))
        canvas.arrow((142, y + 15), (188, y + 15))
        canvas.arrow((312, y + 15), (368, y + 15))
    return canvas


def map_size_diagram(n_layers: int, n_heads: int) -> Canvas:
    """Where the maps of a model are: three attentions a layer, as many maps as heads.

    Args:
        n_layers: of each side.
        n_heads: of each attention.
    """
    canvas = Canvas(520, 56 + 62 * n_layers)
    blocks = [("encoder self", "source"), ("decoder self", "target"),
              ("cross", "memory")]  # fmt: skip
    for column, (name, role) in enumerate(blocks):
        left = 70 + 150 * column
        canvas.text(left + 68, 22, name, role, bold=True)
        for layer in range(n_layers):
            y = 44 + 62 * (n_layers - 1 - layer)
            cells = [[str(h) for h in range(n_heads // 2)],
                     [str(h) for h in range(n_heads // 2, n_heads)]]  # fmt: skip
            canvas.grid(left, y, cells, role, cell=(272 / n_heads, 24), size=12)
    for layer in range(n_layers):
        y = 44 + 62 * (n_layers - 1 - layer) + 24
        canvas.text(10, y, f"layer {layer}", anchor="start")
    return canvas
