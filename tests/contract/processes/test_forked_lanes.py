"""`pytest --lanes`: a run in several processes says what a run in one says, whatever ends meanwhile."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.waiting import eventually

TESTS = Path(__file__).parents[2]
CONFTEST = "from support.forked_lanes import pytest_addoption, pytest_runtestloop\n"
SOME = """\
import os, warnings
import pytest

def test_that_passes(tmp_path):
    print("not shown")

def test_that_fails():
    print("what it printed")
    assert [1] == [2]

@pytest.mark.skip(reason="no reason")
def test_that_is_skipped():
    pass

def test_that_warns():
    warnings.warn("mind the gap")

@pytest.fixture(scope="module")
def shared():
    yield os.getpid()
    with open({ended!r}, "a") as file:
        file.write("ended\\n")

@pytest.mark.parametrize("n", range(5))
def test_of_what_is_shared(shared, n):
    assert shared == os.getpid()
"""
OTHERS = """\
import os
import pytest

@pytest.mark.parametrize("n", range(4))
def test_numbers(n):
    if n == 1:
        os._exit(7)
"""


def lanes(folder: Path, files: dict[str, str], *options: str, count: int = 2) -> "subprocess.Popen[str]":
    (folder / "conftest.py").write_text(CONFTEST)
    for name, text in files.items():
        (folder / name).write_text(text)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", os.devnull, f"--lanes={count}"]
    return subprocess.Popen(
        [*command, *options, "."],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{TESTS}{os.pathsep}{folder}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def ended(process: "subprocess.Popen[str]") -> tuple[int, str]:
    shown, _ = process.communicate(timeout=120)
    return process.returncode, shown


def test_what_a_run_says(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    code, shown = ended(lanes(tmp_path, {"test_some.py": SOME.format(ended=str(notes))}))
    assert code == 1
    assert "1 failed, 7 passed, 1 skipped, 1 warning" in shown
    assert "assert [1] == [2]" in shown
    assert "what it printed" in shown
    assert "not shown" not in shown
    assert shown.count("UserWarning: mind the gap") == 1
    assert notes.read_text() == "ended\n"


@pytest.mark.parametrize("count", [2, 3])
def test_a_lane_that_dies_fails_its_test_alone(count: int, tmp_path: Path) -> None:
    files = {"test_some.py": SOME.format(ended=str(tmp_path / "notes")), "test_others.py": OTHERS}
    code, shown = ended(lanes(tmp_path, files, count=count))
    assert code == 1
    assert "2 failed, 10 passed, 1 skipped, 1 warning" in shown
    assert "the process that ran it ended: 7" in shown
    assert "test_others.py::test_numbers[1]" in shown


def test_a_test_that_takes_too_long_fails_with_the_stacks_of_its_threads(tmp_path: Path) -> None:
    text = """\
import threading
import pytest

def waits_for_ever():
    threading.Event().wait()

@pytest.mark.parametrize("n", range(3))
def test_numbers(n):
    if n < 2:
        waits_for_ever()
"""
    limits = ("-o", "faulthandler_timeout=3", "-o", "faulthandler_exit_on_timeout=true")
    code, shown = ended(lanes(tmp_path, {"test_a.py": text, "test_b.py": "def test(): pass\n"}, *limits))
    assert code == 1
    assert "2 failed, 2 passed" in shown
    failures, _, _ = shown.partition("short test summary info")  # which says it again in CI
    assert failures.count("in waits_for_ever") == 2  # of each lane its own
    assert "\0" not in shown


def test_the_first_failure_ends_a_run_that_asks_for_it(tmp_path: Path) -> None:
    slow = "import time\ndef test_slow():\n    time.sleep(100)\n"
    code, shown = ended(lanes(tmp_path, {"test_a.py": "def test_wrong():\n    assert 0\n", "test_b.py": slow}, "-x"))
    assert code == 1
    assert "stopping after 1 failures" in shown


def test_what_cannot_be_collected_is_said(tmp_path: Path) -> None:
    code, shown = ended(lanes(tmp_path, {"test_a.py": "import no_such_module\n", "test_b.py": "def test(): pass\n"}))
    assert code == 2
    assert "no_such_module" in shown


def test_a_thread_at_import_is_refused(tmp_path: Path) -> None:
    text = "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\ndef test(): pass\n"
    code, shown = ended(lanes(tmp_path, {"test_a.py": text}))
    assert code == 4
    assert "has begun threads at import" in shown


def test_a_lane_that_does_not_end_says_what_it_waits_for(tmp_path: Path) -> None:
    text = """\
import atexit, threading

def waits_for_ever():
    threading.Event().wait()

def test():
    atexit.register(waits_for_ever)
"""
    impatient = "from support import forked_lanes\nforked_lanes._LONG_PATIENCE_S = 0.1\n"
    code, shown = ended(lanes(tmp_path, {"test_a.py": text, "impatient.py": impatient}, "-p", "impatient"))
    assert code == 0
    assert "1 passed" in shown
    assert "A lane did not end" in shown
    assert "in waits_for_ever" in shown


def test_ctrl_c_ends_all_lanes_and_what_they_began(tmp_path: Path) -> None:
    text = """\
import os, time
import pytest

@pytest.fixture
def begun():
    open({pid!r}, "w").write(str(os.getpid()))
    yield
    open({ended!r}, "w").close()

def test_slow(begun):
    time.sleep(100)
"""
    pid, over = tmp_path / "pid", tmp_path / "over"
    process = lanes(tmp_path, {"test_a.py": text.format(pid=str(pid), ended=str(over))})
    eventually(lambda: pid.exists() and pid.read_text() != "", "a test that has begun")
    process.send_signal(signal.SIGINT)
    code, shown = ended(process)
    assert (code, "KeyboardInterrupt" in shown, over.exists()) == (2, True, True)
    assert not _lives(int(pid.read_text()))


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
