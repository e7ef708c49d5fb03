"""Graders of the chapter on layer norm, residual connections and dropout."""

import copy
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn

from transformer_lib.exercises.grading import Grader, Seen
from transformer_lib.model.attention import MultiHeadAttention
from transformer_lib.model.layers import EncoderLayer, FeedForward


def _layer_norm(x, gain, bias, eps, *, dim=-1, unbiased=False, spread=None):
    centered = x - x.mean(dim, keepdim=True)
    variance = x.var(dim, unbiased=unbiased, keepdim=True)
    spread = spread or (lambda variance, eps: (variance + eps).sqrt())
    return centered / spread(variance, eps) * gain + bias


check_layer_norm = Grader(
    "x (batch, length, d_model), gain and bias (d_model,), eps "
    "-> (batch, length, d_model)",
    cases=lambda: [(3 * torch.randn(2, 5, 7) + 2, *(torch.randn(2, 7) + 1), 0.5)],
    solution=_layer_norm,
    right="Mean 0 and variance 1 at each position, then gain and bias.",
    mistakes={
        "the variance is unbiased; layer norm divides by N, not by N - 1.":
            {"unbiased": True},
        "epsilon stands outside the root; it is added to the variance.":
            {"spread": lambda variance, eps: variance.sqrt() + eps},
        "the deviation is unbiased and epsilon stands outside the root.":
            {"unbiased": True, "spread": lambda variance, eps: variance.sqrt() + eps},
        "epsilon is missing.": lambda x, gain, bias, eps: _layer_norm(x, gain, bias, 0),
        "the root is missing; divide by the deviation, not by the variance.":
            {"spread": lambda variance, eps: variance + eps},
        "the mean is not subtracted.": lambda x, gain, bias, eps: (
            x / (x.var(-1, unbiased=False, keepdim=True) + eps).sqrt() * gain + bias
        ),
        "mean and variance run over the positions; they belong to the features.":
            {"dim": 1},
        "mean and variance run over positions and features; each position has its "
        "own.": {"dim": (1, 2)},
        "gain and bias are missing.":
            lambda x, gain, bias, eps: _layer_norm(x, 1, 0, eps),
        "the gain is missing.": lambda x, gain, bias, eps: _layer_norm(x, 1, bias, eps),
        "the bias is missing.": lambda x, gain, bias, eps: _layer_norm(x, gain, 0, eps),
        "gain and bias are swapped.":
            lambda x, gain, bias, eps: _layer_norm(x, bias, gain, eps),
        "the bias is added before the gain; the gain comes first.":
            lambda x, gain, bias, eps: gain * _layer_norm(x, 1, bias, eps),
    },
)  # fmt: skip


def _connect(x, sublayer, norm, dropout, norm_first):
    if norm_first:
        return x + dropout(sublayer(norm(x)))
    return norm(x + dropout(sublayer(x)))


def _post(change):
    """Right in pre-norm, changed in post-norm."""
    return lambda *given: _connect(*given) if given[-1] else change(*given[:-1])


def _pre(change):
    """Right in post-norm, changed in pre-norm."""
    return lambda *given: change(*given[:-1]) if given[-1] else _connect(*given)


def _draw_connection():
    x, matrix, mask = torch.randn(2, 5, 7), torch.randn(7, 7), torch.randn(2, 5, 7) > 0
    parts = (
        lambda x: torch.tanh(x @ matrix) + 0.5,
        lambda x: F.layer_norm(x, (7,)),
        lambda x: x * mask * 2,  # drops the same numbers every time
    )
    return [(2 * x, *parts, norm_first) for norm_first in (False, True)]


check_connection = Grader(
    "x (batch, length, d_model), the functions sublayer, norm and dropout, and "
    "norm_first -> (batch, length, d_model)",
    cases=_draw_connection,
    solution=_connect,
    right="Both orders, and the stream itself is never dropped.",
    mistakes={
        "this is the other order; norm_first=True means x + f(norm(x)).":
            [lambda x, f, norm, drop, norm_first: (
                 _connect(x, f, norm, drop, not norm_first)),
             _post(lambda x, f, norm, drop: x + drop(f(norm(x)))),
             _pre(lambda x, f, norm, drop: norm(x + drop(f(x))))],
        "the residual is missing; add x.": _post(lambda x, f, norm, drop: drop(f(x))),
        "the residual is missing; add x before the norm.":
            _post(lambda x, f, norm, drop: norm(drop(f(x)))),
        "the residual is missing; pre-norm adds x too.":
            _pre(lambda x, f, norm, drop: drop(f(norm(x)))),
        "the residual is taken after the norm; the sum needs x as it came.":
            _pre(lambda x, f, norm, drop: norm(x) + drop(f(norm(x)))),
        "the norm is missing.":
            [_post(lambda x, f, norm, drop: x + drop(f(x))),
             _pre(lambda x, f, norm, drop: x + drop(f(x)))],
        "only the sub-layer's output is normalized; the sum should be.":
            [_post(lambda x, f, norm, drop: x + drop(norm(f(x)))),
             _post(lambda x, f, norm, drop: x + norm(drop(f(x))))],
        "dropout stands after the norm, so the residual stream is dropped.":
            _post(lambda x, f, norm, drop: drop(norm(x + f(x)))),
        "dropout acts on the sum; it belongs to the sub-layer's output.":
            [_post(lambda x, f, norm, drop: norm(drop(x + f(x)))),
             _pre(lambda x, f, norm, drop: drop(x + f(norm(x))))],
        "dropout acts on the sub-layer's input; it belongs to its output.":
            [_post(lambda x, f, norm, drop: norm(x + f(drop(x)))),
             _pre(lambda x, f, norm, drop: x + f(drop(norm(x))))],
        "dropout is missing.":
            [_post(lambda x, f, norm, drop: norm(x + f(x))),
             _pre(lambda x, f, norm, drop: x + f(norm(x)))],
    },
)  # fmt: skip


