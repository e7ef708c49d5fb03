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
    canvas, rows = Canvas(520, 210), []
    for y, name, words, role in (
        (20, "German", source, "source"),
        (130, "English", target, "target"),
    ):
        canvas.text(4, y + 14, name, role, anchor="start", bold=True)
        rows.append(canvas.row(78, y, words, role, width=442 / len(words) - 8))
    above, below = rows
    for i, j in sorted({*found, *gold}):
        ends = (above[i], 48), (below[j], 130)
        if (i, j) not in gold:
            canvas.arrow(*ends, role="highlight", head=False, width=2)
            canvas.text((above[i] + below[j]) / 2, 89, "✕", "highlight", bold=True)
        elif (i, j) in found:
            canvas.arrow(*ends, role="memory", head=False, width=3)
        else:
            canvas.arrow(*ends, role="memory", head=False, dashed=True)
    canvas.arrow((20, 192), (54, 192), role="memory", head=False, width=3)
    canvas.text(62, 192, "found and right", anchor="start")
    canvas.arrow((220, 192), (254, 192), role="memory", head=False, dashed=True)
    canvas.text(262, 192, "missed", anchor="start")
    return canvas


def two_names_diagram(tokens: Sequence[str], mark: int) -> Canvas:
    """Each row of a decoder's map reads one token and predicts the next.

    Args:
        tokens: the target with its begin and end token; at most five.
        mark: the position in tokens of the word to follow.
    """
    n_rows = len(tokens) - 1
    canvas = Canvas(520, 60 + 44 * n_rows)
    canvas.titles(20, {90: "reads", 250: "row of the map", 420: "predicts"})
    for row in range(n_rows):
        y = 40 + 44 * row
        for x, number in ((40, row), (370, row + 1)):
            role, fill = ("highlight", 0.4) if number == mark else ("target", 0.12)
            canvas.box(x, y, 100, 30, tokens[number], role, fill=fill)
        canvas.blank(190, y + 3, 1, 5, "memory")
        canvas.arrow((142, y + 15), (188, y + 15))
        canvas.arrow((312, y + 15), (368, y + 15))
    return canvas


def map_size_diagram(n_layers: int, n_heads: int) -> Canvas:
    """Where the maps of a model are: three attentions a layer, as many maps as heads.

    Args:
        n_layers: of each side.
        n_heads: of each attention.
    """
    canvas, half = Canvas(520, 56 + 62 * n_layers), n_heads // 2
    heads = [[str(h) for h in range(half)], [str(h) for h in range(half, n_heads)]]
    blocks = (70, "encoder self", "source"), (220, "decoder self", "target")
    for left, name, role in (*blocks, (370, "cross", "memory")):
        canvas.text(left + 68, 22, name, role, bold=True)
        for layer in range(n_layers):
            y = 44 + 62 * (n_layers - 1 - layer)
            canvas.grid(left, y, heads, role, cell=(272 / n_heads, 24), size=12)
            if left == 70:
                canvas.text(10, y + 24, f"layer {layer}", anchor="start")
    return canvas
