"""The lists of versions agree, and each way in which they could drift is noticed."""

import json
import shutil
import subprocess

import pytest
import version_rules
from version_rules import LOCKED, LOWEST

from book._ext.toc import ROOT

LISTS = ["pyproject.toml", LOWEST, *LOCKED, *LOCKED.values()]
DRIFT = [  # a list, what is changed in it, what is said
    ("pyproject.toml", '"pyyaml>=6.0"', '"pyyaml>=6.1"', "pyyaml: from 6.1 on, but"),
    (
        "pyproject.toml",
        '"tqdm>=4.65"',
        '"rich>=1.0"',
        "rich is not in requirements.txt",
    ),
    ("pyproject.toml", '"tqdm>=4.65"', '"tqdm>=99"', "but from 99 on"),
    (LOWEST, "torch==2.6.0\n", "", "torch: from 2.6 on, but None"),
    (LOWEST, "torch==2.6.0\n", "torch==2.6.0\nlxml==1.0\n", "lxml: from None on"),
    ("requirements.txt", "pandas==", "pandas==9", "pandas: 9"),
    ("requirements.txt", "uv==", "a-package==1.0\nuv==", "a-package: 1.0"),
    ("requirements-test.txt", "ruff==", "ruff==9", "in requirements-test.txt, "),
    ("requirements.lock", "\nnumpy==", "\nnumpy==9", "in requirements.lock"),
    ("requirements.lock", "\nanyio==", "\nanyio==9", "in one lock"),
    ("requirements-test.lock", "\nruff==", "\nruff-x==", "None in requirements-test"),
    ("requirements-test.lock", "\nruff==", "\n\nbare==1.0\nruff==", "no hash for bare"),
    ("requirements.lock", "# ", "--index-url https://x\n# ", "names a place"),
]


@pytest.fixture
def copies(tmp_path):
    (tmp_path / LOWEST).parent.mkdir(parents=True)
    for name in LISTS:
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_the_lists_of_versions_agree():
    assert version_rules.complaints(ROOT) == []


@pytest.mark.parametrize(("name", "old", "new", "said"), DRIFT)
def test_each_kind_of_drift_is_noticed(copies, name, old, new, said):
    before = {*version_rules.complaints(copies)}
    text = (copies / name).read_text(encoding="utf-8")
    assert old in text
    (copies / name).write_text(text.replace(old, new, 1), encoding="utf-8")
    assert any(
        said in text for text in set(version_rules.complaints(copies)) - {*before}
    )


def test_the_license_beside_python_names_the_version_of_the_pages():
    machine = ROOT / "book" / "machine"
    package, terms = (
        (machine / name).read_text(encoding="utf-8")
        for name in ("package.json", "pyodide/LICENSE.txt")
    )
    version = json.loads(package)["devDependencies"]["pyodide"]
    assert f"Pyodide {version}, " in terms


@pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")
def test_the_locks_can_be_written_in_a_fresh_clone(copies):
    shutil.copy(ROOT / "Makefile", copies)
    for name in ("ready", "uv"):  # what was installed
        (copies / name).write_text("#!/bin/sh\n")
        (copies / name).chmod(0o755)
    command = ["make", "lock", f"BIN={copies}", f"READY={copies / 'ready'}"]
    subprocess.run(command, cwd=copies, check=True, capture_output=True)
