"""PyTorch's private names that operations rely on, which any release may change.

Those of oneDNN are looked up when they are first wanted: not every build of PyTorch has
them.
"""

from collections.abc import Callable

import torch


def is_transformed() -> bool:
    """Say whether a function transform, such as vmap, is active."""
    return torch._C._functorch.peek_interpreter_stack() is not None


def has_bfloat16() -> bool:
    """Say whether oneDNN multiplies bfloat16 on this processor."""
    return torch.ops.mkldnn._is_mkldnn_bf16_supported()


def reorder_weight() -> Callable:
    """(weight, n_rows) -> the matrix in the order in which oneDNN reads it."""
    return torch.ops.mkldnn._reorder_linear_weight


def linear() -> Callable:
    """(x, weight, bias, activation, [], "none") -> x W^T + b, and its activation."""
    return torch.ops.mkldnn._linear_pointwise.default


def linear_add() -> Callable:
    """(x, addend, weight, bias, "add") -> x W^T + b + addend."""
    return torch.ops.mkldnn._linear_pointwise.binary