def _copied_gain(gain, factor=lambda n: ((n - 1) / n) ** 0.5):
    return gain * factor(gain.numel())


check_copied_gain = Grader(
    "the gain (d_model,) of a norm that divides by the unbiased standard deviation "
    "-> the gain (d_model,) with which `nn.LayerNorm` does the same",
    cases=lambda: [(1 + torch.randn(width).abs(),) for width in (2, 5, 64)],
    solution=_copied_gain,
    right="The same outputs as before, from another norm.",
    mistakes={
        "the gain is unchanged; the outputs still differ.": lambda gain: gain.clone(),
        "the factor is upside down: the unbiased norm's outputs are smaller.":
            {"factor": lambda n: (n / (n - 1)) ** 0.5},
        "the root is missing: (N - 1) / N is the factor of the variances.":
            {"factor": lambda n: (n - 1) / n},
        "the root is missing, and the factor is upside down.":
            {"factor": lambda n: n / (n - 1)},
        "N counts the features, but the factor holds N + 1.":
            {"factor": lambda n: (n / (n + 1)) ** 0.5},
        "this factor is right for 2 features only; it depends on their number.":
            {"factor": lambda n: 0.5**0.5},
    },
)  # fmt: skip


_ENDS = ("self_attn.out_proj", "feed_forward.contract")


def _zero(*kinds, ends=_ENDS):
    """A start that zeroes the weights or biases of the last map of each sub-layer."""

    def start(layer):
        for end in ends:
            for kind in kinds:
                nn.init.zeros_(layer.get_parameter(f"{end}.{kind}"))

    return start


def _draw_layer():
    """A pre-norm layer whose parameters are all far from 0, biases too."""
    parts = MultiHeadAttention(8, 2), FeedForward(8, 16)
    layer = EncoderLayer(*parts, dropout=0.0, norm_first=True)
    for parameter in layer.parameters():
        nn.init.normal_(parameter, 0.1, 0.5)
    return [(layer, torch.randn(2, 5, 8))]


def _start(answer, layer, x):
    """Start the layer, and look at what it does then; None if it is unchanged."""
    before = copy.deepcopy(layer.state_dict())
    answer(layer)
    changed = [n for n, p in layer.named_parameters() if not torch.equal(p, before[n])]
    output, added = layer(x), (layer.self_attn(x, x, x), layer.feed_forward(x))
    (output * torch.linspace(-1, 1, 8)).sum().backward()
    weights = {end: layer.get_submodule(end).weight for end in _ENDS}
    pairs = zip(_ENDS, added, strict=True)
    seen = SimpleNamespace(
        adding=[end for end, part in pairs if part.abs().max() > 1e-6],
        stuck=[end for end in _ENDS if not weights[end].grad.any()],
        spare=[name for name in changed if name.rpartition(".")[0] not in _ENDS],
    )
    seen.biased = [end for end in seen.adding if not weights[end].any()]
    seen.adding = [] if torch.allclose(output, x, atol=1e-6) else seen.adding
    return seen if changed else None


check_identity_start = Grader(
    "an EncoderLayer with norm_first=True, whose parameters are changed in place: it "
    "must return x at first, and be able to learn",
    cases=_draw_layer,
    run=_start,
    solution=_zero("weight", "bias"),
    right="The layer starts as nothing at all, and can become anything.",
    any_answer=True,
    mistakes={
        "a sub-layer still adds the bias of {}.":
            Seen(lambda seen, *case: seen.biased,
                 [_zero("weight"), _zero("weight", ends=["feed_forward.contract"])]),
        "a sub-layer still adds something; look at {}.":
            Seen(lambda seen, *case: seen.adding,
                 [_zero("bias"),
                  _zero("weight", "bias", ends=["self_attn.out_proj"]),
                  _zero("weight", "bias", ends=["feed_forward.contract"])]),
        "the layer is the identity for ever: no gradient reaches {}.weight.":
            Seen(lambda seen, *case: seen.stuck,
                 lambda layer: [nn.init.zeros_(p) for p in layer.parameters()]),
        "{} was changed, which is not needed.":
            Seen(lambda seen, *case: seen.spare,
                 lambda layer: (
                     _zero("weight", "bias")(layer),
                     nn.init.zeros_(layer.self_attn_connection.norm.gain))),
    },
)  # fmt: skip
