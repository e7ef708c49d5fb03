"""Weights are edited and values measured from outside, and nothing stays changed."""

import copy

import pytest
import torch
from torch import Tensor

from transformer_lib.interpret.interventions import (
    edit_weights,
    equal_weights,
    named_attentions,
    record_value_norms,
    shuffled_weights,
    without_head,
)
from transformer_lib.interpret.recording import record_attention
from transformer_lib.model.attention import MultiHeadAttention
from transformer_lib.model.config import TransformerConfig
from transformer_lib.model.transformer import Transformer

CONFIG = TransformerConfig(
    src_vocab_size=13, tgt_vocab_size=13, d_model=6, n_heads=3, d_ff=10,
    n_encoder_layers=1, n_decoder_layers=2, dropout=0.0,
)  # fmt: skip
SRC = torch.tensor([[5, 6, 7, 2, 0], [8, 4, 9, 6, 2]])
TGT = torch.tensor([[1, 5, 7], [1, 9, 0]])
NAMES = [
    "encoder.layers.0.self_attn",
    "decoder.layers.0.self_attn",
    "decoder.layers.1.cross_attn",
]


@pytest.fixture
def model() -> Transformer:
    torch.manual_seed(0)
    model = Transformer(CONFIG).double().eval()
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):  # a bias of 0 would hide that one is forgotten
            torch.nn.init.normal_(parameter)
    return model


@torch.no_grad()
def run(model: Transformer) -> Tensor:
    return model(SRC, TGT)


@pytest.mark.parametrize("name", NAMES)
def test_weights_given_back_unchanged_change_nothing(model, name) -> None:
    before = run(model)
    with edit_weights(model, {name: lambda weights, allowed: weights}):
        torch.testing.assert_close(run(model), before)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("head", [0, 1])
def test_a_pruned_head_is_one_with_zero_columns(model, name, head) -> None:
    other = copy.deepcopy(model)
    attention = other.get_submodule(name)
    start = head * attention.d_head
    with torch.no_grad():
        attention.out_proj.weight[:, start : start + attention.d_head] = 0.0
    before = run(model)
    with edit_weights(model, {name: without_head(head)}):
        torch.testing.assert_close(run(model), run(other))
        assert not torch.allclose(run(model), before)
    assert torch.equal(run(model), before), "the model is itself again"


def test_several_heads_and_attentions_are_edited_at_once(model) -> None:
    edits = {name: without_head(0, 1, 2) for name in NAMES}
    with edit_weights(model, edits):
        for name in NAMES:
            attention = model.get_submodule(name)
            x = torch.randn(1, 3, attention.d_model, dtype=torch.float64)
            output = attention(x, x, x)
            bias = attention.out_proj.bias.expand_as(output)
            torch.testing.assert_close(output, bias)


def test_an_edit_sees_weights_and_what_the_mask_allows(model) -> None:
    with record_attention(model) as maps:
        run(model)
    seen = {}

    def keep(weights: Tensor, allowed: Tensor) -> Tensor:
        seen["weights"], seen["allowed"] = weights.clone(), allowed
        return weights

    with edit_weights(model, {NAMES[1]: keep}):
        run(model)
    torch.testing.assert_close(seen["weights"], maps[NAMES[1]])
    assert seen["allowed"].shape == seen["weights"].shape
    assert seen["allowed"][0, 0].tolist() == torch.ones(3, 3).tril().bool().tolist()
    assert not seen["allowed"][1, 0, :, 2].any(), "padding"


def test_the_model_is_itself_again_after_an_error(model) -> None:
    before = run(model)
    with (
        pytest.raises(ValueError, match=r"shape \(2, .*but the edit returned \(2,"),
        edit_weights(model, {NAMES[0]: lambda weights, allowed: weights[:, :1]}),
    ):
        run(model)
    assert torch.equal(run(model), before)


def test_an_unknown_attention_is_named(model) -> None:
    with (
        pytest.raises(ValueError, match=r"named 'decoder'; there are: encoder\.layers"),
        edit_weights(model, {"decoder": without_head(0)}),
    ):
        pass


