"""The graders of the encoder chapter: right answers pass, wrong ones are named."""

import pytest
import torch
import torch.nn.functional as F

from transformer_lib.exercises.encoder import (
    check_encoder_layer,
    check_feed_forward,
    check_hidden_states,
    check_sorting_network,
)

GRADERS = [check_feed_forward, check_encoder_layer, check_hidden_states]


def feed_forward(x, w_1, b_1, w_2, b_2):
    return (x @ w_1 + b_1).relu() @ w_2 + b_2


def layer(x, attend, ffn, norm_1, norm_2):
    y = norm_1(x + attend(x))
    return norm_2(y + ffn(y))


def states(encoder, x, mask):
    collected = [x]
    for each in encoder.layers:
        collected.append(each(collected[-1], mask))
    return torch.stack(collected)


RIGHT = list(zip(GRADERS, [feed_forward, layer, states], strict=True))


@pytest.mark.parametrize(("grader", "answer"), RIGHT)
def test_the_right_answer_passes(grader, answer) -> None:
    assert grader(answer).passed


@pytest.mark.parametrize(("grader", "answer"), RIGHT)
def test_wrong_shapes_and_numbers_are_told(grader, answer) -> None:
    assert "shape" in grader(lambda *given: answer(*given)[..., :-1]).message
    assert "off" in grader(lambda *given: answer(*given) + 1).message
    assert "NaN" in grader(lambda *given: answer(*given) * torch.nan).message
    assert "tensor" in grader(lambda *given: 3.0).message


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        (lambda x, w, b, v, c: (x @ w + b) @ v + c, "no ReLU"),
        (lambda x, w, b, v, c: F.gelu(x @ w + b) @ v + c, "GELU"),
        (lambda x, w, b, v, c: ((x @ w + b) @ v + c).relu(), "at the end; it"),
        (lambda *given: feed_forward(*given).relu(), "at the end, too"),
        (lambda x, w, b, v, c: (x @ w).relu() @ v + c, "b_1 is missing"),
        (lambda x, w, b, v, c: ((x @ w).relu() + b) @ v + c, "added after ReLU"),
        (lambda x, w, b, v, c: (x @ w + b).relu() @ v, "b_2 is missing"),
        (lambda x, *rest: x + feed_forward(x, *rest), "residual"),
        (lambda x, w, *rest: feed_forward(x, w.T, *rest), "RuntimeError"),
        (
            lambda x, w, b, v, c: (
                torch.einsum("bld,df->blf", x, w).add(b).relu() @ v + c
            ),
            "single vector",
        ),
    ],
)
def test_mistakes_in_the_feed_forward_network_are_named(answer, named) -> None:
    feedback = check_feed_forward(answer)
    assert feedback.status == "wrong"
    assert named in feedback.message


def pre_norm(x, attend, ffn, norm_1, norm_2):
    y = x + attend(norm_1(x))
    return y + ffn(norm_2(y))


def norm_inside(x, attend, ffn, norm_1, norm_2):
    y = x + norm_1(attend(x))
    return y + norm_2(ffn(y))


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        (pre_norm, "pre-norm"),
        (lambda x, a, f, n, m: layer(x, lambda x: a(x) - x, f, n, m), "around attent"),
        (lambda x, a, f, n, m: m(f(n(x + a(x)))), "around the feed-forward"),
        (lambda x, a, f, n, m: m(f(n(a(x)))), "both ways around"),
        (lambda x, a, f, n, m: m(x + f(n(x + a(x)))), "second sum adds x"),
        (lambda x, a, f, n, m: m(n(x + a(x)) + f(x)), "reads x"),
        (lambda x, a, f, n, m: layer(x, a, f, n, n), "used twice"),
        (lambda x, a, f, n, m: layer(x, a, f, m, n), "swapped"),
        (lambda x, a, f, n, m: layer(x, a, f, n, lambda x: x), "last norm"),
        (lambda x, a, f, n, m: layer(x, a, f, lambda x: x, m), "first norm"),
        (norm_inside, "inside the sum"),
        (lambda x, a, f, n, m: layer(x, f, a, n, m), "attention comes first"),
    ],
)
def test_mistakes_in_the_layer_are_named(answer, named) -> None:
    feedback = check_encoder_layer(answer)
    assert feedback.status == "wrong"
    assert named in feedback.message


def separate(encoder, x, mask):
    return torch.stack([x, *(each(x, mask) for each in encoder.layers)])


def with_output(encoder, x, mask):
    return torch.cat([states(encoder, x, mask)[:-1], encoder(x, mask)[None]])


def with_both(encoder, x, mask):
    return torch.cat([states(encoder, x, mask), encoder(x, mask)[None]])


def shifted(encoder, x, mask):
    return torch.cat([states(encoder, x, mask)[1:], encoder(x, mask)[None]])


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        (with_output, "before the final norm"),
        (with_both, "5 states"),
        (shifted, "X^1 is missing"),
        (separate, "every layer reads X^1"),
        (lambda e, x, mask: states(e, x, None), "mask is not passed"),
        (lambda e, x, mask: states(e, x, mask)[1:], "3 states"),
        (lambda e, x, mask: e.norm(states(e, x, mask)), "through the final norm"),
        (lambda e, x, mask: list(states(e, x, mask)), "torch.stack"),
        (lambda e, x, mask: x.sum(), "shape"),
    ],
)
def test_mistakes_in_the_states_are_named(answer, named) -> None:
    feedback = check_hidden_states(answer)
    assert feedback.status == "wrong"
    assert named in feedback.message


W_1, B_1 = torch.tensor([[1.0], [-1.0]]), torch.zeros(1)
W_2, B_2 = torch.tensor([[-1.0, 1.0]]), torch.zeros(2)


def test_a_sorting_network_passes_at_any_width() -> None:
    assert check_sorting_network(W_1, B_1, W_2, B_2).passed
    wider = torch.cat([W_1, W_1], dim=1), torch.zeros(2), torch.cat([W_2, 0 * W_2])
    assert check_sorting_network(*wider, B_2).passed


def test_the_sorting_network_of_the_stub_is_not_attempted() -> None:
    assert check_sorting_network(..., ..., ..., ...).status == "open"
    assert check_sorting_network(W_1, B_1, W_2, ...).status == "open"


def alone() -> tuple[torch.Tensor, ...]:
    """Weights whose output is the sorted pair itself: the residual is counted twice."""
    w_1 = torch.tensor([[1.0, 1.0, -1.0, 0.0, 0.0], [-1.0, 0.0, 0.0, 1.0, -1.0]])
    w_2 = torch.tensor([[-1.0, 1.0], [1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    return w_1, torch.zeros(5), w_2, B_2


@pytest.mark.parametrize(
    ("weights", "named"),
    [
        (alone(), "network alone sorts"),
        ((-W_1, B_1, -W_2, B_2), "larger one comes first"),
        ((W_1, B_1, 0 * W_2, B_2), "nothing changes"),
        ((W_1, B_1, W_2, B_2 + 1), "becomes"),
        ((W_1.T, B_1, W_2, B_2), "W_1"),
        ((W_1, B_1, W_2.T, B_2), "W_2"),
        ((W_1, torch.zeros(2), W_2, B_2), "b_1"),
        ((W_1, B_1, W_2, 0.0), "b_2"),
        ((1.0, B_1, W_2, B_2), "W_1"),
    ],
)
def test_mistakes_in_the_sorting_network_are_named(weights, named) -> None:
    feedback = check_sorting_network(*weights)
    assert feedback.status == "wrong"
    assert named in feedback.message
