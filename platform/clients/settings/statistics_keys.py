"""The keys of a client's statistics."""

# ruff: noqa: RUF009 - `key` makes a dataclass field

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tidelog.clients.settings.parsing import key
from tidelog.clients.settings.value_types import Callback, Whole


@dataclass(frozen=True, kw_only=True)
class StatisticsKeys:
    """How often a producer or a consumer tells of itself, and whom."""

    statistics_interval_ms: int = key(
        "statistics.interval.ms", 0, Whole(0, 86_400_000), "How often `stats_cb` is called; 0: never."
    )
    stats_cb: Callable[[str], Any] | None = key(
        "stats_cb",
        None,
        Callback("stats_cb(str)"),
        "Called from `poll`, `consume` and `flush` with librdkafka's statistics as a JSON text, every "
        "`statistics.interval.ms`.",
    )
