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
    from transformer_lib.model.classifier import Pool
    from transformer_lib.model.layers import DecoderLayer

# More numbers in one model or table are a slip of the keyboard, or were asked for to
# exhaust a computer. The largest published model of this kind, M2M-100, has 12 billion;
# to train 20 billion takes 320 GB: weights, gradients and Adam's two averages.
MOST_NUMBERS = 20_000_000_000


def check_kind(kind: type | tuple[type, ...], **values: Any) -> None:
    """Refuse a value of another type.

    Raises:
        TypeError: naming the value and the type that was expected.
    """
    for name, value in values.items():
        if not isinstance(value, kind):
            kinds = kind if isinstance(kind, tuple) else (kind,)
            wanted = " or ".join(each.__name__ for each in kinds)
            raise TypeError(f"{name} must be a {wanted}, not {_shown(value)}")


def check_flags(**flags: bool) -> None:
    """Refuse what is neither True nor False: a text would count as True.

    Raises:
        TypeError: naming the value.
    """
    for name, flag in flags.items():
        if not isinstance(flag, int) or flag not in (0, 1):
            raise TypeError(f"{name} must be True or False, not {_shown(flag)}")


def check_tensors(**tensors: Tensor) -> None:
    """Refuse what is no tensor, or one whose numbers do not lie side by side.

    Raises:
        TypeError: naming the value.
    """
    check_kind(Tensor, **tensors)
    for name, tensor in tensors.items():
        if tensor.is_sparse:
            raise TypeError(f"{name} is sparse: `{name}.to_dense()` is not")


def _shown(value: Any) -> str:
    """Write a value briefly."""
    return f"{value!r:.80}"


def check_sizes(**sizes: int) -> None:
    """Refuse a size below 1, and sizes that no computer has room for.

    Raises:
        ValueError: naming all sizes that belong together.
        TypeError: a size is no integer.
    """
    check_integers(**sizes)
    if min(sizes.values()) < 1:
        names, values = " and ".join(sizes), " and ".join(map(str, sizes.values()))
        raise ValueError(f"{names} must be at least 1, not {values}")
    check_room(**sizes)


def check_room(**sizes: int) -> None:
    """Refuse a table of so many rows and columns before memory is asked for.

    Raises:
        ValueError: naming the sizes and how many numbers they make.
    """
    if torch.compiler.is_exporting():  # sizes stand for any
        return
    if (n_numbers := math.prod(sizes.values())) > MOST_NUMBERS:
        named = ", ".join(f"{name} {value}" for name, value in sizes.items())
        raise ValueError(
            f"{named} make {n_numbers:,} numbers, but {MOST_NUMBERS:,} is the most"
        )


def check_integers(**values: int) -> None:
    """Refuse what is no integer: True and 2.0 are none either.

    Raises:
        TypeError: naming the value.
        ValueError: it takes more than 64 bits.
    """
    for name, value in values.items():
        if type(value) not in (int, torch.SymInt):  # the latter while a graph is traced
            raise TypeError(f"{name} must be an integer, not {_shown(value)}")
        if not -(2**63) <= value < 2**63:
            raise ValueError(f"{name} must fit into 64 bits, not {value}")


def check_numbers(**values: float) -> None:
    """Refuse what is no number: True and "2" are none.

    Raises:
        TypeError: naming the value.
    """
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise TypeError(f"{name} must be a number, not {_shown(value)}")


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


def check_rate(**rates: float) -> None:
    """Refuse what is no rate of dropout.

    Raises:
        TypeError: it is no number.
        ValueError: it is below 0, or not below 1, or NaN.
    """
    for name, rate in rates.items():
        check_finite(0.0, 1.0, **{name: rate})
        if rate == 1:
            raise ValueError(f"{name} must be below 1: nothing would be left")


