"""Graders of the chapter on data and batches."""

import random
from functools import partial
from itertools import pairwise

from transformer_lib.data.batches import batch_plan, padding_share
from transformer_lib.exercises.grading import Grader, Seen

MOST_PADDING = 0.25


def _merge(pieces, pair, limit=None, step=2):
    """Join a pair from left to right, at most `limit` times."""
    joined, i, done = [], 0, 0
    while i < len(pieces):
        if tuple(pieces[i : i + 2]) == pair and done != limit:
            joined.append("".join(pair))
            i, done = i + step, done + 1
        else:
            joined.append(pieces[i])
            i += 1
    return joined


def _merge_letters(pieces, pair):
    """Find the pair in the spelled word, across the borders of pieces."""
    marked = "".join(pieces).replace("".join(pair), " * ").split()
    parts = (["".join(pair)] if part == "*" else list(part) for part in marked)
    return sum(parts, [])


def _merge_from_the_right(pieces, pair):
    turned = _merge(pieces[::-1], pair[::-1])[::-1]
    return [
        "".join(pair) if piece == "".join(pair[::-1]) else piece for piece in turned
    ]


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
        "everything was joined; join the given pair only.": (
            lambda pieces, pair: ["".join(pieces)]
        ),
        "only one occurrence was joined.": partial(_merge, limit=1),
        "letters are written twice. A joined pair takes two pieces.": (
            partial(_merge, step=1)
        ),
        "letters are compared; compare whole pieces with the pair.": _merge_letters,
        "go from left to right.": _merge_from_the_right,
        "letters were lost or written twice.": Seen(
            lambda result, pieces, pair: "".join(result) != "".join(pieces),
            lambda pieces, pair: _merge(pieces, pair)[:-1],
        ),
    },
)


def _split(entries, held_out, belongs=lambda names, held_out: set(names) <= held_out):
    parts = ([], [])
    for sentence, names in entries:
        parts[belongs(names, held_out)].append(sentence)
    return parts


def _split_by_any(entries, held_out):
    return _split(entries, held_out, lambda names, held: bool({*names} & held))


def _counts(result, entries, *_):
    """How often each sentence occurs in training and in test."""
    parts = [list(part) for part in result]
    return {s: (parts[0].count(s), parts[1].count(s)) for s, _ in entries}


def _find(condition):
    """Name the first sentence whose numbers in training and test are like this."""

    def sign(*given):
        counts = _counts(*given).items()
        return next((sentence for sentence, n in counts if condition(*n)), None)

    return sign


def _find_misplaced(result, entries, held_out):
    return min({*result[1]} ^ {*_split(entries, held_out)[1]}, default=None)


check_split = Grader(
    "entries (sentence, components), the components held out -> sentences for training "
    "and those for the test; one that any other component shows is for training",
    cases=lambda: [
        (
            [
                ("Light on", ("lamp",)),
                ("Bridge not found", ("hub",)),
                ("Failed to connect", ("lamp", "hub")),
                ("Wrong password", ("hub", "camera")),
                ("Camera moved", ("camera",)),
                ("Sign in again", ("camera", "door", "lamp")),
                ("Door open", ("door",)),
            ],
            {"hub", "camera"},
        )
    ],
    view=_counts,
    solution=_split,
    right="No component's text is both learned and tested, and nothing is lost.",
    mistakes={
        "the parts are swapped: training comes first.": (
            lambda entries, held_out: _split(entries, held_out)[::-1]
        ),
        "'Failed to connect' is tested, but the component 'lamp' shows it too, and "
        "that one is for training. Test a sentence only if all its components are held "
        "out.": _split_by_any,
        "{!r} is in both parts: what is learned is tested.": Seen(
            _find(lambda n_train, n_test: n_train and n_test),
            lambda *given: (_split(*given)[0], _split_by_any(*given)[1]),
        ),
        "{!r} is in neither part.": Seen(
            _find(lambda n_train, n_test: n_train + n_test == 0),
            lambda *given: (_split_by_any(*given)[0], _split(*given)[1]),
        ),
        "{!r} occurs twice.": Seen(
            _find(lambda n_train, n_test: n_train + n_test > 1),
            lambda *given: (2 * _split(*given)[0], _split(*given)[1]),
        ),
        "{!r} is in the wrong part; look at all its components.": Seen(
            _find_misplaced,
            [
                lambda entries, held_out: _split(entries, {"hub"}),
                lambda *given: _split(*given, lambda names, held: names[0] in held),
            ],
        ),
    },
)


def _place(n_batches, done, is_over=lambda done, size: done >= size):
    epoch = 0
    while is_over(done, n_batches(epoch)):
        done -= n_batches(epoch)
        epoch += 1
    return epoch, done


def _n_batches(epoch):
    return (5, 3, 4, 6)[epoch % 4]


