"""How a model learns: the loss, the schedule, the step, the loop.

Needs PyTorch alone. A run in a folder, with a recipe, is in `transformer_lib.runs`.
"""

from transformer_lib.training.loop import train, train_step
from transformer_lib.training.loss import (
    batch_loss,
    label_loss,
    shift_right,
    smoothing_floor,
)
from transformer_lib.training.schedule import make_optimizer
