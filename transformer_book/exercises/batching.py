"""Graders of the chapter on data and batches."""

import random
import re

import torch

from transformer_book.exercises.grading import Seen, grader
from transformer_lib.data.batches import batch_plan, pad_batch, padding_share

MOST_PADDING = 0.25


@grader(
    cases=lambda: [([[5, 6, 7, 2], [8, 2], [9, 4, 2]], 0), ([[4, 2], [5, 6, 2]], 3)],
    right="All sentences end in the same column.",
    mistakes=lambda solve: {
        "the padding is on the right.": pad_batch,
        "the padding is on the left, but the tokens are in reverse order.":
            lambda sequences, pad_id: pad_batch(sequences, pad_id).flip(1),
        "the rows are wider than the longest sequence.": {"more": 1},
        "fill up with pad_id, whatever its number is.":
            lambda sequences, pad_id: solve(sequences, 0),
        "tokens were cut off; the longest sequence sets the width.":
            lambda sequences, pad_id: torch.tensor([ids[-2:] for ids in sequences]),
    },
)  # fmt: skip
def check_pad_left(sequences, pad_id, more=0):
    """Lists of ids, pad_id -> (batch, longest), with the padding on the left."""
    longest = max(map(len, sequences)) + more
    return torch.tensor([[pad_id] * (longest - len(ids)) + ids for ids in sequences])


def _merge_letters(pieces, pair):
    """Find the pair in the spelled word, across the borders of pieces."""
    parts = re.split(f"({''.join(pair)})", "".join(pieces))
    return sum([[part] if part == "".join(pair) else [*part] for part in parts], [])


@grader(
    cases=lambda: [
        (["b", "a", "n", "a", "n", "a"], ("a", "n")),
        (["a", "a", "a"], ("a", "a")),
        (["l", "o", "w"], ("o", "l")),
        (["a"], ("a", "b")),
        (["lo", "w", "l", "o", "w"], ("lo", "w")),
    ],
    right="Every occurrence is joined, from left to right, and none twice.",
    mistakes=lambda solve: {
        "nothing was joined.": lambda pieces, pair: list(pieces),
        "everything was joined; join the given pair only.":
            lambda pieces, pair: ["".join(pieces)],
        "only one occurrence was joined.": {"limit": 1},
        "letters are written twice. A joined pair takes two pieces.": {"step": 1},
        "letters are compared; compare whole pieces with the pair.": _merge_letters,
        "go from left to right.":
            lambda pieces, pair: [
                piece[::-1] for piece in solve(pieces[::-1], pair[::-1])][::-1],
        "letters were lost or written twice.":
            Seen(lambda result, pieces, pair: "".join(result) != "".join(pieces),
                 [lambda *given: solve(*given)[:-1]]),
    },
)  # fmt: skip
def check_merge(pieces, pair, limit=None, step=2):
    """The pieces of a word, a pair -> the pieces with the pair joined everywhere."""
    joined, i, done = [], 0, 0
    while i < len(pieces):
        if found := tuple(pieces[i : i + 2]) == pair and done != limit:
            done += 1
        joined.append("".join(pair) if found else pieces[i])
        i += step if found else 1
    return joined


def _sentence(condition):
    """Name the first sentence that is so often in training and in the test."""
    return lambda parts, entries, held_out: next(
        (s for s, _ in entries if condition(*(part.count(s) for part in parts))), None
    )


_ENTRIES = [
    ("Light on", ("lamp",)),
    ("Bridge not found", ("hub",)),
    ("Failed to connect", ("lamp", "hub")),
    ("Wrong password", ("hub", "camera")),
    ("Camera moved", ("camera",)),
    ("Sign in again", ("camera", "door", "lamp")),
    ("Door open", ("door",)),
]


@grader(
    cases=lambda: [(_ENTRIES[:], {"hub", "camera"})],
    view=lambda parts, *case: tuple(sorted(part) for part in parts),
    right="No component's text is both learned and tested, and nothing is lost.",
    mistakes=lambda solve: {
        "the parts are swapped: training comes first.":
            lambda *given: solve(*given)[::-1],
        "'Failed to connect' is tested, but the component 'lamp' shows it too, and "
        "that one is for training. Test a sentence only if all its components are held "
        "out.": {"belongs": lambda names, held_out: bool({*names} & held_out)},
        "{!r} is in both parts: what is learned is tested.":
            Seen(_sentence(lambda n_train, n_test: n_train and n_test),
                 [lambda *given: (solve(*given)[0], solve(given[0], {"lamp"})[1])]),
        "{!r} is in neither part.":
            Seen(_sentence(lambda n_train, n_test: n_train + n_test == 0),
                 [lambda *given: (solve(*given)[0], solve(given[0], {"hub"})[1])]),
        "{!r} occurs twice.":
            Seen(_sentence(lambda n_train, n_test: n_train + n_test > 1),
                 [lambda *given: (2 * solve(*given)[0], solve(*given)[1])]),
        "{!r} is in the wrong part; look at all its components.":
            Seen(lambda parts, *given: (
                     min({*parts[1]} ^ {*solve(*given)[1]}, default=None)),
                 [{"belongs": lambda names, held_out: names == ("hub",)},
                  {"belongs": lambda names, held_out: names[0] in held_out}]),
    },
)  # fmt: skip
def check_split(
    entries, held_out, belongs=lambda names, held_out: {*names} <= held_out
):
    """Split sentences, so that what no training sentence shows is tested.

    entries (sentence, components), the components held out -> sentences for training
    and those for the test; one that any other component shows is for training.
    """
    parts = [], []
    for sentence, names in entries:
        parts[belongs(names, held_out)].append(sentence)
    return parts


