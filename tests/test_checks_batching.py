"""The graders of the data chapter: right answers pass, wrong ones are named."""

import random

import pytest

from transformer_lib.data.batches import batch_plan
from transformer_lib.exercises.batching import (
    check_merge,
    check_place,
    check_plan,
    check_split,
)


def merge(pieces, pair, limit=None, overlap=False):
    joined, i, done = [], 0, 0
    while i < len(pieces):
        if tuple(pieces[i : i + 2]) == pair and done != limit:
            joined.append("".join(pair))
            i += 1 if overlap else 2
            done += 1
        else:
            joined.append(pieces[i])
            i += 1
    return joined


def split(entries, held_out):
    train = [s for s, names in entries if not set(names) <= held_out]
    return train, [s for s, names in entries if set(names) <= held_out]


def place(n_batches, done):
    epoch = 0
    while done >= n_batches(epoch):
        done -= n_batches(epoch)
        epoch += 1
    return epoch, done


GRADERS = [check_merge, check_split, check_place, check_plan]
ANSWERS = [merge, split, place, batch_plan]


@pytest.mark.parametrize(("grader", "answer"), list(zip(GRADERS, ANSWERS, strict=True)))
def test_the_right_answer_passes(grader, answer) -> None:
    assert grader(answer).passed


def merge_text(pieces, pair):
    """Join letters instead of pieces: find the pair in the spelled word."""
    word, joined = "".join(pieces), "".join(pair)
    found = []
    while word:
        size = len(joined) if word.startswith(joined) else 1
        found.append(word[:size])
        word = word[size:]
    return found


def merge_from_the_right(pieces, pair):
    turned = merge(pieces[::-1], pair[::-1])
    return ["".join(pair) if len(p) > 1 else p for p in turned[::-1]]


def merge_in_place(pieces, pair):
    joined = merge(pieces, pair)
    pieces[:] = joined
    return joined


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        (lambda pieces, pair: list(pieces), "nothing was joined"),
        (lambda pieces, pair: merge(pieces, pair, limit=1), "only one occurrence"),
        (lambda pieces, pair: merge(pieces, pair, overlap=True), "written twice"),
        (lambda pieces, pair: ["".join(pieces)], "nothing was joined"),
        (merge_text, "pieces are compared"),
        (merge_from_the_right, "from left to right"),
        (merge_in_place, "was changed"),
        (lambda pieces, pair: " ".join(merge(pieces, pair)), "expected a list"),
    ],
)
def test_wrong_merges_are_named(answer, named) -> None:
    feedback = check_merge(answer)
    assert feedback.status == "wrong"
    assert named in feedback.message


def split_by_any(entries, held_out):
    train = [s for s, names in entries if not set(names) & held_out]
    return train, [s for s, names in entries if set(names) & held_out]


def split_into_both(entries, held_out):
    return split(entries, held_out)[0], split_by_any(entries, held_out)[1]


def split_without_shared(entries, held_out):
    return split_by_any(entries, held_out)[0], split(entries, held_out)[1]


def split_by_first(entries, held_out):
    train = [s for s, names in entries if names[0] not in held_out]
    return train, [s for s, names in entries if names[0] in held_out]


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        (split_by_any, "only if all its components"),
        (split_into_both, "is in both parts"),
        (split_without_shared, "is in neither part"),
        (split_by_first, "look at all its components"),
        (lambda e, held: split(e, held)[::-1], "parts are exchanged"),
        (lambda e, held: (split(e, held)[0] * 2, split(e, held)[1]), "occurs twice"),
        (lambda e, held: split(e, held)[0], "expected two lists"),
        (lambda e, held: split(e, {"hub"}), "is in training"),
    ],
)
def test_wrong_splits_are_named(answer, named) -> None:
    feedback = check_split(answer)
    assert feedback.status == "wrong"
    assert named in feedback.message


def place_late(n_batches, done):
    """Walk on only behind the end of an epoch, not at it."""
    epoch = 0
    while done > n_batches(epoch):
        done -= n_batches(epoch)
        epoch += 1
    return epoch, done


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        (lambda n, done: divmod(done, n(0)), "epochs differ"),
        (lambda n, done: place(n, max(done - 1, 0)), "done already"),
        (place_late, "that epoch is over"),
        (lambda n, done: place(n, done)[::-1], "the epoch comes first"),
        (lambda n, done: place(n, done + 1), "one by one"),
        (lambda n, done: done, "expected (epoch, position)"),
    ],
)
def test_wrong_places_are_named(answer, named) -> None:
    feedback = check_place(answer)
    assert feedback.status == "wrong"
    assert named in feedback.message


def plan_with(change):
    return lambda *given: change(batch_plan(*given))


def by_real_tokens(lengths, max_tokens, seed, epoch):
    """Count the tokens of the rows and forget their padding."""
    plan, filled = [[]], 0
    for row in sum(batch_plan(lengths, max_tokens, seed, epoch, bucket=False), []):
        if filled + max(lengths[row]) > max_tokens:
            plan.append([])
            filled = 0
        plan[-1].append(row)
        filled += max(lengths[row])
    return plan


def same_batches(lengths, max_tokens, seed, epoch):
    plan = batch_plan(lengths, max_tokens)
    random.Random(f"{seed} {epoch}").shuffle(plan)
    return plan


def sorted_batches(lengths, max_tokens, seed, epoch):
    plan = batch_plan(lengths, max_tokens, seed, epoch)
    return sorted(plan, key=lambda rows: max(max(lengths[row]) for row in rows))


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        (plan_with(lambda plan: plan[:-1]), "the last batch forgotten"),
        (plan_with(lambda plan: [*plan, plan[0]]), "in several batches"),
        (plan_with(lambda plan: [*plan, []]), "a batch is empty"),
        (plan_with(lambda plan: sum(plan, [])), "list of lists"),
        (plan_with(lambda plan: plan[: len(plan) // 2]), "are in no batch"),
        (by_real_tokens, "rows times the longest side"),
        (lambda *given: batch_plan(*given, bucket=False), "Put pairs of like"),
        (lambda lengths, n, seed, epoch: batch_plan(lengths, n, 0, epoch), "another"),
        (lambda lengths, n, seed, epoch: batch_plan(lengths, n, seed), "next epoch"),
        (sorted_batches, "shuffle their order"),
        (same_batches, "in another order"),
    ],
)
def test_wrong_plans_are_named(answer, named) -> None:
    feedback = check_plan(answer)
    assert feedback.status == "wrong"
    assert named in feedback.message


def test_a_plan_that_does_not_repeat_is_named() -> None:
    seeds = iter(range(100))
    feedback = check_plan(
        lambda lengths, n, seed, e: batch_plan(lengths, n, next(seeds))
    )
    assert "cannot be resumed" in feedback.message
