"""Beam search: several targets for each sentence, the best kept at every step."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import inf, isfinite
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from transformer_lib.generation.constraints import (
    GenerationConfig,
    Hypothesis,
    LogitsProcessor,
    without_dropout,
)
from transformer_lib.generation.incremental import Decoding, make_decoder
from transformer_lib.generation.top import top_tokens
from transformer_lib.model.transformer import Transformer

EarlyStopping = bool | Literal["never"]

# Told of each step: (position, searches, candidates). position is that of the new
# token, from 1. searches are those of the sentences that were not done before, in the
# order of the batch; their beams and hypotheses are those after the step, and go on
# changing. candidates are what they chose from.
Listener = Callable[[int, "list[BeamHypotheses]", "Candidates"], None]


@torch.inference_mode()
def beam_search(  # noqa: PLR0913
    model: Transformer,
    src: Tensor,
    config: GenerationConfig,
    n_beams: int = 4,
    length_penalty: float = 1.0,
    early_stopping: EarlyStopping = False,
    *,
    decoder: Decoding | None = None,
    listener: Listener | None = None,
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
        src: (batch, src_len), source ids, padded with pad_id on the right.
        config: what the targets must keep to.
        n_beams: targets kept for each sentence.
        length_penalty: see above.
        early_stopping: when a sentence that has n_beams hypotheses is done. True: at
            once. False: when its likeliest unfinished target, were it to end now, would
            not get among them. "never": when it could not do so at any length.
        decoder: how the model is asked; `make_decoder(model)` if None.
        listener: is told of each step, see `Listener`. Its errors end the search.

    Returns:
        For each sentence its hypotheses, best first: n_beams of them, or fewer if there
        are no more.

    Raises:
        ValueError: a sentence is all padding or too long, the config does not fit the
            model, the beam is wider than the vocabulary, or logits are not finite.
    """
    require_options(model, n_beams, early_stopping, length_penalty)
    options = BeamOptions(n_beams, length_penalty, early_stopping)
    with without_dropout(model):
        processor = LogitsProcessor(model, src, config)
        if decoder is None:
            decoder = make_decoder(model)
        decoder.prefill(src, n_beams)
        searches = searching = begin(processor, options)
        ids = processor.start(n_beams).flatten(0, 1)  # (n_rows, length)
        while searching:
            logits = decoder.step(ids).unflatten(0, (-1, n_beams))
            position = decoder.length  # of the new token
            log_probs = processor.log_probs(logits, position)
            candidates = advance_all(searching, log_probs, position)
            if listener is not None:
                listener(position, searching, candidates)
            left = [i for i, s in enumerate(searching) if not s.done]
            if 0 < len(left) < len(searching):
                processor.select(ids.new_tensor(left))
                decoder.select(ids.new_tensor(left))
            searching = [searching[i] for i in left]
            if searching:
                parents = [s.parents() for s in searching]
                decoder.reorder(ids.new_tensor(parents))
                newest = [s.newest() for s in searching]
                ids = ids.new_tensor(newest).view(-1, 1)  # (n_rows, 1)
    return [search.hypotheses for search in searches]


def begin(processor: LogitsProcessor, options: BeamOptions) -> list[BeamHypotheses]:
    """Begin the search of each sentence."""
    starts = processor.start()[:, 0].tolist()
    n_forced, max_lens = processor.n_forced, processor.max_lens
    eos_id = processor.config.eos_id
    return [
        BeamHypotheses(start, n, eos_id, max_len, options)
        for start, n, max_len in zip(starts, n_forced, max_lens, strict=True)
    ]


