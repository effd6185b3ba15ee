"""Processes on a leash: when the starter of one dies, however it dies, the process ends with all it started.

The starter holds one end of a pipe; between it and the process sits this program, which reads the other end. When the
starter dies the pipe ends, and so does the process's whole group. That works on every system and needs no process's
good will. As a program: `python leash.py PATIENCE COMMAND...`.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

_Process = subprocess.Popen[bytes]


@contextmanager
def leashed(
    command: Sequence[str],
    folder: Path,
    log: Path,
    environment: Mapping[str, str] | None = None,
    patience_s: float = 20,
) -> Iterator[_Process]:
    """A process that works in a folder and tells a log what it has to say; its exit code is the command's.

    When the block ends, or we do, the process is asked to end and, `patience_s` seconds later, made to.
    """
    with log.open("ab") as told:
        process = subprocess.Popen(
            [sys.executable, __file__, str(patience_s), *command],
            # A session of its own, so that Ctrl-C reaches us alone and we end it in order.
            stdin=subprocess.PIPE, stdout=told, stderr=told, start_new_session=True, cwd=folder, env=environment,
        )  # fmt: skip
    try:
        yield process
    finally:
        process.communicate()


def run_apart(arguments: Sequence[str], folder: Path, log: Path, scratch: Path, limit_s: float | None = None) -> str:
    """Run this Python with arguments in a folder: "", or the end of its log and why it failed.

    Spark's workers are of this Python, too, and Spark's own scratch space is in `scratch`.
    """
    scratch.mkdir(parents=True, exist_ok=True)
    log.parent.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_DIRS": str(scratch),
    }
    with leashed([sys.executable, *arguments], folder, log, environment) as process:
        try:
            code = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            why = f"stopped after {limit_s:.0f} s, its limit"
        else:
            why = f"exit code {code}" if code else ""
    return f"{log.read_text(encoding='utf-8', errors='replace')[-4000:]}\n{why}" if why else ""


def main() -> int:
    """The command's exit code, as a shell tells it."""
    patience_s, *command = sys.argv[1:]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    threading.Thread(target=_stop_at_end_of_input, args=(process, float(patience_s)), daemon=True).start()
    code = process.wait()
    _signal_group(process.pid, signal.SIGKILL)
    return code if code >= 0 else 128 - code


def _stop_at_end_of_input(process: _Process, patience_s: float) -> None:
    while os.read(0, 1024):
        pass
    _signal_group(process.pid, signal.SIGTERM if patience_s else signal.SIGKILL)
    try:
        process.wait(patience_s)
    except subprocess.TimeoutExpired:
        _signal_group(process.pid, signal.SIGKILL)


def _signal_group(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        # macOS refuses for a group of nothing but zombies.
        return


if __name__ == "__main__":
    sys.exit(main())
