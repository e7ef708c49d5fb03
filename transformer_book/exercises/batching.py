"""Graders of the chapter on data and batches."""

import random

from torch import tensor

from transformer_book.exercises.grading import grader
from transformer_lib.data.batches import batch_plan, pad_batch, padding_share

MOST_PADDING = 0.25


@grader(
    cases=lambda: [([[5, 6, 7, 2], [8, 2], [9, 4, 2]], 0), ([[4, 2], [5, 6, 2]], 3)],
    right="All sentences end in the same column.",
)
def check_pad_left(sequences, pad_id):
    """Lists of ids, pad_id -> (batch, longest), with the padding on the left."""
    longest = max(map(len, sequences))
    return tensor([[pad_id] * (longest - len(ids)) + ids for ids in sequences])


check_pad_left.mistake("the padding is on the right.", pad_batch)
check_pad_left.mistake(
    "the padding is on the left, but the tokens are in reverse order.",
    lambda sequences, pad_id: pad_batch(sequences, pad_id).flip(1),
)
check_pad_left.mistake(
    "fill up with pad_id, whatever its number is.",
    lambda sequences, pad_id: check_pad_left.solve(sequences, 0),
)


@grader(
    cases=lambda: [
        ([*"banana"], ("a", "n")),
        ([*"aaa"], ("a", "a")),
        ([*"low"], ("o", "l")),
        (["lo", "w", "l", "o", "w"], ("lo", "w")),
    ],
    right="Every occurrence is joined, from left to right, and none twice.",
)
def check_merge(pieces, pair):
    """The pieces of a word, a pair -> the pieces with the pair joined everywhere."""
    joined, i = [], 0
    while i < len(pieces):
        if tuple(pieces[i : i + 2]) == pair:
            joined.append("".join(pair))
            i += 2
        else:
            joined.append(pieces[i])
            i += 1
    return joined


def _join_the_first(pieces, pair):
    for i in range(len(pieces)):
        if tuple(pieces[i : i + 2]) == pair:
            return [*pieces[:i], "".join(pair), *pieces[i + 2 :]]
    return pieces[:]


def _join_overlapping(pieces, pair):
    return [
        "".join(pair) if tuple(pieces[i : i + 2]) == pair else pieces[i]
        for i in range(len(pieces))
    ]


check_merge.mistake("only one occurrence was joined.", _join_the_first)
check_merge.mistake(
    "letters are written twice. A joined pair takes two pieces.", _join_overlapping
)


_ENTRIES = [
    ("Light on", {"lamp"}),
    ("Bridge not found", {"hub"}),
    ("Failed to connect", {"lamp", "hub"}),
    ("Wrong password", {"hub", "camera"}),
]


@grader(
    cases=lambda: [(_ENTRIES[:], {"hub", "camera"})],
    right="No component's text is both learned and tested, and nothing is lost.",
)
def check_split(entries, held_out):
    """Split sentences, so that what no training sentence shows is tested.

    entries (sentence, components), the components held out -> sentences for training
    and those for the test; one that any other component shows is for training.
    """
    train = [sentence for sentence, components in entries if components - held_out]
    test = [sentence for sentence, components in entries if components <= held_out]
    return train, test


def _train_if_none_is_held_out(entries, held_out):
    return [text for text, components in entries if not components & held_out]


def _test_if_one_is_held_out(entries, held_out):
    return [text for text, components in entries if components & held_out]


check_split.mistake(
    "'Failed to connect' is tested, but 'lamp' shows it too. Test a sentence only "
    "if all its components are held out.",
    lambda *case: (_train_if_none_is_held_out(*case), _test_if_one_is_held_out(*case)),
)
check_split.mistake(
    "'Failed to connect' is in both parts: what is learned is tested.",
    lambda *case: (check_split.solve(*case)[0], _test_if_one_is_held_out(*case)),
)
check_split.mistake(
    "'Failed to connect' is in neither part.",
    lambda *case: (_train_if_none_is_held_out(*case), check_split.solve(*case)[1]),
)


@grader(
    cases=lambda: [(lambda epoch: (5, 3, 4, 6)[epoch % 4], n) for n in range(26)],
    right="The run goes on with the batch that it would have taken next.",
)
def check_resume(n_batches, done):
    """Where a run that was interrupted goes on.

    A function that tells the number of batches of an epoch, the number of batches done
    -> (epoch, position) of the next batch, both from 0.
    """
    epoch = 0
    while done >= n_batches(epoch):
        done -= n_batches(epoch)
        epoch += 1
    return epoch, done


def _stay_in_a_finished_epoch(n_batches, done):
    epoch = 0
    while done > n_batches(epoch):
        done -= n_batches(epoch)
        epoch += 1
    return epoch, done


check_resume.mistake(
    "epochs differ in their number of batches.",
    lambda n_batches, done: divmod(done, n_batches(0)),
)
check_resume.mistake(
    "that epoch is over; the next one begins at 0.", _stay_in_a_finished_epoch
)


def _run_plan(answer, lengths, max_tokens):
    """The first plan, the same again, with another seed, and for the next epoch."""
    starts = (0, 0), (0, 0), (1, 0), (0, 1)
    return tuple(answer(lengths, max_tokens, *start) for start in starts)


@grader(
    cases=lambda: [
        ([(3 + n % 23, 3 + n % 23 + n % 3) for n in range(0, 3500, 7)], 200)
    ],
    right=lambda results: (
        "Complete, bounded, repeatable, and "
        f"{padding_share(results[0][0], check_plan.make_cases()[0][0]):.0%} padding."
    ),
    run=_run_plan,
    any_answer=True,
)
def check_plan(lengths, max_tokens, seed=0, epoch=0):
    """Plan batches: bounded, complete, shuffled, repeatable, with little padding.

    lengths (source, target), max_tokens, seed, epoch -> row numbers of each batch.
    """
    return batch_plan(lengths, max_tokens, seed, epoch)


def _incomplete(plans, lengths, max_tokens):
    return sorted(sum(plans[0], [])) != [*range(500)] or [] in plans[0]


def _too_large(plans, lengths, max_tokens):
    areas = [len(rows) * max(max(lengths[i]) for i in rows) for rows in plans[0]]
    return max(areas) > max_tokens and max(areas)


def _too_much_padding(plans, lengths, max_tokens):
    share = padding_share(plans[0], lengths)
    return share > MOST_PADDING and share


check_plan.mistake(
    "each of the 500 pairs must be in one batch, and no batch may be empty.",
    lambda *case: check_plan.solve(*case)[:-1],
    lambda *case: [*check_plan.solve(*case), []],
    sign=_incomplete,
)
check_plan.mistake(
    "a batch fills {} positions, more than 200: rows times the longest side count, "
    "padding too.",
    lambda lengths, max_tokens, *start: check_plan.solve(lengths, 300),
    sign=_too_large,
)
check_plan.mistake(
    "the same seed and epoch gave another plan: it cannot be resumed.",
    lambda lengths, n, *start: check_plan.solve(lengths, n, random.random()),
    sign=lambda plans, *case: plans[0] != plans[1],
)
check_plan.mistake(
    "another seed or epoch must give another plan.",
    lambda lengths, n, seed, epoch: check_plan.solve(lengths, n, seed),
    sign=lambda plans, *case: plans[0] in plans[2:],
)
check_plan.mistake(
    f"{{:.0%}} of all positions are padding; {MOST_PADDING:.0%} are allowed. Put "
    "pairs of similar length together.",
    lambda *case: batch_plan(*case, bucket=False),
    sign=_too_much_padding,
)
