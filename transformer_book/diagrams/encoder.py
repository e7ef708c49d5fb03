"""A drawing of the chapter on the encoder."""

from itertools import pairwise

from transformer_book.diagrams.canvas import Canvas


def detour_diagram() -> Canvas:
    """Two layers: a message that may not go straight goes through a third word."""
    canvas = Canvas(520, 300)
    xs = {"Baseball": 126, "mit": 276, "Schläger": 426}
    rows = [270, 156, 42]  # embedded, after layer 1, after layer 2
    left, middle, right = xs.values()
    for level, y in enumerate(rows):
        for word, x in xs.items():
            knows = word == "Baseball" or level > (word == "Schläger")
            fill = 0.4 if knows else 0.03
            canvas.box(x - 50, y - 18, 100, 36, word, "source", size=14.5, fill=fill)
    for number, (below, above) in enumerate(pairwise(rows), start=1):
        start, end = below - 18, above + 20
        for x in xs.values():
            canvas.arrow((x, start), (x, end), lit=False)
        canvas.text(34, (below + above) / 2, f"layer {number}", bold=True)
        canvas.arrow((left + 50, start), (right - 50, end), dashed=True)
        crossed = start + 0.65 * (end - start)
        canvas.text(left + 180, crossed, "✕", size=18, bold=True)
        x = (left, middle)[number - 1] + 22
        canvas.arrow((x, start), (x + 106, end), role="source", width=2.6)
    return canvas
