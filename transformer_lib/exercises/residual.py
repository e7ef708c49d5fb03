"""Graders of the chapter on layer norm, residual connections and dropout."""

import copy
import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_lib.exercises.feedback import (
    NOT_ATTEMPTED,
    Feedback,
    call,
    compare,
    right,
    wrong,
)
from transformer_lib.model.attention import MultiHeadAttention
from transformer_lib.model.layers import EncoderLayer, FeedForward


def check_layer_norm(
    answer: Callable[[Tensor, Tensor, Tensor, float], Tensor],
) -> Feedback:
    """Grade a layer norm written by hand.

    Args:
        answer: takes x (batch, length, d_model), gain and bias (d_model,), and eps;
            returns (batch, length, d_model).
    """
    x = 3 * _draw(2, 5, 7) + 2
    gain, bias, eps = 1 + _draw(7, seed=1), _draw(7, seed=2), 0.5
    result = call(answer, x.clone(), gain.clone(), bias.clone(), eps)

    centered, variance = _center(x)
    larger = variance * 7 / 6  # unbiased
    plain = centered / (variance + eps).sqrt()
    moments = [_center(x, dim) for dim in (1, (1, 2))]
    over_positions, over_both = (c / (v + eps).sqrt() for c, v in moments)
    expected = plain * gain + bias
    mistakes = {
        "the variance is unbiased; layer norm divides by N, not by N - 1.": (
            centered / (larger + eps).sqrt() * gain + bias
        ),
        "epsilon stands outside the root; it is added to the variance.": (
            centered / (variance.sqrt() + eps) * gain + bias
        ),
        "the deviation is unbiased and epsilon stands outside the root.": (
            centered / (larger.sqrt() + eps) * gain + bias
        ),
        "epsilon is missing.": centered / variance.sqrt() * gain + bias,
        "the root is missing; divide by the deviation, not by the variance.": (
            centered / (variance + eps) * gain + bias
        ),
        "the mean is not subtracted.": x / (variance + eps).sqrt() * gain + bias,
        "mean and variance run over the positions; they belong to the features.": (
            over_positions * gain + bias
        ),
        "mean and variance run over positions and features; each position has its "
        "own.": over_both * gain + bias,
        "gain and bias are missing.": plain,
        "the gain is missing.": plain + bias,
        "the bias is missing.": plain * gain,
        "gain and bias are swapped.": plain * bias + gain,
        "the bias is added before the gain; the gain comes first.": (
            (plain + bias) * gain
        ),
    }
    if problem := compare(result, expected, mistakes):
        return problem
    return right("Mean 0 and variance 1 at each position, then gain and bias.")


def check_connection(answer: Callable[..., Tensor]) -> Feedback:
    """Grade the connection around a sub-layer, in both orders.

    Args:
        answer: takes x (batch, length, d_model), the functions sublayer, norm and
            dropout, and the boolean norm_first; returns (batch, length, d_model).
    """
    x, matrix = 2 * _draw(2, 5, 7), _draw(7, 7, seed=1)
    mask = 2.0 * (_draw(2, 5, 7, seed=2) > 0)

    def f(x: Tensor) -> Tensor:
        return torch.tanh(x @ matrix) + 0.5

    def norm(x: Tensor) -> Tensor:
        return F.layer_norm(x, (7,))

    def drop(x: Tensor) -> Tensor:  # drops the same numbers every time
        return x * mask

    post, pre = norm(x + drop(f(x))), x + drop(f(norm(x)))
    shared = {
        "the residual is missing; add x.": drop(f(x)),
        "the norm is missing.": x + drop(f(x)),
        "only the sub-layer's output is normalized: x + norm(f(x)).": (
            x + drop(norm(f(x)))
        ),
        "only the sub-layer's output is normalized: x + dropout(norm(f(x))).": (
            x + norm(drop(f(x)))
        ),
        "the residual is missing; add x before the norm.": norm(drop(f(x))),
        "the residual is missing; pre-norm too adds x.": drop(f(norm(x))),
        "the residual is taken after the norm; the sum needs x as it came.": (
            norm(x) + drop(f(norm(x)))
        ),
        "dropout stands after the norm, so the residual stream is dropped.": (
            drop(norm(x + f(x)))
        ),
        "dropout acts on the sum; it belongs to the sub-layer's output.": (
            norm(drop(x + f(x)))
        ),
        "dropout acts on the sum, so the residual stream is dropped.": (
            drop(x + f(norm(x)))
        ),
        "dropout acts on the sub-layer's input; it belongs to its output.": (
            x + f(drop(norm(x)))
        ),
        "dropout acts on the input of f; it belongs to its output.": (
            norm(x + f(drop(x)))
        ),
        "dropout is missing.": norm(x + f(x)),
        "dropout is missing, or is never called.": x + f(norm(x)),
    }
    for norm_first, expected, other in ((False, post, pre), (True, pre, post)):
        result = call(answer, x.clone(), f, norm, drop, norm_first)
        swapped = "this is the other order; norm_first=True means x + f(norm(x))."
        if problem := compare(result, expected, {swapped: other, **shared}):
            if problem.status == "open":
                return problem if not norm_first else wrong("norm_first=True: nothing.")
            return wrong(f"norm_first={norm_first}: {problem.message}")
    return right("Both orders, and the stream itself is never dropped.")


