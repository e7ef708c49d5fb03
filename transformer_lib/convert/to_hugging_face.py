"""Our translators in models of Hugging Face, which other programs read as well.

Two of its models hold ours without a change of what they compute:

to_marian     post-norm, as in the paper: `MarianMTModel`
to_pegasus    pre-norm: `PegasusForConditionalGeneration`

Both compute their sinusoids with all sines before all cosines. A model does not mind in
which order its features stand as long as all its matrices agree, so ours are put into
that order. Both start targets with their padding token, so that token gets the vector
of our start token. CTranslate2 goes further and starts Marian's targets with a vector
of zeros: all target embeddings are moved by the same vector, so that the start token's
is zero, and the biases of the first decoder layer move them back.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from transformer_lib.convert.crosswalk import convert_weights
from transformer_lib.convert.positions import sinusoid_halves
from transformer_lib.model.config import TransformerConfig
from transformer_lib.model.transformer import Transformer

SRC, TGT = "src_embeddings.tokens.weight", "tgt_embeddings.tokens.weight"
HEAD, HEAD_BIAS = "lm_head.weight", "lm_head.bias"

# What is added to the logit of the padding token, which no target may hold.
NEVER = -1e9

# The axis of a parameter, by the end of its name, that counts features of the model.
FEATURES = {
    "tokens.weight": 1,
    "q_proj.weight": 1,
    "k_proj.weight": 1,
    "v_proj.weight": 1,
    "out_proj.weight": 0,
    "out_proj.bias": 0,
    "expand.weight": 1,
    "contract.weight": 0,
    "contract.bias": 0,
    "norm.gain": 0,
    "norm.bias": 0,
    "lm_head.weight": 1,
}


def to_marian(
    model: Transformer, bos_id: int
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Turn a post-norm model into `MarianMTModel`.

    The padding token becomes the last of the vocabulary, as CTranslate2 wants it; the
    tokens after it move up by one.

    Args:
        model: one vocabulary for both sides, sinusoids.
        bos_id: the token that its targets start with.

    Returns:
        weights: by the names of Hugging Face.
        options: the content of its config.json, without end and start tokens.

    Raises:
        ValueError: Marian has no place for something in the model.
    """
    config = model.config
    _refuse_others(config, "Marian", norm_first=False, final_norm=False)
    weights = _weights(model)
    weights[TGT], start = weights[TGT].clone(), weights[TGT][bos_id].clone()
    weights[TGT] -= start
    weights[TGT][config.pad_id] = 0
    _undo_shift(weights, start * model.tgt_embeddings.scale)
    for name in (SRC, TGT, HEAD, HEAD_BIAS):
        weights[name] = weights[name][pad_last(config)]
    options = _options(config, "marian", "MarianMTModel")
    options |= {
        "decoder_vocab_size": config.tgt_vocab_size,
        "share_encoder_decoder_embeddings": False,
        "tie_word_embeddings": False,
        "pad_token_id": config.tgt_vocab_size - 1,
    }
    return _renamed(weights, config), options


