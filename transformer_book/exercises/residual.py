"""Graders of the chapter on residual connections, layer norm and dropout."""

import torch
import torch.nn.functional as F
from torch import nn

from transformer_book.exercises.grading import Seen, fill, grader, run_module
from transformer_lib import EncoderLayer, FeedForward, MultiHeadAttention


def _draw_connection():
    x, matrix, mask = torch.randn(2, 5, 7), torch.randn(7, 7), torch.randn(2, 5, 7) > 0
    parts = (
        lambda x: torch.tanh(x @ matrix) + 0.5,
        lambda x: F.layer_norm(x, (7,)),
        lambda x: x * mask * 2,  # drops the same numbers every time
    )
    return [(2 * x, *parts, norm_first) for norm_first in (False, True)]


def _post(x, f, norm, drop):
    return norm(x + drop(f(x)))


def _pre(x, f, norm, drop):
    return x + drop(f(norm(x)))


@grader(
    _draw_connection,
    "Both orders are right, and dropout never touches the stream itself.",
    ("the order is wrong; norm_first=True means x + f(norm(x)).",
     {"post": _pre, "pre": _post}, {"post": _pre}, {"pre": _post}),
    ("add x exactly as it came in, in both orders; post-norm then takes the norm.",
     {"post": lambda x, f, norm, drop: x + norm(drop(f(x)))},
     {"pre": lambda x, f, norm, drop: norm(x) + drop(f(norm(x)))}),
    ("dropout belongs to the sub-layer's output alone.",
     {"post": lambda x, f, norm, drop: drop(norm(x + f(x)))},
     {"pre": lambda x, f, norm, drop: drop(x + f(norm(x)))}),
)  # fmt: skip
def check_connection(x, sublayer, norm, dropout, norm_first, post=_post, pre=_pre):
    """Connect a sub-layer to the stream.

    x (batch, length, d_model), the functions sublayer, norm, and dropout, and
    norm_first -> (batch, length, d_model).
    """
    return (pre if norm_first else post)(x, sublayer, norm, dropout)


@grader(
    lambda: [
        ((7, 0.5), (3 * torch.randn(2, 5, 7) + 2,), {"gain": torch.randn(7) + 1})
    ],
    "Every position has a mean square of 1 before the gain, and no mean is "
    "subtracted.",
    ("the mean is subtracted; that is a layer norm without its bias.",
     {"shift": lambda x: x - x.mean(-1, keepdim=True)}),
    ("divide by the square root of the mean square plus epsilon.",
     {"root": lambda square, eps: square.sqrt() + eps},
     {"root": lambda square, eps: square + eps}),
    ("take one mean for each position, over the features.",
     {"dim": 1}, {"dim": (1, 2)}),
    run=run_module,
)  # fmt: skip
class check_rms_norm(nn.Module):
    """A class: RMSNorm(d_model, eps), with a parameter gain (d_model,).

    Its forward takes x (batch, length, d_model) -> (batch, length, d_model).
    """

    dim, shift = -1, staticmethod(lambda x: x)
    root = staticmethod(lambda square, eps: (square + eps).sqrt())

    def __init__(self, d_model, eps):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(d_model))
        self.eps = eps

    def forward(self, x):
        """(batch, length, d_model) -> the same shape."""
        x = self.shift(x)
        square = x.square().mean(self.dim, keepdim=True)
        return x / self.root(square, self.eps) * self.gain


@grader(
    lambda: [(1 + torch.randn(width).abs(),) for width in (2, 5, 64)],
    "The same outputs as before, from a different norm.",
    ("the factor is upside down: the unbiased norm's outputs are smaller.",
     {"square": lambda n: n / (n - 1)}),
    ("the square root is missing: (n - 1) / n is the factor of the variances.",
     {"square": lambda n: ((n - 1) / n) ** 2}),
)  # fmt: skip
def check_copied_gain(gain, square=lambda n: (n - 1) / n):
    """The gain with which `nn.LayerNorm` does the same as another norm.

    The gain (d_model,) of a norm that divides by the unbiased standard deviation ->
    (d_model,).
    """
    return gain * square(gain.numel()) ** 0.5


_LAST = ("self_attn.out_proj", "feed_forward.contract")


def _draw_layer():
    """A pre-norm layer whose parameters are all far from 0, biases too."""
    parts = MultiHeadAttention(8, 2), FeedForward(8, 16)
    layer = fill(EncoderLayer(*parts, dropout=0.0, norm_first=True)).requires_grad_()
    return [(layer, torch.randn(2, 5, 8))]


def _start(answer, layer, x):
    """Start the layer: what adds, and what can't learn; None if it is unchanged."""
    before = layer(x)
    answer(layer.self_attn, layer.feed_forward)
    after, added = layer(x), (layer.self_attn(x, x, x), layer.feed_forward(x))
    (after * torch.linspace(-1, 1, 8)).sum().backward()
    adding = [n for n, y in zip(_LAST, added, strict=True) if y.abs().max() > 1e-6]
    stuck = [n for n in _LAST if not layer.get_submodule(n).weight.grad.any()]
    return None if torch.equal(before, after) else {"adding": adding, "stuck": stuck}


def _zero_all(*modules):
    for module in modules:
        for parameter in module.parameters():
            nn.init.zeros_(parameter)


@grader(
    _draw_layer,
    "Both write nothing at first, but can still learn.",
    ("a sub-layer still adds something; look at the weight and the bias of {}.",
     Seen(lambda seen, *case: seen["adding"]),
     {"kinds": ["weight"]}, lambda attention, network: _zero_all(attention.out_proj)),
    ("the sub-layer can't learn: no gradient reaches {}.weight.",
     Seen(lambda seen, *case: seen["stuck"]), _zero_all),
    run=_start,
    any_answer=True,
)  # fmt: skip
def check_identity_start(attention, network, kinds=("weight", "bias")):
    """Let both return 0 at first, but be able to learn.

    A MultiHeadAttention and a FeedForward -> nothing: they are changed in place.
    """
    for last in (attention.out_proj, network.contract):
        for kind in kinds:
            nn.init.zeros_(last.get_parameter(kind))
