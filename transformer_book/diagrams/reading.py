"""Drawings of the chapter on reading attention."""

from collections.abc import Collection

from transformer_book.diagrams.canvas import Canvas, Words

Links = Collection[tuple[int, int]]


def links_diagram(source: Words, target: Words, found: Links, gold: Links) -> Canvas:
    """Two sentences, one above the other, and the links between their words.

    Args:
        source: words of the upper row.
        target: words of the lower row.
        found: links (source word, target word); those not in gold are crossed.
        gold: links that should be there; those not in found are dashed.
    """
    canvas, rows = Canvas(520, 210), []
    for y, name, words in ((20, "German", source), (130, "English", target)):
        role = "source" if words is source else "target"
        canvas.text(4, y + 14, name, role, anchor="start", bold=True)
        rows.append(canvas.row(78, y, words, role, width=442 / len(words) - 8))
    above, below = rows
    right = {"role": "memory", "head": False, "width": 3}
    missed = {"role": "memory", "head": False, "dashed": True}
    for i, j in sorted({*found, *gold}):
        ends = (above[i], 48), (below[j], 130)
        if (i, j) not in gold:
            canvas.arrow(*ends, role="highlight", head=False, width=2)
            canvas.text((above[i] + below[j]) / 2, 89, "✕", "highlight", bold=True)
        else:
            canvas.arrow(*ends, **(right if (i, j) in found else missed))
    canvas.arrow((20, 192), (54, 192), **right)
    canvas.text(62, 192, "found and right", anchor="start")
    canvas.arrow((220, 192), (254, 192), **missed)
    canvas.text(262, 192, "missed", anchor="start")
    return canvas
