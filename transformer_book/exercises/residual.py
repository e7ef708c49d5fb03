"""Graders of the chapter on residual connections, layer norm and dropout."""

import copy
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn

from transformer_book.exercises.grading import Grader, Mistake, Seen, is_missing
from transformer_lib.model.attention import MultiHeadAttention
from transformer_lib.model.layers import EncoderLayer, FeedForward


class _RMSNorm(nn.Module):
    """Right as it is; each argument after eps makes one mistake."""

    def __init__(
        self, d_model, eps=1e-5, *, dim=-1, center=0, n=1, mend=None, gain=True
    ):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(d_model))
        self.eps, self.dim, self.center, self.n = eps, dim, center, n
        self.mend = mend or (lambda square, eps: (square + eps).sqrt())
        self.scaled = gain

    def forward(self, x):
        x = x - self.center * x.mean(-1, keepdim=True)
        square = x.square().mean(self.dim, keepdim=True) * self.n
        x = x / self.mend(square, self.eps)
        return x * self.gain if self.scaled else x


def _normalize(answer, x, gain, eps):
    """Build the reader's module, give it the gain, and run it; None if it's a stub."""
    if getattr(answer, "forward", None) is nn.Module.forward:
        return None
    module = answer(x.size(-1), eps)
    if is_missing(module):
        return None
    if not isinstance(module, nn.Module):
        raise Mistake(f"expected a module, but got {type(module).__name__}.")
    if "gain" not in dict(module.named_parameters()):
        raise Mistake("the module has no parameter named gain; use nn.Parameter.")
    if module.gain.shape != gain.shape:
        shapes = tuple(gain.shape), tuple(module.gain.shape)
        raise Mistake(f"expected a gain of shape {shapes[0]}, but got {shapes[1]}.")
    with torch.no_grad():
        module.gain.copy_(gain)
        return module(x)


