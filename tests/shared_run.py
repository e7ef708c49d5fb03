"""One process of a run that several share: started by torchrun in test_shared_run.

Saves what the first process sees: the gradient of the first step in float64, and the
weights and the log after a whole run.
"""

import os
import sys
from functools import partial
from pathlib import Path

import torch
from small_run import small_fit, small_model, small_recipe, small_steps

from transformer_lib.training.lightning_trainer import LightningTrainer, make_fabric
from transformer_lib.training.loss import batch_loss
from transformer_lib.training.schedule import make_optimizer


class GradientTrainer(LightningTrainer):
    """Keeps the gradient of a step."""

    def clip_gradient(self) -> torch.Tensor:
        """Note the gradient before it is clipped."""
        named = self.model.module.named_parameters()
        self.gradient = {name: p.grad.clone() for name, p in named}
        return super().clip_gradient()


def first_gradient(n_batches: int) -> dict[str, torch.Tensor]:
    """Take the first step in float64 and return its gradient."""
    rank, n_processes = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE"))
    recipe = small_recipe(dropout=0.3, gradient_accumulation=n_batches)
    model = small_model(recipe).double()
    loss = partial(batch_loss, smoothing=recipe.training.smoothing)
    trainer = GradientTrainer(
        model, make_optimizer(model), loss,
        fabric=make_fabric("float32"), seed=recipe.training.seed,
    )  # fmt: skip
    trainer.step(next(small_steps(recipe).starting_at(1, rank, n_processes)))
    return trainer.gradient


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    gradients = {n: first_gradient(n) for n in (2, 4)}
    model = small_fit(folder / "run")
    if os.environ["RANK"] == "0":
        content = {"gradients": gradients, "weights": model.state_dict()}
        torch.save(content, folder / "seen.pt")
