"""The plots of a run side by side: PNG for the docs, SVG whose colors the page sets.

Each plot is drawn in two widths, for a screen and for a phone: the same panels, in more or fewer columns.
"""

import io
import math
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from figures import percentile
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import LogLocator, NullLocator
from measures import Measure
from PIL import Image
from results import Group, Results, family_of, name, ratio, thinned
from table import amount, quantity, setting, times

KEYS = ("throughput", "latency", "growth", "bytes", "times")
# One color a system everywhere; also color-blind people can distinguish them.
COLORS = {"tidelog": "#0072b2", "kafka": "#d55e00", "delta": "#00875f"}
INK, MUTED, GRID, SURFACE = "#1c2733", "#5a6875", "#d9dfe5", "#ffffff"
_STYLES = ("-", (0, (5, 2)), (0, (1.5, 1.5)), "-.")
_WIDE_IN, _NARROW_IN, _DPI = 9.2, 3.7, 110
_HEAD_IN, _BAR_IN = 0.5, 0.3
_LINE_PT = 12
_ECDF_POINTS = 200
_RECORDS = "records/s"
_FOOT_CHARS, _TITLE_CHARS = 165, 34
_PALETTE = 128
_SETTINGS: Any = {
    "font.family": ["DejaVu Sans", "sans-serif"],
    "font.size": 9,
    "svg.fonttype": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": MUTED,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "figure.facecolor": SURFACE,
    "axes.facecolor": "none",
    "savefig.facecolor": SURFACE,
}
# Draws into axes of this size in inches.
Panel = Callable[[Axes, float], None]


