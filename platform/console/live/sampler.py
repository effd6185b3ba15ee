"""The lake over time: looked at again and again while the console runs, as often as it costs little."""

import logging
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tidelog.console.base.console import Console
from tidelog.console.live.figures import ConsoleTopic, figures_of
from tidelog.console.live.history import History
from tidelog.log.base.errors import TidelogError
from tidelog.log.config.topics_and_lakes import LakeConfig, TopicConfig
from tidelog.log.state.topic_state import TopicState
from tidelog.log.storage.requests import Requests
from tidelog.metrics.lags import lags
from tidelog.metrics.lake_watch import SHARED_AGE_S, LakeLook

logger = logging.getLogger("tidelog.console")

# Between two looks: at least this on a local disk, and so much that looking takes a fiftieth of the time.
STEP_S: Final = 2.0
_SHARE: Final = 50
# Requests a minute are those of so long.
_LATE_S: Final = 120.0
_RATES: Final = ("records_in", "bytes_in", "records_out")
SERIES: Final = (*_RATES, "lag", "entries", "files", "small_files", "records", "bytes")


@dataclass(frozen=True, slots=True)
class Sample:
    """What one look gave. `rates`: records a second that each topic got since the look before, None for its first.

    `lag`: by group and topic.
    """

    look: LakeLook
    topics: Mapping[str, ConsoleTopic] = field(default_factory=dict)
    rates: Mapping[str, float | None] = field(default_factory=dict)
    lag: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


class Sampler:
    """A part of the console: the newest sample, and series since the start; see `SERIES`."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._clock = console.lake.clock
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._history = History(SERIES, _RATES)
        self._groups: dict[str, History] = {}
        self._committed: dict[tuple[str, str, int], int] = {}
        self._read = 0
        self._sample: Sample | None = None
        # (when, requests so far), of late
        self._asked: deque[tuple[float, int]] = deque()
        self.step_s = SHARED_AGE_S if console.lake.storage.is_shared else STEP_S
        self._thread = threading.Thread(target=self._run, name="console-sampler", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the looks."""
        self._ended.set()
        self._thread.join()

    def sample(self) -> Sample:
        """The lake as `Console.look` has it now. Raises `LakeNotFoundError`, `StorageError`."""
        look = self._console.look()
        with self._lock:
            if self._sample is None or self._sample.look is not look:
                self._take(look)
            assert self._sample is not None  # taken
            return self._sample

    def history(self) -> tuple[list[int], dict[str, list[float | None]]]:
        """The series of the lake, as `History.shown` gives them."""
        with self._lock:
            return self._history.shown()

    def newest(self) -> dict[str, float | None]:
        """The newest value of each series."""
        with self._lock:
            return self._history.last()

    def requests(self) -> tuple[int | None, float | None]:
        """Requests that the store was sent, in all and a minute of late; None of a store that counts none."""
        total = self._requests()
        with self._lock:
            if total is None or not self._asked:
                return total, None
            since_s, before = self._asked[0]
        return total, round((total - before) * 60 / max(1.0, self._clock.elapsed_s() - since_s), 1)

    def _requests(self) -> int | None:
        counted = getattr(self._console.lake.storage, "requests", None)
        return counted.counts().total if isinstance(counted, Requests) else None

    def group_history(self, group: str) -> tuple[list[int], dict[str, list[float | None]]]:
        """A group's lag by topic over time; nothing of one that is not known."""
        with self._lock:
            found = self._groups.get(group)
            return ([], {}) if found is None else found.shown()

    def _run(self) -> None:
        while not self._ended.is_set():
            began_s = self._clock.elapsed_s()
            try:
                self.sample()
            except TidelogError as error:
                logger.warning("The lake could not be looked at: %s", error)
            self._note_requests(began_s)
            took_s = self._clock.elapsed_s() - began_s
            self._ended.wait(max(self.step_s, took_s * _SHARE))

    def _note_requests(self, now_s: float) -> None:
        total = self._requests()
        with self._lock:
            if total is not None:
                self._asked.append((now_s, total))
            while len(self._asked) > 2 and self._asked[1][0] < now_s - _LATE_S:
                self._asked.popleft()

    def _take(self, look: LakeLook) -> None:
        """Compute what is new in a look. The lock is held."""
        before = self._sample
        defaults = self._console.lake.config()
        known = {} if before is None else before.topics
        topics = {name: _figures(state, defaults, known.get(name)) for name, state in look.topics.items()}
        seconds = 0.0 if before is None else (look.at_ms - before.look.at_ms) / 1000
        rates = {name: _rate(one, known.get(name), seconds) for name, one in topics.items()}
        lag = self._lags(look)
        self._sample = Sample(look, topics, rates, lag)
        self._history.add(look.at_ms, self._totals(look, topics, lag))
        self._groups = {name: self._groups.get(name) or _lag_history(found) for name, found in lag.items()}
        for name, found in lag.items():
            self._groups[name].add(look.at_ms, found)

    def _lags(self, look: LakeLook) -> dict[str, dict[str, int]]:
        found: dict[str, dict[str, int]] = {}
        committed: dict[tuple[str, str, int], int] = {}
        for name, view in look.groups.items():
            of_group = found.setdefault(name, {})
            for (topic, _), one in lags(look, view).items():
                of_group[topic] = of_group.get(topic, 0) + one.records
            for (topic, partition), offset in view.offsets.items():
                place = (name, topic, partition)
                committed[place] = offset.offset
                self._read += max(0, offset.offset - self._committed.get(place, offset.offset))
        self._committed = committed
        return found

    def _totals(
        self, look: LakeLook, topics: Mapping[str, ConsoleTopic], lag: Mapping[str, Mapping[str, int]]
    ) -> dict[str, float | None]:
        return {
            "records_in": sum(one.produced for one in topics.values()),
            "bytes_in": sum(one.produced_bytes for one in topics.values()),
            "records_out": self._read,
            "lag": sum(sum(of_group.values()) for of_group in lag.values()),
            "entries": sum(state.version + 1 for state in look.topics.values()),
            "files": sum(one.files for one in topics.values()),
            "small_files": sum(one.small_files for one in topics.values()),
            "records": sum(one.records for one in topics.values()),
            "bytes": sum(one.bytes for one in topics.values()),
        }


def _figures(state: TopicState, defaults: LakeConfig, before: ConsoleTopic | None) -> ConsoleTopic:
    if before is not None and before.version == state.version and before.topic_id == state.topic_id:
        return before
    return figures_of(state, TopicConfig.stored(state.overrides, defaults=defaults).segment_bytes, before)


def _rate(now: ConsoleTopic, before: ConsoleTopic | None, seconds: float) -> float | None:
    if before is None or before.topic_id != now.topic_id or seconds <= 0:
        return None
    return round((now.produced - before.produced) / seconds, 3)


def _lag_history(found: Mapping[str, int]) -> History:
    return History(sorted(found))
