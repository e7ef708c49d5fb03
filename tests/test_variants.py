"""Variants of other implementations change what they say, and nothing else."""

import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from transformer_lib import PRESETS, Transformer
from transformer_lib.convert.variants import VARIANTS, apply_variant

SRC, TGT_IN = torch.tensor([[3, 4, 2, 0]]), torch.tensor([[1, 5, 6]])


def make_model() -> Transformer:
    sizes = {"d_model": 12, "n_heads": 3, "d_ff": 20, "max_len": 9, "pad_id": 0}
    sizes |= {"src_vocab_size": 7, "tgt_vocab_size": 7}
    sizes |= {"n_encoder_layers": 2, "n_decoder_layers": 1}
    torch.manual_seed(0)
    return Transformer(replace(PRESETS["fairseq"], **sizes)).double().eval()


@pytest.mark.parametrize("variant", VARIANTS)
def test_only_the_first_variant_changes_nothing(variant: str) -> None:
    model = make_model()
    for parameter in model.parameters():  # fresh biases are 0 and hide mistakes
        parameter.data += 0.1 * torch.randn_like(parameter)
    before = model(SRC, TGT_IN)
    apply_variant(model, variant)
    change = (model(SRC, TGT_IN) - before).norm() / before.norm()
    assert (change < 1e-12) == (variant == next(iter(VARIANTS)))


def test_the_unbiased_variance_is_that_of_std() -> None:
    model = make_model()
    norm = model.encoder.layers[0].self_attn_connection.norm
    apply_variant(model, "unbiased variance")
    norm.eps = 1e-30
    x = torch.randn(5, 12).double()
    expected = (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True)
    torch.testing.assert_close(norm(x), expected)


def test_the_other_epsilon_and_the_missing_scale() -> None:
    model = make_model()
    apply_variant(model, "epsilon 1e-6")
    assert model.decoder.layers[0].cross_attn_connection.norm.eps == 1e-6
    apply_variant(model, "unscaled embeddings")
    embed = model.src_embeddings
    expected = embed.tokens.weight[SRC] + embed.positions(torch.arange(4))
    torch.testing.assert_close(embed(SRC), expected)


def test_sines_come_first_and_cosines_after_them() -> None:
    model = make_model()
    positions = model.src_embeddings.positions
    mixed = positions(torch.arange(4))
    apply_variant(model, "sines first")
    sorted_ = positions(torch.arange(4))
    for i in range(6):
        assert torch.equal(sorted_[:, i], mixed[:, 2 * i])
        assert torch.equal(sorted_[:, 6 + i], mixed[:, 2 * i + 1])


def test_the_divisor_becomes_half_of_the_width() -> None:
    model = make_model()
    attention = model.encoder.layers[0].self_attn
    before = attention.q_proj.weight / math.sqrt(4)
    apply_variant(model, "divisor d_model / 2")
    torch.testing.assert_close(attention.q_proj.weight / math.sqrt(4), before * 2 / 6)


def test_an_unknown_variant_and_a_model_without_the_part_are_refused() -> None:
    with pytest.raises(ValueError, match="variant must be one of .*'GELU'.*'gelu'"):
        apply_variant(make_model(), "gelu")
    with pytest.raises(ValueError, match="Linear holds no FeedForward"):
        apply_variant(nn.Linear(2, 2), "GELU")
