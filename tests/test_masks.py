"""Masks: what they hide, what they refuse, and how they translate."""

import itertools
from typing import get_args

import pytest
import torch

from transformer_lib.convert.masks import (
    MaskConvention,
    convert_mask,
)
from transformer_lib.model.masks import causal_mask, padding_mask

PAD = 9
ATTEND = torch.tensor([[True, False, True], [True, True, False]])
INF = float("inf")


def test_padding_mask_hides_padding_keys_for_every_head_and_query() -> None:
    mask = padding_mask(torch.tensor([[5, 6, PAD], [7, PAD, PAD]]), PAD)
    assert mask.shape == (2, 1, 1, 3)
    assert mask.flatten(1).tolist() == [[True, True, False], [True, False, False]]


def test_causal_mask_shows_each_query_its_past_and_itself() -> None:
    mask = causal_mask(5)
    for query, key in itertools.product(range(5), range(5)):
        assert mask[query, key] == (key <= query)


def test_causal_mask_is_made_where_it_is_asked_for() -> None:
    assert causal_mask(3, device="meta").device.type == "meta"


@pytest.mark.parametrize(
    ("convention", "expected"),
    [
        ("ignore", [[False, True, False], [False, False, True]]),
        ("additive", [[0.0, -INF, 0.0], [0.0, 0.0, -INF]]),
        ("attend_byte", [[1, 0, 1], [1, 1, 0]]),
        ("ignore_byte", [[0, 1, 0], [0, 0, 1]]),
    ],
)
def test_every_convention_says_the_same(convention, expected) -> None:
    assert convert_mask(ATTEND, "attend", convention).tolist() == expected


@pytest.mark.parametrize(
    ("source", "target"), list(itertools.product(get_args(MaskConvention), repeat=2))
)
def test_a_translation_there_and_back_changes_nothing(source, target) -> None:
    given = convert_mask(ATTEND, "attend", source)
    there = convert_mask(given, source, target)
    back = convert_mask(there, target, source)
    assert torch.equal(back, given)
    assert back.dtype == given.dtype


@pytest.mark.parametrize("fill", [-1e4, -1e8, -1e9, -1e15, torch.finfo().min])
def test_finite_fill_values_count_as_hidden(fill) -> None:
    additive = torch.zeros(2, 3).masked_fill(~ATTEND, fill)
    assert torch.equal(convert_mask(additive, "additive", "attend"), ATTEND)


def test_a_mask_stays_where_it_is() -> None:
    additive = convert_mask(ATTEND.to("meta"), "attend", "additive")
    assert additive.device.type == "meta"


def test_an_additive_mask_comes_in_the_type_asked_for() -> None:
    half = convert_mask(ATTEND, "attend", "additive", dtype=torch.float16)
    assert half.dtype == torch.float16
    assert half.isneginf().sum() == 2


@pytest.mark.parametrize(
    ("mask", "source", "error", "message"),
    [
        (torch.zeros(2), "attend", TypeError, "is boolean, not torch.float32"),
        (torch.zeros(2), "ignore", TypeError, "is boolean, not torch.float32"),
        (ATTEND, "additive", TypeError, "floating-point, not torch.bool"),
        (torch.tensor([0.0, -0.5]), "additive", ValueError, "is a bias, not a mask"),
        (torch.tensor([0.0, INF]), "additive", ValueError, "is a bias, not a mask"),
        (torch.zeros(2), "attend_byte", TypeError, "integers, not torch.float32"),
        (torch.tensor([0, 2]), "ignore_byte", ValueError, "only 0 and 1"),
        (ATTEND, "keep", ValueError, "convention 'keep' is unknown"),
    ],
)
def test_what_a_convention_does_not_have_is_refused(
    mask, source, error, message
) -> None:
    with pytest.raises(error, match=message):
        convert_mask(mask, source, "attend")
