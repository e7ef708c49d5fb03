"""The chart of batches draws every row of the chosen batch and its padding."""

import re

import pytest
import vl_convert

from transformer_lib.charts.batches import batch_explorer

LENGTHS = [(3, 5), (7, 2), (4, 4), (6, 11), (5, 3)]
PLANS = {"file": [[0, 1], [2, 3, 4]], "other": [[4, 0, 2], [3, 1]]}


def drawn(plan: str, side: str, batch: int) -> dict[tuple[int, str], int]:
    """Choose a batch and read a plan's rectangles: (row, kind) -> positions."""
    spec = batch_explorer(PLANS, LENGTHS, n_batches=2).to_dict()
    chosen = {"side": side, "batch": batch}
    for param in spec["params"]:
        param["value"] = chosen.get(param["name"], param.get("value"))
    spec["vconcat"] = [p for p in spec["vconcat"] if p["title"] == plan]
    svg = vl_convert.vegalite_to_svg(spec)
    found = {}
    for label in re.findall(r'aria-label="([^"]*)" role="[^"]*" aria-role[^>]*', svg):
        parts = dict(part.split(": ", 1) for part in label.split("; ") if ": " in part)
        if "positions" in parts:
            found[int(parts["row"]), parts["kind"]] = int(parts["positions"])
    return found


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize("batch", [1, 2])
def test_rows_and_padding_are_drawn(plan, side, batch) -> None:
    sizes = [LENGTHS[row][side == "target"] for row in PLANS[plan][batch - 1]]
    expected = {}
    for row, size in enumerate(sizes, start=1):
        expected[row, "token"] = size
        expected[row, "padding"] = max(sizes) - size
    assert drawn(plan, side, batch) == expected


def test_axes_hold_the_largest_batch() -> None:
    spec = batch_explorer(PLANS, LENGTHS, n_batches=2).to_dict()
    assert [panel["title"] for panel in spec["vconcat"]] == list(PLANS)
    for panel in spec["vconcat"]:
        encoding = panel["layer"][0]["encoding"]
        assert encoding["x"]["scale"]["domain"] == [0, 11]
        assert encoding["y"]["scale"]["domain"] == [3.5, 0.5]


def test_batches_are_spread_over_the_plan() -> None:
    plan = [[row] for row in range(5)]
    chart = batch_explorer({"one": plan}, LENGTHS, n_batches=3)
    rows = chart.to_dict()["data"]["values"]
    places = [row["place"] for row in rows if row["side"] == "source"]
    assert places == [1, 3, 5]


def test_the_share_of_padding_is_stored() -> None:
    rows = batch_explorer(PLANS, LENGTHS, 2).to_dict()["data"]["values"]
    assert rows[0]["padding"] == pytest.approx(1 - 10 / 14, abs=1e-3)


def test_missing_plans_and_batches_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 1 plan"):
        batch_explorer({}, LENGTHS)
    with pytest.raises(ValueError, match="8 batches, but plan 'file' has 2"):
        batch_explorer(PLANS, LENGTHS)
