"""Diagrams of decoding step by step: repeated work, one step, two caches."""

from collections.abc import Sequence

from transformer_book.diagrams.canvas import Canvas, Table
from transformer_book.diagrams.decoder import keys_and_values

READS = ["<bos>", "A", "dog", "is", "playing", "in", "the", "snow", "."]
# How the step that reads "the" weighs what was read, in the pencil model's head 2.
PENCIL = {"<bos>": 0.06, "a": 0.01, "dog": 0.51, "plays": 0.41, "in": 0.01, "the": 0.0}


def repeated_rows() -> Canvas:
    """Draw which rows each step computes, and which of them are new."""
    canvas = Canvas(520, 279)
    for i, word in enumerate(READS):
        y = 46 + 25 * i
        canvas.text(91 + 50 * i, 32, word, "target")
        canvas.text(58, y + 12.5, f"step {i + 1}", anchor="end")
        style = {"cell": (50, 25), "size": 14}
        canvas.grid(66, y, [["again"] * i], shades=0.05, **style)
        canvas.grid(66 + 50 * i, y, [["new"]], "highlight", shades=0.55, **style)
    return canvas


def one_step() -> Canvas:
    """Draw the query of the newest token, and the keys and values it meets."""
    canvas = Canvas(520, 372)
    canvas.box(8, 66, 448, 30, "weighted sum of the values", "value")
    canvas.arrow((232, 66), (232, 38), role="value")
    canvas.text(232, 22, "output of the newest position", bold=True)
    canvas.box(474, 146, 40, 30, "q", "query")
    canvas.arrow((456, 294), (494, 294), (494, 178), role="query")
    keys_and_values(canvas, (8, 146), 76, PENCIL, "target", n_kept=5)
    canvas.arrow((474, 161), (425, 161), role="query")
    canvas.text(194, 328, "read earlier:", bold=True)
    canvas.text(194, 348, "keys and values come from the cache")
    canvas.text(428, 328, "new", bold=True)
    return canvas


def two_caches() -> Canvas:
    """Draw who stores keys and values in step 3 of a decoder layer, and where."""
    canvas = Canvas(520, 296)
    canvas.text(90, 280, "one new row", "target", bold=True)
    canvas.arrow((90, 266), (90, 8), role="target")
    for y, name, owner, role, kept, new in (
        (212, "self-attention", "cache", "target", 2, 1),
        (118, "cross-attention", "cache.source", "memory", 5, 0),
    ):
        canvas.box(10, y, 160, 36, name, "target", solid=True)
        canvas.arrow((170, y + 10), (314, y + 10), role="key")
        canvas.arrow((314, y + 26), (170, y + 26), role="value")
        canvas.text(242, y - 4, "update", mono=True)
        canvas.text(242, y + 42, "all keys, values", size=13)
        canvas.text(322, y - 14, owner, role, anchor="start", mono=True, bold=True)
        shades = [[0.1] * kept + [0.6] * new]
        canvas.grid(322, y, [[""] * (kept + new)], role, cell=(30, 36), shades=shades)
        canvas.text(322, y + 50, f"{kept} kept, {new} new", role, anchor="start")
    canvas.box(10, 34, 160, 36, "feed-forward", "target", solid=True)
    canvas.text(196, 52, "no cache: each row by itself", anchor="start")
    return canvas


def reserved_buffer() -> Canvas:
    """Draw the keys and values of one attention, with the space that is still free."""
    canvas = Canvas(522, 246)
    canvas.titles(18, {243: "kept", 393: "new", 468: "free"})
    shades = [[0.15] * 5 + [0.6, 0.0, 0.0]] * 2
    for y, name, role in ((36, "keys", "key"), (106, "values", "value")):
        canvas.text(4, y + 28, name, role, anchor="start", bold=True)
        canvas.grid(118, y, [[""] * 8] * 2, role, cell=(50, 28), shades=shades,
                    rows=["row 0", "row 1"], size=14)  # fmt: skip
    canvas.arrow((393, 196), (393, 168), role="highlight")
    canvas.text(393, 210, "position = length")
    canvas.text(4, 210, "capacity 8; when it's full,", anchor="start")
    canvas.text(4, 228, "the buffer is doubled", anchor="start")
    return canvas


def moved_rows(before: Sequence[str], parents: Table) -> Canvas:
    """Draw which row of a cache each new row is copied from.

    Args:
        before: what each row holds.
        parents: for each sentence, the old beam that each new beam continues.
    """
    n_beams = len(parents[0])
    canvas = Canvas(520, 30 + 116 * len(parents))
    canvas.titles(16, {146: "held before", 392: "held after reorder"})
    for i, chosen in enumerate(parents):
        top = 58 + 116 * i
        canvas.text(6, top - 14, f"sentence {i}", anchor="start", bold=True)
        for beam, parent in enumerate(chosen):
            row, y = i * n_beams + beam, top + 42 * beam
            canvas.text(6, y + 8, f"beam {beam}", size=13, anchor="start")
            canvas.text(6, y + 25, f"row {row}", size=13, anchor="start")
            box = 146, 32
            kept = beam in chosen
            canvas.box(74, y, *box, before[row], "target", size=14, lit=kept)
            canvas.arrow((220, top + 42 * parent + 16), (320, y + 16), role="target")
            copied = before[i * n_beams + int(parent)]
            canvas.box(320, y, *box, copied, "target", size=14)
            canvas.text(474, y + 16, f"row {row}", size=13, anchor="start")
    return canvas
