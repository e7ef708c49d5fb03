"""Graders of the chapter on scaled dot-product attention."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from transformer_lib.exercises.feedback import (
    Feedback,
    call,
    check_tensor,
    right,
    wrong,
)
from transformer_lib.model.attention import scaled_dot_product_attention


def check_weights(answer: Callable[[Tensor, Tensor], Tensor]) -> Feedback:
    """Grade the weights of one query.

    Args:
        answer: takes query (d_head,) and keys (k_len, d_head); returns (k_len,).
    """
    # d_head 9 and 5 keys: every divisor below is another number.
    generator = torch.Generator().manual_seed(2)
    query = 2 * torch.randn(9, generator=generator)
    keys = torch.randn(5, 9, generator=generator)
    result = call(answer, query.clone(), keys.clone())
    if problem := check_tensor(result, (5,)):
        return problem
    scores = keys @ query
    exponentials = (scores / 3).exp()
    mistakes = {
        "these are the raw scores; divide by sqrt(d_head), then apply softmax.": scores,
        "these are scaled scores; apply softmax to make weights of them.": scores / 3,
        "the scores are not divided by sqrt(d_head).": scores.softmax(0),
        "the scores are divided by d_head; divide by its square root.": (
            scores / 9
        ).softmax(0),
        "the scores are divided by d_head / 2: ** binds tighter than /, so write "
        "d_head ** 0.5 or math.sqrt(d_head).": (scores / 4.5).softmax(0),
        "the scores are divided by the square root of the number of keys; d_head is "
        "the width of a key.": (scores / 5**0.5).softmax(0),
        "the scores are multiplied by sqrt(d_head) instead of divided.": (
            scores * 3
        ).softmax(0),
        "these are exponentials; divide them by their sum.": exponentials,
    }
    if problem := _name_mistake(result, (scores / 3).softmax(0), mistakes):
        return problem
    return right("One weight for each key, and together they make 1.")


def check_softmax(answer: Callable[[Tensor], Tensor]) -> Feedback:
    """Grade a softmax over the last dimension that never overflows.

    Args:
        answer: takes scores (..., k_len); returns weights of the same shape.
    """
    generator = torch.Generator().manual_seed(2)
    scores = torch.randn(2, 3, 5, generator=generator)
    given = scores.clone()
    with _Spy() as spy:
        result = call(answer, given)
    if problem := check_tensor(result, (2, 3, 5)):
        return problem
    if spy.softmaxes:
        return wrong(f"this calls {spy.softmaxes[0]}; build it from exp and sum.")
    if not torch.equal(given, scores):
        return wrong("the scores that were passed in have changed; make a new tensor.")
    mistakes = {
        "this normalizes over the queries (dim=-2); every row must sum to 1.": (
            scores.softmax(-2)
        ),
        "this normalizes over the first dimension; use the last one.": (
            scores.softmax(0)
        ),
        "all entries together sum to 1; every row must do so by itself.": (
            scores.flatten().softmax(0).view_as(scores)
        ),
    }
    if problem := _name_mistake(result, scores.softmax(-1), mistakes):
        return problem

    large = torch.tensor([[1000.0, 999.0], [998.0, 1000.0]])
    result = call(answer, large)
    if isinstance(result, Feedback):
        return result
    if not torch.isfinite(result).all():
        return wrong("exp(1000) is infinite; subtract each row's maximum first.")
    if not torch.allclose(result, large.softmax(-1)):
        return wrong(
            "large scores get other weights than small ones that differ alike."
        )
    apart = torch.tensor([[0.0, 1.0], [1000.0, 1001.0]])
    result = call(answer, apart)
    if isinstance(result, Feedback):
        return result
    if not torch.allclose(result, apart.softmax(-1)):
        return wrong(
            "one row's maximum is subtracted from another row, whose exponentials all "
            "become 0; subtract each row's own maximum."
        )
    return right("Every row sums to 1, however large its scores are.")


def check_repair(answer: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Feedback:
    """Grade the repaired attention of one document.

    Args:
        answer: takes query (batch, n_heads, q_len, d_head), key and value
            (batch, n_heads, k_len, d_head); returns the output, shaped like query.
    """
    generator = torch.Generator().manual_seed(2)
    query = 2 * torch.randn(2, 4, 5, 9, generator=generator)
    key, value = torch.randn(2, 2, 4, 7, 9, generator=generator)
    result = call(answer, query.clone(), key.clone(), value.clone())
    if isinstance(result, tuple):
        return wrong("return the output only, not a tuple.")
    if isinstance(result, Tensor) and result.shape == (2, 4, 5, 7):
        return wrong("these are weights; multiply them with the values.")
    if problem := check_tensor(result, (2, 4, 5, 9)):
        return problem
    hid_dim, d_head = 36, 9
    scales = {
        "": d_head**0.5,
        "the scores are not scaled": 1.0,
        "the divisor is still hid_dim / 2, because ** binds tighter than /": (
            hid_dim / 2
        ),
        "the divisor is now d_head / 2, because ** binds tighter than /": d_head / 2,
        "the divisor is sqrt(hid_dim), but a dot product here adds d_head terms": (
            hid_dim**0.5
        ),
        "the divisor is hid_dim, not sqrt(d_head)": float(hid_dim),
        "the divisor is d_head, not its square root": float(d_head),
    }
    axes = {
        "": -1,
        "softmax runs over the queries (dim=2), so no row of weights sums to 1": -2,
        "softmax runs over the heads (dim=1), so no row of weights sums to 1": 1,
    }
    products = query @ key.transpose(-2, -1)
    for scale_text, divisor in scales.items():
        for axis_text, dim in axes.items():
            if torch.allclose(result, (products / divisor).softmax(dim) @ value):
                texts = [text for text in (scale_text, axis_text) if text]
                if texts:
                    return wrong("; and ".join(texts) + ".")
                return right("Scaled by the width of a head, each row summing to 1.")
    return wrong("the output is neither right nor one of the mistakes known here.")


def check_streaming(
    answer: Callable[[Tensor, Iterable[tuple[Tensor, Tensor]]], Tensor],
) -> Feedback:
    """Grade attention of one query that sees its keys and values block by block.

    Args:
        answer: takes query (d_head,) and an iterable of (keys, values) with shapes
            (block_len, d_head) and (block_len, d_value); returns (d_value,).
    """
    generator = torch.Generator().manual_seed(2)
    query = 2 * torch.randn(9, generator=generator)
    keys = torch.randn(23, 9, generator=generator)
    values = torch.randn(23, 4, generator=generator)
    sizes = [3, 8, 5, 7]

    with _Spy() as spy:
        result = call(answer, query.clone(), _blocks(keys, values, sizes))
    if problem := check_tensor(result, (4,)):
        return problem
    parts = list(_blocks(keys, values, sizes))
    alone = [scaled_dot_product_attention(query[None], *part)[0][0] for part in parts]
    mistakes = {
        "each block has its own softmax here, and the results are averaged; weights "
        "must sum to 1 over all blocks together.": torch.stack(alone).mean(0),
        "each block has its own softmax here, and the results are added; weights must "
        "sum to 1 over all blocks together.": torch.stack(alone).sum(0),
        "only the last block counts; add up what came before.": alone[-1],
        "only the first block counts; go on to the others.": alone[0],
        "the scores are not divided by sqrt(d_head).": (
            (keys @ query).softmax(0) @ values
        ),
        "when a later block holds a larger score, the sums so far must be multiplied "
        "by exp(old maximum - new maximum).": _without_rescaling(query, parts),
    }
    expected = scaled_dot_product_attention(query[None], keys, values)[0][0]
    if problem := _name_mistake(result, expected, mistakes):
        return problem
    if spy.largest_joined >= len(keys):
        return wrong("the blocks are joined again; keep only running sums.")

    # The maximum grows from block to block, and falls from block to block.
    for order in (torch.arange(23), torch.arange(22, -1, -1)):
        rising = torch.linspace(-900, 900, 23)[order, None] * torch.ones(23, 9)
        result = call(answer, torch.ones(9), _blocks(rising, values, sizes))
        if isinstance(result, Feedback):
            return result
        expected = scaled_dot_product_attention(torch.ones(1, 9), rising, values)[0][0]
        if not torch.isfinite(result).all():
            return wrong("large scores give NaN; keep the largest score seen so far.")
        if not torch.allclose(result, expected, atol=1e-4):
            return wrong("small scores are right, but large scores are not.")
    return right("The same output, and no weight was kept for longer than its block.")


class _Spy(TorchDispatchMode):
    """Note which softmax runs, and the most entries of a joined tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.softmaxes: list[str] = []
        self.largest_joined = 0

    def __torch_dispatch__(
        self, operation: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        name = operation.name().removeprefix("aten::")
        if "softmax" in name or "logsumexp" in name:
            self.softmaxes.append(name.lstrip("_"))
        result = operation(*args, **(kwargs or {}))
        if name.startswith(("cat", "stack")):
            self.largest_joined = max(self.largest_joined, result.numel())
        return result


def _blocks(
    keys: Tensor, values: Tensor, sizes: list[int]
) -> Iterator[tuple[Tensor, Tensor]]:
    return zip(keys.split(sizes), values.split(sizes), strict=True)


def _without_rescaling(query: Tensor, parts: list[tuple[Tensor, Tensor]]) -> Tensor:
    """Attention of one query if sums keep the maximum they were made with."""
    maximum, total, output = float("-inf"), 0.0, torch.zeros(())
    for keys, values in parts:
        scores = keys @ query / query.numel() ** 0.5
        maximum = max(maximum, scores.max().item())
        exponentials = (scores - maximum).exp()
        total, output = total + exponentials.sum(), output + exponentials @ values
    return output / total


def _name_mistake(
    result: Tensor, expected: Tensor, mistakes: dict[str, Tensor]
) -> Feedback | None:
    """None for the expected result, else the mistake that gives this result."""
    if torch.allclose(result, expected, atol=1e-5):
        return None
    for message, mistaken in mistakes.items():
        if torch.allclose(result, mistaken, atol=1e-5):
            return wrong(message)
    return wrong("the result is neither right nor one of the mistakes known here.")
