"""What does a head look at? Relations between a query and its keys, and their weight.

A relation is a boolean tensor (batch, q_len, k_len): True where a key stands in this
relation to a query, such as "the token before it". The weight that a head puts on a
relation is a number between 0 and 1; a head whose weight is large is of this type.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor


def positional_relations(q_real: Tensor, k_real: Tensor) -> dict[str, Tensor]:
    """Relations of places: the key before, at and after the query's, first and last.

    Args:
        q_real: (batch, q_len), boolean, True where a query is no padding. Padding
            stands on the right.
        k_real: (batch, k_len), the same of the keys.

    Returns:
        Name -> (batch, q_len, k_len), boolean: "previous", "same", "next", "first" and
        "last", the last real key, which is `<eos>` in a source.
    """
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
        IndexError: a pair lies outside; a negative one would count from the end.
    """
    relation = torch.zeros(len(pairs), q_len, k_len, dtype=torch.bool)
    for row, found in enumerate(pairs):
        for q, k in found:
            if q < 0 or k < 0:
                raise IndexError(f"sentence {row}: pair {q, k} is negative")
            relation[row, q, k] = True
    return relation


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
        ValueError: the relation has another shape: it would be broadcast.
    """
    batch, _, q_len, k_len = weights.shape
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


def count_types(
    table: Mapping[str, Mapping[str, float]], threshold: float
) -> Counter[str]:
    """Count the heads of each type, the relation of a head's largest weight.

    Args:
        table: relation -> head -> weight. A head may be missing where a relation has
            no meaning for it.
        threshold: the least weight that makes a type.

    Raises:
        ValueError: a weight is NaN; leave a relation out that means nothing for a head.
    """
    found: Counter[str] = Counter()
    for head in dict.fromkeys(head for weights in table.values() for head in weights):
        scores = {name: each[head] for name, each in table.items() if head in each}
        if any(map(math.isnan, scores.values())):
            raise ValueError(f"a weight is NaN, so none is the largest: {scores}")
        best = max(scores, key=scores.__getitem__)
        found[best] += scores[best] >= threshold
    return +found  # without relations that have no head
