"""A broker for the demo: a process of its own, with its log in the demo's folder."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tidelog.commands.failures import UsageProblemError

_DRAINS_WITHIN_S = 60.0


@dataclass(frozen=True)
class DemoBroker:
    """A broker that runs: `address` is what Kafka clients take for bootstrap.servers."""

    address: str
    process: subprocess.Popen[bytes]

    def stop(self) -> int:
        """Drain it with SIGTERM, as an operator does; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(_DRAINS_WITHIN_S)


@dataclass(frozen=True)
class StartingBroker:
    """A broker's process that has begun. `log`: what it says."""

    process: subprocess.Popen[bytes]
    log: Path

    def ready(self) -> DemoBroker:
        """Wait until clients can connect. Raises `UsageProblemError` when it does not start."""
        line = b"" if self.process.stdout is None else self.process.stdout.readline()
        if not line:
            raise UsageProblemError(f"The broker did not start. What it says is in {self.log}.")
        return DemoBroker(json.loads(line)["listener"], self.process)


@contextmanager
def starting_broker(lake: str, log: Path) -> Iterator[StartingBroker]:
    """A broker over the lake on a free port of 127.0.0.1, killed at the end of the block if it still runs then.

    It is of this process' session: what ends all of a terminal's programs ends it, too.
    """
    command = ["--lake", lake, "--format", "json", "broker", "start", "--listener", "127.0.0.1:0", "--no-maintain"]
    with open(log, "wb") as stderr:
        process = subprocess.Popen(  # noqa: S603 - this Python and this package
            [sys.executable, "-m", "tidelog", *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
        )
    with process:
        try:
            yield StartingBroker(process, log)
        finally:
            process.kill()
