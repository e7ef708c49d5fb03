"""Graders of the chapter on data and batches."""

import math
import random
import re

import torch

from transformer_book.exercises.grading import Grader, Seen
from transformer_lib.data.batches import batch_plan, pad_batch, padding_share

MOST_PADDING = 0.25


def _pad_left(sequences, pad_id, more=0):
    longest = max(map(len, sequences)) + more
    return torch.tensor([[pad_id] * (longest - len(ids)) + ids for ids in sequences])


def _pad_left_turned(sequences, pad_id):
    """Turn the rows around, tokens too."""
    return pad_batch(sequences, pad_id).flip(1)


def _truncate(sequences, pad_id):
    return torch.tensor([ids[-min(map(len, sequences)) :] for ids in sequences])


check_pad_left = Grader(
    "lists of ids, pad_id -> (batch, longest), with the padding on the left",
    cases=lambda: [([[5, 6, 7, 2], [8, 2], [9, 4, 2]], 0), ([[4, 2], [5, 6, 2]], 3)],
    solution=_pad_left,
    right="All sentences end in the same column.",
    mistakes={
        "the padding is on the right.": pad_batch,
        "the padding is on the left, but the tokens are in reverse order.":
            _pad_left_turned,
        "the rows are wider than the longest sequence.": {"more": 1},
        "fill up with pad_id, whatever its number is.":
            lambda sequences, pad_id: _pad_left(sequences, 0),
        "tokens were cut off; the longest sequence sets the width.": _truncate,
    },
)  # fmt: skip


def _merge(pieces, pair, limit=None, step=2):
    """Join a pair from left to right, at most `limit` times."""
    joined, i, done = [], 0, 0
    while i < len(pieces):
        if found := tuple(pieces[i : i + 2]) == pair and done != limit:
            done += 1
        joined.append("".join(pair) if found else pieces[i])
        i += step if found else 1
    return joined


def _merge_letters(pieces, pair):
    """Find the pair in the spelled word, across the borders of pieces."""
    parts = re.split(f"({''.join(pair)})", "".join(pieces))
    return sum([[part] if part == "".join(pair) else [*part] for part in parts], [])


def _merge_from_the_right(pieces, pair):
    turned = _merge(pieces[::-1], pair[::-1])[::-1]
    return ["".join(pair) if len(piece) > 1 else piece for piece in turned]


check_merge = Grader(
    "the pieces of a word, a pair -> the pieces with the pair joined wherever it "
    "occurs, from left to right",
    cases=lambda: [
        (["b", "a", "n", "a", "n", "a"], ("a", "n")),
        (["a", "a", "a"], ("a", "a")),
        (["l", "o", "w"], ("o", "l")),
        (["a"], ("a", "b")),
        (["lo", "w", "l", "o", "w"], ("lo", "w")),
    ],
    solution=_merge,
    right="Every occurrence is joined, from left to right, and none twice.",
    mistakes={
        "nothing was joined.": lambda pieces, pair: list(pieces),
        "everything was joined; join the given pair only.":
            lambda pieces, pair: ["".join(pieces)],
        "only one occurrence was joined.": {"limit": 1},
        "letters are written twice. A joined pair takes two pieces.": {"step": 1},
        "letters are compared; compare whole pieces with the pair.": _merge_letters,
        "go from left to right.": _merge_from_the_right,
        "letters were lost or written twice.":
            Seen(lambda result, pieces, pair: "".join(result) != "".join(pieces),
                 lambda pieces, pair: _merge(pieces, pair)[:-1]),
    },
)  # fmt: skip


def _is_inside(components, held_out):
    return {*components} <= held_out


def _split(entries, held_out, belongs=_is_inside):
    parts = [], []
    for sentence, components in entries:
        parts[belongs(components, held_out)].append(sentence)
    return parts


def _split_by_any(entries, held_out):
    return _split(entries, held_out, lambda names, held_out: bool({*names} & held_out))


