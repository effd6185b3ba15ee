"""Side by side: nothing of a run stays, however it ends."""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import leash
import pytest
import workspace

WAIT_S = 60
STARTER = """
import pathlib, sys
sys.path.append(sys.argv[1])
import {module}
folder = pathlib.Path(sys.argv[2])
with {module}.{call} as held:
    print(held, flush=True)
    sys.stdin.read()
"""
# The pipe's reader learns of the end of all that hold it.
HOLDER = 'exec 3>"$1"; (trap "" TERM; sleep 600) & echo up >&3; wait'


@contextmanager
def starter(module: str, call: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that starts something in a folder and waits, killed at the end."""
    where = str(Path(sys.modules[module].__file__ or "").parent)
    command = [sys.executable, "-c", STARTER.format(module=module, call=call), where, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def told(process: subprocess.Popen[str]) -> str:
    """What the process holds, as soon as it does; nothing when it failed."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def line(pipe: int) -> bytes:
    """What the pipe has next; empty at its end."""
    assert select.select([pipe], [], [], WAIT_S)[0], "nothing came"
    return os.read(pipe, 100)


def holder(patience_s: float) -> str:
    command = ["sh", "-c", HOLDER, "sh", "pipe"]
    return f"leashed({command!r}, folder, folder / 'log', patience_s={patience_s})"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_death_of_the_starter_ends_the_process_and_its_children(number: int, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with starter("leash", holder(patience_s=0), tmp_path) as process:
        assert told(process)
        pipe = os.open(tmp_path / "pipe", os.O_RDONLY)
        assert line(pipe) == b"up\n"
        process.send_signal(number)
        assert line(pipe) == b""
        os.close(pipe)


def test_the_end_of_the_block_ends_the_process_and_children_that_refuse(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with starter("leash", holder(patience_s=30), tmp_path) as process:
        assert told(process)
        pipe = os.open(tmp_path / "pipe", os.O_RDONLY)
        assert line(pipe) == b"up\n"
        assert process.stdin is not None
        process.stdin.close()
        assert line(pipe) == b""
        os.close(pipe)
        assert process.wait(WAIT_S) == 0


def test_a_script_tells_what_it_says_and_its_exit_code_when_it_fails(tmp_path: Path) -> None:
    def run(code: str, limit_s: float | None = None) -> str:
        return leash.run_apart(["-c", code], tmp_path, tmp_path / "log", tmp_path / "scratch", limit_s)

    assert run("print('fine')") == ""
    assert run("import sys; print('oh no'); sys.exit(3)") == "oh no\n\nexit code 3"
    assert run("import os; os.kill(os.getpid(), 9)") == "\nexit code 137"
    assert "its limit" in run("import sys; sys.stdin.read(); import time; time.sleep(600)", limit_s=0.01)


def test_a_folder_is_gone_after_its_run(tmp_path: Path) -> None:
    with workspace.own(str(tmp_path)) as folder:
        (folder / "file").touch()
    assert list(tmp_path.iterdir()) == []


def test_the_folder_of_a_killed_run_is_removed_by_the_next_and_that_of_a_living_one_stays(tmp_path: Path) -> None:
    with (
        starter("workspace", "own(sys.argv[2])", tmp_path) as living,
        starter("workspace", "own(sys.argv[2])", tmp_path) as dead,
    ):
        alive, left = Path(told(living)), Path(told(dead))
        dead.kill()
        dead.wait(WAIT_S)
        assert left.is_dir()
        with workspace.own(str(tmp_path)) as folder:
            assert {path for path in tmp_path.iterdir() if path.is_dir()} == {alive, folder}


def test_what_still_works_in_the_folder_of_a_dead_run_is_ended(tmp_path: Path) -> None:
    folder = tmp_path / f"{workspace.PREFIX}dead"
    folder.mkdir()
    (tmp_path / f"{folder.name}{workspace.LOCK}").touch()
    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()", f"{folder}/x"], stdin=-1) as left:
        assert workspace.sweep(tmp_path) == [folder]
        assert left.wait(WAIT_S) == -signal.SIGKILL
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_only_looks_like_one_of_a_run_stays(tmp_path: Path) -> None:
    (tmp_path / f"{workspace.PREFIX}of-a-user").mkdir()
    assert workspace.sweep(tmp_path) == []
    assert len(list(tmp_path.iterdir())) == 1


def test_a_full_disk_is_told_before_anything_is_measured(tmp_path: Path) -> None:
    workspace.require_free(tmp_path, 0)
    with pytest.raises(workspace.SpaceError, match=r"GB free, .* up to 1e\+09.*--work"):
        workspace.require_free(tmp_path, 1e9)