def check_copied_gain(answer: Callable[[Tensor], Tensor]) -> Feedback:
    """Grade the gain that makes a biased layer norm equal an unbiased one.

    Args:
        answer: takes the gain (d_model,) of a norm that divides by the unbiased
            standard deviation; returns the gain (d_model,) for `nn.LayerNorm`.
    """
    for width in (2, 5, 64):
        gain = 1 + _draw(width).abs()
        result = call(answer, gain.clone())
        share = (width - 1) / width
        mistakes = {
            "the gain is unchanged; the outputs still differ.": gain,
            "the factor is upside down: the unbiased norm's outputs are smaller.": (
                gain / math.sqrt(share)
            ),
            "the root is missing: (N - 1) / N is the factor of the variances.": (
                gain * share
            ),
            "the root is missing, and the factor is upside down.": gain / share,
            "N counts the features, but the factor holds N + 1.": (
                gain * math.sqrt(width / (width + 1))
            ),
        }
        if problem := compare(result, gain * math.sqrt(share), mistakes):
            if width > 2 and problem.status == "wrong":
                return wrong(f"right for 2 features; for {width}: {problem.message}")
            return problem
    return right("The same outputs as before, from another norm.")


def check_identity_start(answer: Callable[[EncoderLayer], object]) -> Feedback:
    """Grade the start at which a pre-norm layer changes nothing, yet can learn.

    Args:
        answer: takes an EncoderLayer with norm_first=True and changes its parameters
            in place.
    """
    layer, x = _layer(), _draw(2, 5, 8).float()
    before = copy.deepcopy(layer.state_dict())
    result = call(answer, layer)
    if isinstance(result, Feedback):
        return result
    after = layer.state_dict()
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    if not changed:
        return NOT_ATTEMPTED
    attention = layer.self_attn(x, x, x).abs().max() > 1e-6
    ends = ("self_attn.out_proj", "feed_forward.contract")
    if not torch.allclose(layer(x), x, atol=1e-6):
        end = ends[0] if attention else ends[1]
        which = "attention" if attention else "the feed-forward network"
        if not after[f"{end}.weight"].any():
            return wrong(f"{which} still adds the bias of {end}.")
        return wrong(f"{which} still adds something; look at {end}.")
    loss = (layer(x) * _draw(2, 5, 8, seed=3).float()).sum()
    loss.backward()
    for end in ends:
        if not layer.get_submodule(end).weight.grad.any():
            return wrong(
                f"the layer is the identity for ever: no gradient reaches {end}.weight."
            )
    allowed = {f"{end}.{kind}" for end in ends for kind in ("weight", "bias")}
    if spare := sorted(changed - allowed):
        return wrong(f"{spare[0]} was changed, which is not needed.")
    return right("The layer starts as nothing at all, and can become anything.")


def _draw(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def _center(x: Tensor, dim: int | tuple[int, ...] = -1) -> tuple[Tensor, Tensor]:
    """Return x without its mean over dim, and its biased variance."""
    centered = x - x.mean(dim, keepdim=True)
    return centered, centered.square().mean(dim, keepdim=True)


def _layer() -> EncoderLayer:
    """Return a pre-norm layer whose parameters are all far from 0, biases too."""
    parts = MultiHeadAttention(8, 2), FeedForward(8, 16)
    layer = EncoderLayer(*parts, dropout=0.0, norm_first=True)
    with torch.no_grad():
        for number, parameter in enumerate(layer.parameters()):
            parameter.copy_(0.5 * _draw(*parameter.shape, seed=number) + 0.1)
    return layer