def to_pegasus(
    model: Transformer, bos_id: int
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Turn a pre-norm model into `PegasusForConditionalGeneration`.

    Args, results and errors are those of `to_marian`; ids stay as they are.
    """
    config = model.config
    _refuse_others(config, "Pegasus", norm_first=True, final_norm=True)
    weights = _weights(model)
    weights[TGT] = weights[TGT].clone()
    weights[TGT][config.pad_id] = weights[TGT][bos_id]
    tied = config.tie_embeddings == "all"
    if tied:  # padding is masked in the source, and ruled out by its bias in the output
        weights[SRC] = weights[HEAD] = weights[TGT]
    options = _options(config, "pegasus", "PegasusForConditionalGeneration")
    options |= {"tie_word_embeddings": tied, "pad_token_id": config.pad_id}
    renamed = _renamed(weights, config)
    if tied:  # the three are kept once
        kept = renamed.pop("model.decoder.embed_tokens.weight")
        del renamed["model.encoder.embed_tokens.weight"], renamed["lm_head.weight"]
        renamed["model.shared.weight"] = kept
    return renamed, options


def pad_last(config: TransformerConfig) -> Tensor:
    """Return our id of each of Marian's: (vocab_size,), the padding token last."""
    others = [i for i in range(config.tgt_vocab_size) if i != config.pad_id]
    return torch.tensor([*others, config.pad_id])


def _refuse_others(
    config: TransformerConfig, theirs: str, norm_first: bool, final_norm: bool
) -> None:
    if config.norm_first != norm_first:
        kind, other = ("pre", "pegasus") if config.norm_first else ("post", "marian")
        raise ValueError(
            f"norm_first is {config.norm_first}: {theirs} has no place for {kind}-norm "
            f"layers, but {other} has"
        )
    ours = config.norm_first if config.final_norm is None else config.final_norm
    needed = {
        "final_norm": (ours, final_norm),
        "norm_eps": (config.norm_eps, 1e-5),
        "learned_positions": (config.learned_positions, False),
        "embedding_norm_eps": (config.embedding_norm_eps, None),
        "tgt_vocab_size": (config.tgt_vocab_size, config.src_vocab_size),
    }
    for name, (value, wanted) in needed.items():
        if value != wanted:
            raise ValueError(
                f"{name} is {value}, but {theirs} has a place for {wanted} only"
            )
    for name in ("n_encoder_layers", "n_decoder_layers"):
        if getattr(config, name) < 1:
            raise ValueError(f"{theirs} needs at least 1 layer, but {name} is 0")


def _weights(model: Transformer) -> dict[str, Tensor]:
    """Return our weights with features in their order and with all biases."""
    config, weights = model.config, {}
    order = torch.arange(config.d_model).view(-1, 2).T.flatten()  # sines, then cosines
    for name, weight in model.state_dict().items():
        end = ".".join(name.split(".")[-2:])
        weight = weight.detach().cpu().float()
        axis = FEATURES.get(end)
        weights[name] = weight if axis is None else weight.index_select(axis, order)
    if not config.attention_bias:
        for name in [*weights]:
            if name.endswith(("q_proj.weight", "k_proj.weight", "v_proj.weight")):
                zeros = torch.zeros(len(weights[name]))
                weights[name.removesuffix("weight") + "bias"] = zeros
    bias = weights.get(HEAD_BIAS, torch.zeros(config.tgt_vocab_size)).clone()
    bias[config.pad_id] = NEVER
    return weights | {HEAD_BIAS: bias}


def _undo_shift(weights: dict[str, Tensor], shift: Tensor) -> None:
    """Give the first decoder layer the input that `shift` was taken from, in place.

    W (x - shift) + (b + W shift) = W x + b for its projections, and what its residual
    connection passes on comes back with the bias of the output projection.
    """
    start = "decoder.layers.0.self_attn."
    for name in ("q_proj", "k_proj", "v_proj"):
        weight, bias = f"{start}{name}.weight", f"{start}{name}.bias"
        weights[bias] = weights[bias] + weights[weight] @ shift
    bias = f"{start}out_proj.bias"
    weights[bias] = weights[bias] + shift


def _renamed(
    weights: Mapping[str, Tensor], config: TransformerConfig
) -> dict[str, Tensor]:
    """Return the weights by their names, with the tables that they keep."""
    positions = sinusoid_halves(config.max_len, config.d_model, "marian")
    tables = {
        f"model.{side}.embed_positions.weight": positions.clone()
        for side in ("encoder", "decoder")
    }
    bias = weights[HEAD_BIAS][None]  # (1, vocab_size)
    ours = {name: weight for name, weight in weights.items() if name != HEAD_BIAS}
    renamed = convert_weights(ours, "transformer_lib", "Hugging Face", strict=True)
    return renamed | tables | {"final_logits_bias": bias}


def _options(config: TransformerConfig, kind: str, architecture: str) -> dict[str, Any]:
    """Return what both configurations have the same names for."""
    sides = {
        name.format(side=side): value
        for side, n_layers in (
            ("encoder", config.n_encoder_layers),
            ("decoder", config.n_decoder_layers),
        )
        for name, value in (
            ("{side}_layers", n_layers),
            ("{side}_ffn_dim", config.d_ff),
            ("{side}_attention_heads", config.n_heads),
        )
    }
    rates = ("dropout", "attention_dropout", "activation_dropout")
    return {
        "model_type": kind,
        "architectures": [architecture],
        "dtype": "float32",
        "is_encoder_decoder": True,
        "vocab_size": config.src_vocab_size,
        "d_model": config.d_model,
        **sides,
        **{name: getattr(config, name) for name in rates},
        "activation_function": config.activation,
        "max_position_embeddings": config.max_len,
        "scale_embedding": config.scale_embeddings,
        "normalize_before": config.norm_first,
        "normalize_embedding": False,
        "add_final_layer_norm": config.norm_first,
        "static_position_embeddings": True,
    }
