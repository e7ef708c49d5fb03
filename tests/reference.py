"""What the comparisons with PyTorch's own layers share."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

EXACT = {"rtol": 0.0, "atol": 1e-10}  # for float64


def draw_parameters(module: nn.Module) -> nn.Module:
    """Move every parameter, biases and gains too, away from its start; in float64."""
    module.double()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return module


def gradients(output: Tensor, inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Differentiate a sum in which every output number has another weight."""
    weights = torch.arange(output.numel(), dtype=output.dtype).view_as(output).cos()
    return torch.autograd.grad((output * weights).sum(), inputs, retain_graph=True)
