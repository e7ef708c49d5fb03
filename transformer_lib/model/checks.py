"""What the model refuses: each check names the value and what was expected.

The classes call these functions where a value enters, so that their own lines read
like the paper.
"""

import math
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from transformer_lib.model.layers import DecoderLayer


def check_sizes(**sizes: int) -> None:
    """Refuse a size below 1.

    Raises:
        ValueError: naming all sizes that belong together.
    """
    if min(sizes.values()) < 1:
        names, values = " and ".join(sizes), " and ".join(map(str, sizes.values()))
        raise ValueError(f"{names} must be at least 1, not {values}")


def check_integers(**values: int) -> None:
    """Refuse what is no integer: True and 2.0 are none either.

    Raises:
        TypeError: naming the value.
    """
    for name, value in values.items():
        if type(value) is not int:
            raise TypeError(f"{name} must be an integer, not {value!r}")


def check_numbers(**values: float) -> None:
    """Refuse what is no number: True and "2" are none.

    Raises:
        TypeError: naming the value.
    """
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise TypeError(f"{name} must be a number, not {value!r:.80}")


def check_finite(low: float, high: float, **values: float) -> None:
    """Refuse what is no number from low to high.

    Raises:
        TypeError: it is no number; True is none.
        ValueError: it is out of range, or NaN.
    """
    check_numbers(**values)
    for name, value in values.items():
        if not (low <= value <= high and math.isfinite(value)):
            raise ValueError(f"{name} must be from {low} to {high}, not {value}")


def check_texts(name: str, texts: Collection[str]) -> None:
    """Refuse one text where a list of texts belongs: its letters would be texts.

    A generator is refused too: whoever looked at its texts would have used them up.

    Raises:
        TypeError: naming what it is, or which of the texts is none.
    """
    if isinstance(texts, (str, bytes)) or not isinstance(texts, Collection):
        raise TypeError(f"{name} must be a list of texts, not {texts!r:.80}")
    for number, text in enumerate(texts, start=1):
        if not isinstance(text, str):
            raise TypeError(f"{name}: number {number} must be a text, not {text!r:.80}")


def check_heads(d_model: int, n_heads: int) -> None:
    """Refuse a number of heads that does not divide the width.

    Raises:
        ValueError: naming both.
    """
    check_sizes(d_model=d_model, n_heads=n_heads)
    if d_model % n_heads != 0:
        raise ValueError(f"n_heads {n_heads} does not divide d_model {d_model}")


def check_choice(name: str, value: Any, choices: tuple) -> None:
    """Refuse a value that is none of the choices.

    Raises:
        ValueError: naming the value and the choices.
    """
    if value not in choices:
        raise ValueError(f"{name} must be one of {choices}, not {value!r}")


def check_pooling(pooling: str, known: tuple[str, ...]) -> None:
    """Refuse a name that stands for no pooling.

    Raises:
        ValueError: naming it and those that are known.
    """
    if pooling not in known:
        raise ValueError(f"pooling must be one of {', '.join(known)}, not {pooling!r}")


def check_even(d_model: int) -> None:
    """Refuse a width that sinusoids cannot fill: they come in pairs.

    Raises:
        ValueError: d_model is odd or below 2.
    """
    if d_model < 2 or d_model % 2 != 0:
        raise ValueError(
            "sinusoids come in pairs of sine and cosine: d_model must be even and at "
            f"least 2, not {d_model}"
        )


def check_ids(ids: Tensor, vocab_size: int | None = None) -> None:
    """Refuse what cannot be token ids.

    Args:
        ids: (batch, length)
        vocab_size: number of tokens; None to accept any integer.

    Raises:
        ValueError: ids are not (batch, length), are empty, or lie outside the
            vocabulary.
        TypeError: ids are not integers.
    """
    if ids.dtype not in (torch.int64, torch.int32):  # what nn.Embedding reads
        raise TypeError(f"token ids must be integers of 64 or 32 bits, not {ids.dtype}")
    if ids.dim() != 2:
        raise ValueError(
            f"ids must have 2 dimensions (batch, length), not {ids.dim()}: "
            f"shape {tuple(ids.shape)}"
        )
    if ids.numel() == 0:
        raise ValueError(
            f"ids of shape {tuple(ids.shape)} are empty, but at least 1 sequence of "
            "at least 1 token is needed"
        )
    if vocab_size is None or ids.device.type == "meta":
        return
    lowest, highest = (bound.item() for bound in ids.aminmax())
    if lowest < 0 or highest >= vocab_size:
        raise ValueError(
            f"id {lowest if lowest < 0 else highest} is outside the vocabulary of "
            f"{vocab_size} tokens (0 to {vocab_size - 1})"
        )