def _find(condition):
    """Name the first sentence that is so often in training and in the test."""

    def sign(result, entries, held_out):
        train, test = result
        counts = ((s, train.count(s), test.count(s)) for s, _ in entries)
        return next((s for s, *numbers in counts if condition(*numbers)), None)

    return sign


_ENTRIES = [
    ("Light on", ("lamp",)),
    ("Bridge not found", ("hub",)),
    ("Failed to connect", ("lamp", "hub")),
    ("Wrong password", ("hub", "camera")),
    ("Camera moved", ("camera",)),
    ("Sign in again", ("camera", "door", "lamp")),
    ("Door open", ("door",)),
]

check_split = Grader(
    "entries (sentence, components), the components held out -> sentences for training "
    "and those for the test; one that any other component shows is for training",
    cases=lambda: [(_ENTRIES[:], {"hub", "camera"})],
    view=lambda parts, *case: tuple(sorted(part) for part in parts),
    solution=_split,
    right="No component's text is both learned and tested, and nothing is lost.",
    mistakes={
        "the parts are swapped: training comes first.":
            lambda entries, held_out: _split(entries, held_out)[::-1],
        "'Failed to connect' is tested, but the component 'lamp' shows it too, and "
        "that one is for training. Test a sentence only if all its components are held "
        "out.": _split_by_any,
        "{!r} is in both parts: what is learned is tested.":
            Seen(_find(lambda n_train, n_test: n_train and n_test),
                 lambda *given: (_split(*given)[0], _split_by_any(*given)[1])),
        "{!r} is in neither part.":
            Seen(_find(lambda n_train, n_test: n_train + n_test == 0),
                 lambda *given: (_split_by_any(*given)[0], _split(*given)[1])),
        "{!r} occurs twice.":
            Seen(_find(lambda n_train, n_test: n_train + n_test > 1),
                 lambda *given: (2 * _split(*given)[0], _split(*given)[1])),
        "{!r} is in the wrong part; look at all its components.":
            Seen(lambda result, *case: (
                     min({*result[1]} ^ {*_split(*case)[1]}, default=None)),
                 [lambda entries, held_out: _split(entries, {"hub"}),
                  lambda *given: _split(*given, lambda names, held: names[0] in held)]),
    },
)  # fmt: skip


def _resume(n_batches, done, is_over=lambda done, size: done >= size):
    epoch = 0
    while is_over(done, n_batches(epoch)):
        done -= n_batches(epoch)
        epoch += 1
    return epoch, done


def _n_batches(epoch):
    return (5, 3, 4, 6)[epoch % 4]


check_resume = Grader(
    "a function that tells the number of batches of an epoch, the number of batches "
    "done -> (epoch, position) of the next batch, both from 0",
    cases=lambda: [(_n_batches, done) for done in range(26)],
    solution=_resume,
    right="The run goes on with the batch that it would have taken next.",
    mistakes={
        "epochs differ in their number of batches.":
            lambda n_batches, done: divmod(done, n_batches(0)),
        "this one is done already.":
            lambda n_batches, done: _resume(n_batches, max(done - 1, 0)),
        "one batch is skipped.": lambda n_batches, done: _resume(n_batches, done + 1),
        "that epoch is over; the next one begins at 0.":
            {"is_over": lambda done, size: done > size},
        "the epoch comes first.":
            lambda n_batches, done: _resume(n_batches, done)[::-1],
    },
)  # fmt: skip


def _run_plan(answer, lengths, max_tokens):
    """The first plan, the same again, with another seed, and for the next epoch."""
    starts = (0, 0), (0, 0), (1, 0), (0, 1)
    return tuple(answer(lengths, max_tokens, *start) for start in starts)


def _longest(plan, lengths):
    return [max(max(lengths[row]) for row in rows) for rows in plan]


def _largest(plans, lengths, max_tokens):
    largest = max(
        map(
            math.prod, zip(map(len, plans[0]), _longest(plans[0], lengths), strict=True)
        )
    )
    return largest if largest > max_tokens else None


