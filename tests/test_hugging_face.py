"""The whole model against Marian, BART and mBART of Hugging Face, freshly drawn.

Nothing is downloaded: their weights are random, and the cross-walk renames them.
"""

from dataclasses import replace

import pytest
import torch
import transformers
from torch import Tensor

from transformer_lib.convert.crosswalk import convert_weights
from transformer_lib.convert.positions import fix_positions, sinusoid_halves
from transformer_lib.interpret.recording import record_attention, record_hidden_states
from transformer_lib.model.config import TransformerConfig
from transformer_lib.model.embeddings import sinusoid_table
from transformer_lib.model.masks import causal_mask, padding_mask
from transformer_lib.model.transformer import Transformer

CLOSE = {"rtol": 0.0, "atol": 1e-5}  # float32
SRC = torch.tensor([[3, 5, 12, 7, 2], [4, 4, 2, 0, 0]])
TGT_IN = torch.tensor([[1, 3, 10, 4], [1, 9, 6, 0]])

CONFIG = TransformerConfig(
    src_vocab_size=13,
    tgt_vocab_size=13,
    d_model=6,
    n_heads=3,
    d_ff=10,
    n_encoder_layers=2,
    n_decoder_layers=3,
    max_len=11,
    dropout=0.0,
    tie_embeddings="all",
)
BART = replace(
    CONFIG, learned_positions=True, scale_embeddings=False, embedding_norm_eps=1e-5
)
CONFIGS = {
    "Marian": CONFIG,
    "Bart": BART,
    "MBart": replace(BART, norm_first=True, scale_embeddings=True),
}


def make_theirs(name: str) -> torch.nn.Module:
    """A tiny model of theirs, every number of it drawn, norms and biases too."""
    config = CONFIGS[name]
    options = getattr(transformers, f"{name}Config")(
        vocab_size=config.src_vocab_size,
        d_model=config.d_model,
        encoder_layers=config.n_encoder_layers,
        decoder_layers=config.n_decoder_layers,
        encoder_attention_heads=config.n_heads,
        decoder_attention_heads=config.n_heads,
        encoder_ffn_dim=config.d_ff,
        decoder_ffn_dim=config.d_ff,
        activation_function="relu",
        max_position_embeddings=config.max_len,
        scale_embedding=config.scale_embeddings,
        dropout=0.0,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
        forced_eos_token_id=None,
    )
    kind = "MarianMTModel" if name == "Marian" else f"{name}ForConditionalGeneration"
    torch.manual_seed(0)
    theirs = getattr(transformers, kind)(options).eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            if parameter.requires_grad:  # Marian's sinusoids are not
                parameter.add_(0.3 * torch.randn_like(parameter))
    return theirs


def make_ours(name: str, theirs: torch.nn.Module) -> Transformer:
    """Our model with their weights, renamed by the cross-walk."""
    model = Transformer(CONFIGS[name]).eval()
    weights = convert_weights(theirs.state_dict(), "Hugging Face", "transformer_lib")
    if name == "Marian":  # sinusoids are no weights of ours
        weights = {k: v for k, v in weights.items() if "positions" not in k}
    model.load_state_dict(weights, strict=True)
    if name == "Marian":
        fix_positions(model, sinusoid_halves(CONFIG.max_len, CONFIG.d_model, "marian"))
    return model


def run_ours(model: Transformer, src: Tensor, tgt_in: Tensor) -> dict[str, Tensor]:
    src_mask = padding_mask(src, 0)
    tgt_mask = padding_mask(tgt_in, 0) & causal_mask(tgt_in.size(1))
    with record_hidden_states(model) as states:
        memory = model.encode(src, src_mask)
        features = model.decode(tgt_in, memory, src_mask, tgt_mask)
    logits = model.lm_head(features)
    return {"memory": memory, "features": features, "logits": logits, **states}


def run_theirs(theirs: torch.nn.Module, src: Tensor, tgt_in: Tensor):
    return theirs(
        input_ids=src,
        attention_mask=(src != 0).long(),
        decoder_input_ids=tgt_in,
        decoder_attention_mask=(tgt_in != 0).long(),
        output_hidden_states=True,
        use_cache=False,
    )


