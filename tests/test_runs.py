"""Runs in folders: checkpoints, log, what is resumed, what is refused."""

import os
from pathlib import Path

import pytest
import torch
from filelock import FileLock
from small_run import (
    N_STEPS,
    SAVE_EVERY,
    read_log,
    small_fit,
    small_model,
    small_pairs,
    small_recipe,
    small_steps,
    small_valid,
)

from transformer_lib import Transformer, learning_rate
from transformer_lib.evaluation import nats_per_token
from transformer_lib.runs import fit, load_checkpoint
from transformer_lib.runs import run as runs
from transformer_lib.runs.checkpoint import list_checkpoints, save_checkpoint
from transformer_lib.runs.run import choose_device
from transformer_lib.training import batch_loss, make_optimizer, train_step
from transformer_lib.training.schedule import set_learning_rate


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


def test_a_run_takes_the_steps_of_the_plain_loop(tmp_path):
    recipe = small_recipe(dropout=0.0, average=1)
    in_folder, plain = small_model(recipe), small_model(recipe).train()
    fit(in_folder, recipe, small_steps(recipe), small_valid(), tmp_path)
    optimizer = make_optimizer(plain)
    steps = small_steps(recipe).starting_at(1)
    for number, batches in zip(range(1, N_STEPS + 1), steps, strict=False):
        set_learning_rate(optimizer, learning_rate(number, 16, 4))
        train_step(plain, optimizer, batch_loss, batches, max_norm=1.0)
    assert_same(in_folder, plain)


def test_every_step_and_every_validation_loss_is_in_the_log(run):
    folder, log = run[0], read_log(run[0])
    steps = [line["step"] for line in log if "train_nats" in line]
    looks = [line["step"] for line in log if "valid_nats" in line]
    assert steps == list(range(1, N_STEPS + 1))
    assert looks == list(range(SAVE_EVERY, N_STEPS + 1, SAVE_EVERY))
    assert log[0]["rate"] == pytest.approx(learning_rate(1, 16, 4))
    model = small_model(small_recipe())
    model.load_state_dict(states(folder)[-1]["model"])
    nats = nats_per_token(model, small_valid())
    assert log[-1]["valid_nats"] == pytest.approx(nats, rel=1e-5)
    assert log[-1]["valid_nats"] < log[SAVE_EVERY]["valid_nats"]  # it has learned


def test_the_model_ends_as_the_mean_of_the_last_checkpoints(run, tmp_path):
    folder, model = run
    heads = [state["model"]["lm_head.weight"] for state in states(folder)]
    mean = (heads[0] + heads[1]) / 2
    torch.testing.assert_close(model.lm_head.weight.detach(), mean)
    assert not torch.equal(heads[0], mean)
    small_fit(tmp_path, save_every=2, average=3)
    assert [state["step"] for state in states(tmp_path)] == [4, 6, 8]


def test_a_finished_run_is_not_trained_on(run):
    before = read_log(run[0])
    assert_same(small_fit(run[0]), run[1])
    assert read_log(run[0]) == before


def test_a_run_in_bfloat16_resumes_as_if_it_had_not_stopped(run, tmp_path, monkeypatch):
    mixed = torch.device("cpu"), torch.bfloat16
    monkeypatch.setattr(runs, "choose_device", lambda *_: mixed)
    whole = small_fit(tmp_path)
    list_checkpoints(tmp_path / "checkpoints")[-1].unlink()
    assert_same(small_fit(tmp_path), whole)
    pairs = zip(whole.parameters(), run[1].parameters(), strict=True)
    assert any(not torch.equal(one, other) for one, other in pairs)  # in float32


@pytest.mark.parametrize(
    ("able", "dtype"),
    [
        ({"avx512_bf16": True, "amx_bf16": False}, torch.bfloat16),
        ({"amx_bf16": True}, torch.bfloat16),
        ({"avx512_f": True}, torch.float32),
    ],
)
def test_a_processor_trains_in_bfloat16_if_it_can(monkeypatch, able, dtype):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: able, raising=False)
    assert choose_device("auto") == (torch.device("cpu"), dtype)
    assert choose_device("float32") == (torch.device("cpu"), torch.float32)


