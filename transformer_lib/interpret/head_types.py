"""What does a head look at? Relations between a query and its keys, and their weight.

A relation is a boolean tensor (batch, q_len, k_len): True where a key stands in this
relation to a query, such as "the token before it". The weight that a head puts on a
relation is a number between 0 and 1; a head whose weight is large is of this type.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from transformer_lib.model.checks import (
    check_finite,
    check_integers,
    check_kind,
    check_mask,
    check_numbers,
    check_sizes,
    check_tensors,
    check_texts,
)


def positional_relations(q_real: Tensor, k_real: Tensor) -> dict[str, Tensor]:
    """Relations of places: the key before, at and after the query's, first and last.

    Args:
        q_real: (batch, q_len), boolean, True where a query is no padding. Padding
            stands on the right.
        k_real: (batch, k_len), the same of the keys.

    Returns:
        Name -> (batch, q_len, k_len), boolean: "previous", "same", "next", "first" and
        "last", the last real key, which is `<eos>` in a source.

    Raises:
        ValueError: shapes do not fit.
        TypeError: one of them is not boolean.
    """
    check_real(q_real, k_real)
    q = torch.arange(q_real.size(1), device=q_real.device)[:, None]
    k = torch.arange(k_real.size(1), device=k_real.device)
    last = k_real.sum(dim=1)[:, None, None] - 1  # (batch, 1, 1)
    real = q_real[:, :, None] & k_real[:, None, :]  # (batch, q_len, k_len)
    return {
        "previous": real & (k == q - 1),
        "same": real & (k == q),
        "next": real & (k == q + 1),
        "first": real & (k == 0),
        "last": real & (k == last),
    }


def check_real(q_real: Tensor, k_real: Tensor) -> None:
    """Refuse what does not say of each token of some sentences whether it is real."""
    check_tensors(q_real=q_real, k_real=k_real)
    for name, real in (("q_real", q_real), ("k_real", k_real)):
        if real.dtype != torch.bool:
            raise TypeError(f"{name} must be boolean, not {real.dtype}")
        if real.dim() != 2 or len(real) != len(q_real):
            raise ValueError(
                f"{name} must be ({len(q_real) if q_real.dim() else 'batch'}, length), "
                f"not {tuple(real.shape)}"
            )


def relation_from_pairs(
    pairs: Sequence[Sequence[tuple[int, int]]], q_len: int, k_len: int
) -> Tensor:
    """Turn lists of (query, key) pairs into a relation.

    Args:
        pairs: for each sentence its pairs, counted from 0.
        q_len: number of queries, padding counted.
        k_len: number of keys, padding counted.

    Returns:
        (batch, q_len, k_len), boolean.

    Raises:
        IndexError: a pair lies outside.
    """
    check_sizes(q_len=q_len, k_len=k_len)
    check_kind((list, tuple), pairs=pairs)
    relation = torch.zeros(len(pairs), q_len, k_len, dtype=torch.bool)
    for row, found in enumerate(pairs):
        for q, k in found:
            if q < 0 or k < 0:
                raise IndexError(f"sentence {row}: pair {q, k} is negative")
            relation[row, q, k] = True
    return relation


def relation_from_rule(
    names: Sequence[Sequence[str]],
    rule: Callable[[str, str], bool],
    length: int,
    offset: int = 0,
) -> Tensor:
    """Make a relation of a sentence to itself from a rule on two words.

    Args:
        names: for each sentence what each of its words is.
        rule: says of a query's word and a key's word whether the relation holds.
        length: number of tokens, padding counted.
        offset: place of word 0 among the tokens: 1 behind a `<bos>`.

    Returns:
        (batch, length, length), boolean.
    """
    check_sizes(length=length)
    check_integers(offset=offset)
    check_kind((list, tuple), names=names)
    for number, words in enumerate(names):
        check_texts(f"names of sentence {number}", words)
    pairs = [
        [
            (q + offset, k + offset)
            for q, word in enumerate(words)
            for k, other in enumerate(words)
            if rule(word, other)
        ]
        for words in names
    ]
    return relation_from_pairs(pairs, length, length)


def relation_weight(weights: Tensor, relation: Tensor, allowed: Tensor) -> Tensor:
    """Return how much of its weight each head puts on a relation, on average.

    The mean is over queries that have a key in this relation and a choice: at least two
    keys that the mask allows. (The first query of a decoder sees only itself.)

    Args:
        weights: (batch, n_heads, q_len, k_len), probabilities.
        relation: (batch, q_len, k_len), boolean.
        allowed: broadcastable to (batch, q_len, k_len), boolean, what the mask allows.

    Returns:
        (n_heads,), fractions; NaN if no query has such a key.

    Raises:
        ValueError: shapes do not fit.
    """
    check_tensors(weights=weights, relation=relation, allowed=allowed)
    if weights.dim() != 4 or not weights.is_floating_point():
        raise ValueError(
            "weights must be floating-point (batch, n_heads, q_len, k_len), not "
            f"{weights.dtype} {tuple(weights.shape)}"
        )
    if relation.dtype != torch.bool:
        raise TypeError(f"relation must be boolean, not {relation.dtype}")
    if weights.device.type != "meta" and not weights.isfinite().all():
        raise ValueError("a weight is NaN or infinite")
    batch, _, q_len, k_len = weights.shape
    check_mask(allowed, (batch, q_len, k_len), "allowed")
    if relation.shape != (batch, q_len, k_len):
        raise ValueError(
            f"relation has shape {tuple(relation.shape)}, but weights ask for "
            f"{(batch, q_len, k_len)}"
        )
    allowed = allowed.expand(batch, q_len, k_len)
    keys = relation & allowed
    counted = keys.any(dim=-1) & (allowed.sum(dim=-1) > 1)  # (batch, q_len)
    on_keys = (weights * keys[:, None]).sum(dim=-1)  # (batch, n_heads, q_len)
    return on_keys.transpose(1, 2)[counted].mean(dim=0)


def head_type(scores: Mapping[str, float], threshold: float) -> str | None:
    """Name the relation of the largest weight, or None if it is below the threshold.

    Raises:
        ValueError: threshold is not between 0 and 1, there is no relation, or a weight
            is NaN: leave a relation out that has no meaning for a head.
    """
    check_kind(Mapping, scores=scores)
    check_numbers(threshold=threshold)
    for name, score in scores.items():
        check_finite(-math.inf, math.inf, **{f"weight of {name}": score})
    if not scores:
        raise ValueError("a type needs at least 1 relation, but got 0")
    if not 0 < threshold <= 1:
        raise ValueError(f"threshold must be above 0 and at most 1, not {threshold}")
    best = max(scores, key=scores.__getitem__)
    return best if scores[best] >= threshold else None


def count_types(
    table: Mapping[str, Mapping[str, float]], threshold: float
) -> Counter[str]:
    """Count the heads of each type.

    Args:
        table: relation -> head -> weight. A head may be missing where a relation has
            no meaning for it.
        threshold: the least weight that makes a type.

    Raises:
        ValueError: threshold is not between 0 and 1.
    """
    check_kind(Mapping, table=table)
    check_kind(Mapping, **{f"heads of {name}": heads for name, heads in table.items()})
    heads: dict[str, dict[str, float]] = {}
    for relation, weights in table.items():
        for head, weight in weights.items():
            heads.setdefault(head, {})[relation] = weight
    found = [head_type(scores, threshold) for scores in heads.values()]
    return Counter(name for name in found if name is not None)
