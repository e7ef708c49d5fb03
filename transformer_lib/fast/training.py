"""Training that takes less time on a CPU; nothing in the model knows it.

`require_same_step` proves, before it begins, that it computes what plain training does;
inside `with fast_training(model)`, the model's layers are the faster ones.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from copy import deepcopy
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from transformer_lib.data.batches import Batch
from transformer_lib.fast import private
from transformer_lib.fast.dropout import FastDropout
from transformer_lib.model.attention import eager_attention, fused_attention
from transformer_lib.model.transformer import Transformer
from transformer_lib.probe import is_close
from transformer_lib.training.loss import label_smoothed_loss

_LITTLE = 2**22  # products; for fewer, a call of oneDNN saves nothing
_SAME = (
    1e-3  # of a gradient's length: what float32 rounds away, with room for more sums
)
_ZERO = 1e-6  # of the whole gradient's length: what rounding makes of a zero


@contextmanager
def fast_training(
    model: nn.Module, dtype: torch.dtype = torch.float32
) -> Iterator[None]:
    """Let a model train faster inside the `with` block; it computes what it did.

    - Linear layers multiply float32 with oneDNN (see `FastLinear`).
    - Dropout draws its random numbers in less time (see `fast_dropout`).
    - In bfloat16 on a CPU attention becomes eager: the backward pass of the fused
      kernel takes four to eight times as long there as plain matrix products do, at
      the length of sentences.

    Subclasses, and attentions with a kernel of their own, are left alone. After the
    block, the model is what it was before.

    Args:
        model: any module.
        dtype: of the matrix products, torch.bfloat16 in mixed precision.
    """
    changed: list[tuple[nn.Module, str, Any]] = []

    def change(module: nn.Module, attribute: str, value: Any) -> None:
        changed.append((module, attribute, getattr(module, attribute)))
        setattr(module, attribute, value)

    for module in model.modules():
        if type(module) is nn.Linear:
            change(module, "__class__", FastLinear)
        elif type(module) is nn.Dropout:
            change(module, "__class__", FastDropout)
        elif (
            getattr(module, "kernel", None) is fused_attention
            and dtype == torch.bfloat16
            and module.out_proj.weight.device.type == "cpu"
        ):
            change(module, "kernel", eager_attention)
    try:
        yield
    finally:
        for module, attribute, value in changed:
            setattr(module, attribute, value)


def batch_loss(model: Transformer, batch: Batch, smoothing: float = 0.1) -> Tensor:
    """Add up the loss of a batch as `training.loss.batch_loss` does, in less time.

    lm_head scores real target positions only. Padding would cost a tenth of a step: the
    output matrix is the largest of a small model.

    Args:
        model: with an lm_head, which a hook may look at: it sees (n_real, vocab_size).
        batch: sentence pairs.
        smoothing: of the labels.
    """
    pad_id = model.config.pad_id
    real = batch.tgt_out != pad_id
    handle = model.lm_head.register_forward_pre_hook(lambda _, inputs: inputs[0][real])
    with handle:
        logits = model(batch.src, batch.tgt_in)  # (n_real, tgt_vocab_size)
    return label_smoothed_loss(logits, batch.tgt_out[real], pad_id, smoothing)


def require_same_step(
    model: nn.Module,
    loss: Callable[[Any, Any], Tensor],
    plain_loss: Callable[[Any, Any], Tensor],
    batch: Any,
) -> None:
    """Refuse to train faster if the first step would be another one.

    Args:
        model: that is to be trained; it is left as it is.
        loss: given a model and a batch, adds up the loss, in the faster way.
        plain_loss: the same in the plain way.
        batch: to compare the loss and all its gradients on, without dropout.

    Raises:
        ValueError: the loss is another one, or the gradient of a parameter, which is
            named; or the model is in `fast_training` already.
    """
    if any(isinstance(part, FastLinear | FastDropout) for part in model.modules()):
        raise ValueError("compare before fast_training: the plain way is not there")
    twin = deepcopy(model).eval()
    losses, gradients = [], []
    for compute, within in ((plain_loss, nullcontext()), (loss, fast_training(twin))):
        twin.zero_grad()
        with within:
            nats = compute(twin, batch)
            nats.backward()
        losses.append(nats.detach())
        gradients.append({n: p.grad for n, p in twin.named_parameters()})
    if not is_close(losses[1], losses[0], torch.float32):
        raise ValueError(
            f"the faster loss is {losses[1]:.4g}, the plain {losses[0]:.4g}"
        )
    plain, faster = gradients
    whole = sum(x.square().sum() for x in plain.values() if x is not None).sqrt()
    for name, expected in plain.items():
        if not _is_same_gradient(faster[name], expected, whole):
            raise ValueError(
                f"training with faster layers would give {name} another gradient: set "
                "fast = false in [training]"
            )


def _is_same_gradient(
    found: Tensor | None, expected: Tensor | None, whole: Tensor
) -> bool:
    """Say whether two gradients of a parameter are equal up to float32's rounding.

    Judged by their lengths: where rounding moves a position of a batch across the bend
    of a ReLU, a few entries move by much more than rounding. A gradient that should be
    zero, such as that of a key's bias, is rounding alone, so it is measured by the
    length of the whole gradient.
    """
    if found is None or expected is None:
        return found is expected
    bound = _SAME * expected.norm() + _ZERO * whole
    return bool((found - expected).norm() <= bound)


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
