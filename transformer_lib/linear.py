"""The linear layer: PyTorch's, with its matrix in the order that few rows want."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

_PACKED_FOR = 32  # rows; the order that oneDNN chooses for them is good for 1 and 128
_WORTH_PACKING = 2**16  # numbers in a matrix; a call of oneDNN costs as much as fewer


class Linear(nn.Linear):
    """`nn.Linear`, with the same parameters and results, but faster while packed."""

    packed: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        """(..., in_features) -> (..., out_features)."""
        if self.packed is None or not torch.is_inference_mode_enabled():
            return F.linear(x, self.weight, self.bias)
        return linear(x, self.packed, self.bias)

    def pack(self) -> None:
        """Keep a packed copy of the weights, which must not change until `unpack`."""
        self.packed = pack(self.weight)

    def unpack(self) -> None:
        """Forget the packed copy."""
        self.packed = None


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Compute x W^T + b.

    Args:
        x: (..., in_features)
        weight: (out_features, in_features), as it is or from `pack`.
        bias: (out_features,) or None.

    Returns:
        (..., out_features)
    """
    if weight.is_mkldnn:
        return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return F.linear(x, weight, bias)


def pack(weight: Tensor) -> Tensor:
    """Put a matrix into the order in which a CPU multiplies few rows by it fastest.

    A decoding step multiplies a few rows with large matrices: its time is that of
    reading the matrices. F.linear reads them as they lie, at a fraction of the speed of
    memory. oneDNN's own order is read from the first number to the last. Measured for
    float32, 512 inputs and 8,000 outputs, two threads with AVX-512: 2.1 ms become 0.7
    for 1 row, 3.7 become 0.7 for 4, 6.1 become 1.7 for 32, 13.8 become 6.5 for 128.

    The sums are rounded otherwise. So it is done in `torch.inference_mode()` only,
    which the searches use: elsewhere the numbers are PyTorch's, bit for bit.

    Args:
        weight: (out_features, in_features)

    Returns:
        The matrix for `linear`: packed, or as it is where nothing is gained.
    """
    weight = weight.detach()
    if (
        weight.numel() >= _WORTH_PACKING
        and weight.device.type == "cpu"
        and weight.dtype in (torch.float32, torch.bfloat16)
        and torch.backends.mkldnn.is_available()
        and torch.is_inference_mode_enabled()
    ):
        return torch.ops.mkldnn._reorder_linear_weight(weight, _PACKED_FOR)
    return weight
