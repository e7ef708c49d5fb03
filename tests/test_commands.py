"""The commands as a shell sees them: what they print and how they exit."""

import re
import subprocess
import sys

import pytest

from book_tools.toc import ROOT

COMMANDS = ("translate", "train", "score", "export")


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
    assert "exit codes: 0 done; 1 refused or failed" in done.stdout


def test_a_sentence_is_translated() -> None:
    done = command(
        "translate", "--model", "grammar", "--beams", "1", "der Hund schläft"
    )
    assert (done.returncode, done.stdout) == (0, "the dog sleeps\n")


def test_an_option_that_does_not_exist_is_refused() -> None:
    done = command("translate", "--beam-size", "4", "der Hund schläft")
    assert done.returncode == 2
    assert "unrecognized arguments: --beam-size" in done.stderr


@pytest.mark.slow
def test_terms_that_are_not_open_are_told() -> None:
    done = command("translate", "--model", "multi30k-de-en", "Ein Hund.")
    assert done.stderr.startswith("The terms of multi30k-de-en: the publishers allow ")
    assert "research and education" in done.stderr
    listed = command("translate", "--help").stdout
    assert "  home-assistant: Apache License 2.0; the notice is beside" in listed
    free = command("translate", "Das Licht ist an.")
    assert (free.stdout, free.stderr) == ("The light is on.\n", "")


# --- streams ---------------------------------------------------------------------


def shell(line: str, given: bytes = b"") -> subprocess.CompletedProcess:
    """Run a line in which TRANSLATE stands for the command with the smallest model."""
    words = f"{sys.executable} -m transformer_lib translate --model grammar --beams 1"
    return subprocess.run(
        ["bash", "-c", line.replace("TRANSLATE", words)],
        cwd=ROOT,
        input=given,
        capture_output=True,
    )


ERRORS = {
    "TRANSLATE <&-": "there is no sentence, and standard input is closed",
    "TRANSLATE 'der Hund' >&-": "standard output is closed",
    "TRANSLATE 'der Hund' >/dev/full": "standard output: No space left on device",
    "printf 'der Hund\\nder B\\xe4r\\n' | TRANSLATE": (
        "standard input, line 2: no UTF-8: "
        "'utf-8' codec can't decode byte 0xe4 in position 5: invalid continuation byte"
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("line", ERRORS)
def test_a_stream_that_fails_is_one_line_and_exit_code_1(line) -> None:
    done = shell(line)
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.decode() == f"error: {ERRORS[line]}\n"


@pytest.mark.slow
def test_a_reader_that_stops_reading_gets_no_traceback() -> None:
    """More lines than a pipe holds, and a reader of one."""
    sentences = b"der Hund schl\xc3\xa4ft\n" * 5_000
    done = shell("set -o pipefail; TRANSLATE | head -n 1", sentences)
    assert done.stdout == b"the dog sleeps\n"
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.slow
def test_lines_of_standard_input_are_translated() -> None:
    done = shell("TRANSLATE", "der Hund schläft\r\nder Hund schläft".encode())
    assert done.stdout == b"the dog sleeps\n" * 2
