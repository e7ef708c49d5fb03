"""Decoding: from a source sentence to the model's own words, one token at a time."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from transformer_lib.data.batches import pad_batch
from transformer_lib.fast.packing import packed_weights
from transformer_lib.generation.constraints import (
    Constraints,
    Hypothesis,
    TargetRules,
    without_dropout,
)
from transformer_lib.generation.incremental import DecoderCache
from transformer_lib.interpret.recording import record_attention
from transformer_lib.model.transformer import Transformer


def greedy_decode(
    model: Transformer, src: Tensor, rules: TargetRules
) -> list[Hypothesis]:
    """Let the model say its likeliest token, read it, and go on until it says eos.

    This is beam search with one beam.

    Args:
        model: in either mode; it decodes without dropout.
        src: (batch, src_len), source ids, padded with the config's pad_id.
        rules: what the targets must keep to.

    Returns:
        One hypothesis for each sentence.

    Raises:
        ValueError: a sentence is all padding or too long, a rule does not fit the
            model, or its logits are not finite.
    """
    return decode(model, src, rules, lambda log_probs: log_probs.argmax(dim=-1))


@torch.inference_mode()
def decode(
    model: Transformer,
    src: Tensor,
    rules: TargetRules,
    choose: Callable[[Tensor], Tensor],
) -> list[Hypothesis]:
    """Write one target for each sentence, its tokens chosen one at a time.

    Args:
        model: in either mode; it decodes without dropout.
        src: (batch, src_len), source ids, padded with the config's pad_id.
        rules: what the targets must keep to.
        choose: given log-probabilities (n_rows, vocab_size), returns tokens (n_rows,).

    Returns:
        One hypothesis for each sentence.

    Raises:
        ValueError: as for `greedy_decode`.
    """
    with without_dropout(model), packed_weights(model):
        constraints = Constraints(model, src, rules)
        cache = model.start_cache(src)
        ids = constraints.start()[:, 0]  # (n_rows, length), bos included
        log_prob = torch.zeros(len(src), device=src.device)  # (n_rows,)
        sentences = torch.arange(len(src), device=src.device)  # whose rows are left
        found: dict[int, Hypothesis] = {}
        while len(sentences):
            logits = next_logits(model, ids[:, cache.length :], cache)
            log_probs = constraints.log_probs(logits[:, None], ids.size(1))[:, 0]
            token = choose(log_probs)[:, None]  # (n_rows, 1)
            log_prob = log_prob + log_probs.gather(1, token)[:, 0]
            ids = torch.cat([ids, token], dim=1)

            finished = token[:, 0] == rules.eos_id
            ended = finished | (ids.size(1) > rules.max_len)
            if ended.any():
                for row in ended.nonzero()[:, 0].tolist():
                    total = log_prob[row].item()
                    found[int(sentences[row])] = Hypothesis(
                        ids[row, 1:].tolist(), total, total, bool(finished[row])
                    )
                left = (~ended).nonzero()[:, 0]
                ids, log_prob, sentences = ids[left], log_prob[left], sentences[left]
                constraints.select(left)
                cache.select(left)
    return [found[sentence] for sentence in range(len(src))]


def next_logits(model: Transformer, tgt_new: Tensor, cache: DecoderCache) -> Tensor:
    """Read the next tokens of the targets, and score those that may follow.

    Args:
        model: whose cache it is.
        tgt_new: (n_rows, n_new), ids of the tokens that follow those in the cache.
        cache: of the targets; afterwards it remembers the new tokens too.

    Returns:
        logits: (n_rows, vocab_size), of the token after the last one, in float32 at
        least: sums of log-probabilities need its precision.
    """
    logits = model.lm_head(model.decode_next(tgt_new, cache)[:, -1])
    return logits.to(torch.promote_types(logits.dtype, torch.float32))


@torch.no_grad()
def source_attention(
    model: Transformer,
    src: Tensor,
    targets: Sequence[Sequence[int]],
    bos_id: int,
    layer: int = -1,
) -> list[Tensor]:
    """Say how much each source token had to do with each token of a target.

    The targets are read once more, all tokens at once. So a search carries no weights
    along, and every target can be asked about, whoever has written it.

    Args:
        model: in either mode.
        src: (batch, src_len), source ids, padded with the config's pad_id.
        targets: for each sentence the ids of a target, as in `Hypothesis.ids`.
        bos_id: the token that every target starts with.
        layer: of the decoder, whose cross-attention is asked.

    Returns:
        For each sentence (tgt_len, src_len): row i holds the weights with which token i
        was chosen, the mean over the heads. Rows sum to 1; columns to the coverage of
        the source tokens.
    """
    read = [[bos_id, *ids[:-1]] for ids in targets]
    tgt_in = pad_batch(read, model.config.pad_id).to(src.device)
    attention = model.decoder.layers[layer].cross_attn
    with without_dropout(model), record_attention(attention) as maps:
        model(src, tgt_in)
    weights = maps[""].mean(dim=1)  # (batch, tgt_len, src_len)
    return [rows[: len(ids)] for rows, ids in zip(weights, targets, strict=True)]
