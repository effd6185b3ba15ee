"""Processor time from /proc, from files of a folder that is like it."""

import os
from pathlib import Path

import pytest
from proc_times import Process, family, memory_mib, on_cores, others, processes, read, used_s

TICKS = os.sysconf("SC_CLK_TCK")


def write(proc: Path, pid: int, parent: int, command: str, user: int, system: int, pages: int = 0) -> None:
    folder = proc / str(pid)
    folder.mkdir(exist_ok=True)
    numbers = " ".join(["0"] * 9)
    (folder / "stat").write_text(f"{pid} ({command}) S {parent} {numbers} {user} {system} 77 88 20 0 1\n")
    (folder / "statm").write_text(f"999 {pages} 3 4 5 6 7\n")


def test_a_command_may_have_spaces_and_brackets(tmp_path: Path) -> None:
    write(tmp_path, 12, 3, "a (b) c) d", 2 * TICKS, TICKS)
    assert read(tmp_path / "12") == Process(12, 3, "a (b) c) d", 3.0)


def test_all_that_run_are_found_and_what_has_ended_is_passed_over(tmp_path: Path) -> None:
    write(tmp_path, 1, 0, "init", 0, 0)
    (tmp_path / "13").mkdir()
    (tmp_path / "meminfo").write_text("")
    assert list(processes(tmp_path)) == [1]


def known(*rows: tuple[int, int, str, float]) -> dict[int, Process]:
    return {row[0]: Process(*row) for row in rows}


BEFORE = known((1, 0, "init", 1.0), (5, 1, "server", 2.0), (6, 5, "worker", 3.0), (8, 1, "pytest", 1.0))
AFTER = known(
    (1, 0, "init", 1.0), (5, 1, "server", 2.5), (6, 5, "worker", 5.0), (7, 6, "worker", 0.25), (8, 1, "pytest", 4.0),
    (9, 1, "pytest", 1.0), (10, 1, "idler", 0.01),
)  # fmt: skip


def test_a_family_is_all_that_a_process_and_its_children_have_started() -> None:
    assert family(AFTER, 5) == {5, 6, 7}
    assert family(AFTER, 404) == {404}


@pytest.mark.parametrize(("pids", "seconds"), [([5], 0.5), ([5, 6, 7], 2.75), ([404], 0.0)])
def test_what_processes_used_between_two_looks(pids: list[int], seconds: float) -> None:
    assert used_s(BEFORE, AFTER, pids) == pytest.approx(seconds)


def test_a_process_that_has_the_id_of_one_that_ended_began_at_nothing() -> None:
    assert used_s(known((5, 1, "a", 9.0)), known((5, 1, "b", 0.5)), [5]) == 0.5


def test_others_are_named_by_command_the_busiest_first() -> None:
    assert others(BEFORE, AFTER, [5], 2.0) == {"pytest": 2.0, "worker": 1.12}


def test_the_memory_of_the_largest(tmp_path: Path) -> None:
    mib = 2**20 // os.sysconf("SC_PAGE_SIZE")
    write(tmp_path, 1, 0, "a", 0, 0, pages=3 * mib)
    write(tmp_path, 2, 0, "b", 0, 0, pages=7 * mib)
    assert memory_mib([1, 2, 404], tmp_path) == 7


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="cores are chosen on Linux")
def test_what_is_started_is_on_its_cores_and_the_starter_is_back_on_all() -> None:
    before = os.sched_getaffinity(0)
    with on_cores([min(before)]):
        assert os.sched_getaffinity(0) == {min(before)}
    assert os.sched_getaffinity(0) == before
