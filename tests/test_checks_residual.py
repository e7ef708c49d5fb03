"""The graders of the layer norm chapter: right answers pass, wrong ones are named."""

import math

import pytest
import torch
from torch import nn

from transformer_lib.exercises.residual import (
    check_connection,
    check_copied_gain,
    check_identity_start,
    check_layer_norm,
)

GRADERS = [check_layer_norm, check_connection, check_copied_gain, check_identity_start]


def layer_norm(x, gain, bias, eps, *, dim=-1, unbiased=False, outside=False):
    centered = x - x.mean(dim=dim, keepdim=True)
    variance = x.var(dim=dim, unbiased=unbiased, keepdim=True)
    spread = variance.sqrt() + eps if outside else (variance + eps).sqrt()
    return centered / spread * gain + bias


def connect(x, sublayer, norm, dropout, norm_first):
    if norm_first:
        return x + dropout(sublayer(norm(x)))
    return norm(x + dropout(sublayer(x)))


def copied_gain(gain):
    return gain * math.sqrt((gain.numel() - 1) / gain.numel())


def last_maps(layer):
    return layer.self_attn.out_proj, layer.feed_forward.contract


def quiet_start(layer):
    for last in last_maps(layer):
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)


ANSWERS = [layer_norm, connect, copied_gain, quiet_start]


@pytest.mark.parametrize(("grader", "answer"), list(zip(GRADERS, ANSWERS, strict=True)))
def test_the_right_answer_passes(grader, answer) -> None:
    assert grader(answer).passed


@pytest.mark.parametrize(
    ("grader", "answer"), list(zip(GRADERS[:3], ANSWERS[:3], strict=True))
)
def test_a_wrong_shape_is_named(grader, answer) -> None:
    assert "shape" in grader(lambda *given: answer(*given)[:-1]).message


def test_the_ready_made_layer_norm_passes() -> None:
    def answer(x, gain, bias, eps):
        return nn.functional.layer_norm(x, x.shape[-1:], gain, bias, eps)

    assert check_layer_norm(answer).passed


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        (lambda *g: layer_norm(*g, unbiased=True), "variance is unbiased"),
        (lambda *g: layer_norm(*g, outside=True), "epsilon stands outside"),
        (
            lambda *g: layer_norm(*g, unbiased=True, outside=True),
            "unbiased and epsilon stands outside",
        ),
        (lambda x, g, b, eps: layer_norm(x, g, b, 0.0), "epsilon is missing"),
        (lambda *g: layer_norm(*g, dim=1), "run over the positions"),
        (lambda *g: layer_norm(*g, dim=(1, 2)), "positions and features"),
        (lambda x, g, b, eps: layer_norm(x, 1, 0, eps), "gain and bias are missing"),
        (lambda x, g, b, eps: layer_norm(x, 1, b, eps), "the gain is missing"),
        (lambda x, g, b, eps: layer_norm(x, g, 0, eps), "the bias is missing"),
        (lambda x, g, b, eps: layer_norm(x, b, g, eps), "swapped"),
        (lambda x, g, b, eps: (layer_norm(x, 1, b, eps)) * g, "bias is added before"),
        (
            lambda x, g, b, eps: layer_norm(x, g, 0, eps)
            / (x.var(-1, unbiased=False, keepdim=True) + eps).sqrt() + b,
            "root is missing",
        ),
        (
            lambda x, g, b, eps: x
            / (x.var(-1, unbiased=False, keepdim=True) + eps).sqrt() * g + b,
            "mean is not subtracted",
        ),
        (lambda *g: layer_norm(*g) + 1, "off, by up to 1."),
    ],
)  # fmt: skip
def test_wrong_layer_norms_are_named(answer, named) -> None:
    feedback = check_layer_norm(answer)
    assert feedback.status == "wrong"
    assert named in feedback.message


