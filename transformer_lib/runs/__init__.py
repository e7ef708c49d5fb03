"""Training runs: a recipe's data and model, a folder, a run that can be interrupted.

Needs pydantic, which checks recipes, and filelock, which keeps runs apart.
"""

from transformer_lib.runs.checkpoint import load_checkpoint
from transformer_lib.runs.classification import new_model, train_epoch
from transformer_lib.runs.evaluate import read_recipe_of
from transformer_lib.runs.recipe import read_recipe
from transformer_lib.runs.translation import fit, prepare
