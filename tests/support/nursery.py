"""Python processes forked from one that has imported the servers already, in place of new interpreters.

What a broker imports takes seconds of a processor; a fork of a process that has it takes milliseconds. A `ForkedPython`
is a `subprocess.Popen` in all that a test sees of it: a process with a pid, signals, streams, an environment, a folder
and an exit code of its own. Each process of tests has one nursery, from its first fork to its end.
"""

import inspect
import json
import os
import select
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from support.nursery_server import NOT_ALONE

from tidelog.log.base.environment import ONE_THREAD

TESTS = Path(__file__).parents[1]

# What Python reads at its start alone: a process for which it differs from the nursery's is none to fork.
_READ_AT_START = ("PYTHON", "LANG", "LC_")
_KNOWN = {"PYTHONPATH", "PYTHONUNBUFFERED"}


class _Nursery:
    """The process that forks. It ends with the one that began it, and takes its forks with it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner = -1
        self._socket: socket.socket

    def fork(self, wanted: Mapping[str, Any], descriptors: Sequence[int]) -> int:
        """A fork's pid. `descriptors`: its three streams, and where its exit status is to be written."""
        body = json.dumps(wanted).encode()
        with self._lock:
            if self._owner != os.getpid():  # a test's process that was itself forked begins its own
                self._begin()
            socket.send_fds(self._socket, [struct.pack(">i", len(body))], descriptors)
            self._socket.sendall(body)
            answer = self._socket.recv(4, socket.MSG_WAITALL)
        if len(answer) < 4:
            raise RuntimeError("the nursery has ended; it says why on stderr")
        pid: int = struct.unpack(">i", answer)[0]
        if pid == NOT_ALONE:
            raise RuntimeError("the nursery has more than one thread: an import of PRELOADED has started one")
        if pid < 0:
            raise OSError(-pid, os.strerror(-pid), wanted["folder"])
        return pid

    def _begin(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            subprocess.Popen(
                [sys.executable, "-m", "support.nursery_server", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                env={**os.environ, **ONE_THREAD, "PYTHONPATH": str(TESTS)},
                pass_fds=[theirs.fileno()],
            )
        self._socket, self._owner = ours, os.getpid()


_NURSERY = _Nursery()


class ForkedPython(subprocess.Popen[Any]):
    """A process of `python -m MODULE`, `python -c CODE` or `python FILE`, with `sys.executable` for python.

    Takes what `subprocess.Popen` takes, but for what needs an interpreter of its own: those raise ValueError.
    """

    _status = -1

    def _execute_child(  # type: ignore[override]
        self,
        args: Sequence[str | os.PathLike[str]],
        executable: object,
        preexec_fn: object,
        close_fds: object,
        pass_fds: object,
        cwd: str | os.PathLike[str] | None,
        env: Mapping[str, str] | None,
        startupinfo: object,
        creationflags: object,
        shell: object,
        p2cread: int,
        p2cwrite: int,
        c2pread: int,
        c2pwrite: int,
        errread: int,
        errwrite: int,
        restore_signals: object,
        gid: object,
        gids: object,
        uid: object,
        umask: int,
        start_new_session: bool,
        process_group: int,
    ) -> None:
        words = [os.fspath(word) for word in args]
        environment = dict(os.environ if env is None else env)
        if executable not in (None, sys.executable) or words[0] != sys.executable:
            raise ValueError(f"{words[0]} is not this Python")
        if preexec_fn or pass_fds or shell or uid is not None or gid is not None or gids is not None or umask >= 0:
            raise ValueError("a fork has no preexec_fn, pass_fds, shell, user, group and umask of its own")
        if len(words) < 2 or (words[1].startswith("-") and words[1] not in ("-m", "-c")):
            raise ValueError(f"a fork can't take Python's option {words[1:2]}")
        if differing := _differing(environment):
            raise ValueError(f"a new Python would read {differing} at its start, which a fork does not")
        wanted = {
            "words": words[1:],
            "environment": environment,
            "folder": os.fspath(cwd) if cwd is not None else os.getcwd(),
            "new_session": start_new_session,
            "process_group": process_group,
        }
        self._status, status = os.pipe()
        try:
            streams = [own if own != -1 else number for number, own in enumerate((p2cread, c2pwrite, errwrite))]
            self.pid = _NURSERY.fork(wanted, [*streams, status])
            self._child_created = True
        finally:
            os.close(status)
            self._close_pipe_fds(p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)

    def _internal_poll(self, *_: object, **__: object) -> int | None:
        if self.returncode is None and self._waitpid_lock.acquire(False):
            try:
                self._take_status(0)
            finally:
                self._waitpid_lock.release()
        return self.returncode

    def _wait(self, timeout: float | None) -> int:
        until = None if timeout is None else time.monotonic() + timeout
        if not self._waitpid_lock.acquire(timeout=-1 if timeout is None else max(0.0, timeout)):
            raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        try:
            self._take_status(None if until is None else max(0.0, until - time.monotonic()))
        finally:
            self._waitpid_lock.release()
        if self.returncode is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        return self.returncode

    def _take_status(self, timeout: float | None) -> None:
        """Take the exit status once the nursery has written it. The caller holds the lock."""
        if self.returncode is not None or not self._child_created:
            return
        looked = select.poll()
        looked.register(self._status, select.POLLIN)
        if looked.poll(None if timeout is None else 1000 * timeout):
            written = os.read(self._status, 4)
            os.close(self._status)
            self.returncode = struct.unpack(">i", written)[0] if written else -9  # the nursery is gone, its forks too


# Elsewhere, and where Popen is another one inside, all are processes of their own.
CAN_FORK = (
    sys.platform == "linux"
    and inspect.signature(ForkedPython._execute_child).parameters.keys()
    == inspect.signature(subprocess.Popen._execute_child).parameters.keys()  # type: ignore[attr-defined]
)
if not CAN_FORK:
    ForkedPython = subprocess.Popen  # type: ignore[misc]


def run_forked(
    words: Sequence[str | os.PathLike[str]],
    *,
    check: bool = False,
    text: bool = True,
    stdin: Any = subprocess.DEVNULL,
    input: Any = None,  # noqa: A002 - the name that `subprocess.run` has
    timeout: float | None = None,
    **more: Any,
) -> "subprocess.CompletedProcess[Any]":
    """`subprocess.run` of a fork, whose output is taken."""
    given = stdin if input is None else subprocess.PIPE
    streams = {"stdin": given, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with ForkedPython(words, **{**streams, "text": text, **more}) as process:
        try:
            out, err = process.communicate(input, timeout=timeout)
        except BaseException:
            process.kill()
            raise
    done = subprocess.CompletedProcess(process.args, process.returncode, out, err)
    if check:
        done.check_returncode()
    return done


def _differing(environment: Mapping[str, str]) -> list[str]:
    names = {name for name in environment if name.startswith(_READ_AT_START)} - _KNOWN
    return sorted(name for name in names if environment[name] != os.environ.get(name))
