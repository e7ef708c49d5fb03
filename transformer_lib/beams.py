"""The beams of one sentence, and the targets that have grown from them."""

from bisect import insort
from collections.abc import Iterable
from math import inf
from typing import Literal, NamedTuple

from transformer_lib.targets import Hypothesis, TargetRules

EarlyStopping = bool | Literal["never"]


class Beam(NamedTuple):
    """A target that is not finished.

    Attributes:
        ids: its tokens, bos included.
        log_prob: of these tokens, in nats.
        parent: number of the beam that it continues.
    """

    ids: list[int]
    log_prob: float
    parent: int


class SentenceSearch:
    """The search for the targets of one sentence.

    Args:
        start: tokens that all targets start with, bos included.
        n_forced: tokens of the prefix, which do not count in the score.
        rules: what the targets must keep to.
        n_beams: see `beam_search`, as for all that follow.
        length_penalty: see there.
        early_stopping: see there.

    Attributes:
        beams: of this step, each in its place in the cache.
        hypotheses: targets that have ended, best first, n_beams at most.
        done: whether none can be found any more that would get among these.
    """

    def __init__(
        self,
        start: list[int],
        n_forced: int,
        rules: TargetRules,
        n_beams: int,
        length_penalty: float,
        early_stopping: EarlyStopping,
    ) -> None:
        self.n_forced, self.rules, self.n_beams = n_forced, rules, n_beams
        self.length_penalty, self.early_stopping = length_penalty, early_stopping
        # All beams start alike. One counts, or they would stay alike.
        self.beams = [
            Beam(start, -inf if number else 0.0, number) for number in range(n_beams)
        ]
        self.hypotheses: list[Hypothesis] = []
        self.done = False

    def advance(self, candidates: Iterable[tuple[float, int, int]], place: int) -> None:
        """Go on with the best candidates, and keep those that end.

        Only the best n_beams candidates can end a target. Others would have lost their
        place in the beam if they went on, and must not win one by ending.

        Args:
            candidates: twice as many as beams, best first: log-probability, parent and
                new token. Each beam ends in one way only, so enough of them go on.
            place: of the new token, from 1.
        """
        last = place == self.rules.max_len
        children = []
        for rank, (log_prob, parent, token) in enumerate(candidates):
            ids = self.beams[parent].ids
            if not last and token != self.rules.eos_id:
                children.append(Beam([*ids, token], log_prob, parent))
                if len(children) == self.n_beams:
                    break
            elif rank < self.n_beams and log_prob > -inf:
                # -inf is a beam that does not count, or a token that may not come
                self._keep([*ids[1:], token], log_prob)
        self.beams = settle(children)
        self.done = last or self._has_no_hope(place)

    def _keep(self, ids: list[int], log_prob: float) -> None:
        score = self._score(log_prob, len(ids))
        finished = ids[-1] == self.rules.eos_id
        hypothesis = Hypothesis(ids, log_prob, score, finished)
        insort(self.hypotheses, hypothesis, key=lambda other: -other.score)
        del self.hypotheses[self.n_beams :]

    def _has_no_hope(self, place: int) -> bool:
        is_full = len(self.hypotheses) == self.n_beams
        if is_full and self.early_stopping is True:
            return True
        if self.early_stopping == "never" and self.length_penalty > 0:
            place = self.rules.max_len  # where a log-probability counts most
        best = max(beam.log_prob for beam in self.beams)
        bar = self.hypotheses[-1].score if is_full else -inf
        return self._score(best, place) <= bar

    def _score(self, log_prob: float, length: int) -> float:
        return log_prob / max(length - self.n_forced, 1) ** self.length_penalty


def settle(children: list[Beam]) -> list[Beam]:
    """Give each of the new beams its place: (n_beams), best first.

    The best child of a parent stands where its parent stood, and its siblings stand
    where nobody's parent stood. So the cache has to be copied for siblings only.
    """
    heirs = {child.parent: child for child in reversed(children)}
    siblings = (child for child in children if heirs[child.parent] is not child)
    return [heirs.get(place) or next(siblings) for place in range(len(children))]
