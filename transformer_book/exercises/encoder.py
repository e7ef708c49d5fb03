"""Graders of the chapter on the encoder."""

import torch
from torch import nn

from transformer_book.exercises.grading import fill, grader, run_module
from transformer_lib.model.attention import MultiHeadAttention
from transformer_lib.model.layers import EncoderLayer, FeedForward, LayerNorm
from transformer_lib.model.transformer import Encoder


def _draw_layer():
    modules = MultiHeadAttention(3, 1), FeedForward(3, 7), LayerNorm(3), LayerNorm(3)
    attention, *others = map(fill, modules)
    return [(torch.randn(2, 5, 3), lambda x: attention(x, x, x), *others)]


@grader(
    cases=_draw_layer,
    right="Gather, add, normalize; think, add, normalize.",
)
def check_encoder_layer(x, attention, feed_forward, norm_1, norm_2):
    """The post-norm encoder layer, of four functions: the same shape as x."""
    y = norm_1(x + attention(x))
    return norm_2(y + feed_forward(y))


def _pre_norm(x, attention, feed_forward, norm_1, norm_2):
    y = x + attention(norm_1(x))
    return y + feed_forward(norm_2(y))


def _x_not_added(x, attention, feed_forward, norm_1, norm_2):
    y = norm_1(attention(x))
    return norm_2(y + feed_forward(y))


def _y_not_added(x, attention, feed_forward, norm_1, norm_2):
    y = norm_1(x + attention(x))
    return norm_2(feed_forward(y))


def _nothing_added(x, attention, feed_forward, norm_1, norm_2):
    y = norm_1(attention(x))
    return norm_2(feed_forward(y))


def _x_added_twice(x, attention, feed_forward, norm_1, norm_2):
    y = norm_1(x + attention(x))
    return norm_2(x + feed_forward(y))


check_encoder_layer.mistake(
    "this is pre-norm; equation (6.1) normalizes after each sum.", _pre_norm
)
check_encoder_layer.mistake(
    "a residual connection is missing: add x, and then y.",
    _x_not_added,
    _y_not_added,
    _nothing_added,
)
check_encoder_layer.mistake(
    "the second half must read and add y, not x.", _x_added_twice
)
check_encoder_layer.mistake(
    "each half has a norm of its own, norm_1 and then norm_2.",
    lambda x, attention, feed_forward, norm_1, norm_2: check_encoder_layer.solve(
        x, attention, feed_forward, norm_1, norm_1
    ),
)


def _real():
    """A mask over five positions: the second of two sentences has three words."""
    return (torch.arange(5) < torch.tensor([[5], [3]]))[:, None, None]


def _draw_encoder():
    blocks = [(MultiHeadAttention(4, 2), FeedForward(4, 7)) for _ in range(3)]
    layers = [EncoderLayer(*pair, norm_first=True) for pair in blocks]
    encoder = fill(Encoder(layers, LayerNorm(4))).eval()
    return [(encoder, torch.randn(2, 5, 4), _real())]


@grader(
    cases=_draw_encoder,
    right="N + 1 states for N layers, and none of them is the output here.",
)
def check_hidden_states(encoder, x, mask):
    """The states X^1 to X^{N+1} of a pre-norm encoder with N layers.

    The encoder, x (batch, length, d_model), a mask -> (N + 1, batch, length, d_model).
    """
    states = [x]
    for layer in encoder.layers:
        states.append(layer(states[-1], mask))
    return torch.stack(states)


def _last_one_normalized(encoder, x, mask):
    *states, last = check_hidden_states.solve(encoder, x, mask)
    return torch.stack([*states, encoder.norm(last)])


check_hidden_states.mistake(
    "the last one is the encoder's output; in pre-norm X^{N+1} is taken before the "
    "final norm.",
    _last_one_normalized,
)
check_hidden_states.mistake(
    "the mask is not passed on to the layers.",
    lambda encoder, x, mask: check_hidden_states.solve(encoder, x, None),
)


