"""The nursery's process: `python -m support.nursery_server DESCRIPTOR`, a socket to the tests that began it.

It imports what the servers import, and forks a process for each message until the socket ends; then it kills those
that are left. A message is its length, with the descriptors of the fork's streams and of its status beside that, and
a JSON object; the fork answers with its pid. Imported as a module, it imports nothing else.
"""

import atexit
import gc
import importlib
import io
import json
import os
import runpy
import select
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import ModuleType
from typing import Any, Final, NoReturn

# The answer when a fork would lack threads.
NOT_ALONE: Final = 0

PRELOADED: Final = (
    "confluent_kafka.admin",
    "httpx",
    "obstore.store",
    "pandas",  # pyarrow imports it with the first value that it converts
    "support.cluster_processes",
    "tidelog.cli.broker.processes",
    "tidelog.cli.serving.registry_serving",
    "tidelog.cli.broker.serving",
    "tidelog.cli.main",
    "tidelog.console.server",
    "tidelog.mirror",
    "tidelog.registry.api.serving",
)


class Forks:
    """The forks that live: for each the descriptor that tells its end, and where its status goes."""

    def __init__(self) -> None:
        self._status: dict[int, tuple[int, int]] = {}

    def add(self, pid: int, status: int) -> None:
        self._status[os.pidfd_open(pid)] = (pid, status)

    def ends(self) -> list[int]:
        """What is readable once a fork has ended."""
        return list(self._status)

    def ended(self, end: int) -> None:
        """Tell a fork's status, and forget it."""
        pid, status = self._status.pop(end)
        _, code = os.waitpid(pid, 0)
        with suppress(BrokenPipeError):  # its test has ended
            os.write(status, struct.pack(">i", os.waitstatus_to_exitcode(code)))
        os.close(status)
        os.close(end)

    def forget(self) -> None:
        """Close, in a fork, what belongs to the others."""
        for end, (_, status) in self._status.items():
            os.close(end)
            os.close(status)

    def kill(self) -> None:
        for end, (pid, _) in self._status.items():
            signal.pidfd_send_signal(end, signal.SIGKILL)
            os.waitpid(pid, 0)


def serve(tests: socket.socket) -> dict[str, Any] | None:
    """Fork on demand until the tests are gone; None then. In a fork: what it is to be."""
    forks = Forks()
    while True:
        readable, _, _ = select.select([tests, *forks.ends()], [], [])
        for end in readable:
            if end is not tests:
                forks.ended(end)
        if tests not in readable:
            continue
        message = _received(tests)
        if message is None:
            forks.kill()
            return None
        wanted, (*streams, status) = message
        if not _is_alone():
            tests.sendall(struct.pack(">i", NOT_ALONE))
            continue
        pid = os.fork()
        if pid == 0:
            os.close(status)
            forks.forget()
            _begin(wanted, streams, tests)
            return dict(wanted)
        for stream in streams:
            os.close(stream)
        forks.add(pid, status)


def _received(tests: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """What is to be forked, and its descriptors; None once the tests have ended, or were killed."""
    try:
        head, descriptors, _, _ = socket.recv_fds(tests, 4, 4)
        if 0 < len(head) < 4:
            head += tests.recv(4 - len(head), socket.MSG_WAITALL)
        if len(head) < 4:
            return None
        (size,) = struct.unpack(">i", head)
        body = tests.recv(size, socket.MSG_WAITALL)
    except ConnectionError:
        return None
    return (json.loads(body), descriptors) if len(body) == size else None


def _is_alone() -> bool:
    """Whether this process has one thread: the others would be missing in a fork, with the locks that they hold."""
    return len(os.listdir("/proc/self/task")) == 1


def _begin(wanted: dict[str, Any], streams: list[int], tests: socket.socket) -> None:
    """Settle, and tell the tests the pid, or the number of the error that is in the way."""
    try:
        settle(wanted, streams)
    except OSError as e:
        tests.sendall(struct.pack(">i", -(e.errno or 1)))
        os._exit(127)
    tests.sendall(struct.pack(">i", os.getpid()))
    tests.close()


def settle(wanted: dict[str, Any], streams: list[int]) -> None:
    """Make a fork what a new process would be: its streams, signals, environment and folder."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    if wanted["new_session"]:
        os.setsid()
    elif wanted["process_group"] >= 0:
        os.setpgid(0, wanted["process_group"])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(wanted["environment"])
    time.tzset()
    os.chdir(wanted["folder"])
    _open_streams(unbuffered=bool(os.environ.get("PYTHONUNBUFFERED")))


def _open_streams(unbuffered: bool) -> None:
    """Python's streams over the new descriptors, buffered as Python buffers them."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        before = getattr(sys, name)
        raw = io.FileIO(number, "r" if number == 0 else "w", closefd=False)
        if number == 0:
            binary: Any = io.BufferedReader(raw)
        else:
            binary = raw if unbuffered else io.BufferedWriter(raw)
        lines = not unbuffered and (number == 2 or os.isatty(number))
        stream = io.TextIOWrapper(
            binary, before.encoding, before.errors, line_buffering=lines, write_through=unbuffered and number > 0
        )
        stream.mode = "r" if number == 0 else "w"  # type: ignore[misc]
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def become(wanted: dict[str, Any], paths: list[str]) -> None:
    """Run what a command line of Python names, as the process's main module. `paths`: where modules are found."""
    option, *words = wanted["words"]
    own = [path for path in wanted["environment"].get("PYTHONPATH", "").split(os.pathsep) if path]
    if option == "-m":
        sys.path[:] = [wanted["folder"], *own, *paths]
        sys.argv[:] = words
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
    elif option == "-c":
        sys.path[:] = ["", *own, *paths]
        sys.argv[:] = ["-c", *words[1:]]
        main = sys.modules["__main__"] = ModuleType("__main__")
        exec(compile(words[0], "<string>", "exec"), vars(main))
    else:
        sys.path[:] = [os.path.dirname(os.path.abspath(option)), *own, *paths]
        sys.argv[:] = [option, *words]
        runpy.run_path(option, run_name="__main__")


def end(run: Callable[[], None]) -> NoReturn:
    """Run what the fork is to be, and end the process as Python ends one, but for taking all modules apart.

    That would copy each page of what was imported, and takes longer than most forks live.
    """
    code, interrupted = 0, False
    try:
        run()
    except SystemExit as e:
        if isinstance(e.code, int):
            code = e.code
        elif e.code is not None:
            code = 1
            print(e.code, file=sys.stderr)
    except BaseException as e:
        code, interrupted = 1, isinstance(e, KeyboardInterrupt)
        sys.excepthook(type(e), e, e.__traceback__)
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads, as Python does first
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, ValueError):  # there is none, or it is closed
            try:
                stream.flush()
            except OSError:
                code = code or 120
    if interrupted:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    os._exit(code & 0xFF)


def main(descriptor: int) -> None:
    """Serve, and in a fork run what it is to be."""
    tests = socket.socket(fileno=descriptor)
    tests.set_inheritable(False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the tests, and they end this
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    paths = [path for path in sys.path[1:] if path not in given]
    for name in PRELOADED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # a collection in a fork would else copy every page of what was imported
    wanted = serve(tests)
    if wanted is not None:
        end(lambda: become(wanted, paths))


if __name__ == "__main__":
    main(int(sys.argv[1]))
