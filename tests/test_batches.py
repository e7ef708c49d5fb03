"""Every pair is in one batch, within the bound, in the same position every time."""

import random
import tracemalloc
from collections import Counter
from itertools import islice

import numpy as np
import pytest
import torch
from small_run import small_pairs

from transformer_lib.data import plans
from transformer_lib.data.batches import (
    batch_plan,
    limit_lengths,
    make_batch,
    padding_share,
    token_batches,
)
from transformer_lib.data.steps import Steps
from transformer_lib.data.texts import TextSteps

BOS, EOS, PAD = 1, 2, 0
RNG = random.Random(0)
LENGTHS = [(RNG.randint(1, 23), RNG.randint(1, 29)) for _ in range(500)]
PAIRS = [([5] * (m - 1) + [EOS], [7] * (n - 1) + [EOS]) for m, n in LENGTHS]


def test_the_target_is_shifted_by_one():
    pairs = [([5, EOS], [6, 7, EOS]), (np.array([5, 5, 5, EOS]), np.array([8, EOS]))]
    batch = make_batch(pairs, bos_id=BOS, pad_id=PAD)
    assert batch.src.tolist() == [[5, EOS, PAD, PAD], [5, 5, 5, EOS]]
    assert batch.tgt_in.tolist() == [[BOS, 6, 7], [BOS, 8, PAD]]
    assert batch.tgt_out.tolist() == [[6, 7, EOS], [8, EOS, PAD]]
    assert batch.n_tokens == 5 == int((batch.tgt_out != PAD).sum())
    moved = batch.to("meta")
    assert {moved.src.device.type, moved.tgt_in.device.type} == {"meta"}
    assert moved.tgt_out.device.type == "meta" and moved.n_tokens == 5


@pytest.mark.parametrize("bucket", [True, False])
@pytest.mark.parametrize("seed", [None, 3])
def test_every_pair_is_in_one_batch_within_the_bound(seed, bucket):
    plan = batch_plan(LENGTHS, np.int64(97), seed, bucket=bucket)
    assert sorted(row for rows in plan for row in rows) == list(range(len(LENGTHS)))
    sizes = [len(rows) * max(max(LENGTHS[row]) for row in rows) for rows in plan]
    assert 90 < max(sizes) <= 97  # the bound is used


def test_order_depends_on_seed_and_epoch_alone():
    first = batch_plan(LENGTHS, 97, seed=3, epoch=4)
    random.seed(99)
    assert batch_plan(LENGTHS, 97, seed=np.int64(3), epoch=4) == first
    for other in ({"seed": 3, "epoch": 5}, {"seed": 4, "epoch": 4}):
        plan = batch_plan(LENGTHS, 97, **other)
        assert {frozenset(rows) for rows in plan} != {frozenset(rows) for rows in first}
    longest = [max(max(LENGTHS[row]) for row in rows) for rows in first]
    assert longest != sorted(longest)
    plan = batch_plan([(2, 2)] * 6, 6, seed=0, epoch=1)
    assert plan == [[0, 4, 2], [3, 5, 1]]  # a salted hash would give others


def test_padding_share_is_what_the_tensors_hold_and_buckets_save_most_of_it():
    steps = Steps(PAIRS, 97, 1, 3, bos_id=BOS, pad_id=PAD)
    plan = batch_plan(LENGTHS, 97, seed=3)
    epoch = [batch for [batch] in islice(steps.starting_at(1), len(plan))]
    sides = [side for batch in epoch for side in (batch.src, batch.tgt_out)]
    padding = sum(int((side == PAD).sum()) for side in sides)
    share = padding / sum(side.numel() for side in sides)
    assert padding_share(plan, LENGTHS) == pytest.approx(share)
    as_they_come = batch_plan(LENGTHS, 97, seed=3, bucket=False)
    assert 0 < share < 0.6 * padding_share(as_they_come, LENGTHS)


def test_what_is_measured_on_stays_in_the_order_of_the_file():
    pairs = [([5] * (row % 3 + 1), [10 + row, EOS]) for row in range(9)]
    in_order = list(token_batches(pairs, 9, bos_id=BOS, pad_id=PAD))
    rows = [row for batch in in_order for row in batch.tgt_out[:, 0].tolist()]
    assert rows == list(range(10, 19))
    assert [len(batch.src) for batch in in_order] == [3, 3, 3]


LONG = [([5, EOS], [6, EOS]), ([5, 6, 7, EOS], [8, EOS]), ([5, EOS], [6, 7, 8, EOS])]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: limit_lengths(LONG[::2], 3), "line 2: the target has 4 .* max_len 3"),
        (lambda: limit_lengths(LONG[1:], 3, "skip"), "none of 2 pairs fits .* 3"),
        (lambda: limit_lengths(LONG, 3, "drop"), "too_long .* not 'drop'"),
        (lambda: batch_plan([(2, 2), (3, 4)], 3), "pair 2 has 4 .* max_tokens 3"),
    ],
)
def test_long_pairs_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_long_pairs_are_left_out_or_cut_before_their_eos():
    cut = [LONG[0], ([5, 6, EOS], [8, EOS]), ([5, EOS], [6, 7, EOS])]
    assert limit_lengths(LONG, 3, "skip") == (LONG[:1], [2, 3])
    assert limit_lengths(LONG, 3, "truncate") == (cut, [2, 3])
    assert limit_lengths(LONG, 4) == (LONG, [])


# --- the stream of training steps -----------------------------------------------------

# Sources one token longer than targets, so that the two can't be mixed up.
SMALL = [([4, *src], tgt) for src, tgt in small_pairs()]