@dataclass(frozen=True)
class Plot:
    """One plot: `key` names its file; `text` says in words what it shows, for people who don't see it."""

    key: str
    title: str
    text: str
    panels: tuple[Panel, ...]
    heights: tuple[float, ...]
    foot: str
    columns: int = 2

    def png(self, path: Path) -> None:
        """Write it as PNG, as wide as a page of the docs shows."""
        with mpl.rc_context(_SETTINGS):
            canvas = FigureCanvasAgg(self._drawn(columns=self.columns, width=_WIDE_IN, foot=self.foot))
            canvas.draw()
            # So few colors are in it that a palette holds them, and a third of the bytes.
            Image.fromarray(np.asarray(canvas.buffer_rgba())[:, :, :3]).quantize(_PALETTE).save(path, optimize=True)

    def svg(self, *, narrow: bool) -> str:
        """It as SVG, without a title or a foot: the page has them."""
        with mpl.rc_context({**_SETTINGS, "svg.hashsalt": f"{self.key}{narrow}"}):
            columns, width = (1, _NARROW_IN) if narrow else (self.columns, _WIDE_IN)
            figure = self._drawn(columns=columns, width=width, foot="")
            told = io.StringIO()
            figure.savefig(told, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
        return told.getvalue()

    def _drawn(self, columns: int, width: float, foot: str) -> Figure:
        columns = min(columns, len(self.panels))
        rows = [self.panels[at : at + columns] for at in range(0, len(self.panels), columns)]
        tall = [max(self.heights[at : at + columns]) for at in range(0, len(self.panels), columns)]
        above, below = (0.5, 0.28 + 0.12 * len(foot.splitlines())) if foot else (0.0, 0.0)
        height = sum(tall) + above + below
        inside = (0, below / height, 1, 1 - (above + below) / height)
        layout = ConstrainedLayoutEngine(rect=inside, w_pad=0.1, h_pad=0.08, wspace=0.04, hspace=0.02)
        figure = Figure(figsize=(width, height), dpi=_DPI, layout=layout)
        grid = figure.add_gridspec(len(rows), columns, height_ratios=tall)
        for at, row in enumerate(rows):
            for column, panel in enumerate(row):
                panel(figure.add_subplot(grid[at, column]), tall[at])
        if foot:
            figure.text(0.1 / width, 1 - 0.12 / height, self.title, fontsize=13, weight="bold", va="top")
            figure.text(0.1 / width, 0.1 / height, foot, fontsize=7, color=MUTED, va="bottom")
        return figure


def plots(results: Results) -> list[Plot]:
    """The plots that these results fill."""
    groups = results.groups()
    flat = [group for group in groups if group.any.at is None and _worth_it(group)]
    rates = [group for group in flat if group.any.unit.endswith("/s")]
    sizes = [group for group in flat if group.any.unit == "B"]
    told: dict[str, Group] = {}  # a case's p50 and p99 come from the same samples
    for group in flat:
        if any(one.samples for one in group.members):
            told.setdefault(group.any.case, group)
    others = [group for group in flat if group.any.unit in ("ms", "s") and group.any.case not in told]
    found = [
        _of_bars(results, "throughput", f"Throughput in {_RECORDS}: more is better", rates),
        _of_latencies(results, list(told.values())),
        _of_growth(results, [group for group in groups if group.any.at is not None]),
        _of_bars(results, "bytes", "Bytes on disk: fewer is better", sizes),
        _of_bars(results, "times", "Times: less is better", others),
    ]
    return [plot for plot in found if plot is not None]


def _worth_it(group: Group) -> bool:
    return bool(group.members) and any(one.median for one in group.members)


def _of_bars(results: Results, key: str, title: str, groups: Sequence[Group]) -> Plot | None:
    if not groups:
        return None
    panels = tuple(_bars(group) for group in groups)
    heights = tuple(_HEAD_IN + _BAR_IN * len(group.members) for group in groups)
    told = "; ".join(f"{_heading(group)}: {_told(group)}" for group in groups)
    return Plot(
        key,
        title,
        f"Bars. {told}.",
        panels,
        heights,
        _foot(results, "Bars: median; whiskers: all rounds; in brackets: times Kafka's."),
    )


def _of_latencies(results: Results, groups: Sequence[Group]) -> Plot | None:
    if not groups:
        return None
    told = "; ".join(f"{group.title}: {_told_latencies(group)}" for group in groups)
    panels, heights = (
        tuple(_distribution(group) for group in groups),
        tuple(2.1 + 0.17 * len(group.members) for group in groups),
    )
    title, foot = "Latency: share of records that were there in time", _foot(results, "Further left is better.")
    return Plot("latency", title, f"Distributions. {told}.", panels, heights, foot)


def _of_growth(results: Results, groups: Sequence[Group]) -> Plot | None:
    series: dict[tuple[str, str], dict[str, list[Measure]]] = {}
    titles: dict[tuple[str, str], str] = {}
    for group in groups:
        key = group.any.case, group.any.metric
        titles[key] = _heading(group)
        for one in group.members:
            series.setdefault(key, {}).setdefault(one.system, []).append(one)
    if not series:
        return None
    panels = tuple(_lines(titles[key], of_system) for key, of_system in series.items())
    told = "; ".join(f"{titles[key]}: {_told_growth(of_system)}" for key, of_system in series.items())
    foot = _foot(results, "Both axes are logarithmic. Points: median; whiskers: all rounds.")
    return Plot(
        "growth",
        "Growth: what it costs as there is more",
        f"Lines. {told}.",
        panels,
        (2.6,) * len(panels),
        foot,
        columns=3,
    )


def _bars(group: Group) -> Panel:
    members = sorted(group.members, key=lambda one: one.median, reverse=group.any.better == "higher")

    def draw(axes: Axes, inches: float) -> None:
        most = max(max(one.rounds) for one in members)
        rate = group.any.unit.endswith("/s")
        for at, one in enumerate(members):
            middle = one.median
            axes.barh(at, middle, height=0.62, color=COLORS.get(family_of(one.system), MUTED))
            if len(one.rounds) > 1:
                axes.hlines(at, min(one.rounds), max(one.rounds), color=INK, linewidth=1)
            text = quantity(middle, one.unit) if rate else amount(middle, one.unit)
            base = group.peer(one, "kafka")
            if base is not None and family_of(one.system) == "tidelog":
                text += f" ({times(ratio(one, base))})"
            axes.text(max(middle, *one.rounds) + most * 0.02, at, text, va="center", fontsize=8.5)
        axes.set_yticks(range(len(members)), [name(one.system) for one in members])
        axes.tick_params(axis="y", length=0, labelcolor=INK)
        axes.set_xlim(0, most * 1.75)
        axes.set_ylim((inches - _HEAD_IN) / _BAR_IN - 0.4, -0.6)  # bars are as thick everywhere
        axes.xaxis.set_major_locator(NullLocator())
        axes.spines["bottom"].set_visible(False)
        _title(
            axes, f"{_heading(group)} ({group.any.unit})" if rate and group.any.unit != _RECORDS else _heading(group)
        )

    return draw


def _distribution(group: Group) -> Panel:
    members = [one for one in group.members if one.samples]

    def draw(axes: Axes, _: float) -> None:
        for at, one in enumerate(members):
            points = thinned(one.samples, _ECDF_POINTS)
            shares = [(rank + 1) / len(points) * 100 for rank in range(len(points))]
            color = COLORS.get(family_of(one.system), MUTED)
            axes.step(points, shares, where="post", color=color, linestyle=_style(one, members), linewidth=1.8)
            for q in (50, 99):
                axes.plot(percentile(one.samples, q), q, "o", color=color, markersize=4.5)
            text = f"{name(one.system)}: p50 {_ms(one, 50)}, p99 {_ms(one, 99)}"
            axes.annotate(text, (0, 1), xytext=(0, 6 + _LINE_PT * (len(members) - 1 - at)), color=color, fontsize=8.5,
                          xycoords="axes fraction", textcoords="offset points", weight="bold")  # fmt: skip
        axes.set_xscale("log")
        lowest = min(value for one in members for value in one.samples if value > 0)
        axes.set_xlim(lowest * 0.8, max(max(one.samples) for one in members) * 1.2)
        axes.set_ylim(0, 101)
        axes.set_yticks([0, 25, 50, 75, 99], ["0 %", "25 %", "50 %", "75 %", "99 %"])
        axes.grid(visible=True, which="major", color=GRID, linewidth=0.7)
        axes.set_axisbelow(True)
        _plain_log(axes.xaxis)
        axes.set_xlabel(members[0].unit)
        _title(axes, group.title, above=_LINE_PT * len(members))

    return draw


def _lines(title: str, of_system: dict[str, list[Measure]]) -> Panel:
    def draw(axes: Axes, _: float) -> None:
        ends = []
        everyone = [ones[0] for ones in of_system.values()]
        for ones in of_system.values():
            ordered = sorted(ones, key=lambda one: one.at or 0)
            x, y = [one.at or 0 for one in ordered], [one.median for one in ordered]
            color = COLORS.get(family_of(ones[0].system), MUTED)
            axes.plot(x, y, "o", linestyle=_style(ones[0], everyone), color=color, markersize=4, linewidth=1.8)
            axes.vlines(x, [min(o.rounds) for o in ordered], [max(o.rounds) for o in ordered], color=color, linewidth=1)
            ends.append((x[-1], y[-1], color, f"{name(ones[0].system)}\n{amount(y[-1], ones[0].unit)}"))
        axes.set_xscale("log")
        axes.set_yscale("log")
        low, high = _decades([value for ones in of_system.values() for one in ones for value in one.rounds])
        axes.set_ylim(low, high)
        for (x_end, _, color, text), y_at in zip(ends, _apart([end[1] for end in ends], low, high), strict=True):
            axes.annotate(text, (x_end, y_at), xytext=(7, 0), textcoords="offset points", va="center", color=color,
                          fontsize=8, weight="bold", annotation_clip=False)  # fmt: skip
        axes.grid(visible=True, which="major", color=GRID, linewidth=0.7)
        axes.set_axisbelow(True)
        for axis in (axes.xaxis, axes.yaxis):
            _plain_log(axis)
        shared = next(iter(of_system.values()))[0]
        axes.set_xlabel(shared.axis)
        axes.set_ylabel(shared.unit)
        _title(axes, title)

    return draw


def _decades(values: Sequence[float]) -> tuple[float, float]:
    """Limits around positive values, at least a decade apart, so that a flat line looks flat."""
    positive = [value for value in values if value > 0] or [1.0]
    low, high = math.log10(min(positive)), math.log10(max(positive))
    slack = max(0.15, (1.2 - (high - low)) / 2)
    return 10 ** (low - slack), 10 ** (high + slack)


def _apart(values: Sequence[float], low: float, high: float) -> list[float]:
    """Where labels at these heights go so that none hides another: a fifth of the axis between them."""
    least = math.log10(high / low) / 5
    places = dict.fromkeys(range(len(values)), 0.0)
    before = -math.inf
    for at in sorted(places, key=lambda one: values[one]):
        before = places[at] = max(math.log10(max(values[at], low)), before + least)
    over = max(0.0, before - math.log10(high) + least / 3)
    return [10 ** (place - over) for place in places.values()]


def _title(axes: Axes, text: str, above: float = 0) -> None:
    axes.set_title(textwrap.fill(text, _TITLE_CHARS), loc="left", fontsize=9.5, weight="bold", pad=above + 6)


def _plain_log(axis: Axis) -> None:
    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < 50 else (1,), numticks=8))
    axis.set_major_formatter(lambda value, _: quantity(value, "").replace(".00", "").replace(".0", "").replace(" ", ""))
    axis.set_minor_locator(NullLocator())