def check_texts(name: str, texts: Collection[str]) -> None:
    """Refuse one text where a list of texts belongs: its letters would be texts.

    A generator is refused too: whoever looked at its texts would have used them up.

    Raises:
        TypeError: naming what it is, or which of the texts is none.
    """
    if isinstance(texts, (str, bytes)) or not isinstance(texts, Collection):
        raise TypeError(f"{name} must be a list of texts, not {_shown(texts)}")
    for number, text in enumerate(texts, start=1):
        if not isinstance(text, str):
            shown = _shown(text)
            raise TypeError(f"{name}: number {number} must be a text, not {shown}")


def check_heads(d_model: int, n_heads: int) -> None:
    """Refuse a number of heads that does not divide the width.

    Raises:
        ValueError: naming both.
    """
    check_sizes(d_model=d_model, n_heads=n_heads)
    check_room(d_model=d_model, d_inputs=d_model)
    if d_model % n_heads != 0:
        raise ValueError(f"n_heads {n_heads} does not divide d_model {d_model}")


def check_inputs(d_inputs: tuple[int, int, int] | None) -> None:
    """Refuse anything but three widths, of query, key and value, or None.

    Raises:
        ValueError: there are more or fewer, or one is below 1.
        TypeError: it is no tuple or list of integers.
    """
    if d_inputs is None:
        return
    check_kind((tuple, list), d_inputs=d_inputs)
    if len(d_inputs) != 3:
        raise ValueError(f"d_inputs must be 3 widths, not {_shown(d_inputs)}")
    check_sizes(**dict(zip(("d_query", "d_key", "d_value"), d_inputs, strict=True)))


def check_choice(name: str, value: Any, choices: tuple) -> None:
    """Refuse a value that is none of the choices.

    Raises:
        ValueError: naming the value and the choices.
    """
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {choices}, not {_shown(value)}")


def check_pooling(pooling: str, known: tuple[str, ...]) -> None:
    """Refuse a name that stands for no pooling.

    Raises:
        ValueError: naming it and those that are known.
    """
    if not isinstance(pooling, str) or pooling not in known:
        raise ValueError(
            f"pooling must be one of {', '.join(known)}, not {_shown(pooling)}"
        )


def check_even(d_model: int) -> None:
    """Refuse a width that sinusoids cannot fill: they come in pairs.

    Raises:
        ValueError: d_model is odd or below 2.
        TypeError: d_model is no integer.
    """
    check_integers(d_model=d_model)
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
    check_tensors(ids=ids)
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
    if vocab_size is None or _has_no_values(ids):
        return
    lowest, highest = (bound.item() for bound in ids.aminmax())
    if lowest < 0 or highest >= vocab_size:
        raise ValueError(
            f"id {lowest if lowest < 0 else highest} is outside the vocabulary of "
            f"{vocab_size} tokens (0 to {vocab_size - 1})"
        )


def check_beside(ids: Tensor, embedding: Any) -> None:
    """Refuse ids without values for vectors that have some, and the other way round.

    PyTorch looks up ids of the device meta without an error, and returns whatever its
    memory held before.

    Raises:
        ValueError: naming both devices.
    """
    device = getattr(getattr(embedding, "weight", ids), "device", ids.device)
    if "meta" in (ids.device.type, device.type) and ids.device != device:
        raise ValueError(
            f"ids are on the device {ids.device}, but the embeddings on {device}"
        )


