"""How files of tests are dealt to lanes: each test once, a group in one lane."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import lanes
from support.lanes import Deal, Durations, by_file, deal_groups

FILES = {"tests/unit/test_a.py": 3, "tests/spark/test_s.py": 2, "tests/unit/test_b.py": 1, "tests/browser/test_c.py": 1}


def named_tests(files: dict[str, int]) -> list[str]:
    return [f"{path}::test_{number}" for path, count in files.items() for number in range(count)]


def test_the_longest_file_of_no_group_is_first():
    tests = named_tests({"tests/unit/test_a.py": 2, "tests/unit/test_b.py": 2})
    assert Deal(tests, {"tests/unit/test_b.py": 9.0, "tests/unit/test_a.py": 1.0}, 1).next(0) == [2, 3]


def run_all(tests: list[str], lanes: int) -> list[tuple[int, str]]:
    """(lane, test), of all tests; the lanes take their files in turn."""
    deal, ran, open_lanes = Deal(tests, {}, lanes), [], list(range(lanes))
    while open_lanes:
        for lane in list(open_lanes):
            indexes = deal.next(lane)
            ran += [(lane, tests[index]) for index in indexes]
            if not indexes:
                open_lanes.remove(lane)
    return ran


@pytest.mark.parametrize("lanes", [1, 2, 3])
def test_a_group_runs_in_one_lane(lanes: int):
    ran = run_all(named_tests({f"tests/spark/test_{name}.py": 1 for name in "abcd"} | FILES), lanes)
    assert len({lane for lane, test in ran if test.startswith("tests/spark/")}) == 1


@given(
    st.dictionaries(st.sampled_from([*FILES, *(f"tests/unit/test_{n}.py" for n in range(9))]), st.integers(1, 4)),
    st.integers(1, 4),
)
def test_each_test_runs_once(files: dict[str, int], lanes: int):
    tests = named_tests(files)
    assert sorted(test for _, test in run_all(tests, lanes)) == sorted(tests)


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
