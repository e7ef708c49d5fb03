"""Which choice of an item to check oneself is right: found by running its fields.

`transformer_book/checks.py` says what they are. Every run begins with the same random
numbers and with `NAMES`.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

import transformer_lib as lib
from transformer_book.checks import Item


def tiny_model(kind: type[nn.Module] = lib.Transformer, **choices: Any) -> nn.Module:
    """Return a model with random weights: 12 ids, of which 0 is the padding."""
    sizes = dict.fromkeys(("src_vocab_size", "tgt_vocab_size"), 12)
    sizes |= {"d_model": 16, "n_heads": 2, "d_ff": 16}
    sizes |= dict.fromkeys(("n_encoder_layers", "n_decoder_layers"), 2)
    model = kind(lib.TransformerConfig(**sizes | choices))
    return model.eval().requires_grad_(False)


def same(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors have one shape and the same numbers, but for rounding."""
    return a.shape == b.shape and torch.allclose(a, b, atol=1e-5)


def fails(action: Callable[[], Any]) -> bool:
    """Whether calling it raises an error."""
    try:
        action()
    except (RuntimeError, ValueError):
        return True
    return False


def calls(module: nn.Module) -> list[tuple[Any, ...]]:
    """Return a list that gets the inputs and the output of every call from now on."""
    kept: list[tuple[Any, ...]] = []
    module.register_forward_hook(lambda _, given, result: kept.append((*given, result)))
    return kept


NAMES = {"math": math, "torch": torch, "F": F, "lib": lib}
NAMES |= {f.__name__: f for f in (tiny_model, same, fails, calls)}


def run(item: Item, field: str = "code") -> dict[str, Any]:
    """Run an item's `setup` and then its `code`, or its `fix`; return all names."""
    torch.manual_seed(0)
    names = dict(NAMES)
    exec(item.get("setup", ""), names)
    before = dict(names)

    def again(**changes: Any) -> dict[str, Any]:
        """Run the same lines once more, with other values for some names."""
        exec(item.get(field, ""), changed := before | changes)
        return changed

    names["again"] = again
    exec(item.get(field, ""), names)
    return names


def text(choice: Item) -> str:
    """What a choice says."""
    return str(choice.get("right", choice.get("wrong"))).replace("`", "")


def right_ones(item: Item) -> list[str]:
    """What those choices say that prove right, whichever are marked as right."""
    found, names = [], run(item)
    for choice in item["choices"]:
        names["text"] = text(choice)
        if "holds" in choice or "holds" in item:
            is_right = eval(choice.get("holds", item.get("holds")), names)
        else:
            (proof,) = (x["proof"] for x in item["choices"] if "proof" in x)
            is_right = str(eval(proof, names)) == text(choice)
        if is_right:
            found.append(text(choice))
    return found


def reaches_goal(item: Item, field: str) -> bool:
    """Whether an item's `goal` holds after its `code`, or after its `fix`."""
    return bool(eval(item["goal"], run(item, field)))
