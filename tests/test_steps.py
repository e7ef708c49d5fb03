"""The stream of steps: every pair once an epoch, the same from any start."""

from collections import Counter
from itertools import islice

import pytest
from small_run import small_pairs

from transformer_lib.data.batches import batch_plan
from transformer_lib.data.steps import Step, Steps

# Sources one token longer than targets, so that the two can't be mixed up.
PAIRS = [([4, *src], tgt) for src, tgt in small_pairs()]


def make_steps(n_batches: int = 3, seed: int = 1) -> Steps:
    return Steps(PAIRS, 40, n_batches, seed, bos_id=1, pad_id=0)


def sources(step: Step) -> list[list[list[int]]]:
    return [batch.src.tolist() for _, batch in step.batches]


def first(number: int, *arguments: int, **options: int) -> list[Step]:
    return list(islice(make_steps(**options).starting_at(*arguments), number))


def test_the_stream_is_the_same_from_any_start() -> None:
    whole = first(40, 1)
    for start in (2, 17, 40):
        [step] = first(1, start)
        assert step.number == start
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
    for step in first(60, 1, n_batches=1):
        rows = zip(step.batches[0][1].src, step.batches[0][1].tgt_out, strict=True)
        seen.update((tuple(s.tolist()), tuple(t.tolist())) for s, t in rows)
        if sum(seen.values()) == len(PAIRS):
            break
    stripped = {tuple(tuple(i for i in side if i) for side in row) for row in seen}
    assert stripped == {(tuple(src), tuple(tgt)) for src, tgt in PAIRS}
    assert step.number > 1


def test_the_tokens_of_a_step_are_counted() -> None:
    for step in first(20, 1):
        assert step.n_tokens == sum(batch.n_tokens for _, batch in step.batches)


def test_processes_share_a_step_and_know_the_whole() -> None:
    [whole], *parts = (first(1, 5, rank, n) for rank, n in ((0, 1), (0, 3), (2, 3)))
    for rank, [part] in zip((0, 2), parts, strict=True):
        assert [place for place, _ in part.batches] == [rank]
        assert sources(part) == [sources(whole)[rank]]
        assert part.n_tokens == whole.n_tokens > part.batches[0][1].n_tokens


def test_what_cannot_be_divided_or_counted_is_refused() -> None:
    with pytest.raises(ValueError, match="3 batches a step .* among 2 processes"):
        first(1, 1, 0, 2)
    with pytest.raises(ValueError, match="counted from 1, not from 0"):
        first(1, 0)
    with pytest.raises(ValueError, match="at least 1 batch, not 0"):
        make_steps(n_batches=0)
