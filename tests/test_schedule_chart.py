"""The chart of the schedule draws equation 3 for the chosen width and warm-up."""

import re

import pytest
import vl_convert

from transformer_lib.charts.schedule import schedule_explorer
from transformer_lib.training.schedule import learning_rate


def drawn(d_model: int, warmup: int) -> dict[int, float]:
    """Choose, and read the points: step -> learning rate."""
    spec = schedule_explorer().to_dict()
    for param in spec["params"]:
        if param["name"] in ("d_model", "warmup"):
            param["value"] = {"d_model": f"{d_model}", "warmup": warmup}[param["name"]]
    svg = vl_convert.vegalite_to_svg(spec)
    pattern = r'aria-label="step: ([\d,]+); learning rate: ([\d.e\-−+]+)"'
    found = re.findall(pattern, svg)
    return {
        int(step.replace(",", "")): float(rate.replace("−", "-"))
        for step, rate in found
    }


@pytest.mark.parametrize(("d_model", "warmup"), [(256, 500), (1024, 7_300)])
def test_the_chosen_schedule_is_drawn(d_model, warmup) -> None:
    points = drawn(d_model, warmup)
    assert len(points) == 81
    for step, rate in points.items():  # drawn with two digits
        assert rate == pytest.approx(learning_rate(step, d_model, warmup), rel=6e-2)


def test_too_few_steps_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 80, not 79"):
        schedule_explorer(79)
