"""The stream of steps: every pair once an epoch, the same from any start."""

from collections import Counter
from itertools import islice

import pytest
from small_run import small_pairs

from transformer_lib.data.batches import Batch, batch_plan
from transformer_lib.data.steps import Steps

# Sources one token longer than targets, so that the two can't be mixed up.
PAIRS = [([4, *src], tgt) for src, tgt in small_pairs()]


def make_steps(n_batches: int = 3, seed: int = 1) -> Steps:
    return Steps(PAIRS, 40, n_batches, seed, bos_id=1, pad_id=0)


def sources(step: list[Batch]) -> list[list[list[int]]]:
    return [batch.src.tolist() for batch in step]


def first(number: int, *arguments: int, **options: int) -> list[list[Batch]]:
    return list(islice(make_steps(**options).starting_at(*arguments), number))


def test_the_stream_is_the_same_from_any_start() -> None:
    whole = first(40, 1)
    for start in (2, 17, 40):
        [step] = first(1, start)
        assert sources(step) == sources(whole[start - 1])


def test_steps_and_seeds_differ() -> None:
    one, other = first(2, 1)
    assert sources(one) != sources(other)
    assert sources(one) != sources(first(1, 1, seed=2)[0])


def test_every_epoch_has_an_order_of_its_own() -> None:
    n_batches = len(batch_plan([(len(s), len(t)) for s, t in PAIRS], 40, 1))
    stream = first(2 * n_batches, 1, n_batches=1)
    one, other = stream[:n_batches], stream[n_batches:]
    assert [sources(step) for step in one] != [sources(step) for step in other]


def test_an_epoch_holds_every_pair_once() -> None:
    seen: Counter = Counter()
    steps = first(60, 1, n_batches=1)
    for [batch] in steps:
        rows = zip(batch.src, batch.tgt_out, strict=True)
        seen.update((tuple(s.tolist()), tuple(t.tolist())) for s, t in rows)
        if sum(seen.values()) == len(PAIRS):
            break
    stripped = {tuple(tuple(i for i in side if i) for side in row) for row in seen}
    assert stripped == {(tuple(src), tuple(tgt)) for src, tgt in PAIRS}
    assert batch is not steps[0][0]  # an epoch is more than one batch


def test_processes_share_a_step() -> None:
    [whole] = first(1, 5)
    for rank in range(3):
        [part] = first(1, 5, rank, 3)
        assert sources(part) == [sources(whole)[rank]]
    [pair] = first(1, 5, 1, 2, n_batches=4)  # every second batch, not one half
    assert sources(pair) == sources(first(1, 5, n_batches=4)[0])[1::2]


def test_what_cannot_be_divided_or_counted_is_refused() -> None:
    with pytest.raises(ValueError, match="3 batches per step .* among 2 processes"):
        make_steps().starting_at(1, 0, 2)  # at once, not at the first batch
    with pytest.raises(ValueError, match="counted from 1, not from 0"):
        make_steps().starting_at(0)
    with pytest.raises(ValueError, match="at least 1 batch, not 0"):
        make_steps(n_batches=0)
