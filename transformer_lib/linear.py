"""The linear layer: PyTorch's, and a way to multiply few rows faster, as decoding asks.

A step of a search multiplies one row, or a few, with all the matrices of the decoder.
What takes time is reading the matrices, not multiplying.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

_PACKED_FOR = 32  # rows; the order that oneDNN chooses for them is good for 1 and 128
_WORTH_PACKING = 2**16  # numbers in a matrix; a call of oneDNN costs as much as fewer
_FEW_ROWS, _WORTH_SHARING = 4, 2**19  # up to so many rows and numbers, see FewRows


class Linear(nn.Linear):
    """`nn.Linear`, with the same parameters and results, but faster while packed."""

    packed: "FewRows | None" = None

    def forward(self, x: Tensor) -> Tensor:
        """(..., in_features) -> (..., out_features)."""
        if self.packed is None:
            return F.linear(x, self.weight, self.bias)
        return self.packed(x)

    def pack(self) -> None:
        """Make ready for few rows; weights must not change until `unpack`."""
        self.packed = FewRows(self.weight, self.bias)

    def unpack(self) -> None:
        """Be PyTorch's linear layer again."""
        self.packed = None


class FewRows:
    """A linear map x W^T + b that is made ready for few rows of x, on a CPU.

    F.linear reads the matrix at a fraction of the speed of memory. Two other ways reach
    more of it, and which one is best depends on the number of rows:

    - One row, or up to four and a small matrix: every thread multiplies by a matrix of
      its own, a share of the rows of W. MKL's batched product does so; its product of
      a matrix and a vector does not.
    - Otherwise, up to some hundred rows: W in the order in which oneDNN reads it, from
      the first number to the last.

    The sums are rounded otherwise. So it is done in `torch.inference_mode()` only,
    which the searches use: elsewhere the numbers are PyTorch's, bit for bit. See the
    page *Performance* for what is gained.

    Args:
        weight: (out_features, in_features); must not change any more.
        bias: (out_features,) or None.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self.weight, self.bias = weight, bias
        self.out_features, self.in_features = weight.shape
        self.reordered = self.shares = self.bias_shares = None
        self.most_rows = 0  # that are multiplied in shares
        if weight.device.type != "cpu" or weight.numel() < _WORTH_PACKING:
            return
        weight = weight.detach()
        if torch.backends.mkldnn.is_available() and weight.dtype in (
            torch.float32,
            torch.bfloat16,
        ):
            reorder = torch.ops.mkldnn._reorder_linear_weight
            self.reordered = reorder(weight, _PACKED_FOR)
        self.n_threads = torch.get_num_threads()
        if weight.dtype == torch.float32 and len(weight) % self.n_threads == 0:
            self.most_rows = _FEW_ROWS if weight.numel() <= _WORTH_SHARING else 1
            self.shares = weight.unflatten(0, (self.n_threads, -1))
            if bias is not None:
                self.bias_shares = bias.detach().view(self.n_threads, -1, 1)

    def __call__(self, x: Tensor) -> Tensor:
        """(..., in_features) -> (..., out_features)."""
        if torch.is_inference_mode_enabled():
            n_rows = x.numel() // self.in_features
            if n_rows <= self.most_rows:
                return self._multiply_shares(x, n_rows)
            if self.reordered is not None:
                return torch.ops.mkldnn._linear_pointwise(
                    x, self.reordered, self.bias, "none", [], ""
                )
        return F.linear(x, self.weight, self.bias)

    def _multiply_shares(self, x: Tensor, n_rows: int) -> Tensor:
        columns = x.reshape(n_rows, self.in_features).t()
        columns = columns.expand(self.n_threads, -1, -1)
        if self.bias_shares is None:
            product = torch.bmm(self.shares, columns)
        else:
            product = torch.baddbmm(self.bias_shares, self.shares, columns)
        # (n_threads, out_features / n_threads, n_rows) -> (..., out_features)
        product = product.view(self.out_features, n_rows).t().contiguous()
        return product.view(*x.shape[:-1], self.out_features)
