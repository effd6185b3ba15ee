"""How files of tests are dealt to lanes: each test once, a group in one lane, whatever dies meanwhile."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import lanes
from support.lanes import Durations, Lanes, by_file, deal_groups


class Worker:
    """A worker of pytest-xdist: it begins a test when it knows the next one, or that there is none."""

    def __init__(self) -> None:
        self.queue: list[int] = []
        self.shutting_down = False

    def send_runtest_some(self, indexes: list[int]) -> None:
        self.queue.extend(indexes)

    def shutdown(self) -> None:
        self.shutting_down = True

    @property
    def can_run(self) -> bool:
        return len(self.queue) >= (1 if self.shutting_down else 2)


FILES = {"tests/unit/test_a.py": 3, "tests/spark/test_s.py": 2, "tests/unit/test_b.py": 1, "tests/browser/test_c.py": 1}


def named_tests(files: dict[str, int]) -> list[str]:
    return [f"{path}::test_{number}" for path, count in files.items() for number in range(count)]


def begun(tests: list[str], workers: int, seconds: dict[str, float] | None = None) -> tuple[Lanes, list[Worker]]:
    scheduler, nodes = Lanes(workers, seconds or {}), [Worker() for _ in range(workers)]
    for node in nodes:
        scheduler.add_node(node)
    for node in nodes:
        assert not scheduler.collection_is_completed
        scheduler.add_node_collection(node, tests)
    scheduler.schedule()
    return scheduler, nodes


def test_the_longest_file_of_no_group_is_first():
    tests = named_tests({"tests/unit/test_a.py": 2, "tests/unit/test_b.py": 2})
    _, (node,) = begun(tests, 1, {"tests/unit/test_b.py": 9.0, "tests/unit/test_a.py": 1.0})
    assert node.queue == [2, 3]


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_a_group_runs_in_one_lane(workers: int):
    tests = named_tests({f"tests/spark/test_{name}.py": 1 for name in "abcd"} | FILES)
    ran = run_all(*begun(tests, workers), tests)
    assert len({worker for worker, test in ran if test.startswith("tests/spark/")}) == 1


def run_all(scheduler: Lanes, nodes: list[Worker], tests: list[str], dies_at: int = -1) -> list[tuple[int, str]]:
    """All tests, round robin; at the step `dies_at` a worker dies and another takes its place."""
    workers, ran, step = list(nodes), [], 0
    while scheduler.has_pending:
        ready = [(number, node) for number, node in enumerate(workers) if node in scheduler.nodes and node.can_run]
        assert ready, "every worker waits for a test that nothing gives it"
        number, node = ready[step % len(ready)]
        index = node.queue.pop(0)
        ran.append((number, tests[index]))
        if step == dies_at:
            assert scheduler.remove_node(node) == tests[index]
            workers.append(Worker())
            scheduler.add_node(workers[-1])
            scheduler.add_node_collection(workers[-1], tests)
            scheduler.schedule()
        else:
            scheduler.mark_test_complete(node, index)
        step += 1
    assert scheduler.tests_finished
    return ran


@given(
    files=st.dictionaries(st.sampled_from([*FILES, *(f"tests/unit/test_{n}.py" for n in range(9))]), st.integers(1, 4)),
    workers=st.integers(1, 4),
    dies_at=st.integers(-1, 30),
)
def test_each_test_runs_once_whoever_dies(files: dict[str, int], workers: int, dies_at: int):
    tests = named_tests(files)
    ran = run_all(*begun(tests, workers), tests, dies_at)
    assert sorted(test for _, test in ran) == sorted(tests)


def test_a_worker_that_finds_other_tests_is_refused():
    scheduler, _ = begun(named_tests(FILES), 2)
    node = Worker()
    scheduler.add_node(node)
    with pytest.raises(pytest.UsageError, match="other tests"):
        scheduler.add_node_collection(node, ["tests/unit/test_z.py::test_0"])


@given(st.dictionaries(st.text(max_size=3), st.floats(0, 1e3)), st.integers(1, 5))
def test_every_group_has_a_lane(seconds: dict[str, float], count: int):
    dealt = deal_groups(seconds, count)
    assert len(dealt) == count
    assert sorted(group for lane in dealt for group in lane) == sorted(seconds)


def test_seconds_are_added_up_by_file():
    tests = [("a.py::t[x::y]", 1.0), ("b.py::t", 5.0), ("a.py::u", 2.0)]
    assert list(by_file(tests).items()) == [("b.py", 5.0), ("a.py", 3.0)]


def test_a_run_is_kept_and_files_that_are_gone_leave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    here = "tests/unit/test_lanes.py"
    kept, run = tmp_path / "durations.tsv", tmp_path / "run.tsv"
    monkeypatch.setattr(lanes, "DURATIONS", kept)
    monkeypatch.setattr(lanes, "LAST_RUN", run)
    kept.write_text("tests/unit/test_gone.py\t7.0\ntests/conftest.py\t1.0\n")
    plugin = Durations(run)
    for when, seconds in (("setup", 0.5), ("call", 2.0), ("teardown", 0.25)):
        plugin.pytest_runtest_logreport(
            pytest.TestReport(f"{here}::t", ("", 0, ""), {}, "passed", None, when, (), seconds)
        )
    plugin.pytest_sessionfinish()
    lanes.keep_durations()
    assert run.read_text() == f"{here}::t\t2.750\n"
    assert kept.read_text() == f"{here}\t2.8\ntests/conftest.py\t1.0\n"


def test_the_kept_durations_are_of_files_that_are_there():
    assert [path for path in lanes.read_durations() if not (lanes.ROOT / path).exists()] == []
