"""Beam search: several targets for each sentence, the best kept at every step."""

from bisect import insort
from math import inf
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from transformer_lib.decoding import next_logits
from transformer_lib.model import Transformer
from transformer_lib.packing import packed_weights
from transformer_lib.targets import (
    Constraints,
    Hypothesis,
    TargetRules,
    without_dropout,
)

EarlyStopping = bool | Literal["never"]


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
        # All beams of a sentence start alike. One counts, or they would stay alike.
        log_probs = torch.full((len(src), n_beams), -inf, device=src.device)
        log_probs[:, 0] = 0.0
        found = [NBest(n_beams, length_penalty) for _ in range(len(src))]
        searching = found  # of the sentences that are not done, in the order of rows
        while searching:
            place = ids.size(-1)  # of the new token, from 1
            new_ids = ids[..., cache.length :].flatten(0, 1)
            logits = next_logits(model, new_ids, cache).unflatten(0, (-1, n_beams))
            next_log_probs = constraints.log_probs(logits, place)
            candidates = best_candidates(next_log_probs, log_probs, 2 * n_beams)

            last = place == rules.max_len
            ended = (candidates.tokens == rules.eos_id) | last
            lengths = constraints.free_lengths(place)  # (batch,)
            collect(searching, ids, candidates, ended, lengths, rules.eos_id)
            beams = settle(keep_unended(candidates, ended, n_beams))
            log_probs, parents, tokens = beams
            ids = torch.cat([take_beams(ids, parents), tokens[..., None]], dim=-1)
            cache.reorder(parents)

            if early_stopping == "never" and length_penalty > 0:
                lengths = constraints.free_lengths(rules.max_len)
            bars = log_probs.new_tensor([n_best.bar for n_best in searching])
            hopes = log_probs.amax(dim=1) / lengths ** float(length_penalty)  # (batch,)
            done = last | (hopes <= bars)
            if early_stopping is True:
                done |= bars > -inf
            if done.any():
                left = (~done).nonzero()[:, 0]
                ids, log_probs = ids[left], log_probs[left]
                searching = [searching[row] for row in left.tolist()]
                constraints.select(left)
                cache.select(left)
    return [n_best.hypotheses for n_best in found]


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
    best, tokens = next_log_probs.topk(n_each, dim=-1)  # (batch, n_beams, n_each)
    totals = (best + log_probs[..., None]).flatten(1)
    totals, places = totals.topk(n_candidates)
    return Candidates(totals, places // n_each, tokens.flatten(1).gather(1, places))


def keep_unended(candidates: Candidates, ended: Tensor, n_beams: int) -> Candidates:
    """Keep the best candidates that go on; ended: (batch, n_candidates), boolean.

    Each beam ends in one way only. So of 2 * n_beams candidates n_beams go on.
    """
    order = ended.long().argsort(dim=1, stable=True)[:, :n_beams]
    return Candidates(*(part.gather(1, order) for part in candidates))


def collect(
    searching: list["NBest"],
    ids: Tensor,
    candidates: Candidates,
    ended: Tensor,
    lengths: Tensor,
    eos_id: int,
) -> None:
    """Add the targets that have just ended to the hypotheses of their sentences.

    Only the best n_beams candidates of a sentence can end it. Others would have lost
    their place in the beam if they went on, and must not win one by ending.

    Args:
        searching: hypotheses of each sentence.
        ids: (batch, n_beams, length), the tokens before the new one, bos included.
        candidates: for the new token.
        ended: (batch, n_candidates), boolean.
        lengths: (batch,), tokens that count in the score.
        eos_id: the token that ends a target by itself.
    """
    n_beams = ids.size(1)
    for row, column in ended[:, :n_beams].nonzero().tolist():
        log_prob, parent, token = (part[row, column].item() for part in candidates)
        if log_prob == -inf:
            continue  # a beam that does not count yet, or a token that may not come
        target = [*ids[row, parent, 1:].tolist(), token]
        searching[row].add(target, log_prob, lengths[row].item(), token == eos_id)


def settle(children: Candidates) -> Candidates:
    """Give each of the new beams its place among the n_beams of its sentence.

    The best child of a parent stands where its parent stood, and its siblings stand
    where nobody's parent stood. So the cache has to be copied for siblings only.

    Args:
        children: (batch, n_beams), best first.

    Returns:
        The same beams, in the order of their places.
    """
    parents = children.parents
    older = (parents[:, :, None] == parents[:, None, :]).tril(diagonal=-1)
    is_best = ~older.any(dim=2)  # (batch, n_beams)
    taken = torch.zeros_like(is_best).scatter(1, parents, True)
    free = taken.long().argsort(dim=1, stable=True)  # places nobody takes come first
    number = (~is_best).cumsum(dim=1) - 1  # of a sibling among all siblings
    places = torch.where(is_best, parents, free.gather(1, number.clamp(min=0)))
    return Candidates(
        *(torch.empty_like(part).scatter(1, places, part) for part in children)
    )


def take_beams(ids: Tensor, parents: Tensor) -> Tensor:
    """Give every new beam the tokens of its parent.

    (batch, n_beams, length), (batch, n_beams) -> (batch, n_beams, length).
    """
    return ids.gather(1, parents[..., None].expand(-1, -1, ids.size(-1)))


class NBest:
    """The best hypotheses of one sentence.

    Args:
        n: how many are kept.
        length_penalty: see `beam_search`.

    Attributes:
        hypotheses: best first.
    """

    def __init__(self, n: int, length_penalty: float) -> None:
        self.n, self.length_penalty = n, length_penalty
        self.hypotheses: list[Hypothesis] = []

    def add(self, ids: list[int], log_prob: float, length: int, finished: bool) -> None:
        """Put a target into its place, and drop the last one if there are too many."""
        score = log_prob / length**self.length_penalty
        hypothesis = Hypothesis(ids, log_prob, score, finished)
        insort(self.hypotheses, hypothesis, key=lambda other: -other.score)
        del self.hypotheses[self.n :]

    @property
    def bar(self) -> float:
        """The score that another target has to exceed to be kept."""
        return self.hypotheses[-1].score if len(self.hypotheses) == self.n else -inf


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