@pytest.mark.parametrize(
    ("post", "named"),
    [
        (lambda x, f, n, d: d(f(x)), "residual is missing"),
        (lambda x, f, n, d: n(d(f(x))), "residual is missing; add x before"),
        (lambda x, f, n, d: x + d(f(x)), "norm is missing"),
        (lambda x, f, n, d: x + d(n(f(x))), "only the sub-layer's output"),
        (lambda x, f, n, d: x + n(d(f(x))), "only the sub-layer's output"),
        (lambda x, f, n, d: d(n(x + f(x))), "dropout stands after the norm"),
        (lambda x, f, n, d: n(d(x + f(x))), "dropout acts on the sum"),
        (lambda x, f, n, d: n(x + f(d(x))), "dropout acts on the input of f"),
        (lambda x, f, n, d: n(x + f(x)), "dropout is missing"),
        (lambda x, f, n, d: x + d(f(n(x))), "this is the other order"),
    ],
)
def test_wrong_post_norm_is_named(post, named) -> None:
    def answer(x, f, n, d, norm_first):
        return connect(x, f, n, d, norm_first) if norm_first else post(x, f, n, d)

    feedback = check_connection(answer)
    assert feedback.status == "wrong"
    assert feedback.message.startswith("norm_first=False: ")
    assert named in feedback.message


@pytest.mark.parametrize(
    ("pre", "named"),
    [
        (lambda x, f, n, d: d(f(n(x))), "pre-norm too adds x"),
        (lambda x, f, n, d: n(x) + d(f(n(x))), "residual is taken after the norm"),
        (lambda x, f, n, d: x + d(f(x)), "norm is missing"),
        (lambda x, f, n, d: d(x + f(n(x))), "dropout acts on the sum"),
        (lambda x, f, n, d: x + f(d(n(x))), "dropout acts on the sub-layer's input"),
        (lambda x, f, n, d: x + f(n(x)), "dropout is missing"),
        (lambda x, f, n, d: n(x + d(f(x))), "this is the other order"),
        (lambda x, f, n, d: None, "nothing"),
    ],
)
def test_wrong_pre_norm_is_named(pre, named) -> None:
    def answer(x, f, n, d, norm_first):
        return pre(x, f, n, d) if norm_first else connect(x, f, n, d, norm_first)

    feedback = check_connection(answer)
    assert feedback.status == "wrong"
    assert feedback.message.startswith("norm_first=True: ")
    assert named in feedback.message


@pytest.mark.parametrize(
    ("factor", "named"),
    [
        (lambda n: 1.0, "unchanged"),
        (lambda n: math.sqrt(n / (n - 1)), "upside down: the unbiased"),
        (lambda n: (n - 1) / n, "root is missing: "),
        (lambda n: n / (n - 1), "root is missing, and"),
        (lambda n: math.sqrt(n / (n + 1)), "N + 1"),
        (lambda n: math.sqrt(1 / 2), "right for 2 features; for 5"),
    ],
)
def test_wrong_gains_are_named(factor, named) -> None:
    feedback = check_copied_gain(lambda gain: gain * factor(gain.numel()))
    assert feedback.status == "wrong"
    assert named in feedback.message


def zero(*kinds, which=(0, 1)):
    """A start that zeroes only some of the numbers."""

    def start(layer):
        for number, last in enumerate(last_maps(layer)):
            for kind in kinds:
                if number in which:
                    nn.init.zeros_(getattr(last, kind))

    return start


def silence_gains(layer):
    """The identity too, but through the norms: x reaches no weight any more."""
    quiet_start(layer)
    for connection in (layer.self_attn_connection, layer.feed_forward_connection):
        nn.init.zeros_(connection.norm.gain)


def zero_everything(layer):
    for parameter in layer.parameters():
        nn.init.zeros_(parameter)


@pytest.mark.parametrize(
    ("start", "named"),
    [
        (zero("weight"), "attention still adds the bias of self_attn.out_proj"),
        (zero("bias"), "attention still adds something"),
        (zero("weight", "bias", which=(0,)), "feed-forward network still adds somethi"),
        (zero("weight", "bias", which=(1,)), "attention still adds something"),
        (zero_everything, "identity for ever"),
        (silence_gains, "norm.gain was changed"),
    ],
)
def test_wrong_starts_are_named(start, named) -> None:
    feedback = check_identity_start(start)
    assert feedback.status == "wrong"
    assert named in feedback.message


def test_the_quiet_start_leaves_a_layer_that_can_learn() -> None:
    from transformer_lib.model.attention import MultiHeadAttention
    from transformer_lib.model.layers import EncoderLayer, FeedForward

    torch.manual_seed(0)
    parts = MultiHeadAttention(6, 2), FeedForward(6, 11)
    layer = EncoderLayer(*parts, dropout=0.0, norm_first=True)
    x = torch.randn(2, 3, 6)
    assert not torch.allclose(layer(x), x)  # the test can fail
    quiet_start(layer)
    torch.testing.assert_close(layer(x), x)
    layer(x).square().sum().backward()
    assert all(last.weight.grad.any() for last in last_maps(layer))
