"""Is this exactly the model whose operations the engine has prepared?

The engine does not call the model's modules, so it must know all that they would do.
Every module has to be one of the classes below, with the parts that the class itself
makes, and nothing attached. Anything else is left to the model's own modules.
"""

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from transformer_fast import private
from transformer_fast.dropout import FastDropout
from transformer_fast.training import FastLinear
from transformer_lib.model import attention, embeddings, layers, masks, transformer
from transformer_lib.model.attention import (
    MultiHeadAttention,
    eager_attention,
    fused_attention,
)
from transformer_lib.model.config import TransformerConfig
from transformer_lib.model.embeddings import Embeddings, PositionalEncoding
from transformer_lib.model.layers import (
    DecoderLayer,
    EncoderLayer,
    FeedForward,
    LayerNorm,
    SublayerConnection,
)
from transformer_lib.model.transformer import Decoder, Encoder, Transformer

_DROPOUTS = (nn.Dropout, FastDropout)
_LINEARS = (nn.Linear, FastLinear)
_ACTIVATIONS = (nn.ReLU, nn.GELU, nn.SiLU)
# The children of each class, and the classes that a child may have.
_CHILDREN: dict[type, dict[str, tuple[type, ...]]] = {
    Transformer: {
        "encoder": (Encoder,),
        "decoder": (Decoder,),
        "lm_head": _LINEARS,
        "src_embeddings": (Embeddings,),
        "tgt_embeddings": (Embeddings,),
    },
    Encoder: {"layers": (nn.ModuleList,), "norm": (LayerNorm,)},
    Decoder: {"layers": (nn.ModuleList,), "norm": (LayerNorm,)},
    EncoderLayer: {
        "self_attn": (MultiHeadAttention,),
        "feed_forward": (FeedForward,),
        "self_attn_connection": (SublayerConnection,),
        "feed_forward_connection": (SublayerConnection,),
    },
    DecoderLayer: {
        "self_attn": (MultiHeadAttention,),
        "cross_attn": (MultiHeadAttention,),
        "feed_forward": (FeedForward,),
        "self_attn_connection": (SublayerConnection,),
        "cross_attn_connection": (SublayerConnection,),
        "feed_forward_connection": (SublayerConnection,),
    },
    MultiHeadAttention: dict.fromkeys(
        ("q_proj", "k_proj", "v_proj", "out_proj"), _LINEARS
    ),
    FeedForward: {
        "expand": _LINEARS,
        "contract": _LINEARS,
        "activation": _ACTIVATIONS,
        "dropout": _DROPOUTS,
    },
    SublayerConnection: {"norm": (LayerNorm,), "dropout": _DROPOUTS},
    Embeddings: {
        "tokens": (nn.Embedding,),
        "positions": (PositionalEncoding,),
        "norm": (LayerNorm,),
        "dropout": _DROPOUTS,
    },
}
_MAY_LACK_NORM = (Encoder, Decoder, Embeddings)
_PARAMETERS: dict[type, set[str]] = {
    LayerNorm: {"gain", "bias"},
    nn.Linear: {"weight", "bias"},
    FastLinear: {"weight", "bias"},
    nn.Embedding: {"weight"},
    PositionalEncoding: {"table"},
}
_MAY_BE_NONE = {
    (nn.Linear, "bias"),
    (FastLinear, "bias"),
    (PositionalEncoding, "table"),
}
_DTYPES = (torch.float32, torch.float64, torch.bfloat16)
_CLASSES = {nn.ModuleList, *_CHILDREN, *_PARAMETERS, *_DROPOUTS, *_ACTIVATIONS}
_ANCESTORS = {parent for kind in _CLASSES for parent in kind.__mro__} - {object}
_OWNERS = (*_ANCESTORS, attention, embeddings, layers, masks, transformer, F)
_NAMES = {owner: set(dir(owner)) for owner in _OWNERS}  # inherited ones too


def _callables(owner: type | ModuleType) -> dict[str, Any]:
    """Return all but what makes a model, which PyTorch's compiler replaces."""
    return {
        name: value
        for name, value in vars(owner).items()
        if callable(value) and name not in ("__init__", "__setstate__")
    }


_AT_IMPORT = {owner: _callables(owner) for owner in _OWNERS}


def _was_changed(owner: type | ModuleType) -> bool:
    """Say whether a class or module does something else than at import.

    A new method is harmless (Hugging Face's Transformers adds one to `nn.Module`),
    unless it hides an inherited one.
    """
    known, now = _AT_IMPORT[owner], _callables(owner)
    if any(now.get(name) is not value for name, value in known.items()):
        return True
    return not (now.keys() - known.keys()).isdisjoint(_NAMES[owner])


def why_unknown(model: nn.Module) -> str | None:
    """Say what the engine does not know of a model, or None if it knows everything.

    Args:
        model: any module, in any state.
    """
    return next(_oddities(model), None)


