"""Drawings of the chapter on quality."""

from transformer_book.diagrams.canvas import Canvas


def comparison_diagram() -> Canvas:
    """Two systems translate the same test; references score what they write."""
    canvas = Canvas(520, 270)
    canvas.box(10, 100, 84, 70, "test", "source", sub="German")
    style = {"fill": 0.03, "dashed": True, "sub": "written by people"}
    canvas.box(236, 104, 140, 62, "references", "target", **style)
    canvas.text(470, 136, "A − B?", "memory", bold=True)
    # Of each system: height of its boxes, edges of what it comes from and goes to.
    for name, y, test, reference, score, ends in (
        ("system A", 10, 100, 120, 78, (76, 120)),
        ("system B", 194, 170, 150, 192, (194, 152)),
    ):
        middle = y + 33
        canvas.box(122, y, 96, 66, name, sub="a model")
        canvas.box(248, y, 116, 66, "translations", "target", sub="English", size=14)
        canvas.box(398, y, 112, 66, "score", "memory", sub="how sure?")
        canvas.arrow((52, test), (52, middle), (120, middle), role="source")
        canvas.arrow((218, middle), (246, middle), role="target")
        canvas.arrow((364, middle), (396, middle), role="target")
        way = (376, reference), (420, reference), (420, score)
        canvas.arrow(*way, role="target", dashed=True)
        canvas.arrow((470, ends[0]), (470, ends[1]), role="memory")
    return canvas


def clipping_diagram(hypothesis: str, reference: str) -> Canvas:
    """Each word of a translation takes one of the reference, as long as one is left."""
    canvas = Canvas(520, 190)
    canvas.text(10, 16, "translation", "target", anchor="start", bold=True)
    canvas.text(10, 174, "reference", "memory", anchor="start", bold=True)
    free = {}  # word -> where the reference has it
    theirs = reference.split()
    spots = canvas.row(_left(theirs), 126, theirs, "memory", gap=5, height=26)
    for word, x in zip(theirs, spots, strict=True):
        free.setdefault(word, []).append(x)
    x = _left(hypothesis.split())
    for word in hypothesis.split():
        found = free.get(word, [])
        [middle] = canvas.row(x, 38, [word], "target", height=26, lit=bool(found))
        if found:
            canvas.arrow((middle, 64), (found.pop(0), 124), role="memory")
        else:
            canvas.text(middle, 78, "✕", size=16, bold=True)
        x = 2 * middle - x + 5
    return canvas


def _left(words: list[str]) -> float:
    """Return where a row of words begins that stands in the middle."""
    return 262.5 - sum(4.13 * len(word) + 8.5 for word in words)


def pairing_diagram() -> Canvas:
    """One draw of sentence numbers scores both systems."""
    canvas, draws = Canvas(520, 236), "31415"
    canvas.text(10, 22, "one draw", anchor="start", bold=True)
    canvas.grid(116, 8, [draws], cell=(44, 28), size=15)
    for y, name, role in ((84, "system A", "source"), (180, "system B", "target")):
        canvas.text(10, y + 17, name, role, anchor="start", bold=True)
        cells = [[f"{name[-1]}{n}" for n in draws]]
        canvas.grid(116, y, cells, role, cell=(44, 34), size=15)
        canvas.arrow((336, y + 17), (368, y + 17), role=role)
        canvas.box(370, y, 70, 34, "BLEU", role)
    for x in range(138, 358, 44):
        canvas.arrow((x, 36), (x, 82), lit=False)
        canvas.arrow((x, 118), (x, 178), lit=False)
    canvas.arrow((405, 118), (405, 136), role="memory")
    canvas.arrow((405, 180), (405, 160), role="memory")
    canvas.text(405, 148, "A − B", "memory", bold=True)
    canvas.text(452, 148, "× 1,000", "memory", anchor="start")
    return canvas
