"""Targets that a model writes: what they must keep to, and what is found."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from transformer_lib.model.masks import padding_mask
from transformer_lib.model.transformer import Transformer

_FREE = -1  # in a table of forced tokens: any token may stand here


@dataclass(frozen=True, kw_only=True)
class TargetRules:
    """What every target must keep to, however its tokens are chosen.

    Lengths count all tokens of a target but bos: those of its prefix, and its eos.

    Attributes:
        bos_id: the token that every target starts with.
        eos_id: the token that ends it.
        max_len: length at which a target is cut if it has not ended by itself.
        min_len: length below which it may not end.
        prefixes: tokens that targets must begin with: one list for each sentence, or a
            single one for all; none if empty. They may differ in length.

    Raises:
        ValueError: lengths contradict each other, or a prefix is as long as max_len or
            holds the end token.
    """

    bos_id: int
    eos_id: int
    max_len: int
    min_len: int = 1
    prefixes: Sequence[Sequence[int]] = ()

    def __post_init__(self) -> None:
        """Refuse what no target can keep to."""
        for name in ("min_len", "max_len"):
            value = getattr(self, name)
            if value < 1:
                raise ValueError(f"{name} must be at least 1, not {value}")
        if self.max_len < self.min_len:
            raise ValueError(
                f"max_len {self.max_len} is below min_len {self.min_len}: no target "
                "can be as short and as long as that"
            )
        for prefix in self.prefixes:
            if len(prefix) >= self.max_len:
                raise ValueError(
                    f"a prefix of {len(prefix)} tokens leaves no room in targets of "
                    f"max_len {self.max_len}"
                )
            if self.eos_id in prefix:
                raise ValueError(
                    f"the prefix {list(prefix)} holds eos_id {self.eos_id}, but a "
                    "target that has ended does not go on"
                )


@dataclass(frozen=True)
class Hypothesis:
    """A target that the model has written.

    Attributes:
        ids: its tokens, without bos and padding; its eos is the last if it has one.
        log_prob: log of the probability that the model gives it, in nats: the sum over
            its tokens, eos included. Those of a forced prefix count nothing.
        score: what beam search ranks it by; elsewhere the same as log_prob.
        finished: whether the model has ended it. If not, it was cut at max_len.
    """

    ids: list[int]
    log_prob: float
    score: float
    finished: bool


class Constraints:
    """The rules, applied to the logits of a batch of sentences.

    Args:
        model: that writes the targets.
        src: (batch, src_len), source ids.
        rules: what the targets must keep to.

    Raises:
        ValueError: a sentence is all padding, or a rule does not fit the model or the
            number of sentences.
    """

    def __init__(self, model: Transformer, src: Tensor, rules: TargetRules) -> None:
        self.rules, self.pad_id = rules, model.config.pad_id
        _check_source(src, self.pad_id)
        _check_rules(rules, model, len(src))
        prefixes = [list(prefix) for prefix in rules.prefixes] or [[]]
        longest = max(map(len, prefixes))
        self.n_shared = min(map(len, prefixes))  # tokens that no prefix lacks
        if len(prefixes) == 1:
            prefixes *= len(src)
        rows = [prefix + [_FREE] * (longest - len(prefix)) for prefix in prefixes]
        self.forced = src.new_tensor(rows).view(len(src), longest)
        self.n_forced = [len(prefix) for prefix in prefixes]  # of each sentence

    def start(self, n_beams: int = 1) -> Tensor:
        """Return what targets start with: bos, and forced tokens that all of them have.

        Returns:
            (batch, n_beams, 1 + n_shared), ids.
        """
        bos = self.forced.new_full((len(self.forced), 1), self.rules.bos_id)
        start = torch.cat([bos, self.forced[:, : self.n_shared]], dim=1)
        return start[:, None].expand(-1, n_beams, -1)

    def log_probs(self, logits: Tensor, place: int) -> Tensor:
        """Turn logits into log-probabilities, -inf for tokens that may not come next.

        Padding is never said, the end not before its time, and in a prefix nothing but
        the prefix. Probabilities of the other tokens stay as they are: what is taken
        from the impossible ones is not given to them. A forced token gets probability
        1.

        Args:
            logits: (batch, n_beams, vocab_size), of the token at `place`.
            place: number of the token from 1, bos not counted.

        Returns:
            (batch, n_beams, vocab_size), in nats.

        Raises:
            ValueError: a logit is no number.
        """
        log_probs = logits.log_softmax(dim=-1)
        if log_probs[..., 0].isnan().any():  # one such logit breaks its whole row
            raise ValueError(
                "the model's logits are not finite: its weights are broken"
            )
        log_probs[..., self.pad_id] = -torch.inf
        if place < self.rules.min_len:
            log_probs[..., self.rules.eos_id] = -torch.inf
        if place <= self.forced.size(1):
            token = self.forced[:, place - 1]
            rows = (token != _FREE).nonzero()[:, 0]
            log_probs[rows] = -torch.inf
            log_probs[rows, :, token[rows]] = 0.0
        return log_probs

    def select(self, sentences: Tensor) -> None:
        """Keep these sentences only, in this order: (n_kept,), indices."""
        self.forced = self.forced[sentences]


@contextmanager
def without_dropout(model: nn.Module) -> Iterator[None]:
    """Put all parts of a model into evaluation mode, and back into their own later."""
    training = [part for part in model.modules() if part.training]
    try:
        for part in training:
            part.training = False
        yield
    finally:
        for part in training:
            part.training = True


def _check_source(src: Tensor, pad_id: int) -> None:
    empty = ~padding_mask(src, pad_id).flatten(1).any(dim=1)
    if empty.any():
        row = int(empty.nonzero()[0])
        raise ValueError(f"sentence {row} of the batch is empty: it is all padding")


def _check_rules(rules: TargetRules, model: Transformer, batch: int) -> None:
    config = model.config
    if config.learned_positions and rules.max_len > config.max_len:
        raise ValueError(
            f"max_len {rules.max_len} is above the {config.max_len} positions that the "
            "model has learned"
        )
    if len(rules.prefixes) not in (0, 1, batch):
        raise ValueError(
            f"there are {len(rules.prefixes)} prefixes for {batch} sentences: one for "
            "each is needed, or a single one for all"
        )
    for name, token in (("bos_id", rules.bos_id), ("eos_id", rules.eos_id)):
        _check_token(name, token, config.tgt_vocab_size)
    for prefix in rules.prefixes:
        for token in prefix:
            _check_token("a token of a prefix", token, config.tgt_vocab_size)
            if token == config.pad_id:
                raise ValueError(f"the prefix {list(prefix)} holds pad_id {token}")


def _check_token(name: str, token: int, vocab_size: int) -> None:
    if not 0 <= token < vocab_size:
        raise ValueError(
            f"{name} is {token}, outside the vocabulary of {vocab_size} tokens (0 to "
            f"{vocab_size - 1})"
        )
