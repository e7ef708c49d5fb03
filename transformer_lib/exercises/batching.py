"""Graders of the chapter on data and batches."""

from collections.abc import Callable, Collection, Sequence
from itertools import pairwise
from typing import Any

from transformer_lib.data.batches import padding_share
from transformer_lib.exercises.feedback import (
    Feedback,
    call,
    right,
    unanswered,
    wrong,
)

Pieces = list[str]
Entry = tuple[str, tuple[str, ...]]  # a sentence and the components that show it
Lengths = list[tuple[int, int]]
Plan = list[list[int]]

MOST_PADDING = 0.25


def check_merge(answer: Callable[[Pieces, tuple[str, str]], Pieces]) -> Feedback:
    """Grade one step of byte-pair encoding on one word.

    Args:
        answer: takes the pieces of a word and a pair; returns the pieces with the
            pair joined wherever it occurs, from left to right.
    """
    cases = [
        (["b", "a", "n", "a", "n", "a"], ("a", "n"), ["b", "an", "an", "a"]),
        (["a", "a", "a"], ("a", "a"), ["aa", "a"]),
        (["l", "o", "w"], ("o", "l"), ["l", "o", "w"]),
        (["a"], ("a", "b"), ["a"]),
        (["lo", "w", "l", "o", "w"], ("lo", "w"), ["low", "l", "o", "w"]),
    ]
    for pieces, pair, expected in cases:
        given = list(pieces)
        result = call(answer, given, pair)
        if problem := unanswered(result):
            return problem
        if not isinstance(result, list | tuple):
            return wrong(f"expected a list, but got {type(result).__name__}.")
        if given != pieces:
            return wrong("the word itself was changed; return a new list.")
        if list(result) != expected:
            return wrong(_merge_mistake(pieces, pair, list(result), expected))
    return right("Every occurrence is joined, from left to right, and none twice.")


def _merge_mistake(
    pieces: Pieces, pair: tuple[str, str], result: Pieces, expected: Pieces
) -> str:
    """Name what went wrong in one word."""
    shown = f"{pieces} with {pair} gives {expected}, but got {result}: "
    joined = "".join(pair)
    if "".join(map(str, result)) != "".join(pieces):
        return shown + "letters were lost or written twice. A joined pair takes two."
    if result.count(joined) > expected.count(joined):
        return (
            shown + "pieces are compared, not letters: only the given pair is joined."
        )
    if joined not in result:
        return shown + "nothing was joined."
    if result.count(joined) < expected.count(joined):
        return shown + "only one occurrence was joined."
    return shown + "go from left to right."


def check_split(
    answer: Callable[[list[Entry], set[str]], tuple[list[str], list[str]]],
) -> Feedback:
    """Grade a split by component.

    Args:
        answer: takes entries (sentence, components) and the components that are held
            out; returns the sentences for training and those for the test. A sentence
            that any other component shows is for training.
    """
    entries: list[Entry] = [
        ("Light on", ("lamp",)),
        ("Bridge not found", ("hub",)),
        ("Failed to connect", ("lamp", "hub")),
        ("Wrong password", ("hub", "camera")),
        ("Camera moved", ("camera",)),
        ("Sign in again", ("camera", "door", "lamp")),
        ("Door open", ("door",)),
    ]
    held_out = {"hub", "camera"}
    result = call(answer, list(entries), set(held_out))
    if problem := unanswered(result):
        return problem
    if not isinstance(result, list | tuple) or len(result) != 2:
        return wrong("expected two lists: training, test.")
    train, test = list(result[0]), list(result[1])
    sentences = [sentence for sentence, _ in entries]
    inside = {sentence for sentence, names in entries if set(names) <= held_out}
    touching = {sentence for sentence, names in entries if set(names) & held_out}
    both = set(train) & set(test)
    if both:
        return wrong(f"{min(both)!r} is in both parts: what is learned is tested.")
    if missing := [s for s in sentences if s not in train and s not in test]:
        return wrong(f"{missing[0]!r} is in neither part.")
    if sorted(train + test) != sorted(sentences):
        return wrong("a sentence occurs twice, or one was invented.")
    if set(train) == inside:
        return wrong("the parts are exchanged: training comes first.")
    if set(test) == touching:
        return wrong(
            "'Failed to connect' is tested, but the component 'lamp' shows it too, and "
            "that one is for training. Test a sentence only if all its components are "
            "held out."
        )
    if set(test) != inside:
        problem = min(set(test) ^ inside)
        place = "training" if problem in train else "the test"
        return wrong(f"{problem!r} is in {place}; look at all its components.")
    return right("No component's text is both learned and tested, and nothing is lost.")


