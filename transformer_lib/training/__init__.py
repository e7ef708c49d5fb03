"""Loss, schedule, loop, and runs that survive being interrupted."""

from transformer_lib.training.checkpoint import load_checkpoint
from transformer_lib.training.classification import new_model, train_epoch
from transformer_lib.training.evaluate import read_recipe_of
from transformer_lib.training.loop import check_gradient, next_step, train
from transformer_lib.training.loss import (
    at_least_float32,
    batch_loss,
    label_loss,
    shift_right,
    smoothing_floor,
)
from transformer_lib.training.recipe import difference, read_recipe
from transformer_lib.training.schedule import make_optimizer
from transformer_lib.training.translation import fit, prepare