MODELS = pytest.mark.parametrize("name", list(CONFIGS))


@torch.no_grad()
@MODELS
def test_encoder_every_layer_and_logits_are_equal(name) -> None:
    theirs = make_theirs(name)
    found = run_ours(make_ours(name, theirs), SRC, TGT_IN)
    expected = run_theirs(theirs, SRC, TGT_IN)
    torch.testing.assert_close(
        found["memory"], expected.encoder_last_hidden_state, **CLOSE
    )
    torch.testing.assert_close(found["logits"], expected.logits, **CLOSE)
    last = {"encoder": "memory", "decoder": "features"}
    for side, states in (
        ("encoder", expected.encoder_hidden_states),
        ("decoder", expected.decoder_hidden_states),
    ):
        for i, state in enumerate(states[1:]):  # the first are the embeddings
            # Theirs are taken after the norm at the end, if there is one.
            key = last[side] if i == len(states) - 2 else f"{side}.layers.{i}"
            torch.testing.assert_close(found[key], state, **CLOSE)


@torch.no_grad()
@MODELS
def test_the_comparison_can_fail(name) -> None:
    theirs = make_theirs(name)
    model = make_ours(name, theirs)
    model.decoder.layers[1].cross_attn.k_proj.weight.mul_(1.1)
    difference = run_ours(model, SRC, TGT_IN)["logits"]
    difference = difference - run_theirs(theirs, SRC, TGT_IN).logits
    assert difference.abs().max() > 1e-3


@torch.no_grad()
def test_their_padding_mask_is_needed() -> None:
    theirs = make_theirs("Marian")
    unmasked = theirs(input_ids=SRC, decoder_input_ids=TGT_IN, use_cache=False).logits
    found = run_ours(make_ours("Marian", theirs), SRC, TGT_IN)["logits"]
    torch.testing.assert_close(found[0], unmasked[0], **CLOSE)  # without padding
    assert (found[1] - unmasked[1]).abs().max() > 1e-3


@torch.no_grad()
def test_marians_sinusoids_are_ours_with_the_sines_first() -> None:
    table = sinusoid_table(CONFIG.max_len, CONFIG.d_model)
    theirs = make_theirs("Marian").model.encoder.embed_positions.weight
    expected = torch.cat([table[:, 0::2], table[:, 1::2]], dim=1)
    torch.testing.assert_close(theirs, expected, **CLOSE)
    assert not torch.allclose(theirs, table, atol=1e-2)


@torch.no_grad()
def test_cross_attention_weights_are_equal() -> None:
    theirs = make_theirs("Marian")
    theirs.set_attn_implementation("eager")
    model = make_ours("Marian", theirs)
    expected = theirs(
        input_ids=SRC,
        attention_mask=(SRC != 0).long(),
        decoder_input_ids=TGT_IN,
        output_attentions=True,
        use_cache=False,
    ).cross_attentions
    with record_attention(model) as maps:
        model(SRC, TGT_IN)
    for i, weights in enumerate(expected):
        ours = maps[f"decoder.layers.{i}.cross_attn"]
        torch.testing.assert_close(ours[0], weights[0], **CLOSE)


@torch.no_grad()
@MODELS
def test_hugging_face_weights_can_be_written_too(name) -> None:
    theirs = make_theirs(name)
    ours = make_ours(name, theirs).state_dict()
    if name == "Marian":  # sinusoids are no weights of theirs
        ours = {key: ours[key] for key in ours if "positions" not in key}
    back = convert_weights(ours, "transformer_lib", "Hugging Face")
    state = theirs.state_dict()
    for key, tensor in back.items():
        rows = state[key][2:] if "embed_positions" in key else state[key]
        assert torch.equal(tensor, rows), key
    known = {key for key in state if "embed_positions" not in key}
    assert known - set(back) == {"model.shared.weight", "final_logits_bias"}
