"""Targets that a model writes: what they must keep to, and what is found."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain

import torch
from torch import Tensor, nn

from transformer_lib.model.language_model import LanguageModel
from transformer_lib.model.transformer import Transformer

_FREE = -1  # in a table of forced tokens: any token may stand here


@dataclass(frozen=True)
class GenerationConfig:
    """What every target must keep to, however its tokens are chosen.

    Lengths count all tokens of a target but bos: those of its prefix, and its eos.

    Attributes:
        bos_id: the token that every target starts with.
        eos_id: the token that ends it.
        max_len: length at which a target is truncated if it has not ended by itself:
            one for all, or one for each sentence.
        min_len: length below which it may not end.
        prefixes: tokens that targets must begin with: one list for each sentence, or a
            single one for all; none if empty. They may differ in length.

    Raises:
        ValueError: lengths contradict each other, or a prefix is as long as max_len or
            holds the end token.
    """

    bos_id: int
    eos_id: int
    max_len: int | Sequence[int]
    min_len: int = 1
    prefixes: Sequence[Sequence[int]] = ()

    def __post_init__(self) -> None:
        """Refuse what no target can keep to."""
        several = isinstance(self.max_len, Sequence)
        shortest = min(self.max_len) if several else self.max_len
        longest_prefix = max(map(len, self.prefixes), default=0)
        if not 1 <= self.min_len <= shortest:
            raise ValueError(
                f"min_len must be from 1 to max_len {shortest}, not {self.min_len}"
            )
        if longest_prefix >= shortest:
            raise ValueError(
                f"a prefix of {longest_prefix} tokens leaves no room in targets of "
                f"max_len {shortest}"
            )
        if any(self.eos_id in prefix for prefix in self.prefixes):
            raise ValueError(
                f"a prefix holds eos_id {self.eos_id}, but a target that has ended "
                "does not go on"
            )

    def max_lens(self, n_sentences: int) -> list[int]:
        """Return max_len of each sentence.

        Raises:
            ValueError: there are as many lengths, but another number of sentences.
        """
        if not isinstance(self.max_len, Sequence):
            return [self.max_len] * n_sentences
        if len(self.max_len) != n_sentences:
            raise ValueError(
                f"there are {len(self.max_len)} values of max_len for {n_sentences} "
                "sentences: one for each is needed, or a single one for all"
            )
        return list(self.max_len)


@dataclass(frozen=True)
class Hypothesis:
    """A target that the model has written.

    Attributes:
        ids: its tokens, without bos and padding; its eos is the last if it has one.
        log_prob: log of the probability that the model gives it, in nats: the sum over
            its tokens, eos included. Those of a forced prefix count nothing.
        score: what beam search ranks it by; elsewhere the same as log_prob.
        finished: whether the model has ended it. If not, it was truncated at max_len.
    """

    ids: list[int]
    log_prob: float
    score: float
    finished: bool


class LogitsProcessor:
    """What a `GenerationConfig` makes of the logits of a batch of sentences.

    Args:
        model: that writes the targets.
        src: (batch, src_len), source ids, padded on the right.
        config: what the targets must keep to.

    Attributes:
        max_lens: length at which the targets of each sentence are truncated.

    Raises:
        ValueError: a sentence is all padding or has padding before its end, or a token
            that the config names is not in the vocabulary.
    """

    def __init__(
        self, model: Transformer, src: Tensor, config: GenerationConfig
    ) -> None:
        self.config, self.pad_id = config, model.config.pad_id
        require_words(src, self.pad_id)
        if not isinstance(model, LanguageModel):  # whose prompts end where they must
            require_padding_last(src, self.pad_id)
        require_known_tokens(config, model)
        self.max_lens = config.max_lens(len(src))
        prefixes = [list(prefix) for prefix in config.prefixes] or [[]]
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
        bos = self.forced.new_full((len(self.forced), 1), self.config.bos_id)
        start = torch.cat([bos, self.forced[:, : self.n_shared]], dim=1)
        return start[:, None].expand(-1, n_beams, -1)

    def log_probs(self, logits: Tensor, position: int) -> Tensor:
        """Turn logits into log-probabilities, -inf for tokens that may not come next.

        Padding is never said, the end not before its time, and in a prefix nothing but
        the prefix. Probabilities of the other tokens stay as they are: what is taken
        from the impossible ones is not given to them. A forced token gets probability
        1.

        Args:
            logits: (batch, n_beams, vocab_size), of the token at `position`.
            position: number of the token from 1, bos not counted.

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
        if self.pad_id != self.config.eos_id:  # GPT-2 has one token for both
            log_probs[..., self.pad_id] = -torch.inf
        if position < self.config.min_len:
            log_probs[..., self.config.eos_id] = -torch.inf
        if position <= self.forced.size(1):
            token = self.forced[:, position - 1]
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


def require_words(src: Tensor, pad_id: int) -> None:
    """Refuse a sentence that is all padding: any target would do.

    Raises:
        ValueError: naming the sentence.
    """
    empty = (src == pad_id).all(dim=1)
    if empty.any():
        row = int(empty.nonzero()[0])
        raise ValueError(f"sentence {row} of the batch is empty: it is all padding")


def require_padding_last(src: Tensor, pad_id: int) -> None:
    """Refuse padding before the end of a sentence: positions would be wrong.

    Raises:
        ValueError: naming the sentence.
    """
    is_padding = src == pad_id
    early = (is_padding[:, :-1] & ~is_padding[:, 1:]).any(dim=1)
    if early.any():
        row = int(early.nonzero()[0])
        raise ValueError(
            f"sentence {row} of the batch has padding before its last token: pad "
            "sentences on the right"
        )


def require_known_tokens(config: GenerationConfig, model: Transformer) -> None:
    """Refuse an end that the model cannot say, and prefixes that it cannot read.

    Raises:
        ValueError: naming the token.
    """
    vocab_size, pad_id = model.config.tgt_vocab_size, model.config.pad_id
    forced = list(chain(*config.prefixes))
    for token in (config.bos_id, config.eos_id, *forced):
        if not 0 <= token < vocab_size:
            raise ValueError(
                f"token {token} is outside the vocabulary of {vocab_size} tokens"
            )
    if pad_id in forced:
        raise ValueError(f"a prefix holds pad_id {pad_id}")
