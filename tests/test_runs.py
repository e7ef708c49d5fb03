"""Runs in folders: log, checkpoints, what is resumed, what is refused."""

import json
import math
import shutil

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

from transformer_lib.evaluation.scores import nats_per_token
from transformer_lib.model.transformer import Transformer
from transformer_lib.training import checkpoint as checkpoints
from transformer_lib.training import runs
from transformer_lib.training.checkpoint import list_checkpoints, load_checkpoint
from transformer_lib.training.loop import (
    learning_rate,
    make_optimizer,
    set_learning_rate,
    train_step,
)
from transformer_lib.training.runs import choose_precision, fit, read_log
from transformer_lib.training.trainer import StepLoader, TranslationModule


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """One whole run: its folder and its model."""
    folder = tmp_path_factory.mktemp("run")
    return folder, small_fit(folder)


def test_lightning_trains_as_the_plain_loop_does(tmp_path) -> None:
    recipe = small_recipe(dropout=0.0, average=1)
    by_lightning, plain = small_model(recipe), small_model(recipe).train()
    fit(by_lightning, recipe, small_steps(recipe), small_valid(), tmp_path)
    optimizer = make_optimizer(plain)
    for step in StepLoader(small_steps(recipe), N_STEPS):
        set_learning_rate(optimizer, learning_rate(step.number, 16, 4))
        batches = [batch for _, batch in step.batches]
        train_step(plain, optimizer, batches, max_norm=1.0)
    for mine, theirs in zip(by_lightning.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0.0, atol=1e-6)


def test_every_step_and_every_look_at_validation_is_in_the_log(run) -> None:
    log = read_log(run[0])
    steps = [line["step"] for line in log if "train_nats" in line]
    looks = [line["step"] for line in log if "valid_nats" in line]
    assert steps == list(range(1, N_STEPS + 1))
    assert looks == list(range(SAVE_EVERY, N_STEPS + 1, SAVE_EVERY))
    assert log[0]["rate"] == pytest.approx(learning_rate(1, 16, 4))
    assert all(a["seconds"] <= b["seconds"] for a, b in zip(log, log[1:], strict=False))


def test_the_logged_losses_are_those_of_the_model(run) -> None:
    log, recipe = read_log(run[0]), small_recipe()
    module = TranslationModule(small_model(recipe), recipe)
    state = load_checkpoint(list_checkpoints(run[0] / "checkpoints")[-1])
    module.load_state_dict(state["state_dict"])
    nats = nats_per_token(module.model, small_valid())
    assert log[-1]["valid_nats"] == pytest.approx(nats, rel=1e-5)
    assert log[-1]["valid_nats"] < log[SAVE_EVERY]["valid_nats"]  # it has learned


def test_the_model_ends_as_the_mean_of_the_last_checkpoints(run) -> None:
    folder, model = run
    states = [load_checkpoint(path)["state_dict"]
              for path in list_checkpoints(folder / "checkpoints")]  # fmt: skip
    assert len(states) == 2
    mean = (states[0]["model.lm_head.weight"] + states[1]["model.lm_head.weight"]) / 2
    torch.testing.assert_close(model.lm_head.weight.detach(), mean)
    assert not torch.equal(states[0]["model.lm_head.weight"], mean)


def test_a_finished_run_is_not_trained_on(run) -> None:
    folder, model = run
    before = read_log(folder)
    again = small_fit(folder)
    assert read_log(folder) == before
    for mine, theirs in zip(again.parameters(), model.parameters(), strict=True):
        assert torch.equal(mine, theirs)


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


def test_training_that_diverges_stops(tmp_path) -> None:
    recipe = small_recipe()
    model = small_model(recipe)
    with torch.no_grad():
        model.lm_head.weight[5, 0] = math.nan
    with pytest.raises(ValueError, match="gradient's norm is nan"):
        fit(model, recipe, small_steps(recipe), small_valid(), tmp_path)


def test_a_full_disk_stops_the_run_and_keeps_the_last_checkpoint(
    tmp_path, monkeypatch
) -> None:
    rename, n_calls = checkpoints._rename, []

    def fail(*paths: object) -> None:
        n_calls.append(paths)
        if len(n_calls) > 2:
            raise OSError("No space left on device")
        rename(*paths)

    monkeypatch.setattr(checkpoints, "_rename", fail)
    with pytest.raises(OSError, match="No space left"):
        small_fit(tmp_path)
    [kept] = list_checkpoints(tmp_path / "checkpoints")
    assert load_checkpoint(kept)["global_step"] == SAVE_EVERY


def test_a_run_in_bfloat16_goes_on_as_if_it_had_not_stopped(
    run, tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr(runs, "choose_precision", lambda wanted: "bf16-mixed")
    whole = small_fit(tmp_path).state_dict()
    shutil.rmtree(list_checkpoints(tmp_path / "checkpoints")[-1])
    resumed = small_fit(tmp_path).state_dict()
    assert all(torch.equal(resumed[name], whole[name]) for name in whole)
    in_float32 = run[1].state_dict()
    assert any(not torch.equal(in_float32[name], whole[name]) for name in whole)


def test_dropout_of_a_batch_follows_from_its_number_alone() -> None:
    recipe = small_recipe()
    module = TranslationModule(small_model(recipe), recipe)
    torch.manual_seed(3)
    expected = torch.rand(1)

    def draw(number: int, place: int) -> float:
        with module.own_dropout(number, place):
            return torch.rand(1).item()

    torch.manual_seed(3)
    draws = {(n, p): draw(n, p) for n in (1, 2, 3) for p in (0, 1)}
    assert torch.equal(torch.rand(1), expected)  # others' random numbers stay the same
    assert draws == {key: draw(*key) for key in draws}
    assert len(set(draws.values())) == len(draws)


def test_the_log_is_plain_json(run) -> None:
    lines = (run[0] / "metrics.jsonl").read_text().splitlines()
    assert all(math.isfinite(x) for line in lines for x in json.loads(line).values())


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


def test_a_pytorch_that_cannot_tell_trains_in_single_precision(monkeypatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.delattr(torch.cpu, "get_capabilities", raising=False)
    assert choose_precision() == "32-true"
