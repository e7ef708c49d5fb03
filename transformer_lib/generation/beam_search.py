"""The beams of one sentence, and the targets that have grown from them."""

from bisect import insort
from collections.abc import Iterable
from math import inf
from typing import Literal, NamedTuple

from transformer_lib.generation.constraints import Hypothesis, TargetRules

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


"""Beam search: several targets for each sentence, the best kept at every step."""

from typing import NamedTuple

import torch
from torch import Tensor

from transformer_lib.fast.packing import packed_weights
from transformer_lib.generation.beam_search import EarlyStopping, SentenceSearch
from transformer_lib.generation.constraints import (
    Constraints,
    TargetRules,
    without_dropout,
)
from transformer_lib.generation.greedy import next_logits
from transformer_lib.model.transformer import Transformer

_FEW_SCORES = 2**16  # `topk` finds the best of so many as fast as anything
_ROWS = 10  # of the table in `top_tokens`


@torch.inference_mode()
def beam_search(
    model: Transformer,
    src: Tensor,
    rules: TargetRules,
    n_beams: int = 4,
    length_penalty: float = 1.0,
    early_stopping: EarlyStopping = False,
) -> list[list[Hypothesis]]:
    """Search for the targets with the highest score.

    score = log_prob / length ** length_penalty, where length counts the tokens after
    the forced prefix, eos included. Log-probabilities are negative. So a positive
    length penalty, despite its name, brings long targets nearer to 0 and *rewards*
    length; 0 leaves the log-probability as it is; a negative one punishes length.

    Section 6.1 of the paper divides by ((5 + length) / 6) ** 0.6 instead (Wu et al.
    2016): the same direction, but weaker while targets are short.

    Args:
        model: in either mode; it decodes without dropout.
        src: (batch, src_len), source ids, padded with the config's pad_id.
        rules: what the targets must keep to.
        n_beams: targets kept for each sentence.
        length_penalty: see above.
        early_stopping: when a sentence that has n_beams hypotheses is done. True: at
            once. False: when its likeliest unfinished target, were it to end now, would
            not get among them. "never": when it could not do so at any length.

    Returns:
        For each sentence its hypotheses, best first: n_beams of them, or fewer if there
        are no more.

    Raises:
        ValueError: a sentence is all padding or too long, a rule does not fit the
            model, the beam is wider than the vocabulary, or logits are not finite.
    """
    _check_options(model, n_beams, early_stopping)
    with without_dropout(model), packed_weights(model):
        constraints = Constraints(model, src, rules)
        cache = model.start_cache(src, n_beams)
        ids = constraints.start(n_beams)  # (batch, n_beams, length), bos included
        options = (rules, n_beams, length_penalty, early_stopping)
        searches = [
            SentenceSearch(start, n_forced, *options)
            for [start, *_], n_forced in zip(
                ids.tolist(), constraints.n_forced, strict=True
            )
        ]
        searching = searches  # those that are not done, in the order of the cache
        beams = [beam for search in searching for beam in search.beams]
        for place in range(ids.size(-1), rules.max_len + 1):  # of the new token
            logits = next_logits(model, ids.flatten(0, -2), cache)
            log_probs = logits.new_tensor([beam.log_prob for beam in beams])
            candidates = best_candidates(
                constraints.log_probs(logits.unflatten(0, (-1, n_beams)), place),
                log_probs.view(-1, n_beams),
                2 * n_beams,
            )
            rows = zip(*(part.tolist() for part in candidates), strict=True)
            for search, row in zip(searching, rows, strict=True):
                search.advance(zip(*row, strict=True), place)

            left = [row for row, search in enumerate(searching) if not search.done]
            if not left:
                break
            if len(left) < len(searching):
                searching = [searching[row] for row in left]
                constraints.select(ids.new_tensor(left))
                cache.select(ids.new_tensor(left))
            beams = [beam for search in searching for beam in search.beams]
            parents = ids.new_tensor([beam.parent for beam in beams])
            cache.reorder(parents.view(-1, n_beams))
            ids = ids.new_tensor([beam.ids[-1:] for beam in beams])  # (n_rows, 1)
    return [search.hypotheses for search in searches]


class Candidates(NamedTuple):
    """The best ways to go on, for each sentence, best first.

    Attributes:
        log_probs: (batch, n_candidates), of the target with its new token, in nats.
        parents: (batch, n_candidates), the beam that is continued.
        tokens: (batch, n_candidates), the new token.
    """

    log_probs: Tensor
    parents: Tensor
    tokens: Tensor


def best_candidates(
    next_log_probs: Tensor, log_probs: Tensor, n_candidates: int
) -> Candidates:
    """Find the best continuations of all beams of each sentence.

    The best n continuations of a sentence are among the best n of each of its beams.
    So only these have to be added up and compared.

    Args:
        next_log_probs: (batch, n_beams, vocab_size), of the new token.
        log_probs: (batch, n_beams), of each beam's tokens so far.
        n_candidates: continuations wanted for each sentence.
    """
    n_each = min(n_candidates, next_log_probs.size(-1))
    best, tokens = top_tokens(next_log_probs, n_each)  # (batch, n_beams, n_each)
    totals = (best + log_probs[..., None]).flatten(1)
    totals, places = totals.topk(n_candidates)
    return Candidates(totals, places // n_each, tokens.flatten(1).gather(1, places))


def top_tokens(scores: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """Find the n highest scores and their tokens, as `topk` does, but in less time.

    Lay many scores out as a table of ten rows. The n best are in the n columns with the
    highest maxima: if one were elsewhere, each of these columns would hold a score at
    least as high. So only maxima and a few columns have to be sorted.

    Args:
        scores: (..., vocab_size)
        n: tokens wanted, at most vocab_size.

    Returns:
        Scores and tokens, (..., n) each, best first.
    """
    vocab_size = scores.size(-1)
    width = vocab_size // _ROWS
    if scores.numel() < _FEW_SCORES or width < 10 * n:
        return scores.topk(n, dim=-1)
    table = scores[..., : _ROWS * width].unflatten(-1, (_ROWS, width))
    columns = table.amax(dim=-2).topk(n, dim=-1, sorted=False).indices  # (..., n)
    first = torch.arange(0, _ROWS * width, width, device=scores.device)  # of each row
    tokens = (columns[..., None] + first).flatten(-2)  # (..., n * _ROWS)
    rest = torch.arange(_ROWS * width, vocab_size, device=scores.device)
    tokens = torch.cat([tokens, rest.expand(*tokens.shape[:-1], -1)], dim=-1)
    best, places = scores.gather(-1, tokens).topk(n, dim=-1)
    return best, tokens.gather(-1, places)


def _check_options(
    model: Transformer, n_beams: int, early_stopping: EarlyStopping
) -> None:
    vocab_size = model.config.tgt_vocab_size
    if not 1 <= n_beams <= vocab_size:
        raise ValueError(
            f"n_beams must be from 1 to {vocab_size}, the size of the vocabulary, not "
            f"{n_beams}"
        )
    if early_stopping not in (True, False, "never"):
        raise ValueError(
            f"early_stopping must be True, False or 'never', not {early_stopping!r}"
        )
