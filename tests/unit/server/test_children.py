"""Processes that are kept: when they are started, again and again, and how they end."""

import os
import signal
import subprocess
import sys
from multiprocessing import Pipe

import pytest
from support.broker_processes import runs
from support.logs import FakeClock
from support.nursery import TESTS
from support.waiting import eventually

from tidelog.server.process.children import Child, KeptProcess, StartFailedError, end, keep
from tidelog.server.process.stopping import Stop


class FakeProcess:
    """A process without one: `ends` has it end with a code. `stubborn`: SIGTERM does nothing."""

    def __init__(self, stubborn=False):
        self.sentinel, self._ended = os.pipe()
        self.exitcode = None
        self.signals = []
        self._stubborn = stubborn

    def ends(self, code):
        self.exitcode = code
        os.close(self._ended)

    def terminate(self):
        self.signals.append("TERM")
        if not self._stubborn:
            self.ends(0)

    def kill(self):
        self.signals.append("KILL")
        self.ends(-9)

    def join(self, timeout=None):
        self.joined = timeout

    def close(self):
        os.close(self.sentinel)


class Kept(KeptProcess):
    def __init__(self, stubborn=False, **more):
        super().__init__("Broker", None, None, None, **more)
        self.stubborn = stubborn
        self.processes = []
        self.heard = []

    def begin(self):
        heard, self.says = Pipe(duplex=False)
        self.processes.append(FakeProcess(self.stubborn))
        return Child(self.processes[-1], heard)

    def hear(self, said):
        self.heard.append(said)

    def up(self, now_s):
        self.look(now_s)
        self.says.send("up")
        return self.look(now_s)


def test_one_that_ends_before_it_is_up_was_not_started():
    kept = Kept()
    assert kept.look(0) is None
    kept.processes[0].ends(2)
    with pytest.raises(StartFailedError, match="A broker's process did not start") as refused:
        kept.look(1)
    assert refused.value.code == 2


def test_one_that_says_so_is_up_and_is_started_again_ever_later():
    kept = Kept()
    assert kept.up(0) is None
    assert (kept.is_up, kept.heard) == (True, ["up"])
    now_s, waits = 0.0, []
    for _ in range(8):
        kept.processes[-1].ends(1)
        waits.append(kept.look(now_s))
        assert kept.look(now_s + waits[-1] / 2) == waits[-1] / 2
        now_s += waits[-1]
        assert kept.look(now_s) is None
    assert waits == [0.5, 1, 2, 4, 8, 16, 30, 30]
    assert len(kept.processes) == 9
    kept.processes[-1].ends(1)
    assert kept.look(now_s + 61) == 0.5, "it has lived for a while"


def test_what_has_nothing_to_say_is_up_from_the_beginning():
    kept = Kept(is_up=True)
    kept.look(0)
    kept.says.close()
    kept.processes[0].ends(1)
    assert kept.look(0) == 0.5


def test_what_it_says_counts_also_where_it_has_ended_since():
    kept = Kept()
    kept.look(0)
    kept.says.send("up")
    kept.processes[0].ends(1)
    assert kept.look(0) == 0.5


def test_one_begins_once_another_is_up():
    first, second = Kept(), Kept()
    second.after = first
    assert second.look(0) is None
    assert second.processes == []
    first.up(0)
    second.look(0)
    assert len(second.processes) == 1


def test_what_can_not_be_started_at_all():
    kept = Kept()
    kept.begin = lambda: (_ for _ in ()).throw(OSError("no folder"))
    with pytest.raises(StartFailedError):
        kept.look(0)
    assert kept.handles == []


class Stopping(Kept):
    """Asks for a stop once it is up."""

    def __init__(self, stop, **more):
        super().__init__(**more)
        self.stop = stop

    def begin(self):
        child = super().begin()
        self.says.send("up")
        return child

    def hear(self, said):
        super().hear(said)
        self.stop.ask(said)


def test_all_are_kept_until_a_stop_and_end_with_it():
    with Stop() as stop:
        kept = [Stopping(stop), Kept(stubborn=True)]
        keep(kept, stop, FakeClock())
    assert stop.reason == "up"
    assert [one.processes[0].signals for one in kept] == [["TERM"], ["TERM"]]
    end(kept, FakeClock())
    assert [one.processes[0].signals for one in kept] == [["TERM"], ["TERM", "KILL"]]
    assert [one.handles for one in kept] == [[], []]


def test_when_one_does_not_start_the_others_are_asked_to_end():
    class Failing(Kept):
        def begin(self):
            child = super().begin()
            self.processes[-1].ends(1)
            return child

    with Stop() as stop:
        kept = [Kept(), Failing()]
        with pytest.raises(StartFailedError):
            keep(kept, stop, FakeClock())
    assert kept[0].processes[0].signals == ["TERM"]


PARENT = """
import sys
from support.endless import never_ends
from tidelog.server.process.children import spawning, started

child = started(spawning(), never_ends)
print(child.process.pid, child.heard.recv(), flush=True)
sys.stdin.read()
"""


def test_a_process_that_does_nothing_any_more_ends_with_the_one_that_started_it():
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", PARENT], env=environment, **streams) as parent:
        pid, said = parent.stdout.readline().split()
        try:
            assert said == "begun"
            parent.kill()
            assert parent.stdout.readline() == "asked\n"
            eventually(lambda: not runs(int(pid)), "it ends")
        finally:
            if runs(int(pid)):
                os.kill(int(pid), signal.SIGKILL)
