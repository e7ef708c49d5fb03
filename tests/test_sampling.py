"""Sampling: frequencies are the probabilities, and what is cut is never drawn."""

import math

import pytest
import torch
from small_models import EOS, SRC, constant_model, make_config, make_model

from transformer_lib import SamplingConfig, greedy_decode, sample

PROBABILITIES = torch.tensor([[0.5, 0.25, 0.125, 0.125]]).double()
LOGITS = PROBABILITIES.log() + 3.0  # any constant may be added


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [8, 4, 2, 2]),
        ({"temperature": 0.5}, [64, 16, 4, 4]),  # squares
        ({"top_k": 1}, [1, 0, 0, 0]),
        ({"top_k": 2}, [2, 1, 0, 0]),
        ({"top_k": 9}, [8, 4, 2, 2]),
        ({"top_p": 0.49}, [1, 0, 0, 0]),
        ({"top_p": 0.51}, [2, 1, 0, 0]),
        ({"top_p": 0.74}, [2, 1, 0, 0]),
        ({"top_k": 2, "top_p": 0.6}, [1, 0, 0, 0]),  # of two, the first has 2 / 3
    ],
    ids=str,
)
def test_probabilities_are_those_left(options, expected) -> None:
    expected = torch.tensor([expected]).double()
    order = torch.tensor([2, 1, 0, 3])  # each row is cut by itself, in any order
    rows = torch.cat([LOGITS, LOGITS[:, order]])
    found = SamplingConfig(**options).probabilities(rows)
    expected = torch.cat([expected, expected[:, order]]) / expected.sum()
    torch.testing.assert_close(found, expected)


def test_tokens_are_drawn_as_often_as_they_are_likely() -> None:
    logits = torch.tensor([-99.0, -99.0, 0.2, 0.5, 0.3, -99.0, -99.0]).double()
    logits[2:5].log_()
    given = constant_model(logits), SRC[:1].expand(3000, -1), make_config(1)
    found = sample(*given, SamplingConfig(), seeded())
    for token, probability in ((EOS, 0.2), (3, 0.5), (4, 0.3)):
        drawn = [hypothesis for hypothesis in found if hypothesis.ids == [token]]
        assert abs(len(drawn) / 3000 - probability) < 4 * math.sqrt(0.25 / 3000)
        assert drawn[0].log_prob == pytest.approx(math.log(probability))


def test_a_seed_repeats_its_targets_and_another_draws_others() -> None:
    model, config = make_model(8), make_config()
    first = sample(model, SRC, config, SamplingConfig(), seeded(0))
    assert first == sample(model, SRC, config, SamplingConfig(), seeded(0))
    assert first != sample(model, SRC, config, SamplingConfig(), seeded(1))


def test_the_sampling_does_not_change_the_log_probabilities() -> None:
    given = make_model(8), SRC, make_config()
    sharp = SamplingConfig(top_k=1, temperature=0.1)
    assert sample(*given, sharp, seeded()) == greedy_decode(*given)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": 0.0}, "temperature must be above 0, not 0.0"),
        ({"temperature": math.nan}, "not nan"),
        ({"top_p": 0.0}, "top_p must be above 0 and at most 1, not 0.0"),
        ({"top_p": 1.1}, "top_p must be above 0 and at most 1, not 1.1"),
    ],
)
def test_sampling_from_nothing_is_refused(options, message) -> None:
    with pytest.raises(ValueError, match=message):
        SamplingConfig(**options)
