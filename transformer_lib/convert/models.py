"""Other people's weights in our Transformer, which then gives their logits and beams.

from_torch      nn.Transformer between embeddings and an output layer
from_marian     Marian of Hugging Face: the models of OPUS-MT
from_fsmt       FSMT of Hugging Face: fairseq's models of WMT 2019

Sizes and choices are read from their modules or configuration, keys are renamed by the
table of `weights`, and what our model has no place for is refused by its name. Give the
models sources that are padded on the right.
"""

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any

import torch
from torch import Tensor, nn

from transformer_lib.convert.positions import fix_positions, sinusoid_halves
from transformer_lib.convert.weights import convert_weights
from transformer_lib.model.config import TransformerConfig
from transformer_lib.model.layers import ACTIVATIONS
from transformer_lib.model.transformer import Transformer

State = Mapping[str, Tensor]

SRC, TGT = "src_embeddings.tokens.weight", "tgt_embeddings.tokens.weight"
HEAD, HEAD_BIAS = "lm_head.weight", "lm_head.bias"

# Our names of settings -> where PyTorch's layers have them.
TORCH_SETTINGS = {
    "d_model": "self_attn.embed_dim",
    "n_heads": "self_attn.num_heads",
    "d_ff": "linear1.out_features",
    "norm_first": "norm_first",
    "norm_eps": "norm1.eps",
    "dropout": "dropout1.p",
    "attention_dropout": "self_attn.dropout",
    "activation_dropout": "dropout.p",
}

# Our names of settings -> those of Hugging Face, the same for Marian, Pegasus and FSMT.
SETTINGS = {
    "d_model": ["d_model"],
    "n_heads": ["encoder_attention_heads", "decoder_attention_heads"],
    "d_ff": ["encoder_ffn_dim", "decoder_ffn_dim"],
    "n_encoder_layers": ["encoder_layers"],
    "n_decoder_layers": ["decoder_layers"],
    "activation": ["activation_function"],
    "scale_embeddings": ["scale_embedding"],
    "max_len": ["max_position_embeddings"],
    "pad_id": ["pad_token_id"],
    "dropout": ["dropout"],
    "attention_dropout": ["attention_dropout"],
    "activation_dropout": ["activation_dropout"],
}


def from_torch(
    transformer: nn.Transformer,
    src_tokens: nn.Embedding,
    tgt_tokens: nn.Embedding,
    lm_head: nn.Linear,
    pad_id: int,
    scale_embeddings: bool = True,
) -> Transformer:
    """Load a model built around `nn.Transformer`, whose positions are the paper's.

    Args:
        transformer: between embeddings and output layer.
        src_tokens: the vectors of the source tokens.
        tgt_tokens: the vectors of the target tokens.
        lm_head: the output layer.
        pad_id: the padding token, the same in both vocabularies.
        scale_embeddings: whether the model multiplies token vectors by sqrt(d_model).

    Raises:
        ValueError: something has no place in our model.
    """
    inner = transformer.state_dict()
    weights = convert_weights(inner, "torch.nn", "transformer_lib", strict=True)
    weights |= {SRC: src_tokens.weight, TGT: tgt_tokens.weight, HEAD: lm_head.weight}
    if lm_head.bias is not None:
        weights[HEAD_BIAS] = lm_head.bias
    settings = {"pad_id": pad_id, "scale_embeddings": scale_embeddings}
    return _build(weights, settings | _torch_settings(transformer))


def from_marian(state: State, options: Any) -> Transformer:
    """Load Marian of Hugging Face, that is a model of OPUS-MT.

    It starts targets with its padding token: decode with bos_id = config.pad_id.

    Args:
        state: state dict of `MarianMTModel`.
        options: its MarianConfig, or the content of its config.json.

    Raises:
        ValueError: something has no place in our model.
        RuntimeError: a weight is missing, or of another shape.
    """
    settings = _read_settings(
        options,
        normalize_before=False,
        normalize_embedding=False,
        add_final_layer_norm=False,
        static_position_embeddings=True,
    )
    state = dict(state)
    state.pop("model.shared.weight", None)  # the embeddings once more
    bias = state.pop("final_logits_bias")  # (1, vocab_size)
    table = sinusoid_halves(settings["max_len"], settings["d_model"], "marian")
    _take_sinusoids(state, table)
    weights = convert_weights(state, "Hugging Face", "transformer_lib", strict=True)
    if bias.any():
        weights[HEAD_BIAS] = bias[0]
    return _build(weights, settings, table)


