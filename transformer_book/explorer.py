"""The pencil model as one picture: each box with its shapes, numbers and code.

The picture is the book's map. What is told of a box comes from one forward pass, and
its code is read from the source of the class that computes it.
"""

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from html import escape

from torch import Tensor

from transformer_book import pencil
from transformer_book.charts.model_flow import Box, model_boxes, record_flow
from transformer_book.diagrams.canvas import (
    Canvas,
    display_bundle,
    require_alt,
    still,
    written,
)
from transformer_book.diagrams.model_map import model_map
from transformer_lib import (
    DecoderLayer,
    Embeddings,
    EncoderLayer,
    FeedForward,
    Transformer,
)
from transformer_lib.model.layers import SublayerConnection

MIME = "application/vnd.transformer-book.explorer+html"
LENGTH = {"source": "src_len", "target": "tgt_len"}
LEFT, RIGHT = 20, 504  # where the map begins and ends: a phone has no room for more
BEST = 3  # tokens shown of each position's scores

# What a box does, and the class or function and the part of the line that does it.
TOLD: dict[str, tuple[str, Callable, str]] = {
    "ids": (
        "Each word becomes its number in the vocabulary.",
        pencil.ids,
        "torch.tensor",
    ),
    "embeddings": (
        "Each id picks its row of the token matrix, multiplied by √d_model.",
        Embeddings,
        "self.scale * self.tokens",
    ),
    "positions": (
        "Each vector gets the sines and cosines of its position added.",
        Embeddings,
        "x + self.positions",
    ),
    "encoder: self-attention": (
        "Every source token looks at all source tokens.",
        EncoderLayer,
        "self.self_attn(",
    ),
    "decoder: self-attention": (
        "Every target token looks at itself and at those before it.",
        DecoderLayer,
        "self.self_attn(",
    ),
    "decoder: cross-attention": (
        "Every target token looks at the memory, which is the source.",
        DecoderLayer,
        "self.cross_attn(",
    ),
    "feed-forward": (
        "A small network works on each position by itself.",
        FeedForward,
        "self.contract(",
    ),
    "add & norm": (
        "The sub-layer's result is added to its input, and the sum is normalized.",
        SublayerConnection,
        "self.norm(x + ",
    ),
    "lm_head": (
        "Each position's features are compared with the vector of every token.",
        Transformer,
        "self.lm_head(",
    ),
    "softmax": (
        "The logits of a position become probabilities.",
        record_flow,
        "softmax(dim=-1)",
    ),
}


@dataclass(frozen=True)
class Part:
    """What is told of one box of the map.

    Attributes:
        name: as in `Canvas.places` of the map.
        side: "source" or "target", whose tokens are the rows of the output.
        does: one sentence.
        shapes: "in" or "out", what it is, its shape in words and in numbers.
        output: (length, width), or (length,) for ids.
        weights: (n_heads, q_len, k_len) of an attention, else None.
        n_parameters: of its module.
        shared: its parameters are those of `lm_head`, too.
        code: its line.
        origin: the class or function that has the line.
    """

    name: str
    side: str
    does: str
    shapes: list[tuple[str, str, str, tuple[int, ...]]]
    output: Tensor
    weights: Tensor | None
    n_parameters: int
    shared: bool
    code: str
    origin: str

    @property
    def anchor(self) -> str:
        """The part of an address that leads to this box."""
        letters = "".join(c if c.isalnum() else " " for c in self.name.lower())
        return "box-" + "-".join(letters.split())


def model_parts() -> list[Part]:
    """Run the pencil model on its sentence; tell of each box, in computing order."""
    model, flow = pencil.model(), pencil.record()
    parts = []
    for box in model_boxes(1, 1):
        if box.label != "embeddings":
            parts.append(_part(model, flow, box))
            continue
        embeddings = model.get_submodule(box.part)
        ids, tokens = f"{box.side} ids", f"{box.side} tokens"
        flow[tokens] = (embeddings.scale * embeddings.tokens(flow[ids])).detach()
        for label, name, part, read in (
            ("embeddings", tokens, f"{box.part}.tokens", {"ids": ids}),
            ("positions", box.name, f"{box.part}.positions", {"x": tokens}),
        ):
            one = Box(name, label, part, box.side, read)
            parts.append(_part(model, flow, one, f"{box.side} {label}"))
    return parts


def _part(model: Transformer, flow: dict, box: Box, name: str = "") -> Part:
    name = name or box.name.replace(" 0:", ":")
    keys = name, box.label.removeprefix(f"{box.side} "), box.label
    does, origin, piece = next(TOLD[key] for key in keys if key in TOLD)
    shapes = [
        ("in", role, *_shape(model, flow[given], _side(given), given))
        for role, given in box.inputs.items()
    ]
    shapes.append(("out", "", *_shape(model, flow[box.name], box.side, box.name)))
    weights = flow.get(f"{box.name}, weights")
    if weights is not None:
        key = "source" if "cross" in name else box.side
        words = f"(batch, n_heads, {LENGTH[box.side]}, {LENGTH[key]})"
        shapes.append(("out", "weights", words, (1, *weights.shape)))
    parameters = list(model.get_submodule(box.part).parameters()) if box.part else []
    return Part(
        name=name,
        side=box.side,
        does=does,
        shapes=shapes,
        output=flow[box.name],
        weights=weights,
        n_parameters=sum(parameter.numel() for parameter in parameters),
        shared=any(parameter is model.lm_head.weight for parameter in parameters),
        code=code_line(origin, piece),
        origin=origin.__qualname__,
    )


def _side(name: str) -> str:
    return "source" if name.startswith(("source", "encoder")) else "target"


