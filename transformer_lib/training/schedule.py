"""The paper's optimizer and learning rate (section 5.3)."""

from torch import nn
from torch.optim import Adam, Optimizer


def learning_rate(step: int, d_model: int, warmup: int, scale: float = 1.0) -> float:
    """Return the paper's learning rate (equation 3): up in a line, down as a root.

    scale * d_model^-0.5 * min(step^-0.5, step * warmup^-1.5). The peak is at step
    `warmup` and is scale / sqrt(d_model * warmup).

    Args:
        step: number of the step, from 1.
        d_model: width of the model: wider ones take smaller steps.
        warmup: steps until the peak; 4,000 in the paper.
        scale: a factor of our own; 1 in the paper.
    """
    return scale * d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


def make_optimizer(model: nn.Module) -> Adam:
    """Return Adam as in section 5.3; its rate is set before every step."""
    return Adam(model.parameters(), lr=0.0, betas=(0.9, 0.98), eps=1e-9)


def set_learning_rate(optimizer: Optimizer, rate: float) -> None:
    """Let the next step be taken with this rate."""
    for group in optimizer.param_groups:
        group["lr"] = rate
