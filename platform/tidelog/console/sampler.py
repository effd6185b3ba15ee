"""The lake over time: looked at again and again while the console runs, as often as it costs little."""

import logging
import threading
from collections import deque
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, Final

from tidelog.console.base.console import Console
from tidelog.console.figures import ConsoleTopic, alarms, committed_since, figures_of
from tidelog.log.base.shared_threads import Rounds
from tidelog.log.storage.requests import Requests
from tidelog.operations.groups import GroupLag, describe_group
from tidelog.operations.snapshots import SHARED_AGE_S, LakeSnapshot

logger = logging.getLogger("tidelog.console")

# Points that are kept. Where there would be more, every other one goes.
POINTS: Final = 720
# Between two snapshots: at least this on a local disk, and so much that they take a fiftieth of the time.
STEP_S: Final = 2.0
_SHARE: Final = 50
# Requests a minute are those of so long.
_LATE_S: Final = 120.0
_RATES: Final = ("records_in", "bytes_in", "records_out")
SERIES: Final = (*_RATES, "lag", "entries", "files", "small_files", "records", "bytes", "alarms")


class History:
    """Series of numbers with one time axis. For one thread at a time.

    `names`: of the series. `rates`: those of them that count up; they are given as what was added a second.
    """

    def __init__(self, names: Sequence[str], rates: Sequence[str] = (), points: int = POINTS) -> None:
        self._rates = frozenset(rates)
        self._points = points
        self._every = 1  # of the points that are added, this one is kept
        self._added = 0
        self._times: list[int] = []
        self._values: dict[str, list[float | None]] = {name: [] for name in names}

    def add(self, at_ms: int, values: Mapping[str, float | None]) -> None:
        """Add a point, later than the last one; what is not among `values` is not known."""
        self._added += 1
        if (self._added - 1) % self._every or (self._times and at_ms <= self._times[-1]):
            return
        self._times.append(at_ms)
        for name, series in self._values.items():
            series.append(values.get(name))
        if len(self._times) > self._points:
            self._every *= 2
            self._times = self._times[::2]
            self._values = {name: series[::2] for name, series in self._values.items()}

    def shown(self) -> tuple[list[int], dict[str, list[float | None]]]:
        """The times in ms, and the value of each series at each; None where it is not known."""
        values = {
            name: self._rate(series) if name in self._rates else list(series) for name, series in self._values.items()
        }
        return list(self._times), values

    def last(self) -> dict[str, float | None]:
        """The newest value of each series, None where it is not known."""
        if not self._times:
            return dict.fromkeys(self._values)
        return {
            name: (self._slope(len(series) - 1, series) if name in self._rates else series[-1])
            for name, series in self._values.items()
        }

    def _rate(self, series: Sequence[float | None]) -> list[float | None]:
        return [self._slope(at, series) for at in range(len(series))]

    def _slope(self, at: int, series: Sequence[float | None]) -> float | None:
        """What was added a second before a point; a count that fell began again."""
        if not at:
            return None
        now, before = series[at], series[at - 1]
        if now is None or before is None:
            return None
        return round(max(0.0, now - before) * 1000 / (self._times[at] - self._times[at - 1]), 3)


@dataclass(frozen=True, slots=True)
class Sample:
    """What one snapshot gave, `alarms` once all topics are read.

    `rates`: records a second that each topic got since the snapshot before, None for its first.
    """

    snapshot: LakeSnapshot
    topics: Mapping[str, ConsoleTopic] = field(default_factory=dict)
    rates: Mapping[str, float | None] = field(default_factory=dict)
    groups: Mapping[str, GroupLag] = field(default_factory=dict)
    alarms: Sequence[Mapping[str, Any]] = ()


