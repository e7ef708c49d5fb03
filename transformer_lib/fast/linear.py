"""The linear layer: PyTorch's, and a way to multiply few rows faster, as decoding asks.

A step of a search multiplies one row, or a few, with all the matrices of the decoder.
What takes time is reading the matrices, not multiplying.
"""

from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor, nn

_LARGE = 2**16  # numbers in a matrix; F.linear multiplies by fewer as fast as anything
_FEW_ROWS = 4  # of x are multiplied in shares, unless the matrix is huge or wide;
_HUGE = 2**19  # numbers in a matrix
_WIDE = 512  # numbers in a row of it
_REORDERED_FOR = 32  # rows; the order that oneDNN chooses for them suits 1 and 128 too


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

    - One row, or up to four and a matrix that is neither huge nor wide: the rows of W
      are divided into shares, one for each thread and at least two, and multiplied as a
      batch of matrices. MKL is faster at this than at the product of one matrix and one
      vector, with a single thread too.
    - More rows, up to some hundred: W in the order in which oneDNN reads it, from the
      first number to the last.

    The sums are rounded otherwise. So it is done in `torch.inference_mode()` only,
    which the searches use: elsewhere the numbers are PyTorch's, bit for bit.

    Args:
        weight: (out_features, in_features); must not change any more.
        bias: (out_features,) or None.

    Attributes:
        is_slow: whether F.linear is slow with the matrix.
        most_shared: rows of x, at most, that are multiplied in shares.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        self.weight, self.bias = weight, bias
        self.out_features, self.in_features = weight.shape
        self.is_slow = weight.device.type == "cpu" and weight.numel() >= _LARGE
        self.n_shares = max(2, torch.get_num_threads())
        self.most_shared, self.bias_shares = 0, None
        if (
            self.is_slow
            and weight.dtype == torch.float32
            and self.out_features % self.n_shares == 0
        ):
            is_handy = weight.numel() <= _HUGE and self.in_features <= _WIDE
            self.most_shared = _FEW_ROWS if is_handy else 1
            self.shares = weight.detach().unflatten(0, (self.n_shares, -1))
            if bias is not None:
                self.bias_shares = bias.detach().view(self.n_shares, -1, 1)

    @cached_property
    def reordered(self) -> Tensor | None:
        """The weight in oneDNN's order, made when it is first wanted."""
        dtypes = (torch.float32, torch.bfloat16)
        if not (
            self.is_slow
            and self.weight.dtype in dtypes
            and torch.backends.mkldnn.is_available()
        ):
            return None
        reorder = torch.ops.mkldnn._reorder_linear_weight
        return reorder(self.weight.detach(), _REORDERED_FOR)

    def __call__(self, x: Tensor) -> Tensor:
        """(..., in_features) -> (..., out_features)."""
        if torch.is_inference_mode_enabled():
            n_rows = x.numel() // self.in_features
            if n_rows <= self.most_shared:
                return self._multiply_shares(x, n_rows)
            if self.reordered is not None:
                return torch.ops.mkldnn._linear_pointwise(
                    x, self.reordered, self.bias, "none", [], ""
                )
        return F.linear(x, self.weight, self.bias)

    def _multiply_shares(self, x: Tensor, n_rows: int) -> Tensor:
        columns = x.reshape(n_rows, self.in_features).t()
        columns = columns.expand(self.n_shares, -1, -1)
        if self.bias_shares is None:
            product = torch.bmm(self.shares, columns)
        else:
            product = torch.baddbmm(self.bias_shares, self.shares, columns)
        # (n_shares, out_features / n_shares, n_rows) -> (out_features, n_rows)
        product = product.view(self.out_features, n_rows)
        return product.t().contiguous().view(*x.shape[:-1], self.out_features)
