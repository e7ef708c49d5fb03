"""Greedy search: from a source sentence to a target, one token at a time."""

from collections.abc import Callable

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


def greedy_decode(
    model: Transformer,
    src: Tensor,
    config: GenerationConfig,
    decoder: Decoding | None = None,
) -> list[Hypothesis]:
    """Let the model say its likeliest token, read it, and go on until it says eos.

    This is beam search with one beam.

    Args:
        model: in either mode; it decodes without dropout.
        src: (batch, src_len), source ids, padded with the config's pad_id.
        config: what the targets must keep to.
        decoder: what `make_decoder(model)` returned, where it serves many calls.

    Returns:
        One hypothesis for each sentence.

    Raises:
        ValueError: a sentence is all padding or too long, the config does not fit the
            model, or its logits are not finite.
    """
    return decode(
        model, src, config, lambda log_probs: log_probs.argmax(dim=-1), decoder
    )


@torch.inference_mode()
def decode(
    model: Transformer,
    src: Tensor,
    config: GenerationConfig,
    choose: Callable[[Tensor], Tensor],
    decoder: Decoding | None = None,
) -> list[Hypothesis]:
    """Write one target for each sentence, its tokens chosen one at a time.

    Args:
        model: in either mode; it decodes without dropout.
        src: (batch, src_len), source ids, padded with the config's pad_id.
        config: what the targets must keep to.
        choose: given log-probabilities (n_rows, vocab_size), returns tokens (n_rows,).
        decoder: as for `greedy_decode`.

    Returns:
        One hypothesis for each sentence.

    Raises:
        ValueError: as for `greedy_decode`.
    """
    with without_dropout(model):
        processor = LogitsProcessor(model, src, config)
        decoder = decoder or make_decoder(model)
        decoder.prefill(src)
        ids = processor.start()[:, 0]  # (n_rows, length), bos included
        log_prob = torch.zeros(len(src), device=src.device)  # (n_rows,)
        max_len = torch.tensor(processor.max_lens, device=src.device)
        sentences = torch.arange(len(src), device=src.device)  # whose rows are left
        found: dict[int, Hypothesis] = {}
        while len(sentences):
            logits = decoder.step(ids[:, decoder.length :])
            log_probs = processor.log_probs(logits[:, None], ids.size(1))[:, 0]
            token = choose(log_probs)[:, None]  # (n_rows, 1)
            log_prob = log_prob + log_probs.gather(1, token)[:, 0]
            ids = torch.cat([ids, token], dim=1)

            finished = token[:, 0] == config.eos_id
            ended = finished | (ids.size(1) > max_len)
            if ended.any():
                for row in ended.nonzero()[:, 0].tolist():
                    total = log_prob[row].item()
                    found[int(sentences[row])] = Hypothesis(
                        ids[row, 1:].tolist(), total, total, bool(finished[row])
                    )
                left = (~ended).nonzero()[:, 0]
                ids, log_prob, max_len = ids[left], log_prob[left], max_len[left]
                sentences = sentences[left]
                processor.select(left)
                decoder.select(left)
    return [found[sentence] for sentence in range(len(src))]