class Sampler:
    """A part of the console: the newest sample, and series since the start; see `SERIES`."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._clock = console.lake.clock
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._history = History(SERIES, _RATES)
        self._groups: dict[str, History] = {}
        self._read = 0
        self._sample: Sample | None = None
        # (when, requests so far), of late
        self._asked: deque[tuple[float, int]] = deque()
        self.step_s = SHARED_AGE_S if console.lake.storage.is_shared else STEP_S
        self._rounds = Rounds(logger, "Looking at the lake")
        self._thread = threading.Thread(target=self._run, name="console-sampler", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._ended.set()
        self._thread.join()

    def sample(self) -> Sample:
        """The lake as `Console.snapshot` has it now. Raises `LakeNotFoundError`, `StorageError`."""
        return self._of(self._console.snapshot())

    def sample_soon(self) -> Sample:
        """As `sample`; while the first snapshot is taken, the topics that it has found so far. Raises as `sample`."""
        snapshot = self._console.latest()
        if not snapshot.unread:
            return self._of(snapshot)
        defaults = self._console.lake.config()
        topics = {name: figures_of(state, defaults) for name, state in snapshot.topics.items()}
        return Sample(snapshot, topics, dict.fromkeys(topics))

    def _of(self, snapshot: LakeSnapshot) -> Sample:
        with self._lock:
            before = self._sample
            if before is None or (before.snapshot is not snapshot and before.snapshot.at_ms <= snapshot.at_ms):
                before = self._sample = self._taken(snapshot, before)
            return before

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
            with self._rounds.round():
                self.sample()
            with self._rounds.round():
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

    def _taken(self, snapshot: LakeSnapshot, before: Sample | None) -> Sample:
        """What is new in a snapshot, and the figures of the rest as they were. The lock is held."""
        defaults = self._console.lake.config()
        old_topics = {} if before is None else before.topics
        topics = {name: figures_of(state, defaults, old_topics.get(name)) for name, state in snapshot.topics.items()}
        seconds = 0.0 if before is None else (snapshot.at_ms - before.snapshot.at_ms) / 1000
        rates = {name: _rate(one, old_topics.get(name), seconds) for name, one in topics.items()}
        same = frozenset(name for name, one in topics.items() if old_topics.get(name) is one)
        groups = {name: self._group(snapshot, before, name, same) for name in snapshot.groups}
        alarm_rows = alarms(self._console.lake.uri, snapshot, topics, groups)
        self._history.add(snapshot.at_ms, self._totals(snapshot, topics, groups, alarm_rows))
        self._groups = {name: self._groups.get(name) or _lag_history(one.by_topic) for name, one in groups.items()}
        for name, one in groups.items():
            self._groups[name].add(snapshot.at_ms, one.by_topic)
        return Sample(snapshot, topics, rates, groups, alarm_rows)

    def _group(self, snapshot: LakeSnapshot, before: Sample | None, name: str, same: Set[str]) -> GroupLag:
        """A group's lag, as it was where nothing of it is new; `same`: topics that have no new entry."""
        old_lag = None if before is None else before.groups.get(name)
        if old_lag is None or before is None:
            return describe_group(snapshot, name).lag
        if before.snapshot.groups[name] is snapshot.groups[name] and old_lag.by_topic.keys() <= same:
            return old_lag
        self._read += committed_since(before.snapshot.groups[name], snapshot.groups[name])
        return describe_group(snapshot, name).lag

    def _totals(
        self,
        snapshot: LakeSnapshot,
        topics: Mapping[str, ConsoleTopic],
        groups: Mapping[str, GroupLag],
        alarm_rows: Sequence[Mapping[str, Any]],
    ) -> dict[str, float | None]:
        return {
            "records_in": sum(one.produced for one in topics.values()),
            "bytes_in": sum(one.produced_bytes for one in topics.values()),
            "records_out": self._read,
            "lag": sum(one.records for one in groups.values()),
            "entries": sum(state.version + 1 for state in snapshot.topics.values()),
            "files": sum(one.files for one in topics.values()),
            "small_files": sum(one.small_files for one in topics.values()),
            "records": sum(one.records for one in topics.values()),
            "bytes": sum(one.bytes for one in topics.values()),
            "alarms": len(alarm_rows),
        }


def _rate(now: ConsoleTopic, before: ConsoleTopic | None, seconds: float) -> float | None:
    if before is None or before.topic_id != now.topic_id or seconds <= 0:
        return None
    return round((now.produced - before.produced) / seconds, 3)


def _lag_history(found: Mapping[str, int]) -> History:
    return History(sorted(found))
