"""The whole model as a drawing: click a box, see what goes in and what comes out.

Every number comes from one forward pass of a real model on one sentence pair. The
wiring is the paper's: post-norm layers, and the memory goes to every decoder layer.
"""

from itertools import groupby

import altair
from torch import Tensor

from transformer_book.charts import parts
from transformer_book.charts.model_flow import Box, model_boxes, record_flow
from transformer_book.charts.parts import VConcatChart, Words
from transformer_lib import Transformer
from transformer_lib.plots.palette import GRAY, HIGHLIGHT, LIGHT

Pair = tuple[Words, Words]
CENTER = {"source": 26, "target": 74}  # of each column of boxes, in percent
HALF, BYPASS, NAME, GUTTER = 18, 20.5, 24, 50  # from a center; memory line
WIDTH, ROW = 262, 28  # of the drawing and of one row of boxes, in pixels
LABEL = 52  # room for the name of a token, in pixels
SHADES = {"attention": 0.4, "feed-forward": 0.26}  # what a box does -> its opacity
COUNTED = {  # what rows and columns of an array stand for
    "source": "source tokens",
    "target": "target tokens",
    "feature": "features",
    "token": "vocabulary",
    "id": "the id",
}


def model_explorer(
    model: Transformer, src: Tensor, tgt_in: Tensor, tokens: Pair, vocabulary: Words
) -> VConcatChart:
    """Draw the model; a click on a box shows its shapes, and its numbers as a heat map.

    Args:
        model: post-norm.
        src: (1, src_len), ids.
        tgt_in: (1, tgt_len), ids.
        tokens: src_len and tgt_len names.
        vocabulary: tgt_vocab_size names.

    Raises:
        ValueError: another count of names, or a pre-norm model.
    """
    parts.require_names((src.size(1), tgt_in.size(1)), *tokens)
    logits_shape = tgt_in.size(1), model.config.tgt_vocab_size
    parts.require_names(logits_shape, tokens[1], vocabulary)
    flow = record_flow(model, src, tgt_in)
    names = {"source": tokens[0], "target": tokens[1], "token": vocabulary}
    boxes = model_boxes(len(model.encoder.layers), len(model.decoder.layers))
    rows, cards, axes = [], [], {}
    for box in boxes:
        inputs = [f"in: {k} {tuple(flow[n].shape)}" for k, n in box.inputs.items()]
        card = [box.name, *inputs, f"out: {tuple(flow[box.name].shape)}"]
        arrays = {"output": flow[box.name][0].reshape(len(names[box.side]), -1)}
        weights = flow.get(f"{box.name}, weights")
        if weights is not None:
            card.append(f"weights: {tuple(weights.shape)}")
            arrays |= {f"weights of head {h}": w for h, w in enumerate(weights[0])}
        for kind, array in arrays.items():
            of = f"{box.name}, {kind}"
            axes[of] = [box.side, *_columns(box, kind)]
            values = "; ".join(parts.join_numbers(line) for line in array)
            rows.append({"of": of, "values": values})
        cards.append(card + [" "] * (5 - len(card)))  # always as many lines
    kinds = [f"weights of head {head}" for head in range(model.config.n_heads)]
    params = [
        parts.fixed("cards", cards),
        parts.fixed("axes", axes),
        parts.fixed("counted", COUNTED),
        parts.fixed("names", {kind: list(given) for kind, given in names.items()}),
        parts.select("numbers", ["output", *kinds]),
        altair.param(name="card", expr="cards[box.q ? box.q[0] : 0]"),
        altair.param(name="shown", expr="card[0] + ', ' + numbers"),
        altair.param(name="axis", expr="axes[shown] || ['', '', 3]"),
    ]
    chart = VConcatChart(vconcat=[_drawing(boxes), _heat_map()], spacing=24)
    columns = [("of", "what"), ("values", "numbers, token by token")]
    return parts.finish(chart, rows, params, columns)


def _columns(box: Box, kind: str) -> tuple[str, int]:
    """Say what the columns of an array count, and how large its numbers get."""
    if kind != "output":
        return "source" if box.label == "cross-attention" else box.side, 1
    if box.name in ("lm_head", "softmax"):
        return "token", 1 if box.name == "softmax" else 3
    return "id" if box.name.endswith("ids") else "feature", 3


def _drawing(boxes: list[Box]) -> altair.LayerChart:
    """Boxes and arrows; the encoder left, the decoder right, computed upwards."""
    top = max(box.row for box in boxes) + 0.5
    view = altair.Chart(width=WIDTH, height=ROW * (top + 0.5)).encode(
        x=altair.X("x:Q", axis=None).scale(domain=[0, 100], nice=False),
        y=altair.Y("y:Q", axis=None).scale(domain=[-0.5, top], nice=False),
    )

    def of(rows: list[dict], **equal: str) -> altair.Chart:
        kept = [row for row in rows if row.items() >= equal.items()]
        return view.properties(data=altair.Data(values=kept))

    numbers, labels = [*range(len(boxes))], [box.name for box in boxes]
    names = altair.binding_select(options=numbers, labels=labels, name="box")
    on = "click[event.item && event.item.datum.label]"
    chosen = altair.selection_point("box", value=1, bind=names, on=on, fields=["q"])
    paths, heads = _wires(boxes)
    rectangles = of([_rectangle(q, box) for q, box in enumerate(boxes)])
    wires = []
    for kind, dash, style in (
        ("other", [1, 0], {"color": GRAY}),
        ("memory", [5, 4], {"style": "memory mark"}),
    ):
        lines = of(paths, kind=kind).mark_line(strokeDash=dash, **style)
        shape = {"shape": "triangle", "filled": True, "size": 36, "opacity": 1}
        tips = of(heads, kind=kind).mark_point(**shape, **style)
        turned = altair.Angle("turn:Q", scale=None)
        wires += [lines.encode(detail="line:N", order="i:Q"), tips.encode(angle=turned)]
    filled = rectangles.mark_rect(cursor="pointer", cornerRadius=4).encode(
        x=altair.X("left:Q", axis=None),
        x2="right:Q",
        y=altair.Y("low:Q", axis=None),
        y2="high:Q",
        color=altair.Color("fill:N", scale=None),
        stroke=altair.condition(chosen, altair.value(HIGHLIGHT), altair.value(GRAY)),
        strokeWidth=altair.condition(chosen, altair.value(3), altair.value(1)),
        tooltip=parts.tooltip("name"),
    )
    titles = of(_layer_titles(boxes)).mark_text(fontSize=11, angle=270)
    return altair.layer(
        *wires,
        filled.properties(name="boxes").add_params(chosen),
        rectangles.mark_text(fontSize=11).encode(text="label:N"),
        titles.encode(text="label:N"),
    )


