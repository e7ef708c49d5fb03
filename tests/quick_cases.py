"""Tables of cases, of which `make test` tries a few and `make test-slow` the others."""

from collections.abc import Iterable
from typing import Any

import pytest


def some_now(cases: Iterable[Any], *chosen: int) -> list[Any]:
    """Mark all cases but the chosen ones as slow.

    Args:
        cases: what `pytest.mark.parametrize` takes: single values, or tuples.
        chosen: numbers of the cases that `make test` tries, from 0.
    """
    return [
        case
        if number in chosen
        else pytest.param(
            *(case if isinstance(case, tuple) else [case]), marks=pytest.mark.slow
        )
        for number, case in enumerate(cases)
    ]
