"""The paper's optimizer and learning rate (section 5.3)."""

from torch import nn
from torch.optim import Adam, Optimizer

from transformer_lib.model.checks import check_finite, check_integers


def learning_rate(step: int, d_model: int, warmup: int, scale: float = 1.0) -> float:
    """Return the paper's learning rate (equation 3): up in a line, down as a root.

    scale * d_model^-0.5 * min(step^-0.5, step * warmup^-1.5). The peak is at step
    `warmup` and is scale / sqrt(d_model * warmup).

    Args:
        step: number of the step, from 1.
        d_model: width of the model: wider ones take smaller steps.
        warmup: steps until the peak; 4,000 in the paper.
        scale: a factor of our own; 1 in the paper.

    Raises:
        TypeError: step, d_model or warmup is no integer.
        ValueError: one of these is below 1, or scale is negative or not finite.
    """
    check_counts(step, d_model, warmup, scale)
    return scale * d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


def check_counts(step: int, d_model: int, warmup: int, scale: float) -> None:
    """Refuse a step 0, of which the schedule has no rate, and sizes below 1."""
    check_integers(step=step, d_model=d_model, warmup=warmup)
    check_finite(0.0, 1e9, scale=scale)
    if min(step, d_model, warmup) < 1:
        raise ValueError(
            "step, d_model and warmup must be at least 1, not "
            f"{step}, {d_model} and {warmup}"
        )


def make_optimizer(model: nn.Module) -> Adam:
    """Return Adam as in section 5.3; its rate is set before every step."""
    return Adam(model.parameters(), lr=0.0, betas=(0.9, 0.98), eps=1e-9)


def set_learning_rate(optimizer: Optimizer, rate: float) -> None:
    """Let the next step be taken with this rate.

    Raises:
        ValueError: it is negative, or NaN.
    """
    check_finite(0.0, 1e9, rate=rate)
    for group in optimizer.param_groups:
        group["lr"] = rate