def check_sequences(ids: Tensor) -> None:
    """Refuse what holds no sequences of tokens.

    Args:
        ids: (batch, k_len)

    Raises:
        ValueError: ids is not two-dimensional, or a sequence is empty.
    """
    if ids.dim() != 2:
        raise ValueError(
            f"ids must have 2 dimensions (batch, k_len), not {ids.dim()}: "
            f"shape {tuple(ids.shape)}"
        )
    if ids.size(1) == 0:
        raise ValueError("ids has length 0, but a sequence needs at least 1 token")


def check_positions(positions: Tensor, n_learned: int | None = None) -> None:
    """Refuse positions that have no vector.

    Args:
        positions: (...), integers.
        n_learned: rows of a learned table; None for sinusoids, which never end.

    Raises:
        ValueError: a position is negative, or beyond the learned ones.
    """
    if positions.device.type == "meta":
        return
    lowest, highest = (bound.item() for bound in positions.aminmax())
    if lowest < 0:
        raise ValueError(f"positions start at 0, but one of them is {lowest}")
    if n_learned is not None and highest >= n_learned:
        raise ValueError(
            f"{highest + 1} positions were requested, but only {n_learned} were "
            f"learned (max_len {n_learned})"
        )


def check_width(x: Tensor, width: int, layer: str) -> None:
    """Refuse features of another number than a layer was built for.

    Raises:
        ValueError: naming both numbers.
    """
    if x.size(-1) != width:
        raise ValueError(
            f"x has width {x.size(-1)}, but this {layer} was built for {width}"
        )


def check_mask(mask: Tensor, scores_shape: tuple[int, ...], name: str = "mask") -> None:
    """Refuse a mask that cannot be used on scores of this shape.

    Args:
        mask: boolean, broadcastable to scores_shape.
        scores_shape: (..., q_len, k_len)
        name: what the message calls the mask.

    Raises:
        TypeError: mask is not boolean.
        ValueError: mask does not broadcast to scores_shape.
    """
    if mask.dtype != torch.bool:
        raise TypeError(
            f"{name} must be boolean (True = may attend), not {mask.dtype}; "
            "convert_mask translates other conventions"
        )
    sizes = zip(reversed(mask.shape), reversed(scores_shape), strict=False)
    fits = all(size in (1, wanted) for size, wanted in sizes)
    if mask.dim() > len(scores_shape) or not fits:
        raise ValueError(
            f"{name} of shape {tuple(mask.shape)} does not broadcast to the scores' "
            f"shape {tuple(scores_shape)} (..., q_len, k_len)"
        )


def check_heads_fit(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None
) -> None:
    """Refuse queries, keys, values and a mask that do not belong together.

    Args:
        query: (..., q_len, d_head)
        key: (..., k_len, d_head)
        value: (..., k_len, d_value)
        mask: boolean, broadcastable to (..., q_len, k_len), or None.

    Raises:
        ValueError: sizes do not fit, or a sequence or a vector is empty.
        TypeError: mask is not boolean, or the others are not numbers of one kind with
            a fraction.
    """
    for name, x in (("query", query), ("key", key), ("value", value)):
        if not x.is_floating_point() or x.dtype != query.dtype:
            raise TypeError(
                f"query, key and value must share a floating-point type, not {x.dtype} "
                f"in {name}"
            )
        if x.dim() < 2:
            raise ValueError(
                f"{name} needs at least 2 dimensions (..., length, width), "
                f"not {x.dim()}: shape {tuple(x.shape)}"
            )
    if key.size(-1) != query.size(-1):
        raise ValueError(
            f"query has d_head {query.size(-1)}, but key has {key.size(-1)}"
        )
    if key.size(-2) != value.size(-2):
        raise ValueError(
            f"key has length {key.size(-2)}, but value has {value.size(-2)}: "
            "every key needs its value"
        )
    for name, x in (("query", query), ("key", key)):
        if 0 in x.shape[-2:]:
            raise ValueError(
                f"{name} has length {x.size(-2)} and width {x.size(-1)}, but both must "
                "be at least 1"
            )
    if mask is not None:
        batch = check_broadcast(query, key)
        check_mask(mask, (*batch, query.size(-2), key.size(-2)))


