"""Graders of the chapter on the encoder."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_lib.exercises.feedback import (
    NOT_ATTEMPTED,
    Feedback,
    call,
    check_tensor,
    compare,
    right,
    wrong,
)
from transformer_lib.model.attention import MultiHeadAttention
from transformer_lib.model.layers import EncoderLayer, FeedForward, LayerNorm
from transformer_lib.model.transformer import Encoder


def check_feed_forward(
    answer: Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor],
) -> Feedback:
    """Grade max(0, x W_1 + b_1) W_2 + b_2.

    Args:
        answer: takes x (..., d_model), W_1 (d_model, d_ff), b_1 (d_ff,),
            W_2 (d_ff, d_model) and b_2 (d_model,); returns (..., d_model).
    """
    x, w_1, b_1 = _draw(2, 5, 3), _draw(3, 7), _draw(7)
    w_2, b_2 = _draw(7, 3), _draw(3)
    result = call(answer, *(each.clone() for each in (x, w_1, b_1, w_2, b_2)))
    hidden = x @ w_1 + b_1
    expected = hidden.relu() @ w_2 + b_2
    mistakes = {
        "there is no ReLU: two linear maps in a row are one linear map.": (
            hidden @ w_2 + b_2
        ),
        "this is GELU; equation (6.1) has max(0, ·), which is ReLU.": (
            F.gelu(hidden) @ w_2 + b_2
        ),
        "ReLU stands at the end; it belongs between the two maps.": (
            (hidden @ w_2 + b_2).relu()
        ),
        "ReLU stands at the end, too; the output may be negative.": expected.relu(),
        "b_1 is missing.": (x @ w_1).relu() @ w_2 + b_2,
        "b_1 is added after ReLU; it belongs inside.": (
            ((x @ w_1).relu() + b_1) @ w_2 + b_2
        ),
        "b_2 is missing.": hidden.relu() @ w_2,
        "x is added already; the residual connection is not part of it.": x + expected,
    }
    if problem := compare(result, expected, mistakes):
        return problem
    one = call(answer, x[0, 0], w_1, b_1, w_2, b_2)
    if problem := compare(one, expected[0, 0], {}):
        return wrong(f"for a single vector {problem.message}")
    return right("Two maps and a bend, at every position alike.")


def check_encoder_layer(
    answer: Callable[[Tensor, Callable, Callable, Callable, Callable], Tensor],
) -> Feedback:
    """Grade a post-norm encoder layer put together from four functions.

    Args:
        answer: takes x (batch, length, d_model) and the functions attention,
            feed_forward, norm_1 and norm_2; returns (batch, length, d_model).
    """
    parts = _draw_parts(3, n_heads=1)
    attend, ffn, norm_1, norm_2 = parts
    x = _draw(2, 5, 3)
    result = call(answer, x.clone(), *parts)
    y = norm_1(x + attend(x))
    expected = norm_2(y + ffn(y))
    pre = x + attend(norm_1(x))
    second = norm_2(x + attend(x))
    mistakes = {
        "this is pre-norm; equation (6.2) normalizes after each sum.": (
            pre + ffn(norm_2(pre))
        ),
        "the way around attention is missing: add x.": (
            norm_2(norm_1(attend(x)) + ffn(norm_1(attend(x))))
        ),
        "the way around the feed-forward network is missing: add y.": norm_2(ffn(y)),
        "both ways around are missing.": norm_2(ffn(norm_1(attend(x)))),
        "the second sum adds x; the way around begins at y.": norm_2(x + ffn(y)),
        "the feed-forward network reads x; it should read y.": norm_2(y + ffn(x)),
        "norm_1 is used twice; each half has a norm of its own.": norm_1(y + ffn(y)),
        "the two norms are swapped.": norm_1(second + ffn(second)),
        "the last norm is missing.": y + ffn(y),
        "the first norm is missing.": norm_2(x + attend(x) + ffn(x + attend(x))),
        "the norm stands inside the sum: normalize x + attention(x), not "
        "attention(x) alone.": _norm_inside(x, *parts),
        "the halves are swapped; attention comes first.": (
            norm_2(norm_1(x + ffn(x)) + attend(norm_1(x + ffn(x))))
        ),
    }
    if problem := compare(result, expected, mistakes):
        return problem
    return right("Gather, add, normalize; think, add, normalize.")


def check_hidden_states(
    answer: Callable[[Encoder, Tensor, Tensor], Tensor],
) -> Feedback:
    """Grade the collection of all states of a pre-norm stack.

    Args:
        answer: takes an encoder of N layers, x (batch, length, d_model) and a mask;
            returns (N + 1, batch, length, d_model), X^1 to X^{N+1}.
    """
    layers = []
    for seed in range(3):
        attention, feed_forward = MultiHeadAttention(4, 2), FeedForward(4, 7)
        layer = EncoderLayer(attention, feed_forward, norm_first=True)
        layers.append(_fill(layer, seed))
    encoder = Encoder(layers, _fill(LayerNorm(4), 3)).double().eval()
    x, mask = _draw(2, 5, 4), torch.arange(5) < torch.tensor([[5], [3]])
    mask = mask[:, None, None, :]
    with torch.no_grad():
        states, unmasked = [x], [x]
        for layer in encoder.layers:
            states.append(layer(states[-1], mask))
            unmasked.append(layer(unmasked[-1]))
        apart = [x, *(layer(x, mask) for layer in encoder.layers)]
        memory = encoder(x, mask)
        result = call(answer, encoder, x.clone(), mask.clone())
    if isinstance(result, list | tuple):
        return wrong("expected one tensor; torch.stack turns a list into one.")
    if isinstance(result, Tensor) and result.dim() == 4:
        if len(result) == 3:
            return wrong(
                "3 states for 3 layers: X^1, the embedding, belongs to the list too."
            )
        if len(result) == 5:
            return wrong(
                "5 states for 3 layers: the output of the final norm is no state."
            )
    expected = torch.stack(states)
    mistakes = {
        "the last one is the encoder's output; in pre-norm X^{N+1} is taken before "
        "the final norm.": torch.stack([*states[:-1], memory]),
        "the mask is not passed on to the layers.": torch.stack(unmasked),
        "every layer reads X^1; each must read the output of the one before.": (
            torch.stack(apart)
        ),
        "every state went through the final norm; it is applied once, after the "
        "last layer, and not to the states.": encoder.norm(expected),
        "X^1 is missing, and the output stands at the end; X^{N+1} is the last "
        "layer's output.": torch.stack([*states[1:], memory]),
    }
    if problem := compare(result, expected, mistakes):
        return problem
    return right("N + 1 states for N layers, and none of them is the output here.")


def check_sorting_network(
    w_1: Tensor, b_1: Tensor, w_2: Tensor, b_2: Tensor
) -> Feedback:
    """Grade weights by what x + FFN(x) does to pairs of numbers.

    Args:
        w_1: (2, d_ff)
        b_1: (d_ff,)
        w_2: (d_ff, 2)
        b_2: (2,)
    """
    given = {"W_1": w_1, "b_1": b_1, "W_2": w_2, "b_2": b_2}
    if any(each is None or each is Ellipsis for each in given.values()):
        return NOT_ATTEMPTED
    d_ff = w_1.size(-1) if isinstance(w_1, Tensor) and w_1.dim() else 0
    shapes = ((2, d_ff), (d_ff,), (d_ff, 2), (2,))
    for (name, each), shape in zip(given.items(), shapes, strict=True):
        if problem := check_tensor(each, shape):
            return wrong(f"{name}: {problem.message}")
    w_1, b_1, w_2, b_2 = (each.detach().double() for each in given.values())
    pairs = 10 * _draw(50, 2)
    change = (pairs @ w_1 + b_1).relu() @ w_2 + b_2
    result, expected = pairs + change, pairs.sort(dim=-1).values
    if torch.allclose(result, expected):
        return right(f"Sorted, with d_ff = {d_ff}: one bend compares two numbers.")
    if torch.allclose(change, expected):
        return wrong(
            "the network alone sorts; x is added to its output, so it must compute "
            "what is missing."
        )
    if torch.allclose(result, expected.flip(-1)):
        return wrong("the larger one comes first; it should come second.")
    if torch.allclose(result, pairs):
        return wrong("nothing changes: the network's output is 0 everywhere.")
    row = ~torch.isclose(result, expected).all(dim=-1)
    before, after = (each[row][0].tolist() for each in (pairs, result))
    return wrong(
        f"({before[0]:.1f}, {before[1]:.1f}) becomes ({after[0]:.1f}, {after[1]:.1f})."
    )


def _draw(*shape: int) -> Tensor:
    """Return the same normal numbers in every run; other shapes, other numbers."""
    generator = torch.Generator().manual_seed(sum(shape) * 10 + len(shape))
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def _fill(module: nn.Module, seed: int) -> nn.Module:
    """Set every parameter to numbers of its own, gains and biases too."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in module.parameters():
        drawn = torch.randn(parameter.shape, generator=generator)
        parameter.data = 0.5 * drawn + (parameter.dim() == 1)
    return module


def _draw_parts(d_model: int, n_heads: int) -> tuple[Callable[[Tensor], Tensor], ...]:
    """Return attention, feed-forward and two different layer norms."""
    attention = _fill(MultiHeadAttention(d_model, n_heads), 0).double()
    modules = (FeedForward(d_model, 7), LayerNorm(d_model), LayerNorm(d_model))
    others = [_fill(each, seed).double() for seed, each in enumerate(modules, 1)]
    functions = (lambda x: attention(x, x, x), *others)

    def detached(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
        return lambda x: function(x).detach()

    return tuple(detached(function) for function in functions)


def _norm_inside(
    x: Tensor, attend: Callable, ffn: Callable, norm_1: Callable, norm_2: Callable
) -> Tensor:
    y = x + norm_1(attend(x))
    return y + norm_2(ffn(y))