def _rectangle(q: int, box: Box) -> dict[str, str | float]:
    """Return what is drawn of a box: its side's color, darker the more it computes."""
    x, y = CENTER[box.side], box.row
    share = next((s for word, s in SHADES.items() if word in box.label), 0.12)
    fill = LIGHT.roles[box.side] + f"{round(255 * share):02X}"
    edges = {"left": x - HALF, "right": x + HALF, "low": y - 0.35, "high": y + 0.35}
    told = {"q": q, "name": box.name, "label": box.label, "fill": fill}
    return {**told, "x": x, "y": y, **edges}


def _wires(boxes: list[Box]) -> tuple[list[dict], list[dict]]:
    """Return the points of all lines between boxes, and their arrowheads."""
    center = {box.name: (CENTER[box.side], box.row) for box in boxes}
    paths, heads = [], []

    def wire(*points: tuple[float, float], kind: str = "other") -> None:
        line = {"line": len(heads), "kind": kind}
        for i, (x, y) in enumerate(points):
            paths.append({**line, "i": i, "x": x, "y": y})
        (x, y), (end, top) = points[-2:]
        turn = 0 if top > y else 90 if end > x else 270
        heads.append({"kind": kind, "x": end, "y": top, "turn": turn})

    for box in boxes:
        x, y = center[box.name]
        for role, source in box.inputs.items():
            x0, y0 = center[source]
            if "memory" in role:  # up, over to the gutter, then into the box
                turn = y0 + 0.55
                path = (x0, y0 + 0.35), (x0, turn), (GUTTER, turn), (GUTTER, y)
                wire(*path, (x - HALF - 1, y), kind="memory")
            elif y - y0 == 1:
                wire((x, y0 + 0.35), (x, y - 0.37))
            else:  # past the sub-layer, on the outer side
                side = BYPASS if box.side == "target" else -BYPASS
                path = (x, y0 + 0.5), (x + side, y0 + 0.5), (x + side, y)
                wire(*path, (x + side * (HALF + 1) / BYPASS, y))
    return paths, heads


def _layer_titles(boxes: list[Box]) -> list[dict]:
    """Name each layer beside the middle of its boxes."""
    titles = []
    for layer, group in groupby(boxes, lambda box: box.name.rpartition(":")[0]):
        rows, (side, *_) = zip(*((box.row, box.side) for box in group), strict=True)
        x = CENTER[side] + (NAME if side == "target" else -NAME)
        label, y = f"{layer[:-2]} layer {layer[-1:]}", sum(rows) / len(rows)
        titles += [{"label": label, "y": y, "x": x}] if layer else []
    return titles


def _heat_map() -> altair.LayerChart:
    """Numbers of the chosen box: tokens down, columns across."""

    def label(which: int, index: str) -> str:
        kind = f"names[axis[{which}]]"
        return f"{kind} ? {kind}[{index}] : {index}"

    cells = altair.Chart(width=WIDTH, height=170).transform_filter("datum.of == shown")
    cells = parts.split_field(cells, "values", "; ", "line", "q")
    told = {"token": label(0, "datum.q"), "column": label(1, "datum.k")}
    cells = parts.split_numbers(cells, "line", "value").transform_calculate(**told)
    # Room for the longest label, so that nothing moves from one choice to the next.
    room = {"minExtent": LABEL, "labelLimit": LABEL, "ticks": False, "title": None}
    across, down = label(1, "datum.value"), label(0, "datum.value")
    cells = cells.encode(
        x=altair.X("k:O").axis(labelExpr=across, labelAngle=-90, **room),
        y=altair.Y("q:O").axis(labelExpr=down, **room),
    )
    bounds = [altair.ExprRef("-axis[2]"), altair.ExprRef("axis[2]")]
    color = altair.Color("value:Q", title="value").scale(
        domain=bounds, domainMid=0, range="diverging", interpolate="rgb", clamp=True
    )
    rectangles = cells.mark_rect(style="tile").encode(
        color=color.legend(orient="bottom", gradientLength=160),
        tooltip=parts.tooltip("token", "column", value=".3~f"),
    )
    ids = cells.transform_filter("axis[1] == 'id'").mark_text()
    below = (
        "axes[shown] ? ['shown: ' + shown, 'rows: ' + counted[axis[0]] + "
        "', columns: ' + counted[axis[1]]] : ['this box has no ' + numbers, ' ']"
    )
    lines = altair.ExprRef(f"split(join(card, '|') + '|' + join({below}, '|'), '|')")
    title = altair.Title(lines, anchor="start", offset=12)
    return altair.layer(rectangles, ids.encode(text="number:N"), title=title)
