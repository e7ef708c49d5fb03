"""The graders of the full model: right answers pass, wrong ones are named."""

from dataclasses import replace

import pytest
import torch

from transformer_lib.exercises.full_model import (
    VOCABULARY,
    check_design,
    check_forward,
    check_parameter_count,
    check_writing_flops,
)
from transformer_lib.model.masks import causal_mask, padding_mask
from transformer_lib.model.presets import PRESETS

GRADERS = [check_parameter_count, check_forward, check_writing_flops]


def parameters(vocab, d, d_ff, n, cross=1, norms=1, matrices=1, out_bias=1, bias=0):
    attention = 4 * d * d + out_bias * d + bias * 3 * d
    feed_forward = 2 * d * d_ff + d_ff + d
    encoder = attention + feed_forward + norms * 2 * 2 * d
    decoder = (1 + cross) * attention + feed_forward + norms * 3 * 2 * d
    return matrices * vocab * d + n * (encoder + decoder)


def forward(model, src, tgt_in, enc=True, cross=True, causal=True, head=True):
    src_mask = padding_mask(src, 0)
    tgt_mask = padding_mask(tgt_in, 0)
    if causal:
        tgt_mask = tgt_mask & causal_mask(tgt_in.size(1))
    memory = model.encoder(model.src_embeddings(src), src_mask if enc else None)
    features = model.decoder(
        model.tgt_embeddings(tgt_in), memory, src_mask if cross else None, tgt_mask
    )
    return model.lm_head(features) if head else features


def attention(q_len, k_len, d):
    return 4 * (q_len + k_len) * d * d + 4 * q_len * k_len * d


def writing(n, m, d, d_ff, n_layers, vocab, steps=None, enc=1, heads=None, cross=1):
    total = enc * n_layers * (attention(n, n, d) + 4 * n * d * d_ff)
    for t in range(1, m + 1) if steps is None else steps(m):
        layer = attention(t, t, d) + cross * attention(t, n, d) + 4 * t * d * d_ff
        total += n_layers * layer + (heads(t, m) if heads else 1) * 2 * d * vocab
    return total


ANSWERS = [parameters, forward, writing]


@pytest.mark.parametrize(("grader", "answer"), list(zip(GRADERS, ANSWERS, strict=True)))
def test_the_right_answer_passes(grader, answer) -> None:
    assert grader(answer).passed


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cross": 0}, "cross-attention is missing"),
        ({"norms": 0}, "layer norms are missing"),
        ({"norms": 0.5}, "a gain and a bias"),
        ({"matrices": 3}, "three times"),
        ({"matrices": 0}, "embedding matrix is missing"),
        ({"out_bias": 0}, "output projection is missing"),
        ({"bias": 1}, "no bias here"),
    ],
)
def test_a_wrong_count_of_parameters_is_named(change, message) -> None:
    feedback = check_parameter_count(lambda *sizes: parameters(*sizes, **change))
    assert feedback.status == "wrong"
    assert message in feedback.message


def test_other_wrong_counts_are_named() -> None:
    def one_side(vocab, d, d_ff, n):
        return vocab * d + n * (4 * d * d + 2 * d * d_ff + d_ff + 6 * d)

    assert "only one side" in check_parameter_count(one_side).message
    assert "your function 7" in check_parameter_count(lambda *sizes: 7).message
    assert "whole number" in check_parameter_count(lambda *sizes: "7").message


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"causal": False}, "sees the future"),
        ({"enc": False}, "the encoder sees padding"),
        ({"cross": False}, "cross-attention sees"),
        ({"enc": False, "cross": False}, "both places"),
        ({"head": False}, "lm_head"),
    ],
)
def test_a_wrong_forward_pass_is_named(change, message) -> None:
    feedback = check_forward(lambda *given: forward(*given, **change))
    assert feedback.status == "wrong"
    assert message in feedback.message


def test_other_wrong_forward_passes_are_named() -> None:
    def bare(model, src, tgt_in):
        memory = model.encode(src)
        return model.lm_head(model.decode(tgt_in, memory))

    def unscaled(model, src, tgt_in):
        embeddings = model.src_embeddings
        x = embeddings.tokens(src) + embeddings.positions(torch.arange(5))
        mask = padding_mask(src, 0)
        memory = model.encoder(x, mask)
        tgt_mask = causal_mask(4) & padding_mask(tgt_in, 0)
        return model.lm_head(model.decode(tgt_in, memory, mask, tgt_mask))

    assert "no mask anywhere" in check_forward(bare).message
    assert "not scaled" in check_forward(unscaled).message
    probabilities = check_forward(lambda *given: forward(*given).softmax(dim=-1))
    assert "probabilities" in probabilities.message
    shifted = check_forward(lambda *given: forward(*given) + 1)
    assert "differ" in shifted.message
    assert "shape" in check_forward(lambda *given: torch.zeros(2, 4, 5)).message


def test_what_padding_predicts_does_not_count() -> None:
    def without_target_padding(model, src, tgt_in):
        mask = padding_mask(src, 0)
        features = model.decode(
            tgt_in, model.encode(src, mask), mask, causal_mask(tgt_in.size(1))
        )
        return model.lm_head(features)

    assert check_forward(without_target_padding).passed


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"steps": lambda m: [m], "heads": lambda t, m: m}, "as in training"),
        ({"enc": 4}, "encoder runs only once"),
        ({"heads": lambda t, m: t}, "last position only"),
        ({"steps": lambda m: [1] * m}, "not only the newest"),
        ({"steps": range}, "first step reads 1 token"),
        ({"enc": 0}, "encoder is missing"),
        ({"heads": lambda t, m: 0}, "lm_head is missing"),
        ({"cross": 0}, "cross-attention is missing"),
    ],
)
def test_wrong_operations_are_named(change, message) -> None:
    feedback = check_writing_flops(lambda *sizes: writing(*sizes, **change))
    assert feedback.status == "wrong"
    assert message in feedback.message


def test_other_wrong_operations_are_named() -> None:
    half = check_writing_flops(lambda *sizes: writing(*sizes) // 2)
    assert "twice as many" in half.message
    assert "you say 5" in check_writing_flops(lambda *sizes: 5).message


SIZES = {"src_vocab_size": VOCABULARY, "tgt_vocab_size": VOCABULARY}
SMALL = replace(PRESETS["paper-base"], **SIZES, d_model=256, d_ff=1024)
DESIGN = replace(SMALL, n_encoder_layers=4, n_decoder_layers=4)


def test_a_design_within_the_budget_passes() -> None:
    assert check_design(DESIGN).passed
    assert check_design(None).status == "open"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"d_model": 512}, "over the budget"),
        ({"tie_embeddings": "none"}, "tied"),
        ({"n_heads": 16}, "16 wide"),
        ({"d_ff": 128}, "below d_model"),
        ({"n_encoder_layers": 1}, "at least 2 layers"),
        ({"n_encoder_layers": 2, "n_decoder_layers": 2}, "more than a tenth"),
        ({"tgt_vocab_size": 100, "tie_embeddings": "decoder"}, "8000 tokens"),
    ],
)
def test_a_design_that_breaks_a_rule_is_told(change, message) -> None:
    feedback = check_design(replace(DESIGN, **change))
    assert feedback.status == "wrong"
    assert message in feedback.message


def test_a_design_must_be_a_configuration() -> None:
    assert "TransformerConfig" in check_design({"d_model": 256}).message
