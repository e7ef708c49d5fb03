"""How a figure writes numbers: "12,500", "−0.66", never "1e4" or "10²"."""

from collections.abc import Iterable

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator, ScalarFormatter

_MINUS = "\N{MINUS SIGN}"


def written(value: float) -> str:
    """A number in three digits, or with its whole part where that is longer."""
    text = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return text.replace("-", _MINUS)


class _EvenTicks(ScalarFormatter):
    """Ticks of one axis have as many decimals as each other."""

    def __init__(self) -> None:
        super().__init__(useOffset=False)
        self.set_scientific(False)

    def __call__(self, x: float, pos: int | None = None) -> str:
        return written(x) if abs(x) >= 1000 else super().__call__(x, pos)


def number_ticks(axes: Axes, x: Iterable[float], log_x: bool, log_y: bool) -> None:
    """Write numbers at the ticks of both axes.

    Args:
        axes: with all that is drawn.
        x: where the data are; if these are few, the ticks stand there, and only there.
        log_x: the x axis is logarithmic.
        log_y: the y axis is.
    """
    values = sorted({*x})
    _number_axis(axes.xaxis, log_x, values if len(values) <= 12 else [])
    _number_axis(axes.yaxis, log_y, [])


def _number_axis(axis: Axis, log: bool, values: list[float]) -> None:
    if log:
        axis.set_minor_locator(NullLocator())
        axis.set_major_locator(LogLocator(subs=(1, 3)))
    if values:
        axis.set_ticks(values)
    few = FuncFormatter(lambda tick, _: written(tick))
    axis.set_major_formatter(few if log or values else _EvenTicks())
