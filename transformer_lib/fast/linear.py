"""Linear maps made ready for decoding, which multiplies few rows by many matrices."""

from collections.abc import Callable
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_lib.fast import private

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
