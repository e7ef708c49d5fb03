"""Every pair is in one batch, within the bound, in the same position every time."""

import random

import pytest
import torch

from transformer_lib.data.batches import (
    batch_plan,
    limit_lengths,
    make_batch,
    padding_share,
    token_batches,
)

BOS, EOS, PAD = 1, 2, 0
RNG = random.Random(0)
LENGTHS = [(RNG.randint(1, 23), RNG.randint(1, 29)) for _ in range(500)]
PAIRS = [([5] * (m - 1) + [EOS], [7] * (n - 1) + [EOS]) for m, n in LENGTHS]


def batches(pairs=PAIRS, max_tokens=97, **order):
    return list(token_batches(pairs, max_tokens, bos_id=BOS, pad_id=PAD, **order))


def test_the_target_is_shifted_by_one() -> None:
    pairs = [([5, EOS], [6, 7, EOS]), ([5, 5, 5, EOS], [8, EOS])]
    batch = make_batch(pairs, bos_id=BOS, pad_id=PAD)
    assert batch.src.tolist() == [[5, EOS, PAD, PAD], [5, 5, 5, EOS]]
    assert batch.tgt_in.tolist() == [[BOS, 6, 7], [BOS, 8, PAD]]
    assert batch.tgt_out.tolist() == [[6, 7, EOS], [8, EOS, PAD]]
    assert batch.n_tokens == 5 == int((batch.tgt_out != PAD).sum())
    assert batch.tgt_in.shape == batch.tgt_out.shape


def test_a_batch_moves_as_a_whole() -> None:
    batch = make_batch([([5, EOS], [6, EOS])], bos_id=BOS, pad_id=PAD).to("meta")
    assert {batch.src.device, batch.tgt_in.device, batch.tgt_out.device} == {
        torch.device("meta")
    }
    assert batch.n_tokens == 2


@pytest.mark.parametrize("bucket", [True, False])
@pytest.mark.parametrize("seed", [None, 3])
def test_every_pair_is_in_one_batch_within_the_bound(seed, bucket) -> None:
    plan = batch_plan(LENGTHS, 97, seed, bucket=bucket)
    assert sorted(row for rows in plan for row in rows) == list(range(len(LENGTHS)))
    sizes = [len(rows) * max(max(LENGTHS[row]) for row in rows) for rows in plan]
    assert max(sizes) <= 97
    assert max(sizes) > 90  # the bound is used


def test_no_batch_could_take_the_first_pair_of_the_next() -> None:
    plan = batch_plan(LENGTHS, 97)
    for rows, following in zip(plan, plan[1:], strict=False):
        together = [*rows, following[0]]
        assert len(together) * max(max(LENGTHS[row]) for row in together) > 97


def test_order_depends_on_seed_and_epoch_alone() -> None:
    first = batch_plan(LENGTHS, 97, seed=3, epoch=4)
    random.seed(99)
    assert batch_plan(LENGTHS, 97, seed=3, epoch=4) == first
    assert batch_plan(LENGTHS, 97, seed=3, epoch=5) != first
    assert batch_plan(LENGTHS, 97, seed=4, epoch=4) != first


def test_another_start_of_python_makes_the_same_plan() -> None:
    plan = batch_plan([(2, 2)] * 6, 6, seed=0, epoch=1)
    assert plan == [[0, 4, 2], [3, 5, 1]]  # a salted hash would give others


def test_shuffling_regroups_pairs_and_mixes_lengths() -> None:
    one, two = (batch_plan(LENGTHS, 97, seed=3, epoch=epoch) for epoch in (0, 1))
    assert {frozenset(rows) for rows in one} != {frozenset(rows) for rows in two}
    longest = [max(max(LENGTHS[row]) for row in rows) for rows in one]
    assert longest != sorted(longest)


def test_buckets_save_most_of_the_padding() -> None:
    shares = [
        padding_share(batch_plan(LENGTHS, 290, seed=3, bucket=bucket), LENGTHS)
        for bucket in (True, False)
    ]
    assert shares[0] < 0.6 * shares[1]


def test_padding_share_is_what_the_tensors_hold() -> None:
    plan = batch_plan(LENGTHS, 97, seed=3)
    sides = [t for batch in batches(seed=3) for t in (batch.src, batch.tgt_out)]
    padding = sum(int((side == PAD).sum()) for side in sides)
    share = padding / sum(side.numel() for side in sides)
    assert padding_share(plan, LENGTHS) == pytest.approx(share)
    assert share > 0
    assert padding_share([[0], [1]], LENGTHS) == 0


def test_file_order_without_a_seed() -> None:
    pairs = [([5] * (row % 3 + 1), [10 + row, EOS]) for row in range(9)]
    in_order = batches(pairs, 9)
    rows = [row for batch in in_order for row in batch.tgt_out[:, 0].tolist()]
    assert rows == list(range(10, 19))
    assert [len(batch.src) for batch in in_order] == [3, 3, 3]


def test_batches_follow_the_plan_from_any_position() -> None:
    plan = batch_plan(LENGTHS, 97, seed=3, epoch=2)
    whole = batches(seed=3, epoch=2)
    assert len(plan) == len(whole)
    for rows, batch in list(zip(plan, whole, strict=True))[7:11]:
        again = make_batch([PAIRS[row] for row in rows], bos_id=BOS, pad_id=PAD)
        assert torch.equal(again.src, batch.src)
        assert torch.equal(again.tgt_out, batch.tgt_out)


LONG = [([5, EOS], [6, EOS]), ([5, 6, 7, EOS], [8, EOS]), ([5, EOS], [6, 7, 8, EOS])]


def test_long_pairs_are_skipped_or_truncated_and_named() -> None:
    assert limit_lengths(LONG, 4) == (LONG, [])
    assert limit_lengths(LONG, 3, "skip") == (LONG[:1], [2, 3])
    truncated = [LONG[0], ([5, 6, EOS], [8, EOS]), ([5, EOS], [6, 7, EOS])]
    assert limit_lengths(LONG, 3, "truncate") == (truncated, [2, 3])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: limit_lengths(LONG, 3), "line 2: the source has 4 .* max_len 3"),
        (lambda: limit_lengths(LONG[::2], 3), "line 2: the target has 4 .* max_len 3"),
        (lambda: limit_lengths([([5] * 4, [6] * 9)], 3), "line 1: the source has 4 "),
        (lambda: limit_lengths(LONG[1:], 3, "skip"), "none of 2 pairs fits .* 3"),
        (lambda: limit_lengths(LONG, 1), "at least 2, not 1"),
        (lambda: limit_lengths(LONG, 3, "drop"), "too_long .* not 'drop'"),
        (lambda: batch_plan([], 5), "at least 1 pair, but got 0"),
        (lambda: batch_plan([(2, 3), (6, 2)], 5), "pair 2 has 6 .* max_tokens 5"),
        (lambda: batch_plan([(9, 2), (6, 2)], 5), "pair 1 has 9 .* max_tokens 5"),
        (lambda: make_batch([([5], [])], bos_id=1, pad_id=0), "sequence 0 .* is empty"),
        (lambda: batches([]), "at least 1 pair, but got 0"),
    ],
)
def test_bad_input_is_refused(call, message) -> None:
    with pytest.raises(ValueError, match=message):
        call()