def _draw_parallel():
    blocks = fill(MultiHeadAttention(4, 2)), fill(FeedForward(4, 7))
    return [(blocks, (3 * torch.randn(2, 5, 4), _real()))]


@grader(
    cases=_draw_parallel,
    right="One norm, two halves, one sum: the halves no longer wait for each other.",
    run=run_module,
)
class check_parallel_layer(nn.Module):
    """A class: (self_attn, feed_forward) makes a layer whose halves read the same.

    layer(x, src_mask) returns x + self_attn(n) + feed_forward(n); n is LayerNorm(x).
    """

    def __init__(self, self_attn, feed_forward):
        super().__init__()
        self.self_attn, self.feed_forward = self_attn, feed_forward
        self.norm = LayerNorm(self_attn.d_model)

    def forward(self, x, src_mask=None):
        """(batch, length, d_model) -> the same shape."""
        n = self.norm(x)
        return x + self.self_attn(n, n, n, src_mask) + self.feed_forward(n)


class _InTurn(check_parallel_layer.solve):
    def forward(self, x, src_mask=None):
        n = self.norm(x)
        y = x + self.self_attn(n, n, n, src_mask)
        return y + self.feed_forward(self.norm(y))


class _WithoutMask(check_parallel_layer.solve):
    def forward(self, x, src_mask=None):
        return super().forward(x)


class _AttentionReadsX(check_parallel_layer.solve):
    def forward(self, x, src_mask=None):
        return x + self.self_attn(x, x, x, src_mask) + self.feed_forward(self.norm(x))


class _NetworkReadsX(check_parallel_layer.solve):
    def forward(self, x, src_mask=None):
        n = self.norm(x)
        return x + self.self_attn(n, n, n, src_mask) + self.feed_forward(x)


class _NormAdded(check_parallel_layer.solve):
    def forward(self, x, src_mask=None):
        return super().forward(x, src_mask) - x + self.norm(x)


check_parallel_layer.mistake(
    "the halves run one after the other; here both read the same n.", _InTurn
)
check_parallel_layer.mistake("the mask isn't passed on to self_attn.", _WithoutMask)
check_parallel_layer.mistake(
    "both halves read the normalized n.", _AttentionReadsX, _NetworkReadsX
)
check_parallel_layer.mistake(
    "the sum starts with x as it came in; it is not normalized.", _NormAdded
)


def _run_network(weights, pairs):
    """Add FFN(x) to x, with these weights."""
    w_1, b_1, w_2, b_2 = (weight.double() for weight in weights)
    return pairs + (pairs @ w_1 + b_1).relu() @ w_2 + b_2


_W_1, _W_2 = torch.tensor([[1.0], [-1.0]]), torch.tensor([[-1.0, 1.0]])
_PAIR = torch.cat([torch.eye(2), -torch.eye(2)], dim=1)


def _with_biases(w_1, w_2):
    return w_1, torch.zeros(len(w_2)), w_2, torch.zeros(2)


# W_1 (2, d_ff), b_1 (d_ff,), W_2 (d_ff, 2), b_2 (2,): x + FFN(x) sorts pairs.
check_sorting_network = grader(
    cases=lambda: [(10 * torch.randn(50, 2, dtype=torch.float64),)],
    right="Sorted: a single ReLU can compare two numbers.",
    run=_run_network,
)(_with_biases(_W_1, _W_2))

check_sorting_network.mistake(
    "the network alone sorts; x is added to its output: compute what is missing.",
    _with_biases(torch.cat([_W_1, _PAIR], dim=1), torch.cat([_W_2, _PAIR.T])),
)
check_sorting_network.mistake(
    "the larger one comes first; it should come second.", _with_biases(-_W_1, -_W_2)
)
check_sorting_network.mistake(
    "nothing changes: the network's output is 0 everywhere.",
    _with_biases(_W_1, 0 * _W_2),
)