@grader(
    cases=lambda: [(lambda epoch: (5, 3, 4, 6)[epoch % 4], n) for n in range(26)],
    right="The run goes on with the batch that it would have taken next.",
    mistakes=lambda solve: {
        "epochs differ in their number of batches.":
            lambda n_batches, done: divmod(done, n_batches(0)),
        "this one is done already.":
            lambda n_batches, done: solve(n_batches, max(done - 1, 0)),
        "one batch is skipped.": lambda n_batches, done: solve(n_batches, done + 1),
        "that epoch is over; the next one begins at 0.": {"late": 1},
        "the epoch comes first.": lambda *given: solve(*given)[::-1],
    },
)  # fmt: skip
def check_resume(n_batches, done, late=0):
    """Where a run that was interrupted goes on.

    A function that tells the number of batches of an epoch, the number of batches done
    -> (epoch, position) of the next batch, both from 0.
    """
    epoch = 0
    while done >= n_batches(epoch) + late:
        done -= n_batches(epoch)
        epoch += 1
    return epoch, done


def _run_plan(answer, lengths, max_tokens):
    """The first plan, the same again, with another seed, and for the next epoch."""
    starts = (0, 0), (0, 0), (1, 0), (0, 1)
    return tuple(answer(lengths, max_tokens, *start) for start in starts)


def _longest(plan, lengths):
    return [max(max(lengths[row]) for row in rows) for rows in plan]


def _largest(plans, lengths, max_tokens):
    pairs = zip(plans[0], _longest(plans[0], lengths), strict=True)
    largest = max(len(rows) * longest for rows, longest in pairs)
    return largest > max_tokens and largest


def _goes_by_length(plans, lengths, max_tokens):
    longest = _longest(plans[0], lengths)
    return longest in (sorted(longest), sorted(longest, reverse=True))


def _padding(plans, lengths, max_tokens):
    share = padding_share(plans[0], lengths)
    return share > MOST_PADDING and share


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


@grader(
    cases=lambda: [
        ([(3 + n % 23, 3 + n % 23 + n % 3) for n in range(0, 3500, 7)], 200)
    ],
    run=_run_plan,
    right=lambda results: (
        "Complete, bounded, repeatable, and "
        f"{padding_share(results[0][0], check_plan.make_cases()[0][0]):.0%} padding."
    ),
    any_answer=True,
    mistakes=lambda solve: {
        "a batch is empty.":
            Seen(lambda plans, *case: not all(plans[0]),
                 [lambda *given: [*solve(*given), []]]),
        "{} of 500 pairs are in no batch. Was the last batch forgotten?":
            Seen(lambda plans, *case: 500 - len({*sum(plans[0], [])}),
                 [lambda *given: solve(*given)[:-1], lambda *given: solve(*given)[:9]]),
        "a pair is in several batches, or a row number does not exist.":
            Seen(lambda plans, *case: sorted(sum(plans[0], [])) != [*range(500)],
                 [lambda *given: [*solve(*given), [7]]]),
        "a batch fills {} positions, more than 200: rows times the longest side count, "
        "padding too.": Seen(_largest, [_count_only_real]),
        "the same seed and epoch gave another plan: it cannot be resumed.":
            Seen(lambda plans, *case: plans[0] != plans[1],
                 [lambda lengths, n, *start: solve(lengths, n, random.random())]),
        "another seed gave the same plan.":
            Seen(lambda plans, *case: plans[0] == plans[2],
                 [lambda lengths, n, seed, epoch: solve(lengths, n, 0, epoch)]),
        "the next epoch has the same plan: nothing is shuffled anew.":
            Seen(lambda plans, *case: plans[0] == plans[3],
                 [lambda lengths, n, seed, epoch: solve(lengths, n, seed)]),
        "batches go from one length to the other; shuffle their order too.":
            Seen(_goes_by_length,
                 [lambda lengths, *given: sorted(
                     solve(lengths, *given), key=lambda rows: _longest([rows], lengths)
                 )]),
        f"{{:.0%}} of all positions are padding; {MOST_PADDING:.0%} are allowed. Put "
        "pairs of similar length together.": Seen(_padding, [{"bucket": False}]),
        "every epoch has the same batches in another order; shuffle pairs of equal "
        "length too.":
            Seen(lambda plans, *case: (
                     sorted(map(sorted, plans[0])) == sorted(map(sorted, plans[3]))),
                 [_shuffle_batches]),
    },
)  # fmt: skip
def check_plan(lengths, max_tokens, seed=0, epoch=0, bucket=True):
    """Plan batches: bounded, complete, shuffled, repeatable, with little padding.

    lengths (source, target), max_tokens, seed, epoch -> row numbers of each batch.
    """
    return batch_plan(lengths, max_tokens, seed, epoch, bucket=bucket)
