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
