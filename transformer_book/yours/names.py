"""What a reader's source finds: the book's own parts, as the first chapters print them.

    space = namespace("attention")          # without what the source must define
    exec(source, space)
    answer = answer_of("attention", space)  # {"scaled_dot_product_attention": …}

The texts are the library's own, see `source`. They leave out what chapters 1 to 8 don't
teach: a layer here has no cache, widths of inputs, guards.
"""

import math
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_book.exercises.decoder import check_shift
from transformer_book.yours.source import definitions, plain, source_of
from transformer_lib.model import attention, embeddings, layers, masks, transformer
from transformer_lib.model.config import TransformerConfig

# What the source of each part must define, in the order of the chapters.
DEFINES = {
    "positions": ("sinusoid_table",),
    "attention": ("scaled_dot_product_attention",),
    "heads": ("MultiHeadAttention",),
    "masks": ("padding_mask", "causal_mask"),
    "sublayers": ("LayerNorm", "FeedForward", "SublayerConnection"),
    "encoder": ("EncoderLayer",),
    "decoder": ("DecoderLayer", "shift_right"),
    "model": ("Transformer",),
    "search": ("greedy_decode",),
}

# What chapters leave out: everywhere, and in one definition.
_LEFT_OUT = ("cache", "device", "require_paper_parts")
_LEFT_OUT_OF = {
    "scaled_dot_product_attention": ("dropout",),
    "MultiHeadAttention": ("d_inputs", "dropout", "kernel", "same_batch"),
}
# What stands in its place.
_INSTEAD = {
    "scaled_dot_product_attention": {
        "probabilities before dropout": "probabilities",
        "1, or to 0 where no key is left.": "1.",
    },
    "MultiHeadAttention": {
        "d_query": "d_model",
        "d_key": "d_model",
        "d_value": "d_model",
        "output = self.kernel(q, k, v, mask, dropout)": (
            "output, _ = scaled_dot_product_attention(q, k, v, mask)"
        ),
        "  # (batch, n_heads, q_len, d_head)": "",
    },
    "LayerNorm": {", computed by PyTorch's fused kernel": ""},
}
# `sinusoid_table` with the body of `sinusoids`, which the library's calls.
_AT_ONCE = {
    "def sinusoids(positions,": "def sinusoid_table(n_positions,",
    "positions: (...), integers from 0.": "n_positions: number of rows.",
    "(..., d_model), in": "(n_positions, d_model), in",
    "    even = ": "    positions = torch.arange(n_positions)\n    even = ",
}
_UNUSED = ("Cache", "Kernel", "Activation", "eager_attention", "fused_attention")


# Greedy search of one sentence, as chapter 11 begins: a test holds it to the library's.
_GREEDY = '''\
def greedy_decode(model, src, bos_id, eos_id, max_len):
    """Take the likeliest token, read it, and go on until it is eos_id.

    Args:
        model: model(src, tgt_in) returns logits (1, tgt_len, vocab_size).
        src: (1, src_len), source ids.
        bos_id: the token that every target starts with.
        eos_id: the token that ends it.
        max_len: tokens after which a target is cut if it has not ended.

    Returns:
        A list of ids, without bos_id; eos_id, if it came, is the last of them.
    """
    target = [bos_id]
    while target[-1] != eos_id and len(target) <= max_len:
        logits = model(src, torch.tensor([target]))
        target.append(logits[0, -1].argmax().item())
    return target[1:]'''

# Whoever's table it is: every position is looked up in it.
_LOOK_UP = '''\
def sinusoids(positions, d_model):
    """Look positions (..., length) up: (..., length, d_model)."""
    return sinusoid_table(int(positions.max()) + 1, d_model)[positions]'''

# A reader's class may have the two sizes only; layers ask it for d_model.
_BUILD_ATTENTION = '''\
def build_attention(config):
    """Make one attention block that the config describes."""
    bias = {} if config.attention_bias else {"bias": False}
    attention = MultiHeadAttention(config.d_model, config.n_heads, **bias)
    if not hasattr(attention, "d_model"):
        attention.d_model = config.d_model
    return attention'''


@cache
def book_sources() -> dict[str, str]:
    """Return the model's definitions as the first chapters print them, by name."""
    sources = {}
    for module in (attention, layers, embeddings, masks, transformer):
        for name, text in definitions(module).items():
            if name not in _UNUSED:
                text = _put(_INSTEAD.get(name, {}), text)
                sources[name] = plain(text, _LEFT_OUT + _LEFT_OUT_OF.get(name, ()))
    sources["sinusoid_table"] = _put(_AT_ONCE, sources["sinusoids"])
    shift = source_of(check_shift.solve).replace("def check_shift", "def shift_right")
    return {
        **sources,
        "sinusoids": _LOOK_UP,
        "build_attention": _BUILD_ATTENTION,
        "shift_right": plain(shift),
        "greedy_decode": _GREEDY,
    }


def _put(changes: dict[str, str], text: str) -> str:
    """Replace parts of a text, all of which must be there."""
    for old, new in changes.items():
        if old not in text:
            raise ValueError(f"the library no longer says {old!r}")
        text = text.replace(old, new)
    return text


@cache
def _code() -> dict[str, Any]:
    return {
        name: compile(text, f"<{name}>", "exec")
        for name, text in book_sources().items()
    }


def namespace(part: str | None = None) -> dict[str, Any]:
    """Return the names that a source finds: torch's, and the book's own parts.

    They are the book's as the first chapters print it: a `MultiHeadAttention` that
    attends by `scaled_dot_product_attention`, no cache. Each call makes new ones, whose
    names are looked up in this very dictionary. So what is put into it is used by all.

    Args:
        part: which part the source is: what it must define is not there.
    """
    names = {
        **{"math": math, "torch": torch, "nn": nn, "F": F, "Tensor": Tensor},
        "TransformerConfig": TransformerConfig,
    }
    for code in _code().values():
        exec(code, names)  # noqa: S102 - it's the library's own text
    if part is not None:
        hidden = DEFINES[part]
        for name in (*hidden, "sinusoids") if part == "positions" else hidden:
            del names[name]
    return names


def solution_of(part: str) -> str:
    """Return a source that is right."""
    return "\n\n\n".join(book_sources()[name] for name in DEFINES[part]) + "\n"


@cache
def read(part: str, source: str) -> dict[str, Any]:
    """Execute a source of ours, and return what it defines for a part."""
    names = namespace(part)
    exec(compile(source, f"<{part}>", "exec"), names)  # noqa: S102
    return answer_of(part, names)


def answer_of(part: str, names: dict[str, Any]) -> dict[str, Any]:
    """Return what a source has defined for a part.

    Raises:
        ValueError: a definition is missing.
    """
    for name in DEFINES[part]:
        if name not in names:
            raise ValueError(f"Nothing here is called {name}: keep its first line.")
    return {name: names[name] for name in DEFINES[part]}
