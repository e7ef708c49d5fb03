"""Greedy search: from a source sentence to a target, one token at a time."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from transformer_lib.generation.constraints import (
    GenerationConfig,
    Hypothesis,
    LogitsProcessor,
    without_dropout,
)
from transformer_lib.generation.incremental import Decoding, make_decoder
from transformer_lib.model.transformer import Transformer

# Told of each step: (position, targets, log_probs). position is that of the new token,
# from 1; targets holds those that had not ended before, and goes on changing; log_probs
# (n_rows, vocab_size) are those that their new tokens were chosen by.
Listener = Callable[[int, "Targets", Tensor], None]


def greedy_decode(
    model: Transformer,
    src: Tensor,
    config: GenerationConfig,
    decoder: Decoding | None = None,
    listener: Listener | None = None,
) -> list[Hypothesis]:
    """Take the likeliest token, read it, and go on until the model predicts eos.

    This is beam search with one beam.

    Args:
        model: in either mode; it decodes without dropout.
        src: (batch, src_len), source ids, padded with pad_id on the right.
        config: what the targets must keep to.
        decoder: how the model is asked; `make_decoder(model)` if None.
        listener: is told of each step, see `Listener`. Its errors end the search.

    Returns:
        One hypothesis for each sentence.

    Raises:
        ValueError: a sentence is all padding or too long, the config does not fit the
            model, or its logits are not finite.
    """
    return decode(model, src, config, likeliest, decoder, listener)


def likeliest(log_probs: Tensor) -> Tensor:
    """Choose the likeliest token of each row: (n_rows, vocab_size) -> (n_rows,)."""
    return log_probs.argmax(dim=-1)


@torch.inference_mode()
def decode(
    model: Transformer,
    src: Tensor,
    config: GenerationConfig,
    choose: Callable[[Tensor], Tensor],
    decoder: Decoding | None = None,
    listener: Listener | None = None,
) -> list[Hypothesis]:
    """Write one target for each sentence, its tokens chosen one at a time.

    Args:
        model: in either mode; it decodes without dropout.
        src: (batch, src_len), source ids, padded with pad_id on the right.
        config: what the targets must keep to.
        choose: given log-probabilities (n_rows, vocab_size), returns tokens (n_rows,).
        decoder: as for `greedy_decode`.
        listener: as for `greedy_decode`.

    Returns:
        One hypothesis for each sentence.

    Raises:
        ValueError: as for `greedy_decode`.
    """
    with without_dropout(model):
        processor = LogitsProcessor(model, src, config)
        if decoder is None:
            decoder = make_decoder(model)
        decoder.prefill(src)
        targets = Targets(processor.start()[:, 0], processor.max_lens, config.eos_id)
        while len(targets.ids):  # those that have not ended
            logits = decoder.step(targets.ids[:, decoder.length :])
            position = decoder.length  # of the new token
            log_probs = processor.log_probs(logits[:, None], position)
            log_probs = log_probs[:, 0]  # (n_rows, vocab_size)
            targets.append(choose(log_probs), log_probs)
            if listener is not None:
                listener(position, targets, log_probs)
            ended = targets.ended()
            if ended.any():
                left = targets.put_aside(ended)
                processor.select(left)
                decoder.select(left)
    return [targets.found[sentence] for sentence in range(len(src))]


class Targets:
    """Targets that grow, one for each sentence, until each of them has ended.

    Args:
        start: (batch, length), ids that the targets start with, bos included.
        max_lens: for each sentence, length at which its target is truncated.
        eos_id: the token that ends a target.

    Attributes:
        ids: (n_rows, length), the targets that have not ended, bos included.
        log_prob: (n_rows,), of each of them, in nats.
        sentences: (n_rows,), the sentence that each row translates.
        found: sentence -> its target that has ended.
    """

    def __init__(self, start: Tensor, max_lens: Sequence[int], eos_id: int) -> None:
        self.ids, self.eos_id = start, eos_id
        self.log_prob = torch.zeros(len(start), device=start.device)
        self.max_len = torch.tensor(max_lens, device=start.device)
        self.sentences = torch.arange(len(start), device=start.device)
        self.found: dict[int, Hypothesis] = {}

    def append(self, tokens: Tensor, log_probs: Tensor) -> None:
        """Let every target go on with its token.

        Args:
            tokens: (n_rows,)
            log_probs: (n_rows, vocab_size), of all tokens.
        """
        new = tokens[:, None]
        self.log_prob = self.log_prob + log_probs.gather(1, new)[:, 0]
        self.ids = torch.cat([self.ids, new], dim=1)

    def ended(self) -> Tensor:
        """Return which rows have ended or are truncated: (n_rows,), boolean."""
        truncated = self.ids.size(1) > self.max_len
        return (self.ids[:, -1] == self.eos_id) | truncated

    def put_aside(self, ended: Tensor) -> Tensor:
        """Move targets that have ended to `found`; return the rows that are left."""
        for row in ended.nonzero()[:, 0].tolist():
            ids = self.ids[row, 1:].tolist()
            log_prob = self.log_prob[row].item()
            finished = ids[-1] == self.eos_id
            hypothesis = Hypothesis(ids, log_prob, log_prob, finished)
            self.found[int(self.sentences[row])] = hypothesis
        left = (~ended).nonzero()[:, 0]
        self.ids, self.log_prob = self.ids[left], self.log_prob[left]
        self.max_len = self.max_len[left]
        self.sentences = self.sentences[left]
        return left
