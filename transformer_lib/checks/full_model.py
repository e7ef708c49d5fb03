"""Graders of the chapter on the full Transformer."""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from transformer_lib.attention import MultiHeadAttention
from transformer_lib.checks.feedback import (
    NOT_ATTEMPTED,
    Feedback,
    call,
    check_tensor,
    right,
    wrong,
)
from transformer_lib.config import TransformerConfig
from transformer_lib.masks import causal_mask, padding_mask
from transformer_lib.model import Transformer, count_parameters
from transformer_lib.presets import PRESETS
from transformer_lib.recording import record_attention

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
            "only one side is counted; encoder and decoder have n_layers each.": (
                vocab * d + n * (attention + 2 * norm + 2 * d * d_ff + d + d_ff)
            )
            - expected,
            "the output projections of the attentions are missing.": -3
            * n
            * (d * d + d),
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
    causal = causal_mask(4)
    with torch.no_grad():
        result = call(answer, model, src.clone(), tgt_in.clone())
        expected = model(src, tgt_in)

        def run(
            encoder_mask: Tensor | None,
            cross_mask: Tensor | None,
            tgt_mask: Tensor | None,
        ) -> Tensor:
            memory = model.encode(src, encoder_mask)
            features = model.decode(tgt_in, memory, cross_mask, tgt_mask)
            return model.lm_head(features)

        both = real & causal
        memory = model.encode(src, src_mask)
        features = model.decode(tgt_in, memory, src_mask, both)
        unscaled = model.encoder(
            model.src_embeddings.tokens(src) + model.src_embeddings.positions.first(5),
            src_mask,
        )
        mistakes = {
            "these are features; lm_head turns them into logits.": features,
            "these are probabilities; return logits, before the softmax.": (
                expected.softmax(dim=-1)
            ),
            "no mask anywhere: the future and the padding are seen.": run(
                None, None, None
            ),
            "the decoder sees the future; its self-attention needs the causal mask.": (
                run(src_mask, src_mask, real)
            ),
            "the encoder sees padding; its self-attention needs the source mask.": (
                run(None, src_mask, both)
            ),
            "cross-attention sees the source's padding; it needs the source mask.": (
                run(src_mask, None, both)
            ),
            "the source's padding is seen in both places; build the source mask.": (
                run(None, None, both)
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
        if logits.shape == expected.shape and _same(result * keep, logits * keep):
            return wrong(message)
    if not _same(result * keep, expected * keep):
        return wrong("the logits differ from the model's; go through the boxes again.")
    return right("Six calls, and the logits are the model's.")


def check_attention_flops(answer: Callable[[int, int, int], int]) -> Feedback:
    """Grade the count of operations of one multi-head attention.

    Args:
        answer: takes q_len, k_len and d_model; returns the floating-point operations
            for one sentence, 2 for each multiplication with its addition.
    """
    for q_len, k_len, d in ((3, 3, 8), (5, 7, 12)):
        result = call(answer, q_len, k_len, d)
        if problem := _number(result):
            return problem
        with torch.device("meta"):
            attention = MultiHeadAttention(d, 2)
            query, key = torch.ones(1, q_len, d), torch.ones(1, k_len, d)
        with record_attention(attention), FlopCounterMode(display=False) as counter:
            attention(query, key, key)
        expected = counter.get_total_flops()
        pairs = 4 * q_len * k_len * d
        mistakes = {
            "each multiplication comes with an addition: twice as many.": expected // 2,
            "the output projection is missing.": expected - 2 * q_len * d * d,
            "the products with keys and values, q_len times k_len, are missing.": (
                expected - pairs
            ),
            "scores are one product, and the average of the values is a second.": (
                expected - pairs // 2
            ),
            "the projections are missing.": pairs,
            "keys and values have k_len positions, not q_len.": (
                8 * q_len * d * d + pairs
            ),
            "queries and outputs have q_len positions, not k_len.": (
                8 * k_len * d * d + pairs
            ),
        }
        if result == expected:
            continue
        for message, count in mistakes.items():
            if result == count:
                return wrong(message)
        return wrong(
            f"for q_len {q_len}, k_len {k_len} and d_model {d} the counter says "
            f"{expected}, your function {result}."
        )
    return right("Formula and counter agree, for self- and for cross-attention.")


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
    if result is None or result is Ellipsis:
        return NOT_ATTEMPTED
    if isinstance(result, Feedback):
        return result
    if isinstance(result, bool) or not isinstance(result, int | float):
        return wrong(f"expected a whole number, but got {type(result).__name__}.")
    return None


def _same(a: Tensor, b: Tensor) -> bool:
    return torch.allclose(a.double(), b, rtol=0, atol=1e-6)
