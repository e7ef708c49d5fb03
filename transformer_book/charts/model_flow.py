"""The boxes of the whole model, and what flows between them in one forward pass."""

from contextlib import ExitStack
from dataclasses import dataclass

import torch
from torch import Tensor

from transformer_lib import Transformer, record_attention
from transformer_lib.generation import without_dropout


@dataclass(frozen=True)
class Box:
    """One step of the model.

    Attributes:
        name: unique; also the name of its output.
        label: what it does, without the layer it is in.
        part: the module's name in the model; "" for ids and softmax.
        side: "source" or "target", whose tokens are the rows of the output.
        inputs: role -> name of the box it comes from; at most two.
    """

    name: str
    label: str
    part: str
    side: str
    inputs: dict[str, str]


def model_boxes(n_encoder_layers: int, n_decoder_layers: int) -> list[Box]:
    """Return the boxes of a post-norm Transformer, in the order of computation."""
    boxes: list[Box] = []

    def add(name: str, label: str, part: str, side: str, inputs: dict) -> str:
        boxes.append(Box(name, label, part, side, inputs))
        return name

    def stack(side: str, short: str, name: str, n_layers: int, memory: str) -> str:
        x = add(f"{side} ids", f"{side} ids", "", side, {})
        x = add(
            f"{side} embeddings", "embeddings", f"{short}_embeddings", side, {"ids": x}
        )
        for number in range(n_layers):
            steps = {"self-attention": ("self_attn", "query, key, value")}
            if memory:
                steps["cross-attention"] = ("cross_attn", "query")
            steps["feed-forward"] = ("feed_forward", "x")
            for label, (part, role) in steps.items():
                inputs = {role: x}
                if label == "cross-attention":
                    inputs["key, value (memory)"] = memory
                layer, part = f"{name} {number}", f"{name}.layers.{number}.{part}"
                out = add(f"{layer}: {label}", label, part, side, inputs)
                title = f"{layer}: add & norm after {label}"
                inputs = {"x": x, f"output of {label}": out}
                x = add(title, "add & norm", f"{part}_connection", side, inputs)
        return x

    memory = stack("source", "src", "encoder", n_encoder_layers, "")
    features = stack("target", "tgt", "decoder", n_decoder_layers, memory)
    logits = add("lm_head", "lm_head", "lm_head", "target", {"features": features})
    add("softmax", "softmax", "", "target", {"logits": logits})
    return boxes


@torch.no_grad()
def record_flow(model: Transformer, src: Tensor, tgt_in: Tensor) -> dict[str, Tensor]:
    """Run the model once and keep what every box puts out.

    Args:
        model: post-norm; it runs without dropout.
        src: (1, src_len), ids.
        tgt_in: (1, tgt_len), ids.

    Returns:
        name of the box -> its output, (1, length, width), or (1, length) for ids; for
        an attention also "name, weights" -> (1, n_heads, q_len, k_len).

    Raises:
        ValueError: a pre-norm model, which is wired in another way.
    """
    if model.config.norm_first:
        raise ValueError("the drawing has post-norm layers, but norm_first is True")
    flow = {"source ids": src, "target ids": tgt_in}
    boxes = model_boxes(len(model.encoder.layers), len(model.decoder.layers))
    names = {box.part: box.name for box in boxes if box.part}

    with ExitStack() as stack, without_dropout(model), record_attention(model) as maps:
        for part, name in names.items():
            keep = lambda *args, name=name: flow.update({name: args[-1]})  # noqa: E731
            hook = model.get_submodule(part).register_forward_hook(keep)
            stack.enter_context(hook)
        flow["softmax"] = model(src, tgt_in).softmax(dim=-1)
    return flow | {f"{names[part]}, weights": w for part, w in maps.items()}