def _goes_by_length(plans, lengths, max_tokens):
    longest = _longest(plans[0], lengths)
    return longest in (sorted(longest), sorted(longest, reverse=True))


def _padding(plans, lengths, max_tokens):
    share = padding_share(plans[0], lengths)
    return share if share > MOST_PADDING else None


def _count_only_real(lengths, max_tokens, seed, epoch):
    """Fill batches with tokens of whole rows, and forget their padding."""
    plan, filled = [[]], 0
    for row in random.Random(f"{seed} {epoch}").sample(range(500), 500):
        if (filled := filled + max(lengths[row])) > max_tokens:
            plan, filled = [*plan, []], max(lengths[row])
        plan[-1].append(row)
    return plan


def _shuffle_batches(lengths, max_tokens, seed, epoch):
    plan = batch_plan(lengths, max_tokens)
    return random.Random(f"{seed} {epoch}").sample(plan, len(plan))


def _sort_batches(lengths, *given):
    return sorted(
        batch_plan(lengths, *given), key=lambda rows: _longest([rows], lengths)
    )


def _change_plan(change):
    return lambda *given: change(batch_plan(*given))


check_plan = Grader(
    "lengths (source, target), max_tokens, seed, epoch -> row numbers of each batch: "
    "bounded, complete, shuffled, repeatable, with little padding",
    cases=lambda: [
        ([(3 + n % 23, 3 + n % 23 + n % 3) for n in range(0, 3500, 7)], 200)
    ],
    run=_run_plan,
    solution=batch_plan,
    right=lambda results: (
        "Complete, bounded, repeatable, and "
        f"{padding_share(results[0][0], check_plan.make_cases()[0][0]):.0%} padding."
    ),
    any_answer=True,
    mistakes={
        "a batch is empty.":
            Seen(lambda plans, *case: not all(plans[0]),
                 _change_plan(lambda plan: [*plan, []])),
        "{} of 500 pairs are in no batch. Was the last batch forgotten?":
            Seen(lambda plans, *case: 500 - len({*sum(plans[0], [])}) or None,
                 [_change_plan(lambda plan: plan[:-1]),
                  _change_plan(lambda plan: plan[: len(plan) // 2])]),
        "a pair is in several batches, or a row number does not exist.":
            Seen(lambda plans, *case: sorted(sum(plans[0], [])) != [*range(500)],
                 _change_plan(lambda plan: [*plan, plan[0]])),
        "a batch fills {} positions, more than 200: rows times the longest side count, "
        "padding too.": Seen(_largest, _count_only_real),
        "the same seed and epoch gave another plan: it cannot be resumed.":
            Seen(lambda plans, *case: plans[0] != plans[1],
                 lambda lengths, n, seed, epoch: (
                     batch_plan(lengths, n, random.random()))),
        "another seed gave the same plan.":
            Seen(lambda plans, *case: plans[0] == plans[2],
                 lambda lengths, n, seed, epoch: batch_plan(lengths, n, 0, epoch)),
        "the next epoch has the same plan: nothing is shuffled anew.":
            Seen(lambda plans, *case: plans[0] == plans[3],
                 lambda lengths, n, seed, epoch: batch_plan(lengths, n, seed)),
        "batches go from one length to the other; shuffle their order too.":
            Seen(_goes_by_length, _sort_batches),
        f"{{:.0%}} of all positions are padding; {MOST_PADDING:.0%} are allowed. Put "
        "pairs of similar length together.":
            Seen(_padding, lambda *given: batch_plan(*given, bucket=False)),
        "every epoch has the same batches in another order; shuffle pairs of equal "
        "length too.":
            Seen(lambda plans, *case: (
                     sorted(map(sorted, plans[0])) == sorted(map(sorted, plans[3]))),
                 _shuffle_batches),
    },
)  # fmt: skip
