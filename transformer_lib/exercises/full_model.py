"""Graders of the chapter on the full Transformer."""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from transformer_lib.exercises.feedback import (
    NOT_ATTEMPTED,
    Feedback,
    call,
    check_tensor,
    right,
    unanswered,
    wrong,
)
from transformer_lib.interpret.recording import record_attention
from transformer_lib.model.config import TransformerConfig
from transformer_lib.model.masks import causal_mask, padding_mask
from transformer_lib.model.presets import PRESETS
from transformer_lib.model.transformer import Transformer, count_parameters

Mask = Tensor | None
BUDGET = 10_000_000  # parameters
VOCABULARY = 8_000


def check_parameter_count(answer: Callable[[int, int, int, int], int]) -> Feedback:
    """Grade the formula for the number of parameters.

    Args:
        answer: takes vocab_size, d_model, d_ff and n_layers (on each side) of a model
            as in the paper: one tied matrix, no bias in the query, key and value
            projections, no positions to learn. Returns a whole number.
    """
    for sizes in ((11, 6, 10, 1), (23, 12, 40, 3)):
        vocab, d, d_ff, n = sizes
        result = call(answer, *sizes)
        if problem := _number(result):
            return problem
        with torch.device("meta"):
            expected = count_parameters(Transformer(_model(*sizes)))
        attention, norm = 4 * d * d + d, 2 * d
        mistakes = {
            "the tied matrix is counted three times; it is one.": 2 * vocab * d,
            "the embedding matrix is missing.": -vocab * d,
            "the decoder's cross-attention is missing.": -n * attention,
            "cross-attention and its norm are missing.": -n * (attention + norm),
            "the layer norms are missing; each has a gain and a bias.": -5 * n * norm,
            "a layer norm has two vectors, a gain and a bias.": -5 * n * d,
            "the biases of the feed-forward network are missing.": -2 * n * (d + d_ff),
            "the bias of the attention's output projection is missing.": -3 * n * d,
            "query, key and value projections have no bias here.": 9 * n * d,
            "the output projections of the attentions are missing.": (
                -3 * n * (d * d + d)
            ),
            "only one side is counted; encoder and decoder have n_layers each.": (
                -n * (2 * attention + 3 * norm + 2 * d * d_ff + d + d_ff)
            ),
        }
        for message, excess in mistakes.items():
            if result - expected == excess:
                return wrong(message)
        if result != expected:
            return wrong(
                f"for vocab_size {vocab}, d_model {d}, d_ff {d_ff} and {n} layers the "
                f"library counts {expected}, your function {result}."
            )
    return right("Your formula agrees with the model, number for number.")


