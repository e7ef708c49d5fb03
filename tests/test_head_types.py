"""Relations hold where they should, and their weights equal a count in loops."""

import math

import pytest
import torch
from torch import Tensor

from transformer_lib.interpret.head_types import (
    count_types,
    head_type,
    positional_relations,
    relation_from_pairs,
    relation_from_rule,
    relation_weight,
)
from transformer_lib.model.masks import causal_mask

Q_REAL = torch.tensor([[1, 1, 1, 1, 0], [1, 1, 0, 0, 0]], dtype=torch.bool)
K_REAL = torch.tensor([[1, 1, 1], [1, 1, 0]], dtype=torch.bool)


def expected_key(name: str, q: int, n_keys: int) -> int:
    places = {"previous": q - 1, "same": q, "next": q + 1, "first": 0}
    return places.get(name, n_keys - 1)


@pytest.mark.parametrize("name", ["previous", "same", "next", "first", "last"])
def test_a_positional_relation_holds_for_one_real_key_at_most(name: str) -> None:
    relation = positional_relations(Q_REAL, K_REAL)[name]
    assert relation.shape == (2, 5, 3)
    for n in range(2):
        for q in range(5):
            n_keys = int(K_REAL[n].sum())
            key = expected_key(name, q, n_keys)
            holds = bool(Q_REAL[n, q]) and 0 <= key < n_keys
            assert relation[n, q].nonzero().flatten().tolist() == [key] * holds


def test_pairs_become_a_relation() -> None:
    relation = relation_from_pairs([[(0, 2), (1, 0)], []], q_len=3, k_len=4)
    assert relation.nonzero().tolist() == [[0, 0, 2], [0, 1, 0]]
    with pytest.raises(IndexError, match="sentence 0: pair"):
        relation_from_pairs([[(-1, 0)]], 3, 4)
    with pytest.raises(IndexError):
        relation_from_pairs([[(0, 4)]], 3, 4)


def slow_weight(weights: Tensor, relation: Tensor, allowed: Tensor) -> list[float]:
    """The mean, one query at a time."""
    batch, n_heads, q_len, k_len = weights.shape
    means = []
    for h in range(n_heads):
        total, count = 0.0, 0
        for n in range(batch):
            for q in range(q_len):
                seen = [k for k in range(k_len) if allowed[n, q, k]]
                keys = [k for k in seen if relation[n, q, k]]
                if keys and len(seen) >= 2:
                    total += sum(weights[n, h, q, k].item() for k in keys)
                    count += 1
        means.append(total / count)
    return means


@pytest.mark.parametrize("seed", range(5))
def test_the_weight_on_a_relation_is_that_of_a_slow_count(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    weights = torch.rand(2, 3, 5, 7, generator=generator, dtype=torch.float64)
    relation = torch.rand(2, 5, 7, generator=generator) < 0.3
    allowed = torch.rand(2, 5, 7, generator=generator) < 0.4
    found = relation_weight(weights, relation, allowed)
    assert found.tolist() == pytest.approx(slow_weight(weights, relation, allowed))


def test_queries_without_a_choice_do_not_count() -> None:
    weights = torch.tensor([[[[1.0, 0.0, 0.0], [0.2, 0.8, 0.0], [0.4, 0.3, 0.3]]]])
    real = torch.ones(1, 3, dtype=torch.bool)
    first = positional_relations(real, real)["first"]
    found = relation_weight(weights, first, causal_mask(3))
    assert found.item() == pytest.approx((0.2 + 0.4) / 2)
    everything = torch.ones(1, 1, 3, dtype=torch.bool)
    assert relation_weight(weights, first, everything).item() == pytest.approx(1.6 / 3)


def test_padding_does_not_count() -> None:
    real = torch.tensor([[True, True, False]])
    weights = torch.full((1, 2, 3, 3), 0.5)
    weights[:, :, 2] = 9.0  # rows of padding
    same = positional_relations(real, real)["same"]
    found = relation_weight(weights, same, real[:, None])
    assert found.tolist() == [0.5, 0.5]


def test_a_relation_that_nobody_has_has_no_weight() -> None:
    nothing = torch.zeros(1, 3, 3, dtype=torch.bool)
    weights = torch.full((1, 2, 3, 3), 1 / 3)
    found = relation_weight(weights, nothing, ~nothing)
    assert all(math.isnan(value) for value in found.tolist())


def test_another_shape_is_refused() -> None:
    with pytest.raises(ValueError, match=r"shape \(1, 3, 4\), but weights ask for"):
        relation_weight(
            torch.ones(1, 2, 3, 3), torch.ones(1, 3, 4).bool(), causal_mask(3)
        )


def test_a_type_is_the_largest_weight_if_it_is_large_enough() -> None:
    scores = {"previous": 0.2, "same": 0.6}
    assert head_type(scores, 0.6) == "same"
    assert head_type(scores, 0.61) is None
    for threshold in (0.0, 1.1):
        with pytest.raises(ValueError, match=f"not {threshold}"):
            head_type(scores, threshold)


def test_a_rule_becomes_a_relation_behind_bos() -> None:
    names = [["article", "noun", "verb"], ["noun"]]
    rule = lambda word, other: (word, other) == ("article", "noun")  # noqa: E731
    plain = relation_from_rule(names, rule, length=5)
    assert plain.shape == (2, 5, 5)
    assert plain.nonzero().tolist() == [[0, 0, 1]]
    shifted = relation_from_rule(names, rule, length=5, offset=1)
    assert shifted.nonzero().tolist() == [[0, 1, 2]]


def test_types_are_counted_over_heads() -> None:
    table = {
        "previous": {"a": 0.6, "b": 0.2, "c": 0.1},
        "same": {"a": 0.3, "b": 0.7, "c": 0.4},
        "alignment": {"b": 0.8},
    }
    assert count_types(table, 0.5) == {"previous": 1, "alignment": 1}
    assert count_types(table, 0.4) == {"previous": 1, "alignment": 1, "same": 1}
    assert count_types(table, 0.9) == {}
