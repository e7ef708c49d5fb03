"""Runs in folders: log, checkpoints, what is resumed, what is refused."""

import json
import logging
import math
import os
import shutil
import signal
import subprocess
import sys
from unittest.mock import Mock

import pytest
import torch
from small_run import (
    N_STEPS,
    SAVE_EVERY,
    small_fit,
    small_model,
    small_recipe,
    small_steps,
    small_valid,
)
from test_checkpoints import OLD_RUN

from transformer_lib.evaluation.scores import nats_per_token
from transformer_lib.model.transformer import Transformer
from transformer_lib.training import lightning_trainer
from transformer_lib.training.checkpoint import list_checkpoints, load_checkpoint
from transformer_lib.training.interruption import Interrupted
from transformer_lib.training.lightning_trainer import (
    LightningTrainer,
    choose_precision,
    make_fabric,
)
from transformer_lib.training.loop import train_step
from transformer_lib.training.loss import batch_loss
from transformer_lib.training.run import Log, claim, is_first_process, read_log
from transformer_lib.training.schedule import (
    learning_rate,
    make_optimizer,
    set_learning_rate,
)
from transformer_lib.training.translation import fit


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """One whole run: its folder and its model."""
    folder = tmp_path_factory.mktemp("run")
    return folder, small_fit(folder)


def states(folder) -> list[dict]:
    return [load_checkpoint(p) for p in list_checkpoints(folder / "checkpoints")]


def assert_same(one: Transformer, other: Transformer) -> None:
    for mine, theirs in zip(one.parameters(), other.parameters(), strict=True):
        assert torch.equal(mine, theirs)


def test_a_run_takes_the_steps_of_the_plain_loop(tmp_path) -> None:
    recipe = small_recipe(dropout=0.0, average=1)
    in_folder, plain = small_model(recipe), small_model(recipe).train()
    fit(in_folder, recipe, small_steps(recipe), small_valid(), tmp_path)
    optimizer = make_optimizer(plain)
    steps = small_steps(recipe).starting_at(1)
    for number, batches in zip(range(1, N_STEPS + 1), steps, strict=False):
        set_learning_rate(optimizer, learning_rate(number, 16, 4))
        train_step(plain, optimizer, batch_loss, batches, max_norm=1.0)
    assert_same(in_folder, plain)


def test_every_step_and_every_validation_loss_is_in_the_log(run) -> None:
    log = read_log(run[0])
    steps = [line["step"] for line in log if "train_nats" in line]
    looks = [line["step"] for line in log if "valid_nats" in line]
    assert steps == list(range(1, N_STEPS + 1))
    assert looks == list(range(SAVE_EVERY, N_STEPS + 1, SAVE_EVERY))
    assert log[0]["rate"] == pytest.approx(learning_rate(1, 16, 4))
    assert all(a["seconds"] <= b["seconds"] for a, b in zip(log, log[1:], strict=False))


def test_the_logged_losses_are_those_of_the_model(run) -> None:
    log, model = read_log(run[0]), small_model(small_recipe())
    model.load_state_dict(states(run[0])[-1]["model"])
    nats = nats_per_token(model, small_valid())
    assert log[-1]["valid_nats"] == pytest.approx(nats, rel=1e-5)
    assert log[-1]["valid_nats"] < log[SAVE_EVERY]["valid_nats"]  # it has learned


def test_the_model_ends_as_the_mean_of_the_last_checkpoints(run) -> None:
    folder, model = run
    heads = [state["model"]["lm_head.weight"] for state in states(folder)]
    assert len(heads) == 2
    mean = (heads[0] + heads[1]) / 2
    torch.testing.assert_close(model.lm_head.weight.detach(), mean)
    assert not torch.equal(heads[0], mean)


def test_a_finished_run_is_not_trained_on(run) -> None:
    folder, model = run
    before = read_log(folder)
    assert_same(small_fit(folder), model)
    assert read_log(folder) == before


def test_a_run_of_the_first_edition_is_resumed(run, tmp_path) -> None:
    shutil.copytree(OLD_RUN, tmp_path, dirs_exist_ok=True)
    resumed = small_fit(tmp_path)
    # Its first half was computed elsewhere, where sums may be rounded otherwise. Adam
    # blows that up in the biases of keys, which have no gradient but such noise, and
    # which softmax takes out again.
    src, tgt_in = torch.tensor([[5, 6, 7, 2]]), torch.tensor([[1, 8, 9]])
    logits = run[1].eval()(src, tgt_in)
    torch.testing.assert_close(resumed.eval()(src, tgt_in), logits, rtol=0, atol=1e-3)
    half = load_checkpoint(OLD_RUN / "checkpoints" / "step-00000004")["model"]
    resumed.load_state_dict(half)
    assert (resumed(src, tgt_in) - logits).abs().max() > 0.1, "it was trained on"
    names = [path.name for path in list_checkpoints(tmp_path / "checkpoints")]
    assert names == ["step-00000004", "step-00000008.pt"]
    steps = [line["step"] for line in read_log(tmp_path)]  # it had lines up to 8
    assert steps == [line["step"] for line in read_log(run[0])]


