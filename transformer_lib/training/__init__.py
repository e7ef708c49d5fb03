"""How a model learns: the loss, the schedule, the step, the loop.

Needs PyTorch alone. A run in a folder, with a recipe, is in `transformer_lib.runs`.
"""

from transformer_lib.training.loop import Trainer, train, train_step
from transformer_lib.training.loss import (
    batch_loss,
    label_loss,
    label_smoothed_loss,
    shift_right,
    smoothing_floor,
    split_target,
)
from transformer_lib.training.schedule import learning_rate, make_optimizer