def check_place(
    answer: Callable[[Callable[[int], int], int], tuple[int, int]],
) -> Feedback:
    """Grade finding the next batch of an interrupted run.

    Args:
        answer: takes a function that tells the number of batches of an epoch, and how
            many batches are done; returns (epoch, position), both from 0.
    """
    sizes = (5, 3, 4, 6)

    def n_batches(epoch: int) -> int:
        return sizes[epoch % len(sizes)]

    places = [(e, p) for e in range(6) for p in range(n_batches(e))]
    for done, expected in enumerate(places):
        result = call(answer, n_batches, done)
        if problem := unanswered(result):
            return problem
        if not isinstance(result, list | tuple) or len(result) != 2:
            return wrong(f"expected (epoch, position), but got {result!r}.")
        epoch, position = result
        if (epoch, position) == expected:
            continue
        said = f"after {done} batches the next is {expected}, but got {tuple(result)}: "
        if (epoch, position) == divmod(done, sizes[0]):
            return wrong(said + "epochs differ in their number of batches.")
        if done and (epoch, position) == places[done - 1]:
            return wrong(said + "this one is done already.")
        if position == n_batches(int(epoch)):
            return wrong(said + "that epoch is over; the next one begins at 0.")
        if (position, epoch) == expected:
            return wrong(said + "the epoch comes first.")
        return wrong(said + "walk through the epochs one by one.")
    return right("The run goes on with the batch that it would have taken next.")


def check_plan(answer: Callable[[Lengths, int, int, int], Plan]) -> Feedback:
    """Grade a plan of one's own: bounded, complete, shuffled, repeatable, little waste.

    Args:
        answer: takes lengths (source, target), max_tokens, seed and epoch; returns row
            numbers of each batch.
    """
    lengths = [(3 + 7 * i % 23, 3 + (7 * i % 23 + i % 3)) for i in range(500)]
    max_tokens = 200
    plan = call(answer, list(lengths), max_tokens, 0, 0)
    if problem := unanswered(plan):
        return problem
    if problem := _broken_plan(plan, lengths, max_tokens):
        return problem
    again, other, later = (
        call(answer, list(lengths), max_tokens, seed, epoch)
        for seed, epoch in ((0, 0), (1, 0), (0, 1))
    )
    if plan != again:
        return wrong("the same seed and epoch gave another plan: it cannot be resumed.")
    if plan == other:
        return wrong("another seed gave the same plan.")
    if plan == later:
        return wrong("the next epoch has the same plan: nothing is shuffled anew.")
    longest = [max(max(lengths[row]) for row in rows) for rows in plan]
    if all(a <= b for a, b in pairwise(longest)) or all(
        a >= b for a, b in pairwise(longest)
    ):
        return wrong(
            "batches go from one length to the other; shuffle their order too."
        )
    share = padding_share(plan, lengths)
    if share > MOST_PADDING:
        return wrong(
            f"{share:.0%} of all positions are padding; {MOST_PADDING:.0%} are "
            "allowed. Put pairs of like length together."
        )
    if {frozenset(rows) for rows in plan} == {frozenset(rows) for rows in later}:
        return wrong(
            "every epoch has the same batches in another order; shuffle pairs of equal "
            "length too."
        )
    return right(f"Complete, bounded, repeatable, and {share:.0%} padding.")


def _broken_plan(plan: Any, lengths: Lengths, max_tokens: int) -> Feedback | None:
    """Say what keeps this from being a plan at all."""
    if not isinstance(plan, Collection) or not all(
        isinstance(rows, Sequence) and not isinstance(rows, str) for rows in plan
    ):
        return wrong("expected a list of lists of row numbers.")
    if not all(plan):
        return wrong("a batch is empty.")
    rows = sorted(row for batch in plan for row in batch)
    if missing := set(range(len(lengths))) - set(rows):
        last = " Was the last batch forgotten?" if len(missing) < 60 else ""
        return wrong(f"{len(missing)} of {len(lengths)} pairs are in no batch.{last}")
    if rows != list(range(len(lengths))):
        return wrong("a pair is in several batches, or a row number does not exist.")
    for batch in plan:
        size = len(batch) * max(max(lengths[row]) for row in batch)
        if size > max_tokens:
            return wrong(
                f"a batch fills {size} positions, more than {max_tokens}: rows times "
                "the longest side count, padding too."
            )
    return None
