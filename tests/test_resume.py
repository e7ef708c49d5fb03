"""A run stopped anywhere and resumed equals the undisturbed one, bit for bit."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1"}  # the children are forked


@pytest.mark.slow
def test_stopped_runs_end_as_the_undisturbed_one(tmp_path) -> None:
    command = [sys.executable, HERE / "killed_runs.py", tmp_path]
    done = subprocess.run(
        command, env=ONE_THREAD, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    runs = [json.loads(line) for line in done.stdout.splitlines()]
    # Every step, validation, write and clean-up; then random moments of both kinds.
    assert len(runs) == 18 + 2 * (10 + 5 + 5)
    codes = {"SIGTERM": 143, "SIGINT": 130}
    for run in runs:
        expected = codes.get(run["place"].split("-")[0], -9)
        assert run["codes"] == [expected, 0], run  # it was stopped, then ended well
        assert run["same"], run
    progress = {run["lines"] for run in runs if run["place"].startswith("SIG")}
    assert len(progress) > 5  # the moments do differ
