"""Graders of the chapter on data and batches."""

import random

from torch import tensor

from transformer_book.exercises.grading import Seen, grader
from transformer_lib.data.batches import batch_plan, pad_batch, padding_share

MOST_PADDING = 0.25


@grader(
    lambda: [([[5, 6, 7, 2], [8, 2], [9, 4, 2]], 0), ([[4, 2], [5, 6, 2]], 3)],
    "All sentences end in the same column.",
    ("the padding is on the right.", pad_batch),
    ("the padding is on the left, but the tokens are in reverse order.",
     lambda sequences, pad_id: pad_batch(sequences, pad_id).flip(1)),
    ("fill up with pad_id, whatever its number is.",
     lambda sequences, pad_id: check_pad_left.solve(sequences, 0)),
)  # fmt: skip
def check_pad_left(sequences, pad_id):
    """Lists of ids, pad_id -> (batch, longest), with the padding on the left."""
    longest = max(map(len, sequences))
    return tensor([[pad_id] * (longest - len(ids)) + ids for ids in sequences])


@grader(
    lambda: [
        ([*"banana"], ("a", "n")), ([*"aaa"], ("a", "a")), ([*"low"], ("o", "l")),
        (["lo", "w", "l", "o", "w"], ("lo", "w")),
    ],
    "Every occurrence is joined, from left to right, and none twice.",
    ("only one occurrence was joined.", {"limit": 1}),
    ("letters are written twice. A joined pair takes two pieces.", {"step": 1}),
)  # fmt: skip
def check_merge(pieces, pair, limit=9, step=2):
    """The pieces of a word, a pair -> the pieces with the pair joined everywhere."""
    joined, i = [], 0
    while i < len(pieces):
        found = tuple(pieces[i : i + 2]) == pair and joined.count("".join(pair)) < limit
        joined.append("".join(pair) if found else pieces[i])
        i += step if found else 1
    return joined


_ENTRIES = [
    ("Light on", {"lamp"}),
    ("Bridge not found", {"hub"}),
    ("Failed to connect", {"lamp", "hub"}),
    ("Wrong password", {"hub", "camera"}),
]


@grader(
    lambda: [(_ENTRIES[:], {"hub", "camera"})],
    "No component's text is both learned and tested, and nothing is lost.",
    ("'Failed to connect' is tested, but 'lamp' shows it too. Test a sentence only "
     "if all its components are held out.",
     {"train": set.isdisjoint, "test": set.__and__}),
    ("'Failed to connect' is in both parts: what is learned is tested.",
     {"test": set.__and__}),
    ("'Failed to connect' is in neither part.", {"train": set.isdisjoint}),
)  # fmt: skip
def check_split(entries, held_out, train=set.__sub__, test=set.__le__):
    """Split sentences, so that what no training sentence shows is tested.

    entries (sentence, components), the components held out -> sentences for training
    and those for the test; one that any other component shows is for training.
    """
    return tuple(
        [sentence for sentence, names in entries if condition({*names}, held_out)]
        for condition in (train, test)
    )


@grader(
    lambda: [(lambda epoch: (5, 3, 4, 6)[epoch % 4], n) for n in range(26)],
    "The run goes on with the batch that it would have taken next.",
    ("epochs differ in their number of batches.",
     lambda n_batches, done: divmod(done, n_batches(0))),
    ("that epoch is over; the next one begins at 0.", {"late": 1}),
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


def _largest(plans, lengths, max_tokens):
    areas = [len(rows) * max(max(lengths[i]) for i in rows) for rows in plans[0]]
    return max(areas) > max_tokens and max(areas)


@grader(
    lambda: [([(3 + n % 23, 3 + n % 23 + n % 3) for n in range(0, 3500, 7)], 200)],
    lambda results: (
        "Complete, bounded, repeatable, and "
        f"{padding_share(results[0][0], check_plan.make_cases()[0][0]):.0%} padding."
    ),
    ("each of the 500 pairs must be in one batch, and no batch may be empty.",
     Seen(lambda plans, *case: (
         sorted(sum(plans[0], [])) != [*range(500)] or [] in plans[0])),
     lambda *given: check_plan.solve(*given)[:-1],
     lambda *given: [*check_plan.solve(*given), []]),
    ("a batch fills {} positions, more than 200: rows times the longest side count, "
     "padding too.",
     Seen(_largest), lambda sizes, n, *start: check_plan.solve(sizes, 300)),
    ("the same seed and epoch gave another plan: it cannot be resumed.",
     Seen(lambda plans, *case: plans[0] != plans[1]),
     lambda lengths, n, *start: check_plan.solve(lengths, n, random.random())),
    ("another seed or epoch must give another plan.",
     Seen(lambda plans, *case: plans[0] in plans[2:]),
     lambda lengths, n, seed, epoch: check_plan.solve(lengths, n, seed)),
    (f"{{:.0%}} of all positions are padding; {MOST_PADDING:.0%} are allowed. Put "
     "pairs of similar length together.",
     Seen(lambda plans, lengths, n: (
         (share := padding_share(plans[0], lengths)) > MOST_PADDING and share)),
     {"bucket": False}),
    run=_run_plan,
    any_answer=True,
)  # fmt: skip
def check_plan(lengths, max_tokens, seed=0, epoch=0, bucket=True):
    """Plan batches: bounded, complete, shuffled, repeatable, with little padding.

    lengths (source, target), max_tokens, seed, epoch -> row numbers of each batch.
    """
    return batch_plan(lengths, max_tokens, seed, epoch, bucket=bucket)
