"""Drawings of the chapter on quality."""

from collections import Counter

from transformer_book.diagrams.canvas import Canvas


def comparison_diagram() -> Canvas:
    """Two systems translate the same test; references score what they write."""
    canvas = Canvas(520, 270)
    canvas.box(10, 100, 84, 70, "test", "source", sub="German")
    for y, name in ((10, "system A"), (194, "system B")):
        middle = y + 33
        start = (52, 100) if y < 100 else (52, 170)
        canvas.arrow(start, (52, middle), (120, middle), role="source")
        canvas.box(122, y, 96, 66, name, sub="a model")
        canvas.arrow((218, middle), (246, middle), role="target")
        canvas.box(248, y, 116, 66, "translations", "target", sub="English", size=14)
        canvas.arrow((364, middle), (396, middle), role="target")
        canvas.box(398, y, 112, 66, "score", "memory", sub="how sure?")
    canvas.box(236, 104, 140, 62, "references", "target", sub="written by people",
               fill=0.03, dashed=True)  # fmt: skip
    canvas.arrow((376, 120), (420, 120), (420, 78), role="target", dashed=True)
    canvas.arrow((376, 150), (420, 150), (420, 192), role="target", dashed=True)
    canvas.arrow((470, 76), (470, 120), role="memory")
    canvas.arrow((470, 194), (470, 152), role="memory")
    canvas.text(470, 136, "A − B?", "memory", bold=True)
    return canvas


def clipping_diagram(hypothesis: str, reference: str) -> Canvas:
    """Each word of a translation takes one of the reference, as long as one is left."""
    canvas = Canvas(520, 190)
    ours, theirs = hypothesis.split(), reference.split()
    canvas.text(10, 16, "translation", "target", anchor="start", bold=True)
    canvas.text(10, 174, "reference", "memory", anchor="start", bold=True)
    spots = _chips(canvas, 38, _matched(ours, theirs), "target")
    wanted = _chips(canvas, 126, [(word, True) for word in theirs], "memory")
    free = {}
    for word, x in zip(theirs, wanted, strict=True):
        free.setdefault(word, []).append(x)
    for word, x in zip(ours, spots, strict=True):
        if free.get(word):
            canvas.arrow((x, 64), (free[word].pop(0), 124), role="memory")
        else:
            canvas.text(x, 78, "✕", size=16, bold=True)
    return canvas


def _matched(ours: list[str], theirs: list[str]) -> list[tuple[str, bool]]:
    """Say of each word whether the reference still has one to match it."""
    left, result = Counter(theirs), []
    for word in ours:
        result.append((word, left[word] > 0))
        left[word] -= 1
    return result


def pairing_diagram() -> Canvas:
    """One draw of sentence numbers scores both systems."""
    canvas = Canvas(520, 236)
    draws = [3, 1, 4, 1, 5]
    canvas.text(10, 22, "one draw", anchor="start", bold=True)
    canvas.grid(116, 8, [[str(n) for n in draws]], cell=(44, 28), size=15)
    for y, name, role in ((84, "system A", "source"), (180, "system B", "target")):
        canvas.text(10, y + 17, name, role, anchor="start", bold=True)
        cells = [[f"{name[-1]}{n}" for n in draws]]
        canvas.grid(116, y, cells, role, cell=(44, 34), size=15)
        canvas.arrow((336, y + 17), (368, y + 17), role=role)
        canvas.box(370, y, 70, 34, "BLEU", role)
    for i in range(5):
        canvas.arrow((138 + 44 * i, 36), (138 + 44 * i, 82), lit=False)
        canvas.arrow((138 + 44 * i, 118), (138 + 44 * i, 178), lit=False)
    canvas.arrow((405, 118), (405, 136), role="memory")
    canvas.arrow((405, 180), (405, 160), role="memory")
    canvas.text(405, 148, "A − B", "memory", bold=True)
    canvas.text(452, 148, "× 1,000", "memory", anchor="start")
    return canvas


def _chips(
    canvas: Canvas, y: float, words: list[tuple[str, bool]], role: str
) -> list[float]:
    widths = [8.2 * len(word) + 12 for word, _ in words]
    x = (520 - sum(widths) - 5 * (len(words) - 1)) / 2
    middles = []
    for (word, lit), width in zip(words, widths, strict=True):
        canvas.box(x, y, width, 26, word, role, size=14, lit=lit)
        middles.append(x + width / 2)
        x += width + 5
    return middles
