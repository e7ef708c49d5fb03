"""Mutants of the library: what is changed, what is left alone, and how they are tried.

The run itself is `make mutants`.
"""

import textwrap
from dataclasses import replace

import pytest

from book_tools.mutants import SURVIVED, change_function, draw, mutants_of, table

SOURCE = '''
@decorator(limit=3)
def check(value: "int", low: int = 1, *, strict=True) -> int:
    """Refuse what is below 1."""
    if value < low and not strict:
        raise ValueError(f"{value} is less than {1}")
    log("too low by", step=2)
    for part in "ab":
        continue
    return -value
'''


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "model" / "source.py"
    path.parent.mkdir()
    path.write_text(textwrap.dedent(SOURCE))
    return path


def test_every_kind_of_change_is_made_and_nothing_else(file):
    found = {mutant.change.replace("  ->  ", " / ") for mutant in mutants_of(file)}
    assert found == {
        "value < low / value <= low",
        "value < low and (not strict) / value < low or not strict",
        "value < low and (not strict) / value < low and strict",
        "log('too low by', step=2) / pass",
        "log('too low by', step=2) / log('too low by')",
        "1 / 2",
        "2 / 3",
        "True / False",
        "'ab' / 'XXabXX'",
        "continue / break",
        "return -value / return value",
    }


def test_a_function_gets_the_code_and_the_defaults_of_its_mutant(file):
    file.write_text("def double(x, times=2, *, plus=0):\n    return x * times + plus\n")
    names = {}
    exec(compile(file.read_text(), str(file), "exec"), names)
    results = {}
    for mutant in mutants_of(file):
        names["double"].__defaults__ = (2,)
        names["double"].__kwdefaults__ = {"plus": 0}
        change_function(names["double"], mutant)
        results[mutant.change] = names["double"](8)
    assert results == {
        "2  ->  3": 24,
        "0  ->  1": 17,
        "x * times + plus  ->  x * times - plus": 16,
        "x * times  ->  x / times": 4,
    }


def test_a_sample_is_drawn_from_each_package(file):
    [first, *_] = mutants_of(file)
    convert = replace(first, where=("convert/source.py", "check", 2))
    mutants = [first] * 30 + [convert] * 10
    drawn = draw(mutants, 8, seed=0)
    assert [mutant.package for mutant in drawn] == ["model"] * 6 + ["convert"] * 2
    assert draw(mutants, 0, seed=0) == mutants


def test_the_same_seed_draws_the_same_mutants(file):
    mutants = list(mutants_of(file))
    assert draw(mutants, 5, seed=1) == draw(mutants, 5, seed=1)
    assert draw(mutants, 5, seed=1) != draw(mutants, 5, seed=2)


def test_the_table_counts_what_a_test_has_seen(file):
    [first, *_] = mutants_of(file)
    ends = [(first, end) for end in ("killed", "timeout", *SURVIVED)]
    assert list(table(ends))[-1].split() == ["all", "2", "of", "4", "killed,", "50.0%"]
