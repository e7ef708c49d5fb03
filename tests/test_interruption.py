"""The command that trains, stopped by a signal or started twice."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from transformer_lib.cli.train import main
from transformer_lib.training.interruption import (
    LOCK,
    SIGNALS,
    Interrupted,
    Interruption,
    alone_in,
    stopped_at_once,
)
from transformer_lib.training.run import LOG, read_log

RECIPE = """
[data]
corpus = "grammar"
tokens = "words"
max_len = 30
[model]
d_model = 16
n_heads = 2
d_ff = 16
n_encoder_layers = 1
n_decoder_layers = 1
max_len = 40
[training]
steps = 6000
save_every = 2000
batch_tokens = 200
warmup = 10
precision = "float32"
"""


@pytest.fixture
def start(tmp_path):
    """Start the command in a process of its own; it is stopped in the end."""
    (tmp_path / "small.toml").write_text(RECIPE)
    processes = []

    def start(*options: str) -> subprocess.Popen:
        command = [sys.executable, "-m", "transformer_lib", "train", "--config",
                   "small.toml", "--out", "run", *options]  # fmt: skip
        process = subprocess.Popen(
            command,
            cwd=tmp_path,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def wait_for_step(folder: Path, step: int) -> None:
    end = time.monotonic() + 120
    while not (folder / LOG).exists() or len(read_log(folder)) < step:
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.slow
def test_a_signal_saves_the_state_and_says_how_to_go_on(start, tmp_path) -> None:
    run = tmp_path / "run"
    process, step = start("--quiet"), 0
    for number, code in (signal.SIGTERM, 143), (signal.SIGINT, 130):
        wait_for_step(run, step + 3)
        process.send_signal(number)
        out, said = process.communicate(timeout=120)
        assert process.returncode == code
        assert out == ""
        step = read_log(run)[-1]["step"]
        last = (
            f"interrupted by {number.name} after step {step}: the state is saved in "
            "run; the same command with --resume continues from there"
        )
        assert said.splitlines()[-1] == last
        assert (run / "checkpoints" / f"step-{step:08d}.pt").exists()
        process = start("--quiet", "--resume")
    wait_for_step(run, step + 1)
    steps = [line["step"] for line in read_log(run) if "train_nats" in line]
    assert steps == [*range(1, len(steps) + 1)], "none is missing, none is doubled"


@pytest.mark.slow
def test_a_run_is_resumed_once_at_a_time(start, tmp_path) -> None:
    first = start("--quiet")
    wait_for_step(tmp_path / "run", 2)
    first.send_signal(signal.SIGSTOP)
    second = start("--quiet", "--resume")
    _, said = second.communicate(timeout=120)
    assert second.returncode == 1
    assert "error: another process works on the run in run" in said
    first.kill()  # its lock dies with it
    first.wait()
    n_lines = len(read_log(tmp_path / "run"))
    start("--quiet", "--resume")
    wait_for_step(tmp_path / "run", n_lines + 1)


def test_a_folder_is_free_again_after_the_block(tmp_path) -> None:
    with alone_in(tmp_path / "all" / "runs" / "run"):
        pass
    with alone_in(tmp_path / "run"):
        second = alone_in(tmp_path / "run")
        with pytest.raises(BlockingIOError, match="another process works on the run"):
            second.__enter__()
        assert (tmp_path / "run" / LOCK).exists()
    with alone_in(tmp_path / "run"):
        pass


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("n_decoder_layers = 1", "n_decoder_layers = 0", "translator needs at least 1"),
        ("max_len = 40", "max_len = 20", "max_len = 20 is less than max_len = 30 of"),
        ("max_len = 40", "pad_id = 7", "pad_id follows from the data and can't be set"),
        ("warmup = 10", "warmup = 0", "warmup = 0: input should be greater than"),
        ("warmup = 10", "smoothing = 1.0", "smoothing = 1.0: input should be les"),
        ("warmup = 10", "max_norm = -1", "max_norm = -1: input should be greater than"),
        ("warmup = 10", "max_norm = nan", "max_norm = nan: input should be a finite"),
        ("warmup = 10", "rate_scale = inf", "rate_scale = inf: input should be a fini"),
        ("max_len", "max_len = 6  #", "test sentence 1 has 8 tokens, but the model's"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_refused_before_the_folder_is_made(
    tmp_path, old, new, message
) -> None:
    recipe = tmp_path / "small.toml"
    recipe.write_text(RECIPE.replace(old, new))
    folder = tmp_path / "run"
    with pytest.raises(SystemExit) as caught:
        main(["--config", str(recipe), "--out", str(folder), "--quiet"])
    assert message in caught.value.code and caught.value.code.startswith("error: ")
    assert not folder.exists()


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_stops_at_once_where_nothing_is_to_be_saved(number) -> None:
    before = [signal.getsignal(each) for each in SIGNALS]
    with pytest.raises(Interrupted) as caught, stopped_at_once():
        os.kill(os.getpid(), number)
    assert (caught.value.exit_code, caught.value.step) == (128 + number, None)
    assert [signal.getsignal(each) for each in SIGNALS] == before


@pytest.mark.parametrize("block", [Interruption, stopped_at_once])
def test_another_thread_leaves_the_signals_alone(block) -> None:
    before = [signal.getsignal(each) for each in SIGNALS]
    inside = []

    def work() -> None:
        with block():
            inside.extend(signal.getsignal(each) for each in SIGNALS)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert inside == before


def test_the_second_signal_is_not_only_noted() -> None:
    before = [signal.getsignal(each) for each in SIGNALS]
    with (
        pytest.raises(KeyboardInterrupt, match="interrupted by SIGINT") as caught,
        Interruption() as interruption,
    ):
        os.kill(os.getpid(), signal.SIGTERM)
        assert interruption.asked == signal.SIGTERM
        os.kill(os.getpid(), signal.SIGINT)
    assert caught.value.exit_code == 130
    assert [signal.getsignal(each) for each in SIGNALS] == before
