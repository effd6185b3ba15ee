"""How `pytest --lanes` deals tests to processes, the lanes; and a file of how long the tests took.

A unit of work is a file of tests, so that what its tests share is made once. What takes a machine for itself runs one
file at a time, in one lane: the tests of Spark, as a process has one JVM, those in a browser, and those of many
processes or of a JVM of their own. All other files go to the lane that is free, those that took longest first
(`tests/durations.tsv`), so that no core idles at the end.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DURATIONS = ROOT / "tests/durations.tsv"
# All tests of the newest run, by name; CI's log has it, too.
LAST_RUN = ROOT / "build/durations.tsv"
# The files that run one after another in one lane, by how their paths begin; the first that fits counts. Programs that
# start a JVM of their own have no use for the one of Spark's tests. The rules of style read every file of Python once.
GROUPS: Mapping[str, str] = {
    "tests/spark/test_cluster": "heavy",
    "tests/spark/test_demo": "heavy",
    "tests/spark/test_distribution_spark": "heavy",
    "tests/spark/test_pages_spark": "heavy",
    "tests/spark/test_submitted": "heavy",
    "tests/spark/": "jvm",
    "tests/browser/": "browser",
    "tests/reliability/": "heavy",
    "tests/tidy/test_tidy_types": "",
    "tests/tidy/": "tidy",
}
# How long a file of tests is taken to last until it was measured.
_UNKNOWN_S = 5.0


def group_of(path: str) -> str:
    """The group of a file of tests; empty: none.

    >>> group_of("tests/spark/test_pages_spark.py"), group_of("tests/unit/test_readme.py")
    ('heavy', '')
    """
    return next((group for begin, group in GROUPS.items() if path.startswith(begin)), "")


def read_durations(path: Path = DURATIONS) -> dict[str, float]:
    """Seconds by file of tests."""
    rows = (line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()) if path.exists() else ()
    return {name: float(seconds) for name, seconds in rows}


def by_file(tests: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Seconds by file, of seconds by test; the longest first."""
    totals: dict[str, float] = {}
    for test, seconds in tests:
        path = test.partition("::")[0]
        totals[path] = totals.get(path, 0.0) + seconds
    return dict(sorted(totals.items(), key=lambda row: (-row[1], row[0])))


def deal_groups(seconds: Mapping[str, float], lanes: int) -> list[list[str]]:
    """The groups of each lane: the longest first, to the lane that has least.

    >>> deal_groups({"jvm": 600, "browser": 100, "heavy": 150}, 2)
    [['jvm'], ['heavy', 'browser']]
    """
    dealt: list[list[str]] = [[] for _ in range(lanes)]
    for group in sorted(seconds, key=lambda name: (-seconds[name], name)):
        least = min(dealt, key=lambda lane: sum(seconds[name] for name in lane))
        least.append(group)
    return dealt


class Deal:
    """Which file of tests a lane runs next: one of its groups', else the one that takes longest of those of none.

    `tests`: by name, in their order, which a file's tests and a group's files keep. `seconds`: by file.
    """

    def __init__(self, tests: Sequence[str], seconds: Mapping[str, float], lanes: int) -> None:
        self._indexes: dict[str, list[int]] = {}
        for index, test in enumerate(tests):
            self._indexes.setdefault(test.partition("::")[0], []).append(index)
        took = {path: seconds.get(path, _UNKNOWN_S) for path in self._indexes}
        self._waiting: dict[str, deque[str]] = {}
        for path in sorted(took, key=lambda path: 0.0 if group_of(path) else -took[path]):
            self._waiting.setdefault(group_of(path), deque()).append(path)
        totals = {group: sum(map(took.__getitem__, paths)) for group, paths in self._waiting.items() if group}
        self._groups = deal_groups(totals, lanes)

    def next(self, lane: int) -> list[int]:
        """The indexes of the tests of a lane's next file; none at its end."""
        group = next((group for group in (*self._groups[lane], "") if self._waiting.get(group)), None)
        return [] if group is None else self._indexes[self._waiting[group].popleft()]


class Durations:
    """A plugin that keeps how long each test took: its set-up, itself and what it cleans up."""

    def __init__(self, path: Path = LAST_RUN) -> None:
        self._path = path
        self._seconds: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds[report.nodeid] = self._seconds.get(report.nodeid, 0.0) + report.duration

    def pytest_sessionfinish(self) -> None:
        if not self._seconds:  # as when tests are only listed
            return
        rows = sorted(self._seconds.items(), key=lambda row: (-row[1], row[0]))
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text("".join(f"{test}\t{seconds:.3f}\n" for test, seconds in rows), encoding="utf-8")


def keep_durations() -> None:
    """Bring tests/durations.tsv up to date with what the newest run measured, and drop files that are gone."""
    files = by_file({**read_durations(DURATIONS), **by_file(read_durations(LAST_RUN).items())}.items())
    rows = (f"{path}\t{seconds:.1f}\n" for path, seconds in files.items() if (ROOT / path).exists())
    DURATIONS.write_text("".join(rows), encoding="utf-8")


if __name__ == "__main__":
    keep_durations()
