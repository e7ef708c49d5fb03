"""Linear maps made ready for decoding, which multiplies few rows by many matrices."""

import warnings
from collections.abc import Callable
from functools import cache, cached_property

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_fast import private

Multiply = Callable[[Tensor], Tensor]
MultiplyAdd = Callable[[Tensor, Tensor], Tensor]

_LITTLE = 3 * 2**16  # products; so many cost less than a call of oneDNN by itself
_FUSED_FROM = 16  # rows; for fewer, a second call costs less than a longer first one
_REORDERED_FOR = 32  # rows; the order that oneDNN chooses for them suits 1 and 128 too
_IN_PLACE = {
    "relu": torch.relu_,
    "gelu": torch.ops.aten.gelu_.default,
    "swish": lambda x: F.silu(x, inplace=True),
}
_FUSED_ACTIVATIONS = ("gelu", "swish")  # oneDNN's relu makes a zero of a NaN


class PreparedLinear:
    """A linear map x W^T + b, made ready for few rows of x on a CPU.

    F.linear reads the matrix at a fraction of the speed of memory, and multiplies at
    a fraction of the speed of the processor. Which way is better depends on the number
    of rows:

    - Little work: the product with the transposed matrix, written out, which PyTorch
      calls with less ado than all others.
    - All else: W in the order in which oneDNN reads it, from the first number to the
      last. For many rows, the call does what follows the product as well.

    Functions are bound to a number of rows, so that a step asks no questions.

    Args:
        weight: (out_features, in_features); must not change any more.
        bias: (out_features,) or None.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self.weight = weight.detach()
        self.bias = None if bias is None else bias.detach()
        self.has_onednn = torch.backends.mkldnn.is_available() and (
            weight.dtype == torch.float32
            or (weight.dtype == torch.bfloat16 and private.has_bfloat16())
        )

    @cached_property
    def transposed(self) -> Tensor:
        """The matrix (in_features, out_features), made when it is first wanted."""
        return self.weight.t().contiguous()

    @cached_property
    def reordered(self) -> Tensor:
        """The matrix in oneDNN's order, made when it is first wanted."""
        return private.reorder_weight()(self.weight, _REORDERED_FOR)

    def is_fused(self, n_rows: int) -> bool:
        """Say whether one call should do what follows the product as well."""
        return self._is_reordered(n_rows) and n_rows >= _FUSED_FROM

    def _is_reordered(self, n_rows: int) -> bool:
        return self.has_onednn and n_rows * self.weight.numel() > _LITTLE

    def multiply(self, n_rows: int, activation: str | None = None) -> Multiply:
        """Return the map, for so many rows, with an activation after it.

        Args:
            n_rows: of x.
            activation: "relu", "gelu", "swish", or None.

        Returns:
            A function (n_rows, in_features) -> (n_rows, out_features).
        """
        fused = activation in _FUSED_ACTIVATIONS and self.is_fused(n_rows)
        if activation is not None and not fused:
            plain, activate = self.multiply(n_rows), _IN_PLACE[activation]
            return lambda x: activate(plain(x))
        bias = self.bias
        if self._is_reordered(n_rows):
            call, weight = private.linear(), self.reordered
            name = activation or "none"
            return lambda x: call(x, weight, bias, name, [], "none")
        if n_rows * self.weight.numel() > _LITTLE or bias is None:
            weight = self.weight
            return lambda x: F.linear(x, weight, bias)
        transposed = self.transposed
        return lambda x: torch.addmm(bias, x, transposed)

    def multiply_add(self, n_rows: int) -> MultiplyAdd:
        """Return the map followed by a sum.

        Args:
            n_rows: of x.

        Returns:
            A function of x (n_rows, in_features) and of what is added to the product,
            (n_rows, out_features).
        """
        if not self.is_fused(n_rows):
            plain = self.multiply(n_rows)
            return lambda x, addend: plain(x).add_(addend)
        call, weight, bias = private.linear_add(), self.reordered, self.bias
        return lambda x, addend: call(x, addend, weight, bias, "add")


class Int8Linear:
    """A linear map x W^T + b in whole numbers of 8 bits, for float32 x.

    Each row of W has a scale of its own, with which its largest number becomes 127; x
    gets one scale in every call, for all rows. The numbers are multiplied and summed as
    integers, four times as many at a time as floating-point numbers.

    Args:
        weight: (out_features, in_features), in float32.
        bias: (out_features,) or None; is added in float32.

    Raises:
        ValueError: weight is not in float32.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        if weight.dtype != torch.float32:
            raise ValueError(f"int8 is made of float32 weights, not of {weight.dtype}")
        scales = weight.abs().amax(dim=1).clamp_min(1e-30) / 127
        whole = (weight / scales[:, None]).round().to(torch.int8)
        zeros = torch.zeros(len(weight), dtype=torch.long, device="cpu")
        with warnings.catch_warnings():  # PyTorch will give this way up some day
            warnings.filterwarnings("ignore", "torch.quantize_per_tensor")
            quantized = private.quantize_rows()(whole, scales.double(), zeros, 0)
        self.packed = torch.ops.quantized.linear_prepack(quantized, bias)

    def multiply(self, n_rows: int, activation: str | None = None) -> Multiply:
        """Return the map with an activation after it; see `PreparedLinear`."""
        packed, reduced = self.packed, pairs_saturate()
        call = private.linear_int8(relu=activation == "relu")
        if activation in (None, "relu"):
            return lambda x: call(x, packed, reduced)
        activate = _IN_PLACE[activation]
        return lambda x: activate(call(x, packed, reduced))

    def multiply_add(self, n_rows: int) -> MultiplyAdd:
        """Return the map followed by a sum; see `PreparedLinear`."""
        plain = self.multiply(n_rows)
        return lambda x, addend: plain(x).add_(addend)


@cache
def pairs_saturate() -> bool:
    """Say whether this processor's products of 8-bit numbers overflow.

    Processors without VNNI add two products in 16 bits, and a sum above 32,767 stays
    there, without an error. With 7 bits for x (`reduce_range`) no sum is that large.
    """
    packed = Int8Linear(torch.ones(1, 64), None).packed
    x = torch.ones(1, 64)
    x[0, 0] = -0.01  # so that the other numbers become 255 of 255
    found = torch.ops.quantized.linear_dynamic(x, packed, False)
    return bool(found < 0.95 * x.sum())