def test_a_log_line_cut_off_by_a_kill_is_passed_over(tmp_path) -> None:
    (tmp_path / "metrics.jsonl").write_text('{"step": 1}\n{"step": 2, "tra')
    assert read_log(tmp_path) == [{"step": 1}]


def test_a_run_with_another_recipe_is_refused(run) -> None:
    with pytest.raises(ValueError, match="warmup is 4 in one and 5 in the other"):
        small_fit(run[0], warmup=5)


def test_a_run_with_another_vocabulary_is_refused(run) -> None:
    recipe = small_recipe()
    model = Transformer(recipe.model_config(13))
    with pytest.raises(ValueError, match=r"\(12, 16\) in the checkpoint, but \(13, 16"):
        fit(model, recipe, small_steps(recipe), small_valid(), run[0])


def test_training_that_diverges_stops_and_mutes_no_logger(tmp_path) -> None:
    recipe = small_recipe()
    model = small_model(recipe)
    with torch.no_grad():
        model.lm_head.weight[5, 0] = math.nan
    loggers = [logging.getLogger(f"lightning.{part}") for part in ("pytorch", "fabric")]
    before = [logger.level for logger in loggers]
    with pytest.raises(ValueError, match="step 1: the gradient's norm is nan"):
        fit(model, recipe, small_steps(recipe), small_valid(), tmp_path)
    assert [logger.level for logger in loggers] == before


def test_a_full_disk_stops_the_run_and_keeps_the_last_checkpoint(
    run, tmp_path, monkeypatch
) -> None:
    replace = os.replace

    def fail(source, target) -> None:
        if str(target).endswith("step-00000008.pt"):
            raise OSError("No space left on device")
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fail)
        with pytest.raises(OSError, match="No space left"):
            small_fit(tmp_path)
    [kept] = states(tmp_path)
    assert kept["step"] == SAVE_EVERY
    assert_same(small_fit(tmp_path), run[1])


