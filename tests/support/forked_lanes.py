"""`pytest --lanes N`: N processes run the tests, forked from the one that has collected them.

Collecting takes half a minute of a processor, and a process that has it costs a fork milliseconds. Each lane runs the
tests of a file in their order, as pytest does, and sends its reports here, where they are counted and shown. A lane
that dies fails the test that it ran; another one goes on with the rest.
"""

import atexit
import faulthandler
import mmap
import os
import pickle
import selectors
import signal
import socket
import struct
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key
from support.lanes import Deal, Durations, read_durations

from tidelog.log.base.environment import ONE_THREAD

os.environ.update(ONE_THREAD)  # before the libraries are imported that it is for
_LENGTH: Final = struct.Struct(">I")
_INDEX: Final = struct.Struct("i")
# Reports that a lane sends at once.
_MANY: Final = 50
# How long lanes may take to clean up when a run is broken off, and at its end, seconds.
_PATIENCE_S: Final = 20.0
_LONG_PATIENCE_S = 120.0


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--lanes`."""
    parser.addoption("--lanes", type=int, default=1, help="how many processes run the tests")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run the tests in lanes, where more than one is asked for. Raises what pytest ends a run with."""
    options = session.config.option
    if options.lanes < 2 or options.collectonly or session.testsfailed:  # of a failed collection, pytest says so
        return None
    threads = sorted(path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm"))  # none but on Linux
    if len(threads) > 1:
        raise pytest.UsageError(f"A module of tests has begun threads at import, and forks would lack them: {threads}")
    reporter = session.config.pluginmanager.getplugin("terminalreporter")
    if reporter is not None:
        reporter.showfspath = False  # lanes' reports come in turns
    _Lanes(session, options.lanes).run()
    return True


class _Channel:
    """Pickled messages over a socket: both ends are this program."""

    def __init__(self, end: socket.socket) -> None:
        self.socket = end

    def send(self, message: object) -> None:
        body = pickle.dumps(message)
        self.socket.sendall(_LENGTH.pack(len(body)) + body)

    def receive(self) -> Any:
        """The next message. Raises EOFError when the other end is gone."""
        (length,) = _LENGTH.unpack(self._bytes(_LENGTH.size))
        return pickle.loads(self._bytes(length))

    def skip(self) -> bool:
        """Leave out what has come; False when the other end is gone."""
        try:
            return bool(self.socket.recv(1 << 16))
        except ConnectionResetError:
            return False

    def _bytes(self, length: int) -> bytes:
        data = bytearray()
        while len(data) < length:
            piece = self.socket.recv(length - len(data))
            if not piece:
                raise EOFError
            data += piece
        return bytes(data)


# --- this side ---------------------------------------------------------------------------------------------


class _Lanes:
    """The lanes of a run, seen from the process that deals tests to them."""

    def __init__(self, session: pytest.Session, count: int) -> None:
        self._session = session
        self._hook = session.config.hook
        self._deal = Deal([item.nodeid for item in session.items], read_durations(), count)
        self._selector = selectors.DefaultSelector()
        self._pids: dict[int, int] = {}
        # What each lane was given and has not ended, and the index of the test that it runs, which it writes itself.
        self._given: dict[int, list[int]] = {lane: [] for lane in range(count)}
        self._rest: dict[int, list[int]] = {lane: [] for lane in range(count)}
        self._running = mmap.mmap(-1, _INDEX.size * count)
        # Where a lane's threads are, once it dies or one test takes too long.
        self._stacks = [tempfile.TemporaryFile() for _ in range(count)]  # noqa: SIM115  # as long as the run

    def run(self) -> None:
        try:
            for lane in self._given:
                self._fork(lane)
            while self._selector.get_map():
                for key, _ in self._selector.select():
                    self._hear(key.data)
        except BaseException:
            self._end()
            raise

    def _fork(self, lane: int) -> None:
        _INDEX.pack_into(self._running, lane * _INDEX.size, -1)
        ours, theirs = socket.socketpair()
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            ours.close()
            for key in list(self._selector.get_map().values()):
                key.fileobj.close()  # type: ignore[union-attr]  # a socket: other lanes' ends would outlive them here
            running = memoryview(self._running)[lane * _INDEX.size :]
            _Lane(self._session, _Channel(theirs), running, self._stacks[lane].fileno()).live()
        theirs.close()
        self._pids[lane] = pid
        self._selector.register(ours, selectors.EVENT_READ, (lane, _Channel(ours)))

    def _hear(self, source: tuple[int, _Channel]) -> None:
        lane, channel = source
        try:
            message = channel.receive()
        except (EOFError, ConnectionResetError):
            self._selector.unregister(channel.socket)
            channel.socket.close()
            self._bury(lane)
            return
        if message is None:
            given = self._rest[lane] or self._deal.next(lane)
            self._rest[lane] = []
            self._given[lane] += given
            channel.send(given)
            return
        for what in message:
            self._take(lane, what)
        if self._session.shouldfail:
            raise self._session.Failed(self._session.shouldfail)
        if self._session.shouldstop:
            raise self._session.Interrupted(self._session.shouldstop)

    def _take(self, lane: int, what: Any) -> None:
        if isinstance(what, int):
            self._given[lane].remove(what)
        elif isinstance(what, tuple):
            text, category, filename, line, when, nodeid, location = what
            told = warnings.WarningMessage(text, category, filename, line)
            self._hook.pytest_warning_recorded.call_historic(
                kwargs={"warning_message": told, "when": when, "nodeid": nodeid, "location": location}
            )
        else:
            report = self._hook.pytest_report_from_serializable(config=self._session.config, data=what)
            self._hook.pytest_runtest_logreport(report=report)

    def _bury(self, lane: int) -> None:
        """A lane has ended: where tests are left that it was given, it died of the one that it ran."""
        _, status = os.waitpid(self._pids.pop(lane), 0)
        given = self._given[lane]
        if not given:
            if status:
                raise RuntimeError(f"a lane ended with the status {os.waitstatus_to_exitcode(status)}")
            return
        (running,) = _INDEX.unpack_from(self._running, lane * _INDEX.size)
        died_of = running if running in given else given[0]
        item = self._session.items[died_of]
        words = f"the process that ran it ended: {os.waitstatus_to_exitcode(status)} (below 0: by that signal)"
        stacks = self._stacks[lane]
        stacks.seek(0)
        words = f"{words}\n{stacks.read().decode(errors='replace')}"
        stacks.seek(0)
        stacks.truncate()
        report = pytest.TestReport(item.nodeid, item.location, {}, "failed", words, "call", (), 0.0)
        self._hook.pytest_runtest_logreport(report=report)
        self._given[lane], self._rest[lane] = [], [index for index in given if index != died_of]
        self._fork(lane)

    def _end(self) -> None:
        """End all lanes. Each has some time for what its tests have begun."""
        for pid in self._pids.values():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGINT)
        until_s = time.monotonic() + _PATIENCE_S
        while self._selector.get_map():
            ended = self._selector.select(max(0.0, until_s - time.monotonic()))
            if not ended:
                break
            for key, _ in ended:
                _, channel = key.data
                if not channel.skip():
                    self._selector.unregister(channel.socket)
                    channel.socket.close()
        for pid in self._pids.values():
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


# --- the other side ----------------------------------------------------------------------------------------


class _Lane:
    """A lane, in its own process."""

    def __init__(self, session: pytest.Session, channel: _Channel, running: memoryview, stacks: int) -> None:
        self._session = session
        self._channel = channel
        self._running = running
        self._stacks = stacks
        self._unsent: list[Any] = []

    def live(self) -> None:
        """Run what comes, and end the process."""
        code = 1
        try:
            atexit._clear()  # what is registered there is the other process's to do
            self._be_alone()
            self._run()
            code = 0
        except (KeyboardInterrupt, BrokenPipeError, ConnectionResetError):
            code = 130
        except BaseException:
            traceback.print_exc(file=sys.__stderr__)
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # one was enough
            threading.Thread(target=_end_late, args=(code,), daemon=True).start()
            with suppress(BaseException):
                self._session._setupstate.teardown_exact(None)
            with suppress(BaseException):
                self._send()
            with suppress(BaseException):
                atexit._run_exitfuncs()
            os._exit(code)

    def _be_alone(self) -> None:
        """Print nothing, keep no files that the other process keeps, and capture apart from it."""
        plugins = self._session.config.pluginmanager
        for plugin in (plugins.getplugin("terminalreporter"), plugins.getplugin("junitxml"), *_durations(plugins)):
            if plugin is not None:
                plugins.unregister(plugin)
        capture = plugins.getplugin("capturemanager")
        capture.stop_global_capturing()
        capture.start_global_capturing()
        plugins.register(self, "lane")
        self._session.config.stash[fault_handler_stderr_fd_key] = self._stacks
        faulthandler.enable(self._stacks)
        self._unsent.clear()  # warnings of before, of which a new plugin hears

    def _run(self) -> None:
        items = self._session.items
        file = self._next()
        while file:
            following: Sequence[int] = []
            for place, index in enumerate(file):
                if place + 1 == len(file):
                    following = self._next()
                after = file[place + 1] if place + 1 < len(file) else following[0] if following else None
                item = items[index]
                _INDEX.pack_into(self._running, 0, index)
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=None if after is None else items[after])
                self._tell(index)
            file = following

    def _next(self) -> list[int]:
        self._send()
        self._channel.send(None)
        given: list[int] = self._channel.receive()
        return given

    def _tell(self, what: Any) -> None:
        self._unsent.append(what)
        if len(self._unsent) >= _MANY:
            self._send()

    def _send(self) -> None:
        if self._unsent:
            self._channel.send(self._unsent)
            self._unsent = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Send what a test's step ended with."""
        config = self._session.config
        self._tell(config.hook.pytest_report_to_serializable(config=config, report=report))
        if report.failed:
            self._send()

    def pytest_warning_recorded(
        self, warning_message: warnings.WarningMessage, when: str, nodeid: str, location: tuple[str, int, str] | None
    ) -> None:
        """Send a warning, as text: what it holds may be of this process alone."""
        told = warning_message
        category = told.category if told.category.__module__ == "builtins" else UserWarning
        self._tell((str(told.message), category, told.filename, told.lineno, when, nodeid, location))


def _end_late(code: int) -> None:
    """End a lane that does not: what it was given is done, and said. Its threads show what it waits for."""
    threading.Event().wait(_LONG_PATIENCE_S)
    with suppress(BaseException):
        print(f"A lane did not end within {_LONG_PATIENCE_S:.0f} s of its last test:", file=sys.__stderr__)
        faulthandler.dump_traceback(sys.__stderr__)
    os._exit(code)


def _durations(plugins: pytest.PytestPluginManager) -> Iterator[Any]:
    return (plugin for plugin in plugins.get_plugins() if isinstance(plugin, Durations))
