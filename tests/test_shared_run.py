"""Two processes that share the steps of a run do what one process does."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from reference import EXACT
from small_run import N_STEPS, small_fit, small_model, small_recipe, small_steps

from transformer_lib.data.batches import Batch
from transformer_lib.training.lightning_trainer import LightningTrainer, make_fabric
from transformer_lib.training.loss import batch_loss
from transformer_lib.training.run import read_log
from transformer_lib.training.schedule import make_optimizer

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def shared(tmp_path_factory) -> Path:
    """Start two processes that exchange gradients by gloo, and wait for both."""
    folder = tmp_path_factory.mktemp("shared")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone",
               "--nproc-per-node", "2", HERE / "shared_run.py", folder]  # fmt: skip
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True,
                          timeout=300, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


def joined_gradient(n_batches: int) -> dict[str, torch.Tensor]:
    """Differentiate the first step of one process, with the same dropout."""
    recipe = small_recipe(dropout=0.3, gradient_accumulation=n_batches)
    model = small_model(recipe).double()
    fabric, seed = make_fabric("float32"), recipe.training.seed
    trainer = LightningTrainer(
        model, make_optimizer(model), batch_loss, fabric=fabric, seed=seed
    )
    batches = next(small_steps(recipe).starting_at(1))
    for index, batch in enumerate(batches):
        with trainer.turn(index, is_last=True):
            batch_loss(model, batch, recipe.training.smoothing).backward()
    n_tokens = sum(batch.n_tokens for batch in batches)
    return {n: p.grad / n_tokens for n, p in model.named_parameters()}


@pytest.mark.slow
@pytest.mark.parametrize("n_batches", [2, 4])
def test_gradients_are_those_of_one_process(shared, n_batches) -> None:
    theirs = torch.load(shared / "seen.pt")["gradients"][n_batches]
    mine = joined_gradient(n_batches)
    assert theirs.keys() == mine.keys()
    for name, gradient in mine.items():
        torch.testing.assert_close(theirs[name], gradient, **EXACT, msg=name)
    assert max(gradient.abs().max() for gradient in mine.values()) > 1e-3


def test_gradients_of_batches_are_those_of_the_joined_batch() -> None:
    recipe = small_recipe(dropout=0.0)
    batches = next(small_steps(recipe).starting_at(1))
    n_tokens = sum(batch.n_tokens for batch in batches)
    model = small_model(recipe).double()
    rows: dict[str, list[torch.Tensor]] = {"src": [], "tgt_in": [], "tgt_out": []}
    for batch in batches:
        for name, tensors in rows.items():
            tensors.extend(getattr(batch, name))
    padded = (torch.nn.utils.rnn.pad_sequence(t, True) for t in rows.values())
    joined = Batch(*padded, n_tokens)
    (batch_loss(model, joined, recipe.training.smoothing) / n_tokens).backward()
    wanted = {n: p.grad.clone() for n, p in model.named_parameters()}
    model.zero_grad()
    for batch in batches:
        (batch_loss(model, batch, recipe.training.smoothing) / n_tokens).backward()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.grad, wanted[name], **EXACT)


@pytest.mark.slow
def test_a_shared_run_ends_like_a_run_of_one_process(shared, tmp_path) -> None:
    model = small_fit(tmp_path)
    mine, theirs = read_log(tmp_path), read_log(shared / "run")
    assert len(theirs) == len(mine) > N_STEPS  # only one process writes
    for my_line, line in zip(mine, theirs, strict=True):
        for name in my_line.keys() - {"seconds"}:
            assert line[name] == pytest.approx(my_line[name], abs=1e-4), name
    weights = torch.load(shared / "seen.pt")["weights"]
    for name, tensor in model.state_dict().items():
        # A bias of the keys adds the same number to all scores of a query, so its
        # gradient is nothing but rounding, which Adam turns into steps of full length.
        if not name.endswith("k_proj.bias"):
            torch.testing.assert_close(weights[name], tensor, rtol=0.0, atol=1e-3)
