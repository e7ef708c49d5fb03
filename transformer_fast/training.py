"""One call that makes a model train faster on a CPU; nothing in the model knows it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from transformer_fast import private
from transformer_fast.dropout import FastDropout
from transformer_lib.model.attention import eager_attention, fused_attention
from transformer_lib.model.transformer import Transformer

Model = TypeVar("Model", bound=nn.Module)

_LITTLE = 2**22  # products; for fewer, a call of oneDNN saves nothing
_HOOKS = (
    "_forward_hooks",
    "_forward_pre_hooks",
    "_backward_hooks",
    "_backward_pre_hooks",
)


def for_training(model: Model, dtype: torch.dtype = torch.float32) -> Model:
    """Prepare a model for training, in place; it computes the same function as before.

    - Linear layers multiply float32 with oneDNN (see `FastLinear`).
    - Dropout draws its random numbers in less time (see `fast_dropout`).
    - In bfloat16 on a CPU attention becomes eager: the backward pass of the fused
      kernel takes four to eight times as long there as plain matrix products do, at
      the length of sentences.

    A layer with a hook and an attention with a kernel of its own are left alone.
    Calling this again changes nothing.

    Args:
        model: any module.
        dtype: of the matrix products, torch.bfloat16 in mixed precision.

    Returns:
        The same model.
    """
    for module in list(model.modules()):
        for name, part in module.named_children():
            if type(part) is nn.Dropout and not _has_hooks(part):
                faster = FastDropout(part.p)
                faster.training = part.training
                setattr(module, name, faster)
        if type(module) is nn.Linear and not _has_hooks(module):
            module.__class__ = FastLinear
        if (
            getattr(module, "kernel", None) is fused_attention
            and dtype == torch.bfloat16
            and module.out_proj.weight.device.type == "cpu"
        ):
            module.kernel = eager_attention
    return model


def _has_hooks(module: nn.Module) -> bool:
    return any(getattr(module, name) for name in _HOOKS)


@contextmanager
def real_positions(model: nn.Module, real: Tensor) -> Iterator[bool]:
    """Let a Transformer's lm_head score real target positions only inside the block.

    Padding would cost a tenth of a step: the output matrix is the largest of a small
    model. Where anybody looks at the logits on their way, by a hook on lm_head or on
    the model as a whole, or a subclass of either, all positions are scored.

    Args:
        model: what will be called as `model(src, tgt_in)`: a Transformer, or one that
            another module wraps as its `module`.
        real: (batch, tgt_len), boolean.

    Yields:
        Whether the logits will be those of the real positions, (n_real, vocab_size).
    """
    inner = getattr(model, "module", model)
    is_known = (
        type(inner) is Transformer
        and type(inner.lm_head) in (nn.Linear, FastLinear)
        and not any(map(_has_hooks, (model, inner, inner.lm_head)))
        and not private.has_global_hooks()
        and "forward" not in {*vars(inner), *vars(inner.lm_head)}
    )
    if not is_known:
        yield False
        return
    handle = inner.lm_head.register_forward_pre_hook(lambda _, inputs: inputs[0][real])
    try:
        yield True
    finally:
        handle.remove()


class FastLinear(nn.Linear):
    """`nn.Linear` in training: products by oneDNN, forward and backward.

    PyTorch leaves float32 to MKL, which on some processors (AMD's) uses half the width
    of the registers that oneDNN uses. Sums are rounded in another order.
    """

    def forward(self, x: Tensor) -> Tensor:
        """(..., in_features) -> (..., out_features)."""
        if (
            torch.is_grad_enabled()
            and x.dtype == self.weight.dtype == torch.float32
            and x.device.type == "cpu"
            and x.numel() * self.out_features >= _LITTLE
            and torch.backends.mkldnn.is_available()
            and not torch.is_autocast_enabled("cpu")
            and not private.is_transformed()
        ):
            return _Product.apply(x, self.weight, self.bias)
        return F.linear(x, self.weight, self.bias)


class _Product(torch.autograd.Function):
    """x W^T + b, and its gradients."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return _multiply(x, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        wanted = ctx.needs_input_grad
        # (n_rows, out_features); the gradient of a sum comes with strides of 0
        grad = grad.reshape(-1, grad.size(-1)).contiguous()
        rows = x.reshape(-1, x.size(-1))  # (n_rows, in_features)
        return (
            _multiply(grad, weight.t()).view(x.shape) if wanted[0] else None,
            _multiply(grad.t(), rows.t()) if wanted[1] else None,
            grad.sum(0) if wanted[2] else None,
        )


def _multiply(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """(..., d_in), (d_out, d_in) -> (..., d_out)."""
    return private.linear()(x, weight, bias, "none", [], "none")
