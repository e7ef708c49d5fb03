"""Graders of the chapter on the encoder."""

import torch
from torch import nn

from transformer_book.exercises.grading import fill, grader, run_module
from transformer_lib import Encoder, MultiHeadAttention
from transformer_lib.model.layers import EncoderLayer, FeedForward, LayerNorm


def _draw_layer():
    parts = MultiHeadAttention(3, 1), FeedForward(3, 7), LayerNorm(3), LayerNorm(3)
    attention, *others = map(fill, parts)
    return [(torch.randn(2, 5, 3), lambda x: attention(x, x, x), *others)]


@grader(
    _draw_layer,
    "Gather, add, normalize; think, add, normalize.",
    ("this is pre-norm; equation (6.1) normalizes after each sum.",
     lambda x, a, f, n, m: (y := x + a(n(x))) + f(m(y))),
    ("a residual connection is missing: add x, and then y.",
     lambda x, a, f, n, m: m((y := n(a(x))) + f(y)),
     lambda x, a, f, n, m: m(f(n(x + a(x)))),
     lambda x, a, f, n, m: m(f(n(a(x))))),
    ("the second half must read and add y, not x.",
     lambda x, a, f, n, m: m(x + f(n(x + a(x))))),
    ("each half has a norm of its own, norm_1 and then norm_2.",
     lambda x, a, f, n, m: check_encoder_layer.solve(x, a, f, n, n)),
)  # fmt: skip
def check_encoder_layer(x, attention, feed_forward, norm_1, norm_2):
    """The post-norm encoder layer, of four functions: the same shape as x."""
    y = norm_1(x + attention(x))
    return norm_2(y + feed_forward(y))


def _real():
    """A mask over five positions: the second of two sentences has three words."""
    return (torch.arange(5) < torch.tensor([[5], [3]]))[:, None, None]


def _draw_encoder():
    parts = [(MultiHeadAttention(4, 2), FeedForward(4, 7)) for _ in range(3)]
    layers = [EncoderLayer(*pair, norm_first=True) for pair in parts]
    encoder = fill(Encoder(layers, LayerNorm(4))).eval()
    return [(encoder, torch.randn(2, 5, 4), _real())]


@grader(
    _draw_encoder,
    "N + 1 states for N layers, and none of them is the output here.",
    ("the last one is the encoder's output; in pre-norm X^{N+1} is taken before the "
     "final norm.",
     {"normalized": True}),
    ("the mask is not passed on to the layers.",
     lambda encoder, x, mask: check_hidden_states.solve(encoder, x, None)),
)  # fmt: skip
def check_hidden_states(encoder, x, mask, normalized=False):
    """The states X^1 to X^{N+1} of a pre-norm encoder with N layers.

    The encoder, x (batch, length, d_model), a mask -> (N + 1, batch, length, d_model).
    """
    states = [x]
    for layer in encoder.layers:
        states.append(layer(states[-1], mask))
    states[-1] = encoder.norm(states[-1]) if normalized else states[-1]
    return torch.stack(states)


def _draw_parallel():
    parts = fill(MultiHeadAttention(4, 2)), fill(FeedForward(4, 7))
    return [(parts, (3 * torch.randn(2, 5, 4), _real()))]


@grader(
    _draw_parallel,
    "One norm, two halves, one sum: the halves no longer wait for each other.",
    ("the halves run one after the other; here both read the same n.",
     {"join": lambda x, n, a, f, norm: (y := x + a(n)) + f(norm(y))}),
    ("the mask isn't passed on to self_attn.", {"masked": False}),
    ("both halves read the normalized n.",
     {"join": lambda x, n, a, f, norm: x + a(x) + f(n)},
     {"join": lambda x, n, a, f, norm: x + a(n) + f(x)}),
    ("the sum starts with x as it came in; it is not normalized.",
     {"join": lambda x, n, a, f, norm: n + a(n) + f(n)}),
    run=run_module,
)  # fmt: skip
class check_parallel_layer(nn.Module):
    """A class: (self_attn, feed_forward) makes a layer whose halves read the same.

    layer(x, src_mask) returns x + self_attn(n) + feed_forward(n); n is LayerNorm(x).
    """

    masked, join = True, staticmethod(lambda x, n, a, f, norm: x + a(n) + f(n))

    def __init__(self, self_attn, feed_forward):
        super().__init__()
        self.self_attn, self.feed_forward = self_attn, feed_forward
        self.norm = LayerNorm(self_attn.d_model)

    def forward(self, x, src_mask=None):
        """(batch, length, d_model) -> the same shape."""
        mask = src_mask if self.masked else None
        attend = lambda x: self.self_attn(x, x, x, mask)  # noqa: E731
        return self.join(x, self.norm(x), attend, self.feed_forward, self.norm)


def _run_network(weights, pairs):
    """Add FFN(x) to x, with these weights."""
    w_1, b_1, w_2, b_2 = (each.double() for each in weights)
    return pairs + (pairs @ w_1 + b_1).relu() @ w_2 + b_2


_W_1, _W_2 = torch.tensor([[1.0], [-1.0]]), torch.tensor([[-1.0, 1.0]])
_PAIR = torch.cat([torch.eye(2), -torch.eye(2)], dim=1)


def _with_biases(w_1, w_2):
    return w_1, torch.zeros(len(w_2)), w_2, torch.zeros(2)


# W_1 (2, d_ff), b_1 (d_ff,), W_2 (d_ff, 2), b_2 (2,): x + FFN(x) sorts pairs.
check_sorting_network = grader(
    lambda: [(10 * torch.randn(50, 2, dtype=torch.float64),)],
    "Sorted: a single ReLU can compare two numbers.",
    ("the network alone sorts; x is added to its output: compute what is missing.",
     _with_biases(torch.cat([_W_1, _PAIR], dim=1), torch.cat([_W_2, _PAIR.T]))),
    ("the larger one comes first; it should come second.", _with_biases(-_W_1, -_W_2)),
    ("nothing changes: the network's output is 0 everywhere.",
     _with_biases(_W_1, 0 * _W_2)),
    run=_run_network,
)(_with_biases(_W_1, _W_2))  # fmt: skip