def from_fsmt(state: State, options: Any) -> Transformer:
    """Load FSMT of Hugging Face, which holds fairseq's models of WMT 2019.

    It starts targets with its end token: decode with bos_id = eos_id.

    Args:
        state: state dict of `FSMTForConditionalGeneration`.
        options: its FSMTConfig, or the content of its config.json.

    Raises:
        ValueError: something has no place in our model.
        RuntimeError: a weight is missing, or of another shape.
    """
    settings = _read_settings(options)
    state = {key.removeprefix("model."): tensor for key, tensor in state.items()}
    first = settings["pad_id"] + 1  # the row of the first position
    n_rows = first + settings["max_len"]
    table = sinusoid_halves(n_rows, settings["d_model"], "fairseq")[first:]
    _take_sinusoids(state, table, first)
    weights = convert_weights(state, "fairseq", "transformer_lib", strict=True)
    return _build(weights, settings, table)


def _torch_settings(transformer: nn.Transformer) -> dict[str, Any]:
    """Read sizes and choices from PyTorch's layers, which all have to agree."""
    stacks = (transformer.encoder, transformer.decoder)
    layers = [layer for stack in stacks for layer in stack.layers]
    found = {
        ours: {attrgetter(theirs)(layer) for layer in layers}
        for ours, theirs in TORCH_SETTINGS.items()
    }
    found["activation"] = {_activation_name(layer.activation) for layer in layers}
    found["final_norm"] = {stack.norm is not None for stack in stacks}
    for ours, values in found.items():
        if len(values) > 1:
            raise ValueError(f"{ours} is not the same in all layers: {values}")
    settings = {ours: values.pop() for ours, values in found.items()}
    settings["n_encoder_layers"], settings["n_decoder_layers"] = (
        len(stack.layers) for stack in stacks
    )
    return settings


def _activation_name(theirs: Callable[[Tensor], Tensor]) -> str:
    """Find our name of an activation, a function or a module, by what it computes."""
    x = torch.linspace(-4, 4, 100)
    for name, kind in ACTIVATIONS.items():
        if torch.equal(kind()(x), theirs(x)):
            return name
    raise ValueError(f"activation {theirs} is none of {', '.join(ACTIVATIONS)}")


def _read_settings(options: Any, **fixed: bool) -> dict[str, Any]:
    """Read a configuration of Hugging Face, in which some settings must be as fixed."""
    options = options if isinstance(options, Mapping) else options.to_dict()
    require_choices(options, **fixed)
    settings = {}
    for ours, names in SETTINGS.items():
        values = [options[name] for name in names]
        if len(set(values)) > 1:
            raise ValueError(f"our model has one {ours}, but {names} are {values}")
        settings[ours] = values[0]
    if settings["activation"] == "silu":
        settings["activation"] = "swish"
    return settings


def require_choices(options: Mapping[str, Any], **fixed: Any) -> None:
    """Refuse a configuration of Hugging Face in which a setting is not as fixed.

    Raises:
        ValueError: naming the setting.
    """
    for name, wanted in fixed.items():
        if options.get(name, wanted) not in (wanted, None):
            raise ValueError(f"{name}={options[name]!r} has no place in our model")


def _take_sinusoids(state: dict[str, Tensor], ours: Tensor, first: int = 0) -> None:
    """Remove tables of positions; refuse one that was learned, as we compute ours."""
    for name in [key for key in state if key.endswith("embed_positions.weight")]:
        table = state.pop(name)[first:]
        n = min(len(table), len(ours))
        if not torch.allclose(table[:n].to(ours), ours[:n], rtol=0, atol=1e-3):
            raise ValueError(f"{name} does not hold the sinusoids computed for it")


def _build(
    weights: State, settings: Mapping[str, Any], positions: Tensor | None = None
) -> Transformer:
    """Make our model of these weights; vocabularies and ties are read from them."""
    src, tgt, head = weights[SRC], weights[TGT], weights[HEAD]
    tying = "none"
    if torch.equal(tgt, head):
        tying = "all" if torch.equal(src, tgt) else "decoder"
    config = TransformerConfig(
        src_vocab_size=len(src),
        tgt_vocab_size=len(tgt),
        tie_embeddings=tying,
        head_bias=HEAD_BIAS in weights,
        **settings,
    )
    # Half precision would only be slower on a CPU.
    dtype = torch.promote_types(head.dtype, torch.float32)
    model = Transformer(config).to(dtype)
    model.load_state_dict(weights)
    if positions is not None:
        fix_positions(model, positions)
    return model.eval()
