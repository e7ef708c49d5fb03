"""The commands as a shell sees them: what they print and how they exit."""

import re
import subprocess
import sys

import pytest

from book_tools.toc import ROOT

COMMANDS = ("translate", "train", "score")


def command(*words: str) -> subprocess.CompletedProcess:
    run = [sys.executable, "-m", "transformer_lib", *words]
    return subprocess.run(run, cwd=ROOT, capture_output=True, text=True)


@pytest.mark.parametrize("words", [[], ["--help"]])
def test_without_a_command_the_help_lists_them(words) -> None:
    done = command(*words)
    assert done.returncode == 0
    listed = re.findall(r"^    (\w+)\s+(\w+)", done.stdout, re.MULTILINE)
    assert [name for name, _ in listed] == list(COMMANDS)


@pytest.mark.parametrize("word", ["judge", "--beams"])
def test_an_unknown_command_is_answered_with_those_there_are(word) -> None:
    done = command(word, "the cat")
    assert done.returncode == 2
    assert done.stdout == ""
    assert all(name in done.stderr for name in COMMANDS)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("translate", ["sentence", "--model", "--beams", "multi30k-de-en"]),
        ("train", ["--config", "--out", "--resume", "--quiet"]),
        ("score", ["model"]),
    ],
)
def test_each_command_explains_its_options(name, options) -> None:
    done = command(name, "--help")
    assert done.returncode == 0
    assert done.stdout.startswith(f"usage: python -m transformer_lib {name} ")
    assert all(option in done.stdout for option in options)


def test_a_sentence_is_translated() -> None:
    done = command(
        "translate", "--model", "grammar", "--beams", "1", "der Hund schläft"
    )
    assert (done.returncode, done.stdout) == (0, "the dog sleeps\n")


def test_an_option_that_does_not_exist_is_refused() -> None:
    done = command("translate", "--beam-size", "4", "der Hund schläft")
    assert done.returncode == 2
    assert "unrecognized arguments: --beam-size" in done.stderr
