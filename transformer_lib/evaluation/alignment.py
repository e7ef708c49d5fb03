"""Word alignment: which source word does each target word translate, and how sure?

A link is a pair (source word, target word), counted from 0. The links that a method
finds are compared with those of a gold alignment, as in Och and Ney, "A Systematic
Comparison of Various Statistical Alignment Models" (2003), section 5.
"""

import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from torch import Tensor

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
    """
    possible = sure if possible is None else possible
    n_found = n_sure = hits_sure = hits_possible = 0
    for each in zip(found, sure, possible, strict=True):
        a, s, p = map(set, each)
        n_found += len(a)
        n_sure += len(s)
        hits_sure += len(a & s)
        hits_possible += len(a & (p | s))
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
    """
    return {(i, j) for j, i in enumerate(weights.argmax(dim=1).tolist())}


def diagonal_links(src_len: int, tgt_len: int) -> set[Link]:
    """Link each target word with the source word at the same part of its sentence.

    The first words are linked, the last words are, and those between in proportion.
    """
    steps = max(tgt_len - 1, 1)
    return {
        ((2 * j * (src_len - 1) + steps) // (2 * steps), j)  # rounded, half up
        for j in range(tgt_len)
    }


def random_links(src_len: int, tgt_len: int, rng: random.Random) -> set[Link]:
    """Link each target word with any source word, all equally likely."""
    return {(rng.randrange(src_len), j) for j in range(tgt_len)}
