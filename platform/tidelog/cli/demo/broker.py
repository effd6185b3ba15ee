"""A broker for the demo: a process of its own, with its log in the demo's folder."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tidelog.cli.serving.plan import BrokerPlan, ReadyLine
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
        return DemoBroker(ReadyLine.from_json(line).listener, self.process)


@contextmanager
def starting_broker(lake: str, log: Path) -> Iterator[StartingBroker]:
    """A broker over the lake on a free port of 127.0.0.1, killed at the end of the block if it still runs then.

    It ends by itself when this process does.
    """
    with open(log, "wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", "tidelog.cli.broker.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            start_new_session=True,  # Ctrl-C is for the demo
        )
    with process:
        try:
            if process.stdin is None:
                raise ValueError("a pipe was asked for")
            process.stdin.write(BrokerPlan(lake, {"PLAINTEXT": ("127.0.0.1", 0)}).to_json())
            process.stdin.flush()
            yield StartingBroker(process, log)
        finally:
            process.kill()
