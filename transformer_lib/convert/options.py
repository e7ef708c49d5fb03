"""Reading other people's configurations, for `interop`: sizes, choices, refusals."""

from collections.abc import Mapping
from typing import Any

import torch.nn.functional as F
from torch import nn

from transformer_lib.model.layers import ACTIVATIONS, Activation


def as_mapping(options: Any) -> dict[str, Any]:
    """Turn a configuration of any kind into name -> value."""
    if isinstance(options, Mapping):
        return dict(options)
    return options.to_dict() if hasattr(options, "to_dict") else dict(vars(options))


def fsmt_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Read the configuration of FSMT, or what Marian's has in common with it."""
    return {
        "d_model": need(options, "d_model"),
        "n_heads": same(options, "encoder_attention_heads", "decoder_attention_heads"),
        "d_ff": same(options, "encoder_ffn_dim", "decoder_ffn_dim"),
        "activation": activation_name(need(options, "activation_function")),
        "scale_embeddings": need(options, "scale_embedding"),
        "max_len": need(options, "max_position_embeddings"),
        "pad_id": need(options, "pad_token_id"),
        **layers_and_rates(options),
    }


def marian_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Read the configuration of Marian."""
    refuse_others(
        options,
        normalize_before=False,
        normalize_embedding=False,
        add_final_layer_norm=False,
        static_position_embeddings=True,
    )
    return fsmt_options(options)


def fairseq_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Read fairseq's arguments."""
    refuse_others(
        options,
        encoder_learned_pos=False,
        decoder_learned_pos=False,
        no_token_positional_embeddings=False,
        no_decoder_final_norm=False,
        no_cross_attention=False,
        cross_self_attention=False,
        adaptive_softmax_cutoff=None,
    )
    return {
        "d_model": same(options, "encoder_embed_dim", "decoder_embed_dim"),
        "n_heads": same(options, "encoder_attention_heads", "decoder_attention_heads"),
        "d_ff": same(options, "encoder_ffn_embed_dim", "decoder_ffn_embed_dim"),
        "norm_first": same(
            options, "encoder_normalize_before", "decoder_normalize_before"
        ),
        "embedding_norm_eps": 1e-5 if options.get("layernorm_embedding") else None,
        "activation": activation_name(options.get("activation_fn", "relu")),
        "scale_embeddings": not options.get("no_scale_embedding"),
        "max_len": options.get("max_target_positions", 1024),
        **layers_and_rates(options),
    }


def layers_and_rates(options: Mapping[str, Any]) -> dict[str, Any]:
    """Read what Hugging Face and fairseq have the same names for."""
    rates = ("dropout", "attention_dropout", "activation_dropout")
    return {
        "n_encoder_layers": need(options, "encoder_layers"),
        "n_decoder_layers": need(options, "decoder_layers"),
        **{name: options[name] for name in rates if name in options},
    }


def torch_options(transformer: nn.Transformer) -> dict[str, Any]:
    """Read sizes and choices from PyTorch's layers, which all have to agree."""
    stacks = (transformer.encoder, transformer.decoder)
    choices = [
        {
            "d_model": layer.self_attn.embed_dim,
            "n_heads": layer.self_attn.num_heads,
            "d_ff": layer.linear1.out_features,
            "norm_first": layer.norm_first,
            "norm_eps": layer.norm1.eps,
            "activation": activation_name(layer.activation),
            "dropout": layer.dropout1.p,
            "attention_dropout": layer.self_attn.dropout,
            "activation_dropout": layer.dropout.p,
            "final_norm": stack.norm is not None,
        }
        for stack in stacks
        for layer in stack.layers
    ]
    for choice in choices:
        for name, value in choice.items():
            if value != choices[0][name]:
                raise ValueError(
                    f"{name} is {choices[0][name]} in one layer and {value} in "
                    "another; our model has one for all"
                )
    n_encoder_layers, n_decoder_layers = (len(stack.layers) for stack in stacks)
    return choices[0] | {
        "n_encoder_layers": n_encoder_layers,
        "n_decoder_layers": n_decoder_layers,
    }


def activation_name(theirs: Any) -> Activation:
    """Find our name of an activation, given by its name, as a function or module."""
    if isinstance(theirs, nn.GELU) and theirs.approximate != "none":
        raise ValueError(f"activation {theirs} cannot be mapped")
    for name, kind in ACTIVATIONS.items():
        aliases = (name, kind.__name__.lower(), getattr(F, kind.__name__.lower()))
        if theirs in aliases or type(theirs) is kind:
            return name
    raise ValueError(
        f"activation {theirs!r} cannot be mapped; known are {', '.join(ACTIVATIONS)}"
    )


def refuse_others(options: Mapping[str, Any], **wanted: Any) -> None:
    """Refuse an option that is neither as wanted nor missing.

    Raises:
        ValueError: naming it and its value.
    """
    for name, value in wanted.items():
        if (found := options.get(name, value)) not in (value, None):
            raise ValueError(f"{name}={found!r} cannot be mapped, only {value!r}")


def same(options: Mapping[str, Any], one: str, other: str) -> Any:
    """Return the value of two options that have to agree.

    Raises:
        ValueError: they do not, or one is missing.
    """
    if need(options, one) != need(options, other):
        raise ValueError(
            f"{one} is {options[one]} and {other} is {options[other]}; our model has "
            "one for both"
        )
    return options[one]


def need(options: Mapping[str, Any], name: str) -> Any:
    """Return an option.

    Raises:
        ValueError: it is missing.
    """
    if name not in options:
        raise ValueError(f"the configuration has no {name}")
    return options[name]
