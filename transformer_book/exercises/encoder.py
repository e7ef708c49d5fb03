"""Graders of the chapter on the encoder."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_book.exercises.grading import Grader, Mistake, is_missing
from transformer_lib.model.attention import MultiHeadAttention
from transformer_lib.model.layers import EncoderLayer, FeedForward, LayerNorm
from transformer_lib.model.transformer import Encoder


def _feed_forward(x, w_1, b_1, w_2, b_2, bend=F.relu):
    return bend(x @ w_1 + b_1) @ w_2 + b_2


def _layer(x, attention, feed_forward, norm_1, norm_2):
    y = norm_1(x + attention(x))
    return norm_2(y + feed_forward(y))


def _fill(module):
    """Draw every parameter, gains and biases too."""
    for parameter in module.parameters():
        nn.init.normal_(parameter, float(parameter.dim() == 1), 0.5)
    return module.requires_grad_(False)


def _draw_layer():
    attention, *others = map(
        _fill, (MultiHeadAttention(3, 1), FeedForward(3, 7), LayerNorm(3), LayerNorm(3))
    )
    return [(torch.randn(2, 5, 3), lambda x: attention(x, x, x), *others)]


check_encoder_layer = Grader(
    "x (batch, length, d_model), the functions attention, feed_forward, norm_1 and "
    "norm_2 -> the post-norm encoder layer, (batch, length, d_model)",
    cases=_draw_layer,
    solution=_layer,
    right="Gather, add, normalize; think, add, normalize.",
    mistakes={
        "this is pre-norm; equation (6.1) normalizes after each sum.":
            lambda x, a, f, n, m: (y := x + a(n(x))) + f(m(y)),
        "the residual connection around attention is missing: add x.":
            lambda x, a, f, n, m: _layer(x, lambda x: a(x) - x, f, n, m),
        "the residual connection around the feed-forward network is missing: add y.":
            lambda x, a, f, n, m: m(f(n(x + a(x)))),
        "both residual connections are missing.": lambda x, a, f, n, m: m(f(n(a(x)))),
        "the second sum adds x; it should add y.":
            lambda x, a, f, n, m: m(x + f(n(x + a(x)))),
        "the feed-forward network reads x; it should read y.":
            lambda x, a, f, n, m: m(n(x + a(x)) + f(x)),
        "norm_1 is used twice; each half has a norm of its own.":
            lambda x, a, f, n, m: _layer(x, a, f, n, n),
        "the two norms are swapped.": lambda x, a, f, n, m: _layer(x, a, f, m, n),
        "the last norm is missing.":
            lambda x, a, f, n, m: _layer(x, a, f, n, Tensor.clone),
        "the first norm is missing.":
            lambda x, a, f, n, m: _layer(x, a, f, Tensor.clone, m),
        "the norm stands inside the sum: normalize x + attention(x), not attention(x) "
        "alone.": lambda x, a, f, n, m: (y := x + n(a(x))) + m(f(y)),
        "the halves are swapped; attention comes first.":
            lambda x, a, f, n, m: _layer(x, f, a, n, m),
    },
)  # fmt: skip


class _Parallel(nn.Module):
    """The layer whose two halves read the same normalized input."""

    def __init__(self, self_attn, feed_forward, *, fault=""):
        super().__init__()
        self.self_attn, self.feed_forward = self_attn, feed_forward
        self.norm, self.fault = LayerNorm(self_attn.d_model), fault
        self.second = LayerNorm(self_attn.d_model)

    def forward(self, x, src_mask=None):
        n, fault = self.norm(x), self.fault
        mask = None if fault == "mask" else src_mask
        gathered = self.self_attn(*[x if fault == "raw attention" else n] * 3, mask)
        if fault == "in turn":
            x = x + gathered
            return x + self.feed_forward(self.norm(x))
        thought = self.feed_forward(
            {"raw network": x, "gathered": gathered}.get(fault, n)
        )
        if fault == "no residual":
            return gathered + thought
        out = (n if fault == "normalized residual" else x) + gathered + thought
        return self.second(out) if fault == "norm after" else out


def _run_parallel(layer_class, attention, feed_forward, x, mask):
    layer = layer_class(attention, feed_forward)
    if not isinstance(layer, nn.Module):
        return layer  # no layer: the grader says what is expected instead
    return layer.eval()(x, mask)


def _draw_parallel():
    mask = torch.arange(5) < torch.tensor([[5], [3]])
    parts = _fill(MultiHeadAttention(4, 2)), _fill(FeedForward(4, 7))
    return [(*parts, 3 * torch.randn(2, 5, 4), mask[:, None, None])]


def _with(fault):
    return lambda *parts: _Parallel(*parts, fault=fault)


check_parallel_layer = Grader(
    "a class: (self_attn, feed_forward) makes a layer, and layer(x, src_mask) returns "
    "x + self_attn(n) + feed_forward(n), with n = LayerNorm(x)",
    cases=_draw_parallel,
    run=_run_parallel,
    solution=_Parallel,
    right="One norm, two halves, one sum: the halves no longer wait for each other.",
    mistakes={
        "the halves run one after the other; here both read the same n.":
            _with("in turn"),
        "the mask isn't passed on to self_attn.": _with("mask"),
        "self_attn reads x; it should read the normalized n.": _with("raw attention"),
        "feed_forward reads x; it should read the normalized n.": _with("raw network"),
        "feed_forward reads what self_attn returns; it should read n.":
            _with("gathered"),
        "x is missing from the sum.": _with("no residual"),
        "the sum starts with n; the residual connection adds the x that came in.":
            _with("normalized residual"),
        "the sum is normalized; this layer normalizes its input only.":
            _with("norm after"),
    },
)  # fmt: skip


def _states(encoder, x, mask):
    states = [x]
    for layer in encoder.layers:
        states.append(layer(states[-1], mask))
    return torch.stack(states)


def _and_output(states, encoder, x, mask):
    return torch.cat([states, encoder(x, mask)[None]])


def _draw_encoder():
    layers = [
        EncoderLayer(MultiHeadAttention(4, 2), FeedForward(4, 7), norm_first=True)
        for _ in range(3)
    ]
    encoder = _fill(Encoder(layers, LayerNorm(4))).eval()
    mask = torch.arange(5) < torch.tensor([[5], [3]])
    return [(encoder, torch.randn(2, 5, 4), mask[:, None, None])]


check_hidden_states = Grader(
    "a pre-norm encoder of N layers, x (batch, length, d_model), a mask -> the states "
    "X^1 to X^{N+1}, (N + 1, batch, length, d_model)",
    cases=_draw_encoder,
    solution=_states,
    right="N + 1 states for N layers, and none of them is the output here.",
    mistakes={
        "expected one tensor; torch.stack turns a list into one.":
            [lambda *given: list(_states(*given)),
             lambda *given: tuple(_states(*given))],
        "3 states for 3 layers: X^1, the embedding, belongs to the list too.":
            lambda *given: _states(*given)[1:],
        "5 states for 3 layers: the output of the final norm is no state.":
            lambda *given: _and_output(_states(*given), *given),
        "the last one is the encoder's output; in pre-norm X^{N+1} is taken before the "
        "final norm.": lambda *given: _and_output(_states(*given)[:-1], *given),
        "the mask is not passed on to the layers.":
            lambda encoder, x, mask: _states(encoder, x, None),
        "every layer reads X^1; each must read the output of the one before.":
            lambda encoder, x, mask: (
                torch.stack([x, *(layer(x, mask) for layer in encoder.layers)])),
        "every state went through the final norm; it is applied once, after the last "
        "layer, and not to the states.":
            lambda encoder, *given: encoder.norm(_states(encoder, *given)),
        "X^1 is missing, and the output stands at the end; X^{N+1} is the last layer's "
        "output.": lambda *given: _and_output(_states(*given)[1:], *given),
    },
)  # fmt: skip


def _run_network(weights, pairs):
    """Check the shapes of the weights, and run x + FFN(x) with them."""
    if any(is_missing(each) for each in weights):
        return None
    d_ff = weights[0].shape[-1] if isinstance(weights[0], Tensor) else "d_ff"
    shapes = {"W_1": (2, d_ff), "b_1": (d_ff,), "W_2": (d_ff, 2), "b_2": (2,)}
    for (name, shape), each in zip(shapes.items(), weights, strict=True):
        if getattr(each, "shape", None) != shape:
            raise Mistake(f"{name} should be a tensor of shape {shape}, not {each}.")
    return pairs + _feed_forward(pairs, *(each.double() for each in weights)), d_ff


def _always_sorted():
    """Weights whose output is the sorted pair itself, to which x is added then."""
    w_1 = torch.tensor([[1.0, 1.0, -1.0, 0.0, 0.0], [-1.0, 0.0, 0.0, 1.0, -1.0]])
    w_2 = torch.tensor([[-1.0, 1.0], [1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    return w_1, torch.zeros(5), w_2, torch.zeros(2)


_W_1, _B_1 = torch.tensor([[1.0], [-1.0]]), torch.zeros(1)
_W_2, _B_2 = torch.tensor([[-1.0, 1.0]]), torch.zeros(2)

check_sorting_network = Grader(
    "W_1 (2, d_ff), b_1 (d_ff,), W_2 (d_ff, 2), b_2 (2,), with which x + FFN(x) sorts "
    "pairs of numbers",
    cases=lambda: [(10 * torch.randn(50, 2, dtype=torch.float64),)],
    run=_run_network,
    view=lambda result, pairs: result[0],
    solution=(_W_1, _B_1, _W_2, _B_2),
    right=lambda results: (
        f"Sorted, with d_ff = {results[0][1]}: a single ReLU can compare two numbers."
    ),
    mistakes={
        "the network alone sorts; x is added to its output, so it must compute what is "
        "missing.": _always_sorted(),
        "the larger one comes first; it should come second.":
            (-_W_1, _B_1, -_W_2, _B_2),
        "nothing changes: the network's output is 0 everywhere.":
            (_W_1, _B_1, 0 * _W_2, _B_2),
    },
)  # fmt: skip
