"""Llama and GPT-2 of Hugging Face in our parts, which then give their logits.

Sizes and choices are read from their configuration, dropout is left out, keys are
renamed by the table language_models.tsv, and what does not belong to the family is
refused by its name.
"""

import csv
from collections.abc import Mapping
from importlib import resources
from typing import Any

import torch
from torch import Tensor, nn

from transformer_lib.convert.models import require_choices
from transformer_lib.convert.weights import convert_weights
from transformer_lib.model.config import TransformerConfig
from transformer_lib.model.language_model import LanguageModel
from transformer_lib.model.modern import (
    Stretch,
    replace_attention,
    replace_feed_forward,
    replace_norms,
)

State = Mapping[str, Tensor]

TRANSPOSED = ("c_attn.weight", "c_proj.weight", "c_fc.weight")  # GPT-2's Conv1D

with (resources.files(__package__) / "language_models.tsv").open() as table:
    MODEL_NAMES = list(csv.DictReader(table, delimiter="\t"))


def from_llama(state: State, options: Any) -> LanguageModel:
    """Load Llama.

    Args:
        state: state dict of `LlamaForCausalLM`.
        options: its LlamaConfig.

    Raises:
        ValueError: something has no place in our model, or a weight is missing.
        RuntimeError: a weight is of another shape.
    """
    require_choices(options.to_dict(), model_type="llama", hidden_act="silu")
    stretch = _read_stretch(options.rope_parameters)
    sizes = (options.intermediate_size, options.rms_norm_eps)
    config = _read_config(options, *sizes, norm_first=True)
    model = LanguageModel(config)
    rotary = options.rope_parameters["rope_theta"]
    replace_norms(model)
    replace_feed_forward(model, config.d_ff, bias=options.mlp_bias)
    replace_attention(
        model,
        options.num_key_value_heads,
        rotary,
        bias=options.attention_bias,
        d_head=options.head_dim,
        stretch=stretch,
    )
    return _fill(model, state, "Llama")


def from_gpt2(state: State, options: Any) -> LanguageModel:
    """Load GPT-2.

    Args:
        state: state dict of `GPT2LMHeadModel`.
        options: its GPT2Config.

    Raises:
        ValueError: something has no place in our model, or a weight is missing.
        RuntimeError: a weight is of another shape.
    """
    require_choices(
        options.to_dict(),
        model_type="gpt2",
        activation_function="gelu_new",
        scale_attn_weights=True,
        scale_attn_by_inverse_layer_idx=False,
    )
    sizes = (options.n_inner or 4 * options.n_embd, options.layer_norm_epsilon)
    config = _read_config(options, *sizes, norm_first=True, learned_positions=True)
    model = LanguageModel(config)
    for layer in model.layers:  # its GELU is an approximation
        layer.feed_forward.activation = nn.GELU(approximate="tanh")
    return _fill(model, state, "GPT-2")


def _read_stretch(rope: Mapping[str, Any]) -> Stretch | None:
    """Read how rotary positions are slowed down for long texts, from Llama 3.1 on."""
    if rope.get("rope_type") != "llama3":
        require_choices(rope, rope_type="default")
        return None
    return (
        rope["factor"],
        rope["original_max_position_embeddings"],
        rope["low_freq_factor"],
        rope["high_freq_factor"],
    )


def _read_config(
    options: Any, d_ff: int, norm_eps: float, **choices: Any
) -> TransformerConfig:
    """Read what all families name alike; padding is the end where there is none."""
    pad_id = options.pad_token_id
    if pad_id is None:
        ends = options.eos_token_id
        pad_id = ends[0] if isinstance(ends, list) else ends
    return TransformerConfig(
        src_vocab_size=options.vocab_size,
        tgt_vocab_size=options.vocab_size,
        pad_id=pad_id,
        d_model=options.hidden_size,
        d_ff=d_ff,
        norm_eps=norm_eps,
        dropout=0.0,
        n_heads=options.num_attention_heads,
        n_encoder_layers=options.num_hidden_layers,
        n_decoder_layers=options.num_hidden_layers,
        max_len=options.max_position_embeddings,
        scale_embeddings=False,
        tie_embeddings="decoder" if options.tie_word_embeddings else "none",
        **choices,
    )


def _fill(model: LanguageModel, state: State, family: str) -> LanguageModel:
    """Give a model the weights of its family: all of them, and no others."""
    ours = model.state_dict()
    if model.config.tie_embeddings != "none":
        # The matrix of the embeddings has a second name, which files often leave out.
        del ours["lm_head.weight"]
        state = {key: state[key] for key in state if key != "lm_head.weight"}
    expected = convert_weights(ours, "transformer_lib", family, names=MODEL_NAMES)
    for key in sorted(expected.keys() ^ state.keys()):
        what = "is missing in" if key in expected else "has no place in"
        raise ValueError(f"{key} {what} the weights of this {family}")
    state = {k: w.T if k.endswith(TRANSPOSED) else w for k, w in state.items()}
    weights = convert_weights(state, family, "transformer_lib", names=MODEL_NAMES)
    dtype = torch.promote_types(
        weights["embeddings.tokens.weight"].dtype, torch.float32
    )
    model.to(dtype).load_state_dict(weights, strict=False)  # a tied matrix comes once
    return model.eval()
