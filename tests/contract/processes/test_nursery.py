"""Forks of the nursery are to a test what new processes are."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from support.nursery import CAN_FORK, TESTS, ForkedPython, run_forked
from support.waiting import eventually

pytestmark = pytest.mark.skipif(not CAN_FORK, reason="the nursery needs Linux, and Popen as Python 3.11 has it")

SAID = """
import json, os, sys, threading
print(json.dumps({
    "argv": sys.argv, "folder": os.getcwd(), "one": os.environ.get("ONE"), "home": os.environ.get("HOME"),
    "pid": os.getpid(), "files": sorted(os.listdir("/proc/self/fd"))[:-1], "main": __name__,
    "threads": threading.active_count(), "first": sys.path[0],
}))
"""


def code(program, *words):
    return [sys.executable, "-c", textwrap.dedent(program), *words]


@pytest.mark.parametrize("start", [ForkedPython, subprocess.Popen])
def test_a_process_has_its_own_arguments_folder_environment_and_files(tmp_path, start):
    given = {"ONE": "1", "PATH": os.environ["PATH"]}
    with start(code(SAID, "a", "b c"), stdout=subprocess.PIPE, text=True, cwd=tmp_path, env=given) as process:
        said = json.loads(process.stdout.read())
    assert process.wait() == 0
    assert said == {
        "argv": ["-c", "a", "b c"], "folder": str(tmp_path), "one": "1", "home": None, "pid": process.pid,
        "files": ["0", "1", "2"], "main": "__main__", "threads": 1, "first": "",
    }  # fmt: skip


@pytest.mark.parametrize("start", [ForkedPython, subprocess.Popen])
def test_a_script_and_its_neighbours(tmp_path, start):
    (tmp_path / "neighbour.py").write_text("word = 'there'\n")
    script = tmp_path / "script.py"
    script.write_text("import sys, neighbour\nprint(neighbour.word, *sys.argv[1:], __name__)\n")
    with start([sys.executable, str(script), "x"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.read() == "there x __main__\n"


@pytest.mark.parametrize("start", [ForkedPython, subprocess.Popen])
@pytest.mark.parametrize(
    ("program", "exit_code"),
    [("pass", 0), ("raise SystemExit(3)", 3), ("import os; os._exit(4)", 4), ("1 / 0", 1), ("exit('no')", 1)],
)
def test_an_exit_code_and_what_is_said_of_an_error(start, program, exit_code):
    with start(code(program), stderr=subprocess.PIPE, text=True) as process:
        said = process.communicate()[1]
    assert process.returncode == exit_code
    assert said.splitlines()[-1:] == {"1 / 0": ["ZeroDivisionError: division by zero"], "exit('no')": ["no"]}.get(
        program, []
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_signals_end_it_as_they_end_any(number):
    waits = "import time; print('begun', flush=True); time.sleep(600)"
    with ForkedPython(code(waits), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout.readline() == b"begun\n"
        assert process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.01)
        process.send_signal(number)
        assert process.wait() == -number
        assert process.poll() == -number
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)


def test_streams_output_and_time():
    done = run_forked(code("import sys; print(sys.stdin.read().upper()); print('e', file=sys.stderr)"), input="abc")
    assert (done.returncode, done.stdout, done.stderr) == (0, "ABC\n", "e\n")
    with pytest.raises(subprocess.CalledProcessError):
        run_forked(code("raise SystemExit(1)"), check=True)
    with pytest.raises(subprocess.TimeoutExpired):
        run_forked(code("import time; time.sleep(600)"), timeout=0.01)


def test_a_group_of_processes_is_there_at_once():
    with ForkedPython(code("import time; time.sleep(600)"), start_new_session=True) as process:
        os.killpg(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL


def test_what_needs_an_interpreter_of_its_own_is_refused(tmp_path):
    for command, more in (
        (["true"], {}),
        ([sys.executable, "-W", "ignore", "-c", "pass"], {}),
        (code("pass"), {"env": {**os.environ, "PYTHONHASHSEED": "7"}}),
        (code("pass"), {"preexec_fn": os.getpid}),
        (code("pass"), {"pass_fds": [0]}),
    ):
        with pytest.raises(ValueError, match=r"fork|this Python"):
            ForkedPython(command, **more)
    with pytest.raises(FileNotFoundError):
        ForkedPython(code("pass"), cwd=tmp_path / "none")


# A second fork is asked for, and its answer is in the socket unread, which resets the connection at the end.
AMID_A_FORK = """
import select, socket, struct
from support.nursery import _NURSERY
wanted = {"words": ["-c", "pass"], "environment": {}, "folder": "/none", "new_session": False, "process_group": -1}
body = json.dumps(wanted).encode()
socket.send_fds(_NURSERY._socket, [struct.pack(">i", len(body))], [0, 1, 2, os.pipe()[1]])
_NURSERY._socket.sendall(body)
select.select([_NURSERY._socket], [], [])
"""


@pytest.mark.parametrize("before", ["", AMID_A_FORK], ids=["between forks", "amid a fork"])
def test_forks_end_with_the_tests_that_began_them(before):
    """Also where these are killed: the nursery and its forks go."""
    program = f"""
import json, os, subprocess, sys, time
from support.nursery import ForkedPython
fork = "import os, time; print(os.getpid(), os.getppid(), flush=True); time.sleep(600)"
process = ForkedPython([sys.executable, "-c", fork], stdout=subprocess.PIPE, text=True)
line = process.stdout.readline()
{before}
print(line, end="", flush=True)
time.sleep(600)
"""
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    with subprocess.Popen(code(program), stdout=subprocess.PIPE, env=environment, text=True) as tests:
        started = [int(pid) for pid in tests.stdout.readline().split()]
        assert len(started) == 2
        assert all(Path(f"/proc/{pid}").exists() for pid in started)
        tests.kill()
        for pid in started:
            eventually(lambda at=pid: not Path(f"/proc/{at}").exists(), f"process {pid} ends")
