"""Recording changes nothing, leaves nothing behind, and finds everything."""

import pytest
import torch
from torch import nn

from transformer_lib.interpret.kernels import named_attentions
from transformer_lib.interpret.recording import record_attention, record_hidden_states
from transformer_lib.model.attention import fused_attention
from transformer_lib.model.config import TransformerConfig
from transformer_lib.model.transformer import Transformer

CONFIG = TransformerConfig(
    src_vocab_size=13, tgt_vocab_size=13, d_model=6, n_heads=3, d_ff=10,
    n_encoder_layers=2, n_decoder_layers=1, dropout=0.0,
)  # fmt: skip
SRC, TGT_IN = torch.tensor([[3, 4, 5, 6, 0]]), torch.tensor([[1, 7, 8]])


def make_model() -> Transformer:
    torch.manual_seed(0)
    return Transformer(CONFIG).double()


def test_every_attention_is_recorded_by_its_name() -> None:
    model = make_model()
    with record_attention(model) as maps:
        model(SRC, TGT_IN)
    assert {name: tuple(weights.shape) for name, weights in maps.items()} == {
        "encoder.layers.0.self_attn": (1, 3, 5, 5),
        "encoder.layers.1.self_attn": (1, 3, 5, 5),
        "decoder.layers.0.self_attn": (1, 3, 3, 3),
        "decoder.layers.0.cross_attn": (1, 3, 3, 5),
    }
    for weights in maps.values():
        torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights[..., 0]))
    assert (maps["decoder.layers.0.cross_attn"][..., 4] == 0).all()
    assert maps["decoder.layers.0.self_attn"].triu(1).sum() == 0


def test_recording_does_not_change_the_result() -> None:
    model = make_model()
    expected = model(SRC, TGT_IN)
    with record_attention(model), record_hidden_states(model):
        recorded = model(SRC, TGT_IN)
    torch.testing.assert_close(recorded, expected, rtol=0, atol=1e-10)


def test_nothing_is_recorded_after_the_block_even_after_an_error() -> None:
    model = make_model()
    with pytest.raises(RuntimeError, match="stop"), record_attention(model) as maps:
        raise RuntimeError("stop")
    model(SRC, TGT_IN)
    assert maps == {}
    attentions = [each for _, each in named_attentions(model)]
    assert {each.kernel for each in attentions} == {fused_attention}


def test_recorded_weights_are_cut_from_the_graph() -> None:
    model = make_model()
    with record_attention(model) as maps:
        model(SRC, TGT_IN).sum().backward()
    assert not any(weights.requires_grad for weights in maps.values())
    assert model.encoder.layers[0].self_attn.q_proj.weight.grad.abs().sum() > 0


def test_nested_recordings_restore_the_outer_one() -> None:
    model = make_model()
    with record_attention(model) as outer:
        with record_attention(model.encoder) as inner:
            pass
        model(SRC, TGT_IN)
    assert inner == {} and len(outer) == 4


def test_hidden_states_are_the_outputs_of_the_layers() -> None:
    model = make_model()
    with record_hidden_states(model) as states:
        model(SRC, TGT_IN)
    x = model.src_embeddings(SRC)
    x = model.encoder.layers[0](x, (SRC != 0)[:, None, None, :])
    torch.testing.assert_close(states["encoder.layers.0"], x.detach())
    assert list(states) == ["encoder.layers.0", "encoder.layers.1", "decoder.layers.0"]


def test_a_module_with_nothing_to_record_is_refused() -> None:
    with (
        pytest.raises(ValueError, match="Linear holds no MultiHeadAttention"),
        record_attention(nn.Linear(2, 2)),
    ):
        pass
    with (
        pytest.raises(ValueError, match="holds no EncoderLayer or DecoderLayer"),
        record_hidden_states(nn.Linear(2, 2)),
    ):
        pass