def sources(start: int, seed: int, n_batches: int, number: int) -> list:
    """The sources of some steps: step, batch, row, token."""
    steps = Steps(SMALL, 40, n_batches, seed, bos_id=1, pad_id=0)
    some = islice(steps.starting_at(start), number)
    return [[batch.src.tolist() for batch in step] for step in some]


def texts(start: int, seed: int, n_batches: int, number: int) -> list:
    """The same of a stream of texts, which has one batch in a step."""
    rows = [(src, n % 2) for n, (src, _) in enumerate(SMALL)]
    stream = TextSteps(rows, 4, seed, pad_id=0).starting_at(start)
    return [[batch.src.tolist() for batch in step] for step in islice(stream, number)]


@pytest.mark.parametrize(("stream", "n_batches"), [(sources, 3), (texts, 1)])
def test_a_stream_depends_on_its_seed_and_is_the_same_from_any_start(stream, n_batches):
    whole = stream(1, 1, n_batches, 40)
    for start in (2, 17, 40):
        assert stream(start, 1, n_batches, 1) == [whole[start - 1]]
    assert whole[0] != whole[1]
    assert whole[0] != stream(1, 2, n_batches, 1)[0]


N_BATCHES = len(batch_plan([(len(src), len(tgt)) for src, tgt in SMALL], 40, 1))


@pytest.mark.parametrize(("stream", "n_steps"), [(sources, N_BATCHES), (texts, 15)])
def test_every_epoch_holds_every_sentence_once_in_an_order_of_its_own(stream, n_steps):
    steps = stream(1, 1, 1, 2 * n_steps)
    epochs = steps[:n_steps], steps[n_steps:]
    assert epochs[0] != epochs[1] and n_steps > 1
    for epoch in epochs:
        seen = Counter(tuple(filter(None, row)) for [batch] in epoch for row in batch)
        assert seen == Counter(tuple(src) for src, _ in SMALL)


def test_a_text_keeps_its_label_and_shares_its_batch_with_texts_as_long():
    rows = [([7] * n, n % 2) for n in range(1, 30)]
    steps = TextSteps(rows, 4, 0, pad_id=0)
    epoch = [batch for [batch] in islice(steps.starting_at(1), steps.per_epoch)]
    for batch in epoch:
        assert torch.equal((batch.src != 0).sum(1) % 2, batch.labels)
    n_padding = sum((batch.src == 0).sum().item() for batch in epoch)
    assert n_padding == 7 * (1 + 2 + 3)


# --- plans for millions ---------------------------------------------------------------


@pytest.mark.parametrize("chunk", [7, 1 << 16])
def test_plans_on_arrays_are_the_chapters(monkeypatch, chunk):
    monkeypatch.setattr(plans, "CHUNK", chunk)
    rng = random.Random(1)
    for _ in range(60):
        longest = rng.choice([1, 2, 5, 40])
        n = rng.choice([1, 2, 3, 50, 300])
        lengths = [(rng.randint(1, longest), rng.randint(1, longest)) for _ in range(n)]
        max_tokens = longest + rng.choice([0, 1, 5, 60, 5000])
        seed, epoch = rng.choice([0, 1, 2**40]), rng.choice([0, 1, 17])
        dtype = rng.choice(["<u2", "<u4", np.int32])
        plan = plans.BatchPlan(np.array(lengths, dtype), max_tokens, seed)
        expected = batch_plan(lengths, max_tokens, seed, epoch)
        assert list(plan(epoch)) == list(plan(epoch)) == expected
        assert len(plan) == len(expected)
        assert list(plan(epoch + 1)) == batch_plan(lengths, max_tokens, seed, epoch + 1)


def test_a_plan_takes_few_bytes_a_pair(monkeypatch):
    monkeypatch.setattr(plans, "CHUNK", 128)
    rng, n = np.random.default_rng(0), 20_000
    lengths = rng.integers(1, 60, (n, 2)).astype(np.uint16)
    tracemalloc.start()
    plan = plans.BatchPlan(lengths, 20_000, 0)
    for epoch in range(2):
        rows = sum(map(len, plan(epoch)))
        assert rows == n
    kept, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 4.5 * n and 8 * n < most < 9 * n


def test_resuming_makes_one_plan_alone(monkeypatch):
    made = []
    make = plans.BatchPlan._make
    monkeypatch.setattr(
        plans.BatchPlan, "_make", lambda *call: made.append(call[1]) or make(*call)
    )
    steps = Steps(SMALL, 40, 3, 0, bos_id=1, pad_id=0)
    first = 100 * steps.per_epoch + 2
    some = list(islice(steps.starting_at(first), 2))
    assert made == [300]
    whole = list(islice(steps.starting_at(first - 1), 3))[1:]
    for one, other in zip(some, whole, strict=True):
        assert all(torch.equal(a.src, b.src) for a, b in zip(one, other, strict=True))


def test_shares_of_a_step_are_the_step():
    steps = Steps(SMALL, 40, 5, 0, bos_id=1, pad_id=0)
    for whole, *shares in islice(
        zip(*(steps.starting_at(2, share) for share in
              (slice(None), slice(0, None, 2), slice(1, None, 2), slice(9, None))),
            strict=True), 30,
    ):  # fmt: skip
        assert [len(share) for share in shares] == [3, 2, 0]
        for number, batch in enumerate(whole):
            assert torch.equal(batch.src, shares[number % 2][number // 2].src)


def test_a_pair_longer_than_a_batch_is_refused_before_training():
    with pytest.raises(ValueError, match="pair 2 has 4 tokens, more than max_tokens 3"):
        Steps(LONG, 3, 1, 0, bos_id=1, pad_id=0)