def check_broadcast(*tensors: Tensor) -> torch.Size:
    """Refuse tensors whose leading sizes, all but the last two, do not fit each other.

    Returns:
        The leading sizes of what is computed from all.

    Raises:
        ValueError: naming the sizes of each.
    """
    leading = [tuple(x.shape[:-2]) for x in tensors]
    try:
        return torch.broadcast_shapes(*leading)
    except RuntimeError:
        raise ValueError(
            f"query, key and value do not broadcast: their leading sizes are {leading}"
        ) from None


def check_attention_inputs(
    query: Tensor, key: Tensor, value: Tensor, d_inputs: tuple[int, int, int]
) -> None:
    """Refuse inputs that a multi-head attention was not built for.

    Args:
        query: (batch, q_len, d_query)
        key: (batch, k_len, d_key)
        value: (batch, k_len, d_value)
        d_inputs: the three widths that are expected.

    Raises:
        ValueError: dimensions, a width or the batch size do not fit.
    """
    for name, x, width in zip(
        ("query", "key", "value"), (query, key, value), d_inputs, strict=True
    ):
        if x.dim() != 3:
            raise ValueError(
                f"{name} must have 3 dimensions (batch, length, width), "
                f"not {x.dim()}: shape {tuple(x.shape)}"
            )
        if x.size(-1) != width:
            raise ValueError(
                f"{name} has width {x.size(-1)}, but this layer was built for {width}"
            )
        if x.size(0) != query.size(0):
            raise ValueError(
                f"query has batch size {query.size(0)}, but {name} has {x.size(0)}"
            )


def check_same_width(self_attn: Any, cross_attn: Any) -> None:
    """Refuse two attentions of one layer that differ in width.

    Raises:
        ValueError: naming both widths.
    """
    if cross_attn.d_model != self_attn.d_model:
        raise ValueError(
            f"self_attn has d_model {self_attn.d_model}, but cross_attn has "
            f"{cross_attn.d_model}; both are added to the same x"
        )


def check_decoder_inputs(
    layer: "DecoderLayer",
    x: Tensor,
    memory: Tensor,
    src_mask: Tensor | None,
    tgt_mask: Tensor | None,
    cache: Any = None,
) -> None:
    """Refuse a memory or a mask that belongs elsewhere, by its name in the layer.

    What a wrapper around an attention does not tell is left to the attention itself.

    Args:
        layer: whose attentions are asked for their sizes.
        x: (batch, tgt_len, d_model)
        memory: (batch, src_len, d_memory)
        src_mask: broadcastable to (batch, n_heads, tgt_len, src_len), or None.
        tgt_mask: broadcastable to (batch, n_heads, tgt_len, tgt_len), or None.
        cache: with one, lengths depend on what it holds: the attentions check them.

    Raises:
        ValueError: the memory's width or batch size does not fit, or a mask does not
            broadcast.
        TypeError: a mask is not boolean.
    """
    if cache is not None or not x.dim() == memory.dim() == 3:
        return  # the attention names the shape
    d_memory = getattr(layer.cross_attn, "d_inputs", (None, memory.size(-1)))[1]
    if memory.size(-1) != d_memory:
        raise ValueError(
            f"memory has width {memory.size(-1)}, but cross_attn was built for "
            f"{d_memory} (its d_inputs)"
        )
    if memory.size(0) != x.size(0):
        raise ValueError(
            f"memory has batch size {memory.size(0)}, but the target has {x.size(0)}"
        )
    batch, tgt_len, _ = x.shape
    for name, mask, attention, k_len in (
        ("self-attention's tgt_mask", tgt_mask, layer.self_attn, tgt_len),
        ("cross-attention's src_mask", src_mask, layer.cross_attn, memory.size(1)),
    ):
        if mask is not None and hasattr(attention, "n_heads"):
            check_mask(mask, (batch, attention.n_heads, tgt_len, k_len), name)