check_place = Grader(
    "a function that tells the number of batches of an epoch, the number of batches "
    "done -> (epoch, position) of the next batch, both from 0",
    cases=lambda: [(_n_batches, done) for done in range(26)],
    solution=_place,
    right="The run goes on with the batch that it would have taken next.",
    mistakes={
        "epochs differ in their number of batches.": (
            lambda n_batches, done: divmod(done, n_batches(0))
        ),
        "this one is done already.": (
            lambda n_batches, done: _place(n_batches, max(done - 1, 0))
        ),
        "one batch is skipped.": lambda n_batches, done: _place(n_batches, done + 1),
        "that epoch is over; the next one begins at 0.": (
            partial(_place, is_over=lambda done, size: done > size)
        ),
        "the epoch comes first.": lambda n_batches, done: _place(n_batches, done)[::-1],
    },
)


def _run_plan(answer, lengths, max_tokens):
    """The first plan, the same again, with another seed, and for the next epoch."""
    starts = (0, 0), (0, 0), (1, 0), (0, 1)
    return tuple(answer(list(lengths), max_tokens, *start) for start in starts)


def _count_missing(plans, lengths, max_tokens):
    return len(lengths) - len({row for rows in plans[0] for row in rows}) or None


def _largest(plans, lengths, max_tokens):
    sizes = [len(rows) * max(max(lengths[row]) for row in rows) for rows in plans[0]]
    return max(sizes) if max(sizes) > max_tokens else None


def _goes_by_length(plans, lengths, max_tokens):
    longest = [max(max(lengths[row]) for row in rows) for rows in plans[0]]
    rises = [a <= b for a, b in pairwise(longest)]
    return all(rises) or all(a >= b for a, b in pairwise(longest))


def _padding(plans, lengths, max_tokens):
    share = padding_share(plans[0], lengths)
    return share if share > MOST_PADDING else None


def _sets(plan):
    return {frozenset(rows) for rows in plan}


def _change_plan(change):
    return lambda *given: change(batch_plan(*given))


def _fill_by_real_tokens(lengths, max_tokens, seed, epoch):
    """Count the tokens of the rows and forget their padding."""
    plan, filled = [[]], 0
    for row in sum(batch_plan(lengths, max_tokens, seed, epoch, bucket=False), []):
        if filled + max(lengths[row]) > max_tokens:
            plan.append([])
            filled = 0
        plan[-1].append(row)
        filled += max(lengths[row])
    return plan


def _shuffle_batches(lengths, max_tokens, seed, epoch):
    plan = batch_plan(lengths, max_tokens)
    random.Random(f"{seed} {epoch}").shuffle(plan)
    return plan


def _sort_batches(lengths, *given):
    plan = batch_plan(lengths, *given)
    return sorted(plan, key=lambda rows: max(max(lengths[row]) for row in rows))


check_plan = Grader(
    "lengths (source, target), max_tokens, seed, epoch -> row numbers of each batch: "
    "bounded, complete, shuffled, repeatable, with little padding",
    cases=lambda: [
        ([(3 + 7 * i % 23, 3 + 7 * i % 23 + i % 3) for i in range(500)], 200)
    ],
    run=_run_plan,
    solution=batch_plan,
    right=lambda results: (
        "Complete, bounded, repeatable, and "
        f"{padding_share(results[0][0], check_plan.make_cases()[0][0]):.0%} padding."
    ),
    any_answer=True,
    mistakes={
        "a batch is empty.": Seen(
            lambda plans, *case: not all(plans[0]),
            _change_plan(lambda plan: [*plan, []]),
        ),
        "{} of 500 pairs are in no batch. Was the last batch forgotten?": Seen(
            _count_missing,
            [
                _change_plan(lambda plan: plan[:-1]),
                _change_plan(lambda plan: plan[: len(plan) // 2]),
            ],
        ),
        "a pair is in several batches, or a row number does not exist.": Seen(
            lambda plans, lengths, max_tokens: (
                sorted(sum(plans[0], [])) != list(range(len(lengths)))
            ),
            _change_plan(lambda plan: [*plan, plan[0]]),
        ),
        "a batch fills {} positions, more than 200: rows times the longest side count, "
        "padding too.": Seen(_largest, _fill_by_real_tokens),
        "the same seed and epoch gave another plan: it cannot be resumed.": Seen(
            lambda plans, *case: plans[0] != plans[1],
            lambda lengths, n, seed, epoch: batch_plan(lengths, n, random.random()),
        ),
        "another seed gave the same plan.": Seen(
            lambda plans, *case: plans[0] == plans[2],
            lambda lengths, n, seed, epoch: batch_plan(lengths, n, 0, epoch),
        ),
        "the next epoch has the same plan: nothing is shuffled anew.": Seen(
            lambda plans, *case: plans[0] == plans[3],
            lambda lengths, n, seed, epoch: batch_plan(lengths, n, seed),
        ),
        "batches go from one length to the other; shuffle their order too.": Seen(
            _goes_by_length, _sort_batches
        ),
        f"{{:.0%}} of all positions are padding; {MOST_PADDING:.0%} are allowed. Put "
        "pairs of similar length together.": Seen(
            _padding, lambda *given: batch_plan(*given, bucket=False)
        ),
        "every epoch has the same batches in another order; shuffle pairs of equal "
        "length too.": Seen(
            lambda plans, *case: _sets(plans[0]) == _sets(plans[3]), _shuffle_batches
        ),
    },
)