check_rms_norm = Grader(
    "a class: RMSNorm(d_model, eps), with a parameter gain (d_model,), whose forward "
    "takes x (batch, length, d_model) -> (batch, length, d_model)",
    cases=lambda: [(3 * torch.randn(2, 5, 7) + 2, torch.randn(7) + 1, 0.5)],
    run=_normalize,
    solution=_RMSNorm,
    right="Every position has a mean square of 1 before the gain, and no mean is "
    "subtracted.",
    mistakes={
        "the mean is subtracted; that is a layer norm without its bias.":
            {"center": 1},
        "epsilon is outside the square root; add it to the mean square.":
            {"mend": lambda square, eps: square.sqrt() + eps},
        "epsilon is missing.": {"mend": lambda square, eps: square.sqrt()},
        "the square root is missing; divide by the root mean square.":
            {"mend": lambda square, eps: square + eps},
        "the squares are summed; take their mean.": {"n": 7},
        "the mean is taken over the positions; take it over the features.": {"dim": 1},
        "the mean is taken over positions and features; take one for each position.":
            {"dim": (1, 2)},
        "the gain is missing.": {"gain": False},
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
    "x (batch, length, d_model), the functions sublayer, norm, and dropout, and "
    "norm_first -> (batch, length, d_model)",
    cases=_draw_connection,
    solution=_connect,
    right="Both orders are right, and dropout never touches the stream itself.",
    mistakes={
        "the order is wrong; norm_first=True means x + f(norm(x)).":
            [lambda x, f, norm, drop, norm_first: (
                 _connect(x, f, norm, drop, not norm_first)),
             _post(lambda x, f, norm, drop: x + drop(f(norm(x)))),
             _pre(lambda x, f, norm, drop: norm(x + drop(f(x))))],
        "the residual is missing; add x.": _post(lambda x, f, norm, drop: drop(f(x))),
        "the residual is missing; add x before the norm.":
            _post(lambda x, f, norm, drop: norm(drop(f(x)))),
        "the residual is missing; pre-norm adds x too.":
            _pre(lambda x, f, norm, drop: drop(f(norm(x)))),
        "x was normalized before it was added; add x exactly as it came in.":
            _pre(lambda x, f, norm, drop: norm(x) + drop(f(norm(x)))),
        "the norm is missing.":
            [_post(lambda x, f, norm, drop: x + drop(f(x))),
             _pre(lambda x, f, norm, drop: x + drop(f(x)))],
        "only the sub-layer's output is normalized; normalize the sum.":
            [_post(lambda x, f, norm, drop: x + drop(norm(f(x)))),
             _post(lambda x, f, norm, drop: x + norm(drop(f(x))))],
        "dropout comes after the norm, so it drops numbers from the stream itself.":
            _post(lambda x, f, norm, drop: drop(norm(x + f(x)))),
        "dropout is applied to the sum; apply it to the sub-layer's output.":
            [_post(lambda x, f, norm, drop: norm(drop(x + f(x)))),
             _pre(lambda x, f, norm, drop: drop(x + f(norm(x))))],
        "dropout is applied to the sub-layer's input; apply it to the output.":
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
    right="The same outputs as before, from a different norm.",
    mistakes={
        "the gain is unchanged; the outputs still differ.": lambda gain: gain.clone(),
        "the factor is upside down: the unbiased norm's outputs are smaller.":
            {"factor": lambda n: (n / (n - 1)) ** 0.5},
        "the square root is missing: (n - 1) / n is the factor of the variances.":
            {"factor": lambda n: (n - 1) / n},
        "the square root is missing, and the factor is upside down.":
            {"factor": lambda n: n / (n - 1)},
        "the factor contains n + 1, but no variance here divides by that.":
            {"factor": lambda n: (n / (n + 1)) ** 0.5},
        "this factor is right for 2 features only; it depends on how many there are.":
            {"factor": lambda n: 0.5**0.5},
    },
)  # fmt: skip


_ENDS = ("self_attn.out_proj", "feed_forward.contract")


def _zero(*kinds, ends=_ENDS):
    """A start that zeroes the weights or biases of the last map of each sub-layer."""

    def start(attention, network):
        lasts = dict(zip(_ENDS, (attention.out_proj, network.contract), strict=True))
        for end in ends:
            for kind in kinds:
                nn.init.zeros_(lasts[end].get_parameter(kind))

    return start


def _zero_everything(attention, network):
    for parameter in (*attention.parameters(), *network.parameters()):
        nn.init.zeros_(parameter)


def _zero_too_much(attention, network):
    _zero("weight", "bias")(attention, network)
    nn.init.zeros_(network.expand.bias)


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
    answer(layer.self_attn, layer.feed_forward)
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


def _name(ends):
    """Parameters or layers, as a reader's function knows them."""
    names = {"self_attn": "attention", "feed_forward": "network"}
    return [
        ".".join([names[part], *rest])
        for part, *rest in (end.split(".") for end in ends)
    ]


check_identity_start = Grader(
    "a MultiHeadAttention and a FeedForward, whose parameters are changed in place: "
    "both must return 0 at first, but be able to learn",
    cases=_draw_layer,
    run=_start,
    solution=_zero("weight", "bias"),
    right="Both write nothing at first, but can still learn.",
    any_answer=True,
    mistakes={
        "a sub-layer still adds the bias of {}.":
            Seen(lambda seen, *case: _name(seen.biased),
                 [_zero("weight"), _zero("weight", ends=["feed_forward.contract"])]),
        "a sub-layer still adds something; look at {}.":
            Seen(lambda seen, *case: _name(seen.adding),
                 [_zero("bias"),
                  _zero("weight", "bias", ends=["self_attn.out_proj"]),
                  _zero("weight", "bias", ends=["feed_forward.contract"])]),
        "the sub-layer can't learn: no gradient reaches {}.weight.":
            Seen(lambda seen, *case: _name(seen.stuck), _zero_everything),
        "you changed {}, which isn't needed.":
            Seen(lambda seen, *case: _name(seen.spare), _zero_too_much),
    },
)  # fmt: skip
