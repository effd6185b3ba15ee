"""The processes of a chaos run: started, killed, frozen, and started again when they end."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from chaos_plan import Place, Worker
from support.nursery import ForkedPython

SCRIPT = Path(__file__).with_name("chaos_worker.py")
# What `chaos_worker.py` ends with when a successor is to take over.
GAVE_UP = 3
# Bytes of a worker's output that a problem quotes.
_QUOTED = 2_000


@dataclass
class _Running:
    worker: Worker
    life: int
    process: subprocess.Popen[bytes]
    frozen: bool = False
    drained: bool = False


class Processes:
    """The processes of all workers. A killed one stays down until `start`; `restart_ended` starts one that gave up."""

    def __init__(self, place: Place, workers: Sequence[Worker], seed: int) -> None:
        self._place = place
        self._seed = seed
        self.workers = {worker.name: worker for worker in workers}
        self._running: dict[str, _Running] = {}
        self._lives: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        self.problems: list[str] = []
        self.ended: set[str] = set()

    @property
    def names(self) -> list[str]:
        """Names of the workers that run, frozen ones too."""
        return sorted(self._running)

    def start(self, names: Iterable[str]) -> None:
        """Begin a new life of each that does not run."""
        for name in names:
            if name in self._running or name in self.ended:
                continue
            life = self._lives[name]
            self._lives[name] += 1
            command = [sys.executable, str(SCRIPT), str(self._place.folder), name, str(life), str(self._seed)]
            with self._words(name, life).open("wb") as words:
                process = ForkedPython(command, stdout=words, stderr=words, start_new_session=True)
            self._running[name] = _Running(self.workers[name], life, process)
            self.counts["lives"] += 1

    def kill(self, names: Iterable[str]) -> None:
        """Send SIGKILL, and wait for their ends."""
        gone = [self._running.pop(name) for name in names if name in self._running]
        for one in gone:
            _send(one.process, signal.SIGKILL)
        for one in gone:
            one.process.wait()
            self.counts["killed"] += 1

    def drain(self, names: Iterable[str]) -> None:
        """Send SIGTERM: a broker that gets it ends by itself, and has a successor."""
        for name in names:
            if name in self._running:
                _send(self._running[name].process, signal.SIGTERM)
                self._running[name].drained = True
                self.counts["drained"] += 1

    def freeze(self, names: Iterable[str]) -> None:
        """Send SIGSTOP."""
        for name in names:
            if name in self._running:
                _send(self._running[name].process, signal.SIGSTOP)
                self._running[name].frozen = True
                self.counts["frozen"] += 1

    def thaw(self) -> None:
        """Send SIGCONT to all that are frozen."""
        for one in self._running.values():
            if one.frozen:
                _send(one.process, signal.SIGCONT)
                one.frozen = False

    def print_stacks(self) -> None:
        """Have all print their threads' stacks."""
        for one in self._running.values():
            with suppress(ProcessLookupError):
                one.process.send_signal(signal.SIGUSR1)

    def kill_all_at_once(self) -> None:
        """Kill all as a power cut does: none does anything after another has died."""
        for one in self._running.values():
            _send(one.process, signal.SIGSTOP)
        self.kill(self.names)

    def restart_ended(self) -> None:
        """Start a successor of each worker that ended with another code than 0; note codes that no fault explains."""
        for name, one in list(self._running.items()):
            code = one.process.poll()
            if code is None:
                continue
            del self._running[name]
            if code == 0:
                self.ended.add(name)
                continue
            self.counts["gave up"] += 1
            begins = one.drained and code == -signal.SIGTERM  # drained before it listened to the signal
            if code != GAVE_UP and not begins:
                words = self._words(name, one.life).read_text(errors="replace")[-_QUOTED:]
                self.problems.append(f"{name}.{one.life} ended with {code}: {words}")
            self.start([name])

    def has_ended(self, roles: Collection[str]) -> bool:
        """Whether all workers of these roles have ended for good."""
        return all(name in self.ended for name, worker in self.workers.items() if worker.role in roles)

    def _words(self, name: str, life: int) -> Path:
        return self._place.words / f"{name}.{life:04}"


def _send(process: subprocess.Popen[bytes], what: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, what)  # a query's JVM, too


def wait_s(seconds: float, processes: Processes) -> None:
    """Let the processes go on for some time."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        processes.restart_ended()
        time.sleep(min(0.1, max(0.0, until - time.monotonic())))