def check_forward(answer: Callable[[Transformer, Tensor, Tensor], Tensor]) -> Feedback:
    """Grade a forward pass put together from the model's parts.

    Args:
        answer: takes a model, src (batch, src_len) and tgt_in (batch, tgt_len); returns
            logits (batch, tgt_len, tgt_vocab_size).
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = Transformer(_model(13, 12, 20, 2)).eval().double()
    src = torch.tensor([[5, 7, 9, 4, 2], [8, 6, 2, 0, 0]])
    tgt_in = torch.tensor([[1, 4, 11, 5], [1, 9, 0, 0]])
    src_mask, real = padding_mask(src, 0), padding_mask(tgt_in, 0)
    both = real & causal_mask(4)
    with torch.no_grad():
        result = call(answer, model, src.clone(), tgt_in.clone())
        expected = model(src, tgt_in)

        def run(in_encoder: Mask, cross_mask: Mask, tgt_mask: Mask) -> Tensor:
            memory = model.encode(src, in_encoder)
            features = model.decode(tgt_in, memory, cross_mask, tgt_mask)
            return model.lm_head(features)

        memory = model.encode(src, src_mask)
        features = model.decode(tgt_in, memory, src_mask, both)
        shares = expected.softmax(dim=-1)
        embeddings = model.src_embeddings
        x = embeddings.tokens(src) + embeddings.positions(torch.arange(5))
        unscaled = model.encoder(x, src_mask)
        mistakes = {
            "these are probabilities; return logits, before the softmax.": shares,
            "no mask anywhere: the future and the padding are seen.": run(
                None, None, None
            ),
            "the decoder sees the future; its self-attention needs the causal mask.": (
                run(src_mask, src_mask, real)
            ),
            "the encoder sees padding; its attention needs the source mask.": run(
                None, src_mask, both
            ),
            "cross-attention sees padding; it needs the source mask.": run(
                src_mask, None, both
            ),
            "the source's padding is seen in both places; build its mask.": run(
                None, None, both
            ),
            "token vectors are not scaled; call src_embeddings itself.": model.lm_head(
                model.decode(tgt_in, unscaled, src_mask, both)
            ),
        }
    if isinstance(result, Tensor) and result.shape == features.shape:
        return wrong("these are features; lm_head turns them into logits.")
    if problem := check_tensor(result, tuple(expected.shape)):
        return problem
    # Only positions that hold a token count: what padding predicts, nobody reads.
    keep = (tgt_in != 0)[..., None]
    for message, logits in mistakes.items():
        if _same(result * keep, logits * keep):
            return wrong(message)
    if not _same(result * keep, expected * keep):
        return wrong("the logits differ from the model's; go through the boxes again.")
    return right("Six calls, and the logits are the model's.")


def check_writing_flops(answer: Callable[..., int]) -> Feedback:
    """Grade the count of operations for writing a translation token by token.

    Args:
        answer: takes src_len, tgt_len, d_model, d_ff, n_layers (on each side) and
            vocab_size; returns floating-point operations, 2 for each multiplication
            with its addition. The encoder runs once; for every token to be written the
            decoder reads all target tokens so far, and lm_head judges the last one.
    """
    for sizes in ((3, 4, 8, 12, 1, 11), (5, 7, 12, 20, 2, 17)):
        n, m, d, d_ff, n_layers, vocab = sizes
        result = call(answer, *sizes)
        if problem := _number(result):
            return problem
        expected = _count_writing(_model(vocab, d, d_ff, n_layers), n, m)

        encoder = n_layers * 4 * n * d * (2 * d + n + d_ff)
        # What the decoder costs when it reads t tokens, for t from 0 to tgt_len:
        cross = [n_layers * 4 * d * ((t + n) * d + t * n) for t in range(m + 1)]
        decoder = [
            cost + n_layers * 4 * t * d * (2 * d + t + d_ff)
            for t, cost in enumerate(cross)
        ]
        head = 2 * d * vocab
        again = expected + (m - 1) * encoder
        everywhere = expected + m * (m - 1) // 2 * head
        mistakes = {
            "each multiplication comes with an addition: twice as many.": expected // 2,
            "this is one pass over all tokens, as in training; when writing, the "
            "decoder runs once for every token.": encoder + decoder[m] + m * head,
            "the encoder runs only once; its memory is kept.": again,
            "lm_head is needed at the last position only.": everywhere,
            "the decoder reads all tokens so far, not only the newest.": (
                encoder + m * (decoder[1] + head)
            ),
            "the first step reads 1 token and the last one reads tgt_len.": (
                expected - decoder[m] + decoder[0]
            ),
            "the encoder is missing.": expected - encoder,
            "lm_head is missing.": expected - m * head,
            "the decoder's cross-attention is missing.": expected - sum(cross[1:]),
        }
        for message, count in mistakes.items():
            if result == count:
                return wrong(message)
        if result != expected:
            return wrong(f"for {sizes} the counter says {expected}, you say {result}.")
    return right("Your formula agrees with a model that writes, under a counter.")


def _count_writing(config: TransformerConfig, src_len: int, tgt_len: int) -> int:
    with torch.device("meta"):
        model = Transformer(config)
        ids = torch.ones(1, max(src_len, tgt_len), dtype=torch.long)
    with record_attention(model), FlopCounterMode(display=False) as counter:
        memory = model.encode(ids[:, :src_len])
        for t in range(1, tgt_len + 1):
            model.lm_head(model.decode(ids[:, :t], memory)[:, -1])
    return counter.get_total_flops()


def check_design(config: TransformerConfig | None) -> Feedback:
    """Judge a model designed under a budget: any that keeps to it is right.

    Args:
        config: at most BUDGET parameters, both vocabularies of VOCABULARY tokens, heads
            at least 32 wide, at least 2 layers a side, d_ff at least d_model.
    """
    if config is None or config is Ellipsis:
        return NOT_ATTEMPTED
    if not isinstance(config, TransformerConfig):
        return wrong(f"expected a TransformerConfig, not {type(config).__name__}.")
    if {config.src_vocab_size, config.tgt_vocab_size} != {VOCABULARY}:
        return wrong(f"both vocabularies must have {VOCABULARY} tokens.")
    if min(config.n_encoder_layers, config.n_decoder_layers) < 2:
        return wrong("at least 2 layers a side are asked for.")
    if config.d_model // config.n_heads < 32:
        return wrong(
            f"heads are {config.d_model // config.n_heads} wide, but at least 32 are "
            "asked for: take fewer heads."
        )
    if config.d_ff < config.d_model:
        return wrong(f"d_ff {config.d_ff} is below d_model {config.d_model}.")
    with torch.device("meta"):
        model = Transformer(config)
    size = count_parameters(model)
    if size > BUDGET:
        hint = "" if config.tie_embeddings == "all" else " Are the embeddings tied?"
        return wrong(f"{size:,} parameters, {size - BUDGET:,} over the budget.{hint}")
    if size < 0.9 * BUDGET:
        return wrong(f"{size:,} parameters leave more than a tenth of the budget.")
    share = count_parameters(model.src_embeddings) / size
    return right(f"{size:,} parameters, {share:.0%} of them in the shared matrix.")


def _model(vocab: int, d_model: int, d_ff: int, n_layers: int) -> TransformerConfig:
    base = replace(PRESETS["paper-base"], src_vocab_size=vocab, tgt_vocab_size=vocab)
    base = replace(base, n_encoder_layers=n_layers, n_decoder_layers=n_layers)
    return replace(base, d_model=d_model, d_ff=d_ff, n_heads=2)


def _number(result: object) -> Feedback | None:
    if problem := unanswered(result):
        return problem
    if isinstance(result, bool) or not isinstance(result, int | float):
        return wrong(f"expected a whole number, but got {type(result).__name__}.")
    return None


def _same(a: Tensor, b: Tensor) -> bool:
    return torch.allclose(a.double(), b, rtol=0, atol=1e-6)
