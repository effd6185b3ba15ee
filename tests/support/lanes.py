"""How `pytest -n` deals tests to its workers, the lanes; and a file of how long the tests took.

A unit of work is a file of tests, so that what its tests share is made once. What takes a machine for itself runs one
file at a time, in one lane: the tests of Spark, as a process has one JVM, those in a browser, and those of many
processes or of a JVM of their own. All other files go to the lane that is free, those that took longest first
(`tests/durations.tsv`), so that no core idles at the end.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

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
# A worker starts a test when it knows the next one.
_AHEAD = 2
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


class Lanes:
    """A scheduler of pytest-xdist (its protocol `Scheduling`)."""

    def __init__(self, workers: int, seconds: Mapping[str, float]) -> None:
        self._workers = workers
        self._seconds = seconds
        self._tests: list[str] = []
        self._collected: dict[Any, Sequence[str]] = {}
        # Files that no worker has yet, by group; '' for those of none.
        self._waiting: dict[str, deque[str]] = {}
        self._indexes: dict[str, list[int]] = {}
        # What each worker has whose end it has not reported, in its order; and its groups.
        self._pending: dict[Any, dict[int, None]] = {}
        self._groups: dict[Any, list[str]] = {}
        self._ownerless: deque[list[str]] = deque()

    @property
    def nodes(self) -> list[Any]:
        """The workers that live."""
        return list(self._pending)

    @property
    def collection_is_completed(self) -> bool:
        """Whether as many workers as were asked for have named their tests."""
        return len(self._collected) >= self._workers

    @property
    def tests_finished(self) -> bool:
        """Whether nothing is to be given out any more, and each worker can end by itself."""
        over = self.collection_is_completed and not any(self._waiting.values())
        return over and all(len(pending) < _AHEAD for pending in self._pending.values())

    @property
    def has_pending(self) -> bool:
        """Whether tests are to be run, or running."""
        return any(self._waiting.values()) or any(self._pending.values())

    def add_node(self, node: Any) -> None:
        """A worker has started."""
        self._pending[node] = {}

    def add_node_collection(self, node: Any, collection: Sequence[str]) -> None:
        """A worker names its tests; all must name the same."""
        if self._tests and list(collection) != self._tests:
            raise pytest.UsageError("A worker has found other tests than the others: what it reads differs by run.")
        self._tests = list(collection)
        self._collected[node] = collection

    def schedule(self) -> None:
        """Begin, or give a worker its part that takes the place of one that died."""
        if not self._indexes:
            self._begin()
        for node in self.nodes:
            if node not in self._groups:
                self._groups[node] = self._ownerless.popleft() if self._ownerless else []
        for node in self.nodes:
            self._refill(node)

    def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
        """A worker has ended a test."""
        del self._pending[node][item_index]
        self._refill(node)

    def mark_test_pending(self, item: str) -> None:
        """Nothing here repeats tests."""
        raise NotImplementedError

    def remove_pending_tests_from_node(self, node: Any, indices: Sequence[int]) -> None:
        """Nothing here takes tests back from a worker."""
        raise NotImplementedError

    def remove_node(self, node: Any) -> str | None:
        """A worker has ended or died; the test that it died of, whose file's other tests are run by another."""
        if groups := self._groups.pop(node, []):
            self._ownerless.append(groups)
        pending = list(self._pending.pop(node))
        if not pending:
            return None
        died, *rest = pending
        files: dict[str, list[int]] = {}
        for index in rest:
            files.setdefault(self._file(index), []).append(index)
        for path, indexes in reversed(files.items()):
            self._indexes[path] = indexes
            self._waiting[group_of(path)].appendleft(path)
        return self._tests[died]

    def _file(self, index: int) -> str:
        return self._tests[index].partition("::")[0]

    def _begin(self) -> None:
        for index in range(len(self._tests)):
            self._indexes.setdefault(self._file(index), []).append(index)
        self._waiting = {group: deque() for group in ("", *GROUPS.values())}
        # Files of a group stay in their order; of the others the longest is first.
        longest_first = sorted(self._indexes, key=lambda path: -self._seconds.get(path, _UNKNOWN_S))
        for path in longest_first:
            if not group_of(path):
                self._waiting[""].append(path)
        for path in self._indexes:
            if group := group_of(path):
                self._waiting[group].append(path)
        totals = {
            group: sum(self._seconds.get(path, _UNKNOWN_S) for path in paths)
            for group, paths in self._waiting.items()
            if group
        }
        self._ownerless.extend(deal_groups(totals, self._workers))

    def _refill(self, node: Any) -> None:
        """Give a worker files until it knows what comes next; let it end where there are none for it."""
        if node.shutting_down:
            return
        pending = self._pending[node]
        while len(pending) < _AHEAD:
            group = next((group for group in (*self._groups[node], "") if self._waiting[group]), None)
            if group is None:
                node.shutdown()
                return
            indexes = self._indexes[self._waiting[group].popleft()]
            pending.update(dict.fromkeys(indexes))
            node.send_runtest_some(indexes)


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
