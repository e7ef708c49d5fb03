"""Word alignment: which source word does each target word translate, and how sure?

A link is a pair (source word, target word), counted from 0. The links that a method
finds are compared with those of a gold alignment, as in Och and Ney, "A Systematic
Comparison of Various Statistical Alignment Models" (2003), section 5.
"""

import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from torch import Tensor

from transformer_lib.model.checks import check_integers, check_kind, check_tensors

MOST_WORDS = 100_000  # of a sentence
Link = tuple[int, int]
Links = Collection[Link]


@dataclass(frozen=True)
class AlignmentScore:
    """How well found links agree with a gold alignment; all are fractions.

    Attributes:
        precision: share of the found links that are possible.
        recall: share of the sure links that were found.
        error_rate: AER, 0 if every sure link and nothing impossible was found.
        n_links: number of found links.
    """

    precision: float
    recall: float
    error_rate: float
    n_links: int

    def __str__(self) -> str:
        return (
            f"AER {self.error_rate:.2f} (precision {self.precision:.2f}, recall "
            f"{self.recall:.2f})"
        )


def alignment_error_rate(
    found: Sequence[Links],
    sure: Sequence[Links],
    possible: Sequence[Links] | None = None,
) -> AlignmentScore:
    """Score the links of a corpus: links of all sentences are counted together.

    With found links A, sure links S and possible links P, of which S is a part:

        precision = |A & P| / |A|
        recall = |A & S| / |S|
        AER = 1 - (|A & S| + |A & P|) / (|A| + |S|)

    Args:
        found: for each sentence the links to be scored.
        sure: for each sentence the links that must be there.
        possible: for each sentence the links that may be there; the sure ones always
            may. None allows no others: AER is then 1 minus the F1 score.

    Raises:
        ValueError: another number of sentences, or no link found, or none sure.
    """
    possible = sure if possible is None else possible
    check_sentences(found, sure, possible)
    n_found = n_sure = hits_sure = hits_possible = 0
    for each in zip(found, sure, possible, strict=True):
        a, s, p = map(set, each)
        n_found += len(a)
        n_sure += len(s)
        hits_sure += len(a & s)
        hits_possible += len(a & (p | s))
    check_counts(n_found, n_sure)
    return AlignmentScore(
        precision=hits_possible / n_found,
        recall=hits_sure / n_sure,
        error_rate=1 - (hits_sure + hits_possible) / (n_found + n_sure),
        n_links=n_found,
    )


def links_from_weights(weights: Tensor) -> set[Link]:
    """Link every target word with the source word of its largest weight.

    Args:
        weights: (tgt_len, src_len), words only: leave out the columns of special
            tokens, and choose the rows that speak for each target word.

    Raises:
        ValueError: weights have no two axes, or an empty one.
    """
    check_word_weights(weights)
    return {(i, j) for j, i in enumerate(weights.argmax(dim=1).tolist())}


def diagonal_links(src_len: int, tgt_len: int) -> set[Link]:
    """Link each target word with the source word at the same part of its sentence.

    The first words are linked, the last words are, and those between in proportion.

    Raises:
        ValueError: a length is below 1.
    """
    _check_lengths(src_len, tgt_len)
    steps = max(tgt_len - 1, 1)
    return {
        ((2 * j * (src_len - 1) + steps) // (2 * steps), j)  # rounded, half up
        for j in range(tgt_len)
    }


def random_links(src_len: int, tgt_len: int, rng: random.Random) -> set[Link]:
    """Link each target word with any source word, all equally likely.

    Raises:
        ValueError: a length is below 1.
    """
    _check_lengths(src_len, tgt_len)
    check_kind(random.Random, rng=rng)
    return {(rng.randrange(src_len), j) for j in range(tgt_len)}


def check_sentences(found: Sequence, sure: Sequence, possible: Sequence) -> None:
    """Raise ValueError unless all three have links of as many sentences."""
    for name, sentences in (("found", found), ("sure", sure), ("possible", possible)):
        if isinstance(sentences, str) or not isinstance(sentences, Sequence):
            raise TypeError(
                f"{name} must list links of each sentence: {sentences!r:.80}"
            )
        for number, links in enumerate(sentences, start=1):
            for link in links:
                if not isinstance(link, tuple) or len(link) != 2:
                    raise TypeError(
                        f"{name}, sentence {number}: a link is two numbers, not "
                        f"{link!r:.80}"
                    )
    if not len(found) == len(sure) == len(possible):
        raise ValueError(
            f"links of {len(found)} sentences, but sure ones of {len(sure)} and "
            f"possible ones of {len(possible)}"
        )


def check_counts(n_found: int, n_sure: int) -> None:
    """Raise ValueError unless there is something to compare."""
    if not n_found or not n_sure:
        raise ValueError(f"{n_found} links found, {n_sure} sure: at least 1 each")


def check_word_weights(weights: Tensor) -> None:
    """Raise ValueError unless weights are (tgt_len, src_len), with words in both."""
    check_tensors(weights=weights)
    if weights.dim() != 2 or 0 in weights.shape:
        raise ValueError(
            f"weights must be (tgt_len, src_len), not {tuple(weights.shape)}"
        )
    if not weights.is_floating_point():
        raise TypeError(f"weights must be floating-point numbers, not {weights.dtype}")
    if weights.device.type == "meta" or not weights.isfinite().all():
        raise ValueError("a weight is no number, so no word has the largest")


def _check_lengths(src_len: int, tgt_len: int) -> None:
    check_integers(src_len=src_len, tgt_len=tgt_len)
    if max(src_len, tgt_len) > MOST_WORDS:
        raise ValueError(f"{src_len} and {tgt_len} words: {MOST_WORDS:,} are the most")
    if src_len < 1 or tgt_len < 1:
        raise ValueError(
            f"lengths must be at least 1, not {src_len} (source) and {tgt_len} (target)"
        )