def _shape(
    model: Transformer, value: Tensor, side: str, name: str
) -> tuple[str, tuple[int, ...]]:
    """Return the shape in words and in numbers, both with the batch."""
    sizes = ["batch", LENGTH[side]]
    if value.dim() == 2:
        wide = name in ("lm_head", "softmax")
        sizes.append("tgt_vocab_size" if wide else "d_model")
        assert value.size(1) == getattr(model.config, sizes[-1])
    return f"({', '.join(sizes)})", (1, *value.shape)


def code_line(origin: Callable, piece: str) -> str:
    """Return the shortest statement in the source of a class that has this piece.

    Raises:
        ValueError: there is none.
    """
    source = textwrap.dedent(inspect.getsource(origin))
    found = [
        ast.get_source_segment(source, node, padded=True)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.stmt)
    ]
    lines = [line for line in found if line and piece in line]
    if not lines:
        raise ValueError(f"{origin.__qualname__} has no line with {piece!r}")
    return textwrap.dedent(min(lines, key=len))


# --- the picture and the texts --------------------------------------------------------


def show_explorer(alt: str) -> None:
    """Display the model with all that is told of its boxes; a still shows the map.

    Args:
        alt: what the picture shows, for whoever can't see it.

    Raises:
        ValueError: alt is empty.
    """
    require_alt(alt)
    html, svg = explorer(alt), _map().svg(alt)
    bundle = {MIME: html, "text/plain": alt, **still(svg)}
    if "text/html" in bundle:
        bundle["text/html"] = html
    display_bundle(bundle)


def explorer(alt: str) -> str:
    """Return the map with a link on each box, and what is told of the boxes."""
    canvas, parts = _map(), model_parts()
    width = RIGHT - LEFT
    whole = f'viewBox="0 0 {canvas.width} {canvas.height}" width="{canvas.width}"'
    cut = f'viewBox="{LEFT} 0 {width} {canvas.height}" width="{width}"'
    links = []
    for part in parts:
        x, y, wide, high = canvas.places[part.name]
        sizes = {
            "left": (x - LEFT) / width,
            "top": y / canvas.height,
            "width": wide / width,
            "height": high / canvas.height,
        }
        style = ";".join(f"{name}:{share:.2%}" for name, share in sizes.items())
        label = escape(part.name)
        links.append(
            f'<a href="#{part.anchor}" aria-label="{label}" style="{style}"></a>'
        )
    told = "\n".join(_details(part) for part in parts)
    return (
        f'<div class="explorer">\n<div class="explorer-map">'
        f"{canvas.svg(alt).replace(whole, cut)}\n" + "\n".join(links) + "</div>\n"
        f'<div class="explorer-parts" aria-live="polite">\n{told}\n</div>\n</div>'
    )


def _map() -> Canvas:
    return model_map(
        source=pencil.SOURCE,
        target_in=f"<bos> {pencil.TARGET}",
        target_out=f"{pencil.TARGET} <eos>",
    )


def _details(part: Part) -> str:
    shapes = "".join(
        f"<li>{way}: {escape(role)} <code>{words}</code> = {shape}</li>"
        for way, role, words, shape in part.shapes
    )
    count = f"{part.n_parameters or 'no'} parameters"
    if part.shared:
        count += (
            ": the token matrix, which source, target and <code>lm_head</code> share"
        )
    numbers = [_output(part)]
    if part.weights is not None:
        keys = _tokens("source" if "cross" in part.name else part.side)
        for head, weights in zip(("first", "second"), part.weights, strict=True):
            title = f"weights of the {head} head (rows look at columns)"
            numbers.append(_table(title, part.side, keys, weights, 2))
    return (
        f"<details><summary>{escape(part.name)}</summary>\n"
        f'<div class="explorer-part {part.side}" id="{part.anchor}">'
        f"<p>{part.does}</p>\n<ul>{shapes}<li>{count}</li></ul>\n"
        f"<pre><code>{escape(part.code)}</code></pre>"
        f'<p class="explorer-origin">from <code>{part.origin}</code></p>\n'
        + "\n".join(numbers)
        + "</div></details>"
    )


def _output(part: Part) -> str:
    if part.output.dim() == 1:
        return _table("output", part.side, [], part.output[:, None], 0)
    if part.name not in ("lm_head", "softmax"):
        return _table("output", part.side, [], part.output, 2)
    best = part.output.topk(BEST)
    words = [[pencil.WORDS[i] for i in row] for row in best.indices.tolist()]
    title = f"the {BEST} highest of {part.output.size(1)} at each position"
    return _table(title, part.side, [], best.values, 2, words)


def _tokens(side: str) -> list[str]:
    text = pencil.SOURCE if side == "source" else f"<bos> {pencil.TARGET}"
    return text.split()


def _table(
    title: str,
    side: str,
    columns: Iterable[str],
    values: Tensor,
    decimals: int,
    words: list[list[str]] | None = None,
) -> str:
    """Return numbers as a heat map: a row for each token, its color for their size."""
    largest = values.abs().max().item()
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in columns)
    head = f"<tr><td></td>{head}</tr>" * bool(head)
    rows = []
    for i, (token, row) in enumerate(zip(_tokens(side), values.tolist(), strict=True)):
        cells = ""
        for j, value in enumerate(row):
            word = f"{escape(words[i][j])} " if words else ""
            sign = ' class="below"' * (value < 0)
            share = abs(value) / largest if decimals else 0
            cells += (
                f'<td{sign} style="--share:{share:.2f}">'
                f"{word}{written(round(value, decimals) + 0.0, decimals)}</td>"
            )
        rows.append(f'<tr><th scope="row">{escape(token)}</th>{cells}</tr>')
    return (
        f'<div class="explorer-numbers"><table><caption>{title}</caption>\n'
        f"{head}{''.join(rows)}</table></div>"
    )
