"""The chart of depths draws the given numbers, layer by layer, for every depth."""

import re

import pytest
import torch
import vl_convert

from transformer_lib.charts.depth import depth_explorer

DEPTHS = (2, 5)


def measures() -> dict:
    generator = torch.Generator().manual_seed(0)
    return {
        measure: {
            n: {name: torch.rand(n, generator=generator) for name in ("post", "pre")}
            for n in DEPTHS
        }
        for measure in ("gradient", "variance")
    }


def drawn(chart, n_layers: int) -> dict[tuple[str, str, int], float]:
    """Choose a depth and read the points: (measure, stack, layer) -> value."""
    spec = chart.to_dict()
    for param in spec["params"]:
        if param["name"] == "layers":
            param["value"] = f"{n_layers}"
    svg = vl_convert.vegalite_to_svg(spec)
    points = {}
    pattern = r'aria-label="([^"]*)" role="[^"]*" aria-roledescription="point"'
    for label in re.findall(pattern, svg):
        parts = dict(part.split(": ") for part in label.split("; "))
        (measure,) = {"gradient", "variance"} & set(parts)
        key = measure, parts["stack"], int(parts["layer"])
        points[key] = float(parts[measure])
    return points


@pytest.mark.parametrize("n_layers", DEPTHS)
def test_the_chosen_depth_is_drawn(n_layers) -> None:
    given = measures()
    points = drawn(depth_explorer(given), n_layers)
    assert len(points) == 2 * 2 * n_layers
    for (measure, stack, layer), value in points.items():
        expected = float(given[measure][n_layers][stack][layer - 1])
        assert value == pytest.approx(expected, abs=1e-3)


def test_a_panel_keeps_its_axis_for_all_depths() -> None:
    given = measures()
    for panel in depth_explorer(given).to_dict()["vconcat"]:
        measure = panel["encoding"]["y"]["title"]
        values = [v for curves in given[measure].values() for v in curves.values()]
        bottom, top = panel["encoding"]["y"]["scale"]["domain"]
        assert bottom == 0
        assert top == pytest.approx(float(torch.cat(values).max()))


def test_every_depth_is_stored_for_the_page_without_a_kernel() -> None:
    given = measures()
    rows = depth_explorer(given).to_dict()["data"]["values"]
    assert len(rows) == 2 * len(DEPTHS) * 2
    for row in rows:
        expected = given[row["measure"]][int(row["layers"])][row["stack"]]
        numbers = torch.tensor([float(number) for number in row["values"].split()])
        torch.testing.assert_close(numbers, expected, rtol=0, atol=6e-4)


def test_a_curve_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="3 layers, but gradient of 'post' has 2"):
        depth_explorer({"gradient": {3: {"post": torch.ones(2)}}})
    with pytest.raises(ValueError, match="gradient of 'post'"):
        depth_explorer({"gradient": {3: {"post": torch.ones(3, 1)}}})
