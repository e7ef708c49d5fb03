"""The graders of the chapter on embeddings: right answers pass, mistakes are named."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from transformer_lib.exercises.embeddings import (
    check_count,
    check_embed,
    check_positions,
    check_shift,
)
from transformer_lib.model.embeddings import sinusoid_table

Embed = Callable[[Tensor, Tensor, int], Tensor]


@pytest.mark.parametrize("check", [check_embed, check_shift, check_positions])
def test_a_wrong_shape_is_told(check) -> None:
    feedback = check(lambda *arguments: torch.zeros(2, 3))
    assert feedback.status == "wrong"
    assert "expected shape" in feedback.message and "(2, 3)" in feedback.message


def counting(none, decoder, shared) -> Callable[[int, int, int, str], int]:
    """Each argument: (src_vocab, tgt_vocab) -> number of rows in all matrices."""
    rows = {"none": none, "decoder": decoder, "all": shared}
    return lambda src, tgt, d_model, tying: rows[tying](src, tgt) * d_model


def three(src, tgt):
    return src + 2 * tgt


def two(src, tgt):
    return src + tgt


def one(src, tgt):
    return tgt


def test_the_right_count_passes() -> None:
    assert check_count(counting(three, two, one)).passed


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (counting(three, three, three), "a shared matrix counts once"),
        (counting(two, two, one), "left out the output layer"),
        (counting(three, lambda s, t: 2 * s, one), "shares with the target embedding"),
        (counting(three, one, one), "the source embedding keeps a matrix"),
        (counting(three, two, lambda s, t: 5 * t), "expected 78, but got 390"),
        (lambda s, t, d, tying: three(s, t) * d + t, "has no bias"),
        (lambda s, t, d, tying: "many", "whole number"),
        (lambda s, t, d, tying: True, "whole number"),
    ],
)
def test_a_mistaken_count_is_named(answer, message: str) -> None:
    feedback = check_count(answer)
    assert feedback.status == "wrong"
    assert message in feedback.message


def embedding(
    factor: Callable[[int], float] = math.sqrt,
    of_sum: Callable[[int], float] = lambda d_model: 1.0,
    count: Callable[[Tensor], Tensor] = lambda real: real.cumsum(1) - 1,
) -> Embed:
    """Equation 1.6, with another factor, a factor of the sum, or other positions."""

    def answer(ids: Tensor, weight: Tensor, pad_id: int) -> Tensor:
        d_model = weight.size(1)
        positions = count(ids != pad_id).clamp(min=0)
        places = sinusoid_table(99, d_model)[positions]
        return of_sum(d_model) * (factor(d_model) * weight[ids] + places)

    return answer


def from_edge(real: Tensor) -> Tensor:
    return torch.arange(real.size(1)).expand(real.shape)


def concatenated(ids: Tensor, weight: Tensor, pad_id: int) -> Tensor:
    places = sinusoid_table(ids.size(1), weight.size(1)).expand(len(ids), -1, -1)
    return torch.cat([math.sqrt(weight.size(1)) * weight[ids], places], dim=-1)


def test_the_right_embedding_passes() -> None:
    assert check_embed(embedding()).passed


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (embedding(factor=lambda d: 1.0), "factor sqrt(d_model) on the token"),
        (embedding(factor=lambda d: d), "not d_model"),
        (embedding(factor=lambda d: d**-0.5), "multiply"),
        (embedding(factor=lambda d: 1.0, of_sum=math.sqrt), "not to the sum"),
        (embedding(count=from_edge), "past the padding"),
        (embedding(count=lambda real: real.cumsum(1)), "yours start at 1"),
        (embedding(count=lambda real: real.cumsum(1) + 2), "as fairseq's do"),
        (
            embedding(count=lambda real: (real.flatten().cumsum(0) - 1).view_as(real)),
            "each starts at 0",
        ),
        (embedding(factor=lambda d: 1.0, count=from_edge), "two mistakes"),
        (embedding(factor=lambda d: 3.0), "differ from sqrt(d_model)"),
        (lambda ids, w, pad: math.sqrt(w.size(1)) * w[ids], "positions are missing"),
        (concatenated, "don't concatenate"),
    ],
)
def test_a_mistaken_embedding_is_named(answer: Embed, message: str) -> None:
    feedback = check_embed(answer)
    assert feedback.status == "wrong"
    assert message in feedback.message


def test_vectors_at_padding_are_not_judged() -> None:
    def answer(ids: Tensor, weight: Tensor, pad_id: int) -> Tensor:
        vectors = embedding()(ids, weight, pad_id)
        return vectors.masked_fill((ids == pad_id)[..., None], 99.0)

    assert check_embed(answer).passed


def shifting(
    sign: int = 1,
    frequency: Callable[[Tensor, int], Tensor] = lambda i, d: 10_000.0 ** (-2 * i / d),
) -> Callable[[Tensor, int], Tensor]:
    """Equation 1.4, with another direction or other frequencies."""

    def answer(places: Tensor, k: int) -> Tensor:
        d_model = places.size(1)
        angle = sign * k * frequency(torch.arange(d_model // 2), d_model)
        sin, cos = places[:, 0::2], places[:, 1::2]
        new_sin = sin * angle.cos() + cos * angle.sin()
        new_cos = cos * angle.cos() - sin * angle.sin()
        return torch.stack([new_sin, new_cos], dim=-1).flatten(1)

    return answer


def sines_first(places: Tensor, k: int) -> Tensor:
    moved = shifting()(places, k)
    return torch.cat([moved[:, 0::2], moved[:, 1::2]], dim=1)


def swapped(places: Tensor, k: int) -> Tensor:
    return shifting()(places, k).unflatten(1, (-1, 2)).flip(-1).flatten(1)


def counted_from_zero(places: Tensor, k: int) -> Tensor:
    return sinusoid_table(20, places.size(1))[k : k + len(places)]


def test_the_right_shift_passes() -> None:
    assert check_shift(shifting()).passed


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (shifting(sign=-1), "you moved by -3"),
        (lambda places, k: places.roll(-k, dims=0), "rows were moved"),
        (lambda places, k: places, "come back unmoved"),
        (swapped, "sine and cosine changed places"),
        (sines_first, "all sines come first"),
        (counted_from_zero, "positions of the rows are unknown"),
        (shifting(frequency=lambda i, d: torch.ones(len(i))), "at the same speed"),
        (shifting(frequency=lambda i, d: 10_000.0 ** (-i / d)), "yours is i / d_model"),
        (lambda places, k: places + k, "differs from the vectors 3 further on"),
        (lambda places, k: places / 0, "NaN or infinity"),
    ],
)
def test_a_mistaken_shift_is_named(answer, message: str) -> None:
    feedback = check_shift(answer)
    assert feedback.status == "wrong"
    assert message in feedback.message


def waves(frequency: Tensor) -> Callable[[int, int], Tensor]:
    def answer(n_positions: int, d_model: int) -> Tensor:
        angle = torch.arange(n_positions)[:, None] * frequency
        return torch.cat([angle.sin(), angle.cos()], dim=1)

    return answer


GOLDEN = waves(torch.arange(1, 9) * (1 + 5**0.5) / 2)


def learned(n_positions: int, d_model: int) -> Tensor:
    numbers = torch.Generator().manual_seed(0)
    return 2 * torch.rand(99, d_model, generator=numbers)[:n_positions] - 1


def fraction(n_positions: int, d_model: int) -> Tensor:
    return GOLDEN(n_positions, d_model) / n_positions


def test_other_waves_pass() -> None:
    assert check_positions(GOLDEN).passed


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda n, d: torch.rand(n, d), "two different tables"),
        (fraction, "depend on the length"),
        (lambda n, d: torch.arange(n)[:, None].expand(n, d), "one is 63"),
        (lambda n, d: torch.ones(n, d), "only 0.000 apart"),
        (waves(torch.full((8,), math.pi / 8)), "apart; more than 0.1"),
        (learned, "no single matrix"),
        (sinusoid_table, "the paper's own waves"),
    ],
)
def test_a_missing_property_is_named(answer, message: str) -> None:
    feedback = check_positions(answer)
    assert feedback.status == "wrong"
    assert message in feedback.message


def test_the_graders_leave_the_seed_alone() -> None:
    torch.manual_seed(0)
    before = torch.get_rng_state()
    check_embed(embedding())
    check_positions(GOLDEN)
    assert torch.equal(torch.get_rng_state(), before)
