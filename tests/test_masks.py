"""Masks: what they hide."""

import itertools

import torch

from transformer_lib.model.masks import causal_mask, padding_mask

PAD = 9


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