def test_norms_are_those_of_one_key_at_a_time(model) -> None:
    attention = MultiHeadAttention(6, 3, d_inputs=(6, 5, 5)).double()
    torch.nn.init.normal_(attention.v_proj.bias)
    query = torch.randn(2, 4, 6, dtype=torch.float64)
    memory = torch.randn(2, 7, 5, dtype=torch.float64)
    with record_value_norms(attention) as norms, torch.no_grad():
        attention(query, memory, memory)
    assert norms[""].shape == (2, 3, 7)
    bias = attention.out_proj.bias

    def only(head: int, k: int):
        def edit(weights: Tensor, allowed: Tensor) -> Tensor:
            weights[:] = 0.0
            weights[:, head, :, k] = 1.0
            return weights

        return edit

    for head in range(3):
        for k in range(7):
            with edit_weights(attention, {"": only(head, k)}), torch.no_grad():
                added = attention(query, memory, memory) - bias
            torch.testing.assert_close(added[:, 0].norm(dim=-1), norms[""][:, head, k])


def test_every_attention_is_measured_and_nothing_stays(model) -> None:
    with record_value_norms(model) as norms:
        run(model)
    assert list(norms) == [name for name, _ in named_attentions(model)]
    count = len(norms)
    norms.clear()
    run(model)
    assert count == 5 and not norms


def test_what_is_recorded_is_what_is_used(model) -> None:
    with (
        edit_weights(model, {NAMES[2]: lambda weights, allowed: 2 * weights}),
        record_attention(model) as maps,
        record_value_norms(model) as norms,
    ):
        run(model)
    doubled = maps[NAMES[2]].sum(dim=-1)
    torch.testing.assert_close(doubled, torch.full_like(doubled, 2.0))
    assert len(norms) == len(maps) == 5


@pytest.fixture
def masked() -> tuple[Tensor, Tensor]:
    """Weights (2, 3, 5, 7) that keep to a mask with holes, and the mask."""
    generator = torch.Generator().manual_seed(0)
    allowed = torch.rand(2, 1, 5, 7, generator=generator) < 0.6
    allowed[..., 3] = True
    allowed = allowed.expand(2, 3, 5, 7)
    scores = torch.randn(2, 3, 5, 7, generator=generator, dtype=torch.float64)
    return scores.masked_fill(~allowed, -torch.inf).softmax(dim=-1), allowed


def test_equal_weights_are_one_over_the_number_of_keys(masked) -> None:
    weights, allowed = masked
    edited = equal_weights(0, 2)(weights.clone(), allowed)
    for index in torch.cartesian_prod(*map(torch.arange, (2, 2, 5, 7))).tolist():
        n, h, q, k = index[0], 2 * index[1], index[2], index[3]
        expected = allowed[n, h, q, k].item() / allowed[n, h, q].sum().item()
        assert edited[n, h, q, k].item() == pytest.approx(expected)
    assert torch.equal(edited[:, 1], weights[:, 1])


def test_shuffled_weights_stay_in_their_row_and_behind_the_mask(masked) -> None:
    weights, allowed = masked
    edited = shuffled_weights(0, 2)(weights.clone(), allowed)
    torch.testing.assert_close(edited.sort().values, weights.sort().values)
    assert (edited[~allowed] == 0).all()
    assert torch.equal(edited[:, 1], weights[:, 1])
    moved = (edited != weights).any(dim=-1).float().mean(dim=(0, 2))  # of each head
    assert moved[0] > 0.8 and moved[2] > 0.8
    assert torch.equal(shuffled_weights(0, 2)(weights.clone(), allowed), edited)
    other = shuffled_weights(0, 2, seed=1)(weights.clone(), allowed)
    assert not torch.equal(other, edited)


def test_every_order_is_equally_likely() -> None:
    weights = torch.tensor([[[[0.5, 0.3, 0.2, 0.0]]]]).repeat(6000, 1, 1, 1)
    allowed = weights > 0
    edited = shuffled_weights(0)(weights.clone(), allowed)[:, 0, 0]
    orders, counts = edited.unique(dim=0, return_counts=True)
    assert len(orders) == 6
    assert counts.min() > 880 and counts.max() < 1120