def _oddities(model: nn.Module) -> Iterator[str]:
    """Yield reasons to step aside; what follows one may rely on its absence."""
    yield from _odd_surroundings()
    if type(model) is not Transformer:
        yield f"the model is a {type(model).__name__}"
    if type(model.config) is not TransformerConfig:
        yield f"the config is a {type(model.config).__name__}"
    modules = list(_walk("", model))
    for name, module in modules:
        kind = type(module)  # a known one, or the parent has had something odd
        if covered := vars(module).keys() & _NAMES[kind]:
            yield f"{name} has its own {', '.join(sorted(covered))}"
        if module._forward_hooks or module._forward_pre_hooks:
            yield f"{name or 'the model'} has a hook"
        yield from _odd_children(name, module, kind)
        yield from _odd_tensors(name, module, kind)
        yield from _odd_choices(name, module, kind)
    d_model = model.lm_head.weight.size(1)
    for name, module in modules:
        if any(found != wanted for found, wanted in _shapes(module, d_model)):
            yield f"the sizes of {name} do not fit those of lm_head"
    if len({parameter.dtype for parameter in model.parameters()}) > 1:
        yield "the model has parameters of several types"
    if not (len(model.encoder.layers) and len(model.decoder.layers)):
        yield "a stack has no layer"
    attentions = [part for _, part in modules if type(part) is MultiHeadAttention]
    if len({attention.n_heads for attention in attentions}) > 1:
        yield "the attentions differ in their heads"
    if not all(map(_asks_for_numbers, attentions)):
        yield "an attention has weights that are not finite"
    connections = (part for _, part in modules if type(part) is SublayerConnection)
    if len({connection.norm_first for connection in connections}) > 1:
        yield "the model is pre-norm and post-norm"


def _asks_for_numbers(attention: MultiHeadAttention) -> bool:
    """Say whether queries and keys are finite: the fused kernel makes 0 of NaN."""
    parameters = [*attention.q_proj.parameters(), *attention.k_proj.parameters()]
    return all(parameter.sum().isfinite() for parameter in parameters)


def _odd_surroundings() -> Iterator[str]:
    """Look for what changes the meaning of modules, wherever they stand."""
    for owner in _OWNERS:
        if _was_changed(owner):
            yield f"{owner.__name__} was changed"
    if private.has_global_hooks():
        yield "there is a hook for all modules"
    if torch.is_autocast_enabled("cpu"):
        yield "autocast is enabled"
    if private.is_transformed():
        yield "a function transform is active"
    if torch.compiler.is_compiling() or torch.jit.is_tracing():
        yield "the model is being traced"
    if private.is_watched():
        yield "a mode watches the operations"


def _walk(name: str, module: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """Yield all modules with their names, as often as they stand somewhere."""
    yield name, module
    for child, part in module._modules.items():
        if part is not None:
            yield from _walk(f"{name}.{child}" if name else child, part)


def _odd_children(name: str, module: nn.Module, kind: type) -> Iterator[str]:
    if kind is nn.ModuleList:
        wanted = EncoderLayer if name == "encoder.layers" else DecoderLayer
        expected = {str(i): (wanted,) for i in range(len(module._modules))}
    else:
        expected = _CHILDREN.get(kind, {})
    found = module._modules
    for key in expected.keys() | found.keys():
        part = found.get(key)
        if part is None and key == "norm" and kind in _MAY_LACK_NORM:
            if getattr(module, "norm", None) is not None:
                yield f"{name} has a norm that is no module"
        elif part is None:
            yield f"{name} has no {key}"
        elif type(part) not in expected.get(key, ()):
            yield f"{name} has a {type(part).__name__} as its {key}"


def _odd_tensors(name: str, module: nn.Module, kind: type) -> Iterator[str]:
    if module._buffers:
        yield f"{name} has a buffer"
    found, expected = module._parameters, _PARAMETERS.get(kind, set())
    for key in expected | found.keys():
        tensor = found.get(key)
        if tensor is None and (kind, key) in _MAY_BE_NONE:
            continue
        if key not in expected or type(tensor) is not nn.Parameter:
            yield f"{name}.{key} is a {type(tensor).__name__}"
        if (
            tensor.device.type != "cpu"
            or tensor.layout != torch.strided
            or tensor.dtype not in _DTYPES
        ):
            yield f"{name}.{key} is {tensor.dtype} on {tensor.device}"


def _odd_choices(name: str, module: nn.Module, kind: type) -> Iterator[str]:
    rate = 0.0
    if kind is MultiHeadAttention:
        if not (module.kernel is fused_attention or module.kernel is eager_attention):
            yield f"{name} has a kernel of its own"
        rate = module.dropout
    elif kind in _DROPOUTS:
        rate = module.p
    elif kind is nn.GELU and module.approximate != "none":
        yield f"{name} is an approximation"
    elif kind is nn.Embedding and module.max_norm is not None:
        yield f"{name} changes its weights"
    elif kind is PositionalEncoding:
        has_table = module._parameters.get("table") is not None
        if module.learned is not has_table:
            yield f"{name} is learned and has no table, or the other way round"
    if rate and module.training:
        yield f"{name} drops out"


def _shapes(module: nn.Module, d: int) -> Iterator[tuple[Any, Any]]:
    """Yield sizes as they are, and as they fit a model of width d."""
    kind = type(module)
    if kind is MultiHeadAttention:
        yield module.d_inputs, (d, d, d)
        yield (module.d_model, module.n_heads * module.d_head), (d, d)
        for part in module._modules.values():
            yield from _linear_shapes(part, d, d)
    elif kind is FeedForward:
        d_ff = module.expand.weight.size(0)
        yield from _linear_shapes(module.expand, d_ff, d)
        yield from _linear_shapes(module.contract, d, d_ff)
    elif kind is LayerNorm:
        yield module.gain.shape, (d,)
        yield module.bias.shape, (d,)
    elif kind is Embeddings:
        yield module.tokens.weight.shape, (module.vocab_size, d)
    elif kind is PositionalEncoding:
        yield module.d_model, d
        if module.learned:
            yield module.table.shape[1:], (d,)
    elif kind is Transformer:
        n_tokens = module.lm_head.weight.size(0)
        yield from _linear_shapes(module.lm_head, n_tokens, d)


def _linear_shapes(linear: nn.Linear, d_out: int, d_in: int) -> Iterator[tuple]:
    yield linear.weight.shape, (d_out, d_in)
    if linear.bias is not None:
        yield linear.bias.shape, (d_out,)
