"""Graders of the chapter on residual connections, layer norm and dropout."""

import torch
import torch.nn.functional as F
from torch import nn

from transformer_book.exercises.grading import fill, grader, run_module
from transformer_lib.model.attention import MultiHeadAttention
from transformer_lib.model.layers import EncoderLayer, FeedForward


def _draw_connection():
    x, matrix, mask = torch.randn(2, 5, 7), torch.randn(7, 7), torch.randn(2, 5, 7) > 0
    functions = (
        lambda x: torch.tanh(x @ matrix) + 0.5,
        lambda x: F.layer_norm(x, (7,)),
        lambda x: x * mask * 2,  # drops the same numbers every time
    )
    return [(2 * x, *functions, norm_first) for norm_first in (False, True)]


@grader(
    cases=_draw_connection,
    right="Both orders are right, and dropout never touches the stream itself.",
)
def check_connection(x, sublayer, norm, dropout, norm_first):
    """Connect a sub-layer to the stream.

    x (batch, length, d_model), the functions sublayer, norm, and dropout, and
    norm_first -> (batch, length, d_model).
    """
    if norm_first:
        return x + dropout(sublayer(norm(x)))
    return norm(x + dropout(sublayer(x)))


def _sublayer_normed(x, sublayer, norm, dropout, norm_first):
    if norm_first:
        return x + dropout(sublayer(norm(x)))
    return x + norm(dropout(sublayer(x)))


def _x_normed_first(x, sublayer, norm, dropout, norm_first):
    if norm_first:
        return norm(x) + dropout(sublayer(norm(x)))
    return norm(x + dropout(sublayer(x)))


def _norm_dropped(x, sublayer, norm, dropout, norm_first):
    if norm_first:
        return x + dropout(sublayer(norm(x)))
    return dropout(norm(x + sublayer(x)))


def _sum_dropped(x, sublayer, norm, dropout, norm_first):
    if norm_first:
        return dropout(x + sublayer(norm(x)))
    return norm(x + dropout(sublayer(x)))


check_connection.mistake(
    "the order is wrong; norm_first=True means x + f(norm(x)).",
    lambda *case: check_connection.solve(*case[:-1], norm_first=not case[-1]),
    lambda *case: check_connection.solve(*case[:-1], norm_first=True),
    lambda *case: check_connection.solve(*case[:-1], norm_first=False),
)
check_connection.mistake(
    "add x exactly as it came in, in both orders; post-norm then takes the norm.",
    _sublayer_normed,
    _x_normed_first,
)
check_connection.mistake(
    "dropout belongs to the sub-layer's output alone.", _norm_dropped, _sum_dropped
)


@grader(
    cases=lambda: [
        ((7, 0.5), (3 * torch.randn(2, 5, 7) + 2,), {"gain": torch.randn(7) + 1})
    ],
    right="Every position has a mean square of 1 before the gain, and no mean is "
    "subtracted.",
    run=run_module,
)
class check_rms_norm(nn.Module):
    """A class: RMSNorm(d_model, eps), with a parameter gain (d_model,).

    Its forward takes x (batch, length, d_model) -> (batch, length, d_model).
    """

    def __init__(self, d_model, eps):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(d_model))
        self.eps = eps

    def forward(self, x):
        """(batch, length, d_model) -> the same shape."""
        square = x.square().mean(-1, keepdim=True)
        return x / (square + self.eps).sqrt() * self.gain


class _Centered(check_rms_norm.solve):
    def forward(self, x):
        return super().forward(x - x.mean(-1, keepdim=True))


class _EpsBesideTheRoot(check_rms_norm.solve):
    def forward(self, x):
        root = x.square().mean(-1, keepdim=True).sqrt()
        return x / (root + self.eps) * self.gain


class _WithoutRoot(check_rms_norm.solve):
    def forward(self, x):
        square = x.square().mean(-1, keepdim=True)
        return x / (square + self.eps) * self.gain


class _OverPositions(check_rms_norm.solve):
    def forward(self, x):
        square = x.square().mean(1, keepdim=True)
        return x / (square + self.eps).sqrt() * self.gain


class _OverSentences(check_rms_norm.solve):
    def forward(self, x):
        square = x.square().mean((1, 2), keepdim=True)
        return x / (square + self.eps).sqrt() * self.gain


check_rms_norm.mistake(
    "the mean is subtracted; that is a layer norm without its bias.", _Centered
)
check_rms_norm.mistake(
    "divide by the square root of the mean square plus epsilon.",
    _EpsBesideTheRoot,
    _WithoutRoot,
)
check_rms_norm.mistake(
    "take one mean for each position, over the features.",
    _OverPositions,
    _OverSentences,
)


@grader(
    cases=lambda: [(1 + torch.randn(width).abs(),) for width in (2, 5, 64)],
    right="The same outputs as before, from a different norm.",
)
def check_copied_gain(gain):
    """The gain with which `nn.LayerNorm` does the same as another norm.

    The gain (d_model,) of a norm that divides by the unbiased standard deviation ->
    (d_model,).
    """
    n = len(gain)
    return gain * ((n - 1) / n) ** 0.5


check_copied_gain.mistake(
    "the factor is upside down: the unbiased norm's outputs are smaller.",
    lambda gain: gain * (len(gain) / (len(gain) - 1)) ** 0.5,
)
check_copied_gain.mistake(
    "the square root is missing: (n - 1) / n is the factor of the variances.",
    lambda gain: gain * (len(gain) - 1) / len(gain),
)


_LAST = ("self_attn.out_proj", "feed_forward.contract")


def _draw_layer():
    """A pre-norm layer whose parameters are all far from 0, biases too."""
    blocks = MultiHeadAttention(8, 2), FeedForward(8, 16)
    layer = fill(EncoderLayer(*blocks, dropout=0.0, norm_first=True)).requires_grad_()
    return [(layer, torch.randn(2, 5, 8))]


def _run_start(answer, layer, x):
    """Start the layer: what adds, and what can't learn; None if it is unchanged."""
    before = layer(x)
    answer(layer.self_attn, layer.feed_forward)
    after, added = layer(x), (layer.self_attn(x, x, x), layer.feed_forward(x))
    (after * torch.linspace(-1, 1, 8)).sum().backward()
    adding = [n for n, y in zip(_LAST, added, strict=True) if y.abs().max() > 1e-6]
    stuck = [n for n in _LAST if not layer.get_submodule(n).weight.grad.any()]
    return None if torch.equal(before, after) else {"adding": adding, "stuck": stuck}


@grader(
    cases=_draw_layer,
    right="Both write nothing at first, but can still learn.",
    run=_run_start,
    any_answer=True,
)
def check_identity_start(attention, network):
    """Let both return 0 at first, but be able to learn.

    A MultiHeadAttention and a FeedForward -> nothing: they are changed in place.
    """
    for last in (attention.out_proj, network.contract):
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)


def _zero_last_weights(attention, network):
    nn.init.zeros_(attention.out_proj.weight)
    nn.init.zeros_(network.contract.weight)


def _zero_all(*modules):
    for module in modules:
        for parameter in module.parameters():
            nn.init.zeros_(parameter)


check_identity_start.mistake(
    "a sub-layer still adds something; look at the weight and the bias of {}.",
    _zero_last_weights,
    lambda attention, network: _zero_all(attention.out_proj),
    sign=lambda seen, layer, x: seen["adding"],
)
check_identity_start.mistake(
    "the sub-layer can't learn: no gradient reaches {}.weight.",
    _zero_all,
    sign=lambda seen, layer, x: seen["stuck"],
)