def check_sequences(ids: Tensor) -> None:
    """Refuse what holds no sequences of tokens.

    Args:
        ids: (batch, k_len)

    Raises:
        ValueError: ids is not two-dimensional, or a sequence is empty.
        TypeError: ids is no tensor.
    """
    check_tensors(ids=ids)
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
        TypeError: positions are no tensor of integers.
    """
    check_tensors(positions=positions)
    if positions.dtype not in (torch.int64, torch.int32):
        raise TypeError(
            f"positions must be integers of 64 or 32 bits, not {positions.dtype}"
        )
    if _has_no_values(positions) or not positions.numel():
        return
    lowest, highest = (bound.item() for bound in positions.aminmax())
    if lowest < 0:
        raise ValueError(f"positions start at 0, but one of them is {lowest}")
    if n_learned is not None and highest >= n_learned:
        raise ValueError(
            f"{highest + 1} positions were requested, but only {n_learned} were "
            f"learned (max_len {n_learned})"
        )


def check_positions_fit(ids: Tensor, positions: Tensor) -> None:
    """Refuse positions of other tokens.

    Args:
        ids: (batch, length)
        positions: (batch, length) or (length,).

    Raises:
        ValueError: naming both shapes.
        TypeError: positions are no tensor.
    """
    check_tensors(positions=positions)
    length, rows = positions.shape[-1:], positions.shape[:-1]
    if length != ids.shape[1:] or rows not in ((), (1,), ids.shape[:1]):
        raise ValueError(
            f"positions of shape {tuple(positions.shape)} do not belong to ids of "
            f"shape {tuple(ids.shape)}"
        )


def check_width(x: Tensor, width: int | None, layer: str) -> None:
    """Refuse features of another number than a layer was built for.

    Args:
        x: (..., width)
        width: of the layer; None if a wrapper around it does not tell.
        layer: its name in the message.

    Raises:
        ValueError: naming both numbers, or x has no width.
        TypeError: x is no tensor of numbers with a fraction.
    """
    check_tensors(x=x)
    if not x.is_floating_point():
        raise TypeError(f"x must be floating-point numbers, not {x.dtype}")
    if x.dim() < 1:
        raise ValueError(f"x must have a width, but its shape is {tuple(x.shape)}")
    if width not in (None, x.size(-1)):
        raise ValueError(
            f"x has width {x.size(-1)}, but this {layer} was built for {width}"
        )


def check_norm(x: Tensor, gain: Tensor, bias: Tensor, eps: float) -> None:
    """Refuse features that a gain and a bias were not made for.

    Raises:
        ValueError: naming the widths, or eps is not from 0 to 1.
        TypeError: something is no tensor of numbers with a fraction.
    """
    check_tensors(gain=gain, bias=bias)
    check_finite(0.0, 1.0, eps=eps)
    if gain.dim() != 1 or gain.shape != bias.shape or not len(gain):
        raise ValueError(
            f"gain and bias must be (d_model,), not {tuple(gain.shape)} and "
            f"{tuple(bias.shape)}"
        )
    check_width(x, len(gain), "layer norm")


def check_pooled(pool: "Pool", hidden: Tensor, real: Tensor) -> None:
    """Refuse vectors and a mask of other sequences than each other's.

    Args:
        pool: whose learned query, if it has one, says how wide vectors are.
        hidden: (batch, length, d_model)
        real: (batch, length), boolean.

    Raises:
        ValueError: shapes do not fit each other.
        TypeError: hidden has no fractions, or real is not boolean.
    """
    check_tensors(hidden=hidden, real=real)
    if not hidden.is_floating_point() or real.dtype != torch.bool:
        raise TypeError(
            "hidden must be floating-point and real boolean, not "
            f"{hidden.dtype} and {real.dtype}"
        )
    width = pool.query.size(1) if hasattr(pool, "query") else None
    fits = hidden.dim() == 3 and width in (None, hidden.size(-1))
    if not fits or real.shape != hidden.shape[:2] or not real.size(1):
        raise ValueError(
            f"hidden must be (batch, length, {width or 'd_model'}) and real (batch, "
            f"length), not {tuple(hidden.shape)} and {tuple(real.shape)}"
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
    check_tensors(**{name: mask})
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
    check_tensors(query=query, key=key, value=value)
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
        check_tensors(**{name: x})
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
    check_tensors(x=x, memory=memory)
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


def _has_no_values(x: Tensor) -> bool:
    """Say whether x is but a shape: on the device meta, or while a graph is traced."""
    return x.device.type == "meta" or torch.compiler.is_exporting()