# --- what may not be resumed ----------------------------------------------------------


def other_data(folder: Path) -> None:
    sources, targets = zip(*small_pairs(), strict=True)
    small_fit(folder, list(zip(sources, [*targets[1:], targets[0]], strict=True)))


def changed(file: str, content: bytes | dict):
    """Resume with other bytes in a file, or another value in a checkpoint."""

    def resume(folder: Path) -> None:
        path = folder / file
        whole = path.read_bytes()
        if isinstance(content, dict):
            save_checkpoint(path, load_checkpoint(path) | content)
        else:
            path.write_bytes(content)
        try:
            small_fit(folder)
        finally:
            path.write_bytes(whole)

    return resume


def without_recipe(folder: Path) -> None:
    whole = (folder / "recipe.json").rename(folder / "elsewhere.json")
    try:
        small_fit(folder, warmup=5)  # it went on, with another recipe
    finally:
        whole.rename(folder / "recipe.json")


LAST = f"checkpoints/step-{N_STEPS:08d}.pt"


@pytest.mark.parametrize(
    ("resume", "message"),
    [
        (lambda folder: small_fit(folder, warmup=5), "warmup is 4 in one and 5 in the"),
        (without_recipe, r"holds checkpoints, but no recipe\.json"),
        (other_data, r"step-00000008\.pt does not fit .* other training data"),
        (changed(LAST, {"model": {}}), r"8\.pt does not fit this run: E.* Missing k"),
        (changed(LAST, {"optimizer": {}}), r"step-00000008\.pt does not fit this run"),
        (changed(LAST, b""), r"step-00000008\.pt is no checkpoint, or damaged: "),
    ],
)
def test_what_does_not_belong_to_a_run_is_named(run, resume, message):
    with pytest.raises(ValueError, match=message) as caught:
        resume(run[0])
    assert "\n" not in str(caught.value)
    assert_same(small_fit(run[0]), run[1])  # nothing was changed


def test_log_lines_after_the_checkpoint_are_written_anew(run, tmp_path):
    small_fit(tmp_path)
    list_checkpoints(tmp_path / "checkpoints")[-1].unlink()
    path = tmp_path / "metrics.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:7]) + '{"st')
    small_fit(tmp_path)
    logs = (read_log(folder) for folder in (run[0], tmp_path))
    one, other = ([{**line, "seconds": 0} for line in log] for log in logs)
    assert one == other


def test_a_folder_is_used_by_one_run_at_a_time(tmp_path):
    another = pytest.raises(BlockingIOError, match=f"another process .* in {tmp_path}")
    with FileLock(tmp_path / ".lock"), another:
        small_fit(tmp_path)
    small_fit(tmp_path)  # neither lock is left


# --- checkpoints ----------------------------------------------------------------------


def test_one_wrong_bit_is_noticed(tmp_path):
    path = tmp_path / "a.pt"
    save_checkpoint(path, {"weights": torch.ones(15)})
    data = bytearray(path.read_bytes())
    data[data.index(torch.ones(15).numpy().tobytes())] ^= 1
    path.write_bytes(data)
    torch.load(path, weights_only=True)  # torch itself doesn't notice
    with pytest.raises(ValueError, match=r"a\.pt is no .*: the checksum of archive"):
        load_checkpoint(path)


class Trap:
    def __reduce__(self):
        return Path.touch, (Path("sprung"),)


@pytest.mark.parametrize("content", [{"weights": Trap()}, {"format": "x 2"}, [1], {}])
def test_what_is_no_checkpoint_is_refused_and_runs_no_code(
    tmp_path, monkeypatch, content
):
    monkeypatch.chdir(tmp_path)
    torch.save(content, "other.pt")
    with pytest.raises(ValueError, match=r"other\.pt is no checkpoint, or damaged: .+"):
        load_checkpoint(Path("other.pt"))
    assert os.listdir() == ["other.pt"]