def test_a_run_in_bfloat16_resumes_as_if_it_had_not_stopped(
    run, tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr(lightning_trainer, "choose_precision", lambda _: "bf16-mixed")
    whole = small_fit(tmp_path)
    list_checkpoints(tmp_path / "checkpoints")[-1].unlink()
    assert_same(small_fit(tmp_path), whole)
    pairs = zip(whole.parameters(), run[1].parameters(), strict=True)
    assert any(not torch.equal(one, other) for one, other in pairs)  # in float32


@pytest.mark.parametrize("stopped_at", [3, 4])
def test_a_signal_between_two_steps_saves_the_state(
    run, tmp_path, monkeypatch, stopped_at
) -> None:
    real = LightningTrainer.step

    def step(trainer, batches):
        if trainer.n_steps + 1 == stopped_at:
            os.kill(os.getpid(), signal.SIGTERM)
        return real(trainer, batches)

    with monkeypatch.context() as patch:
        patch.setattr(LightningTrainer, "step", step)
        with pytest.raises(Interrupted) as caught:
            small_fit(tmp_path)
    assert (caught.value.number, caught.value.step) == (signal.SIGTERM, stopped_at)
    assert [state["step"] for state in states(tmp_path)] == [stopped_at]
    assert_same(small_fit(tmp_path), run[1])
    # What an interruption saved is no part of the mean, and goes with the next save.
    assert [state["step"] for state in states(tmp_path)] == [4, 8]


def test_only_the_newest_checkpoints_of_the_mean_are_kept(tmp_path) -> None:
    small_fit(tmp_path, save_every=2, average=3)
    assert [state["step"] for state in states(tmp_path)] == [4, 6, 8]


def test_the_second_of_several_processes_writes_nothing(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("RANK", "1")
    assert not is_first_process()
    Log(tmp_path, 0).write(1, rate=0.5)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setenv("RANK", "0")
    log = Log(tmp_path, 0)
    log.write(1, rate=0.5)
    [line] = read_log(tmp_path)
    assert (line["step"], line["rate"]) == (1, 0.5)
    assert 0 <= line["seconds"] < 60


def test_a_folder_with_half_a_run_is_not_taken_for_a_new_one(tmp_path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(FileExistsError, match="holds a run already; --resume resumes"):
        claim(tmp_path, small_recipe(), resume=False)


def make_trainer() -> LightningTrainer:
    recipe = small_recipe()
    model = small_model(recipe)
    fabric = make_fabric("float32")
    optimizer = make_optimizer(model)
    return LightningTrainer(model, optimizer, batch_loss, fabric=fabric, seed=5)


def test_the_loss_of_a_step_is_that_of_the_plain_loop() -> None:
    trainer, plain = make_trainer(), small_model(small_recipe())
    trainer.model.eval()  # without dropout
    batches = next(small_steps(small_recipe()).starting_at(1))
    expected = train_step(plain.eval(), make_optimizer(plain), batch_loss, batches)
    assert trainer.step(batches) == pytest.approx(expected)


def test_a_scaler_of_gradients_is_saved_and_resumed() -> None:
    trainer, resumed = make_trainer(), make_trainer()
    trainer.scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    trainer.step(next(small_steps(small_recipe()).starting_at(1)))
    trainer.scaler.scale(torch.ones(1))  # it is made when it is first used
    state = trainer.state_dict()
    assert make_trainer().state_dict()["scaler"] == {}
    resumed.load_state_dict(state)  # on a device that needs none
    resumed.scaler = torch.amp.GradScaler("cpu", init_scale=2.0)
    resumed.load_state_dict(state)
    assert resumed.scaler.get_scale() == 8.0
    assert resumed.n_steps == 1


def test_dropout_of_a_batch_follows_from_its_number_alone() -> None:
    trainer = make_trainer()
    torch.manual_seed(3)
    expected = torch.rand(1)

    def draw(step: int, index: int) -> float:
        trainer.n_steps = step
        with trainer.turn(index, is_last=True):
            return torch.rand(1).item()

    torch.manual_seed(3)
    draws = {(n, i): draw(n, i) for n in (0, 1, 2) for i in (0, 1)}
    assert torch.equal(torch.rand(1), expected)  # others' random numbers stay the same
    assert draws == {key: draw(*key) for key in draws}
    assert len(set(draws.values())) == len(draws)


def test_a_step_that_overflows_in_float16_is_skipped() -> None:
    trainer = make_trainer()
    batches = next(small_steps(small_recipe()).starting_at(1))
    with torch.no_grad():
        trainer.model.module.lm_head.weight[5, 0] = math.inf
    with pytest.raises(ValueError, match="training diverged"):
        trainer.step(batches)
    trainer.skips_overflow = True  # as with a gradient scaler, which a CPU lacks
    trainer.step(batches)
    assert trainer.n_steps == 1


def test_the_log_is_plain_json(run) -> None:
    lines = (run[0] / "metrics.jsonl").read_text().splitlines()
    assert all(math.isfinite(x) for line in lines for x in json.loads(line).values())


@pytest.mark.slow
def test_lightning_is_imported_by_runs_only() -> None:
    code = (
        "import sys, transformer_lib.training.translation, "
        "transformer_lib.training.classification\n"
        "assert not [name for name in sys.modules if name.startswith('lightning')]"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("able", "precision"),
    [
        ({"avx512_bf16": True, "amx_bf16": False}, "bf16-mixed"),
        ({"amx_bf16": True}, "bf16-mixed"),
        ({"avx512_f": True}, "32-true"),
        ({}, "32-true"),
    ],
)
def test_a_processor_trains_in_bfloat16_if_it_can(monkeypatch, able, precision) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: able, raising=False)
    assert choose_precision("auto") == precision
    assert choose_precision("float32") == "32-true"


@pytest.mark.parametrize(
    ("capability", "precision"),
    [((9, 0), "bf16-mixed"), ((8, 0), "bf16-mixed"), ((7, 5), "16-mixed")],
)
def test_a_gpu_trains_in_the_16_bits_that_it_has(
    monkeypatch, capability, precision
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: capability)
    assert choose_precision("auto") == precision
    assert choose_precision("float32") == "32-true"


@pytest.mark.parametrize(
    ("processes", "expected"),
    [
        ({}, {"devices": 1, "num_nodes": 1, "strategy": "auto"}),
        (
            {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"},
            {"devices": 2, "num_nodes": 1, "strategy": "ddp"},
        ),
        (
            {"WORLD_SIZE": "6", "LOCAL_WORLD_SIZE": "2"},
            {"devices": 2, "num_nodes": 3, "strategy": "ddp"},
        ),
    ],
)
def test_fabric_is_told_of_all_processes(monkeypatch, processes, expected) -> None:
    for name, value in processes.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(lightning_trainer, "Fabric", Mock())
    fabric = make_fabric("float32")
    fabric.launch.assert_called_once_with()
    given = lightning_trainer.Fabric.call_args.kwargs
    assert given == {"accelerator": "auto", "precision": "32-true", **expected}


def test_a_pytorch_that_cannot_tell_trains_in_single_precision(monkeypatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.delattr(torch.cpu, "get_capabilities", raising=False)
    assert choose_precision() == "32-true"