def _style(one: Measure, everyone: Sequence[Measure]) -> object:
    """Solid for a family's first system, dashed for its variants."""
    own = [other.system for other in everyone if family_of(other.system) == family_of(one.system)]
    return _STYLES[own.index(one.system) % len(_STYLES)]


def _heading(group: Group) -> str:
    return ", ".join(filter(None, (group.title, group.metric)))


def _ms(one: Measure, q: float) -> str:
    return amount(percentile(one.samples, q), one.unit)


def _told(group: Group) -> str:
    return ", ".join(f"{name(one.system)} {amount(one.median, one.unit)}" for one in group.members)


def _told_latencies(group: Group) -> str:
    each = [f"{name(one.system)} p50 {_ms(one, 50)}, p99 {_ms(one, 99)}" for one in group.members if one.samples]
    return ", ".join(each)


def _told_growth(of_system: dict[str, list[Measure]]) -> str:
    found = []
    for ones in of_system.values():
        first, last = (pick(ones, key=lambda one: one.at or 0) for pick in (min, max))
        found.append(
            f"{name(first.system)} {amount(first.median, first.unit)} at {first.at:,.0f} {first.axis}, "
            f"{amount(last.median, last.unit)} at {last.at:,.0f}"
        )
    return ", ".join(found)


def _foot(results: Results, reading: str) -> str:
    return textwrap.fill(f"{reading} {results.at[:10]}: {setting(results)}", _FOOT_CHARS)
