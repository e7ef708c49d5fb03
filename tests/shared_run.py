"""One process of a run that several share: started by torchrun in test_shared_run.

Saves what the first process sees: the gradient of the first step in float64, and the
weights and the log after a whole run.
"""

import os
import sys
from pathlib import Path

import lightning as L
import torch
from small_run import small_fit, small_model, small_recipe, small_steps
from torch.optim import Optimizer

from transformer_lib.training.trainer import StepLoader, TranslationModule


class GradientModule(TranslationModule):
    """Keeps the gradient that the optimizer is given."""

    def on_before_optimizer_step(self, optimizer: Optimizer) -> None:
        """Note the gradient before it is cut."""
        self.gradient = {n: p.grad.clone() for n, p in self.model.named_parameters()}


def first_gradient(n_batches: int) -> dict[str, torch.Tensor]:
    """Take the first step in float64 and return its gradient."""
    rank, n_processes = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE"))
    recipe = small_recipe(dropout=0.3, batches_a_step=n_batches)
    module = GradientModule(small_model(recipe).double(), recipe)
    trainer = L.Trainer(
        accelerator="cpu",
        devices=n_processes,
        strategy="ddp",
        max_steps=1,
        use_distributed_sampler=False,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(module, StepLoader(small_steps(recipe), 1, rank, n_processes))
    return module.gradient


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    gradients = {n: first_gradient(n) for n in (2, 4)}
    model = small_fit(folder / "run")
    if os.environ["RANK"] == "0":
        content = {"gradients": gradients, "weights": model.state_dict()}
        torch.save(content, folder / "seen.pt")