def advance_all(
    searches: Sequence[BeamHypotheses], next_log_probs: Tensor, position: int
) -> Candidates:
    """Let all searches take a step, each with its own best candidates.

    Args:
        searches: one for each sentence.
        next_log_probs: (n_sentences, n_beams, vocab_size), of the new token.
        position: of the new token, from 1.

    Returns:
        The candidates, twice as many as beams for each sentence.
    """
    beams = [[beam.log_prob for beam in s.beams] for s in searches]
    log_probs = next_log_probs.new_tensor(beams)  # (n_sentences, n_beams)
    n_candidates = 2 * log_probs.size(1)
    best = best_candidates(next_log_probs, log_probs, n_candidates)
    rows = zip(*(part.tolist() for part in best), strict=True)
    for search, row in zip(searches, rows, strict=True):
        search.advance(zip(*row, strict=True), position)
    return best


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
    totals, order = totals.topk(n_candidates)
    tokens = tokens.flatten(1).gather(1, order)
    return Candidates(totals, order // n_each, tokens)


def require_options(
    model: Transformer,
    n_beams: int,
    early_stopping: EarlyStopping = False,
    length_penalty: float = 1.0,
) -> None:
    """Refuse a beam that is of no use, an unknown rule of stopping, a score of NaN.

    Raises:
        ValueError: naming the option.
    """
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
    if not isfinite(length_penalty):
        raise ValueError(f"length_penalty must be finite, not {length_penalty}")


class BeamOptions(NamedTuple):
    """The choices of a beam search; see `beam_search`."""

    n_beams: int
    length_penalty: float
    early_stopping: EarlyStopping


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


class BeamHypotheses:
    """The search for the targets of one sentence.

    Args:
        start: tokens that all targets start with, bos included.
        n_forced: tokens of the prefix, which do not count in the score.
        eos_id: the token that ends a target.
        max_len: length at which a target is truncated.
        options: of the search.

    Attributes:
        beams: of this step, in the order of the rows of the decoder.
        hypotheses: targets that have ended, best first, n_beams at most.
        done: whether none can be found any more that would get among these.
    """

    def __init__(
        self,
        start: list[int],
        n_forced: int,
        eos_id: int,
        max_len: int,
        options: BeamOptions,
    ) -> None:
        self.n_forced, self.eos_id = n_forced, eos_id
        self.max_len = max_len
        self.n_beams, self.length_penalty, self.early_stopping = options
        # All beams start alike. One counts, or they would stay alike.
        self.beams = [
            Beam(start, -inf if number else 0.0, number)
            for number in range(options.n_beams)
        ]
        self.hypotheses: list[Hypothesis] = []
        self.done = False

    def advance(
        self, candidates: Iterable[tuple[float, int, int]], position: int
    ) -> None:
        """Go on with the best candidates, and keep those that end.

        Only the best n_beams candidates can end a target. A candidate that would have
        dropped out of the beam must not survive just because it ended.

        Args:
            candidates: twice as many as beams, best first: log-probability, parent and
                new token. Each beam ends in one way only, so enough of them go on.
            position: of the new token, from 1.
        """
        last = position == self.max_len  # truncated here, if it has not ended
        children = []
        for rank, (log_prob, parent, token) in enumerate(candidates):
            ids = self.beams[parent].ids
            if not last and token != self.eos_id:
                children.append(Beam([*ids, token], log_prob, parent))
                if len(children) == self.n_beams:
                    break
            elif rank < self.n_beams and log_prob > -inf:
                # -inf is a beam that does not count, or a token that may not come
                self.keep([*ids[1:], token], log_prob)
        self.beams = settle(children)
        self.done = last or self.has_no_hope(position)

    def keep(self, ids: list[int], log_prob: float) -> None:
        """Put a target that has ended among the hypotheses, n_beams at most."""
        score = self.score(log_prob, len(ids))
        finished = ids[-1] == self.eos_id
        self.hypotheses.append(Hypothesis(ids, log_prob, score, finished))
        self.hypotheses.sort(key=lambda other: -other.score)
        del self.hypotheses[self.n_beams :]

    def has_no_hope(self, position: int) -> bool:
        """Return whether no beam could still get among the hypotheses."""
        is_full = len(self.hypotheses) == self.n_beams
        if self.early_stopping == "never":
            if self.length_penalty > 0:
                position = self.max_len  # where a log-probability counts most
        elif self.early_stopping and is_full:
            return True
        best = max(beam.log_prob for beam in self.beams)
        bar = self.hypotheses[-1].score if is_full else -inf
        return self.score(best, position) <= bar

    def score(self, log_prob: float, length: int) -> float:
        """Return the log-probability per length ** length_penalty."""
        n_free = max(length - self.n_forced, 1)
        return log_prob / n_free**self.length_penalty

    def parents(self) -> list[int]:
        """Return the beam that each beam continues."""
        return [beam.parent for beam in self.beams]

    def newest(self) -> list[int]:
        """Return the last token of each beam."""
        return [beam.ids[-1] for beam in self.beams]


def settle(children: Sequence[Beam]) -> list[Beam]:
    """Give each of the new beams, which come best first, its row.

    The best child of a parent takes the parent's row, and its siblings take the rows of
    beams without children. So the cache has to be copied for siblings only.
    """
    heirs = {child.parent: child for child in reversed(children)}
    siblings = (child for child in children if heirs[child.parent] is not child)
    return [heirs.get(row) or next(siblings) for row in range(len(children))]
