"""`tidelog broker start` as a process, its ready lines, and a client of a few bytes."""

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, Queue
from typing import Any

from prometheus_client.parser import text_string_to_metric_families
from support.nursery import ForkedPython

PATIENCE_S = 120


class BrokerCommand:
    """A process of `tidelog broker start --format json`, of another family, or of `console`, which has no `start`.

    Its streams are read as they come. `start`: `subprocess.Popen` where the true command is what is tested.
    A broker maintains its lake where it is asked to (`--maintain`), or `as_usual`.
    """

    def __init__(
        self,
        lake: Path | str,
        *args: str,
        env: dict[str, str] | None = None,
        family: str = "broker",
        start: "Callable[..., subprocess.Popen[Any]]" = ForkedPython,
        as_usual: bool = False,
    ) -> None:
        words = [family] if family == "console" else [family, "start"]
        if family == "broker" and not as_usual and "--maintain" not in args:
            words.append("--no-maintain")  # a process less for each test
        usual = {"TIDELOG_BROKER_GROUP_INITIAL_REBALANCE_DELAY_MS": "0"} if family == "broker" else {}
        self.process = start(
            [sys.executable, "-m", "tidelog", "--lake", str(lake), "--format", "json", *words, *args],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**{k: v for k, v in os.environ.items() if k != "TIDELOG_LAKE"}, **usual, **(env or {})},
        )
        self._ready: Queue[Any] = Queue()
        self.log: list[str] = []
        self._readers = [
            threading.Thread(target=self._read_stdout, daemon=True),
            threading.Thread(target=self._read_stderr, daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def ready(self) -> dict[str, Any]:
        """The next ready line."""
        try:
            line = self._ready.get(timeout=PATIENCE_S)
        except Empty:
            raise AssertionError(f"no broker became ready: {self.log}") from None
        assert line is not None, f"the process ended: {self.log}"
        return line

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send it a signal; its exit code."""
        self.process.send_signal(number)
        return self.ended()

    def ended(self) -> int:
        """Its exit code, once it has ended and its streams are read."""
        code = self.process.wait(PATIENCE_S)
        for reader in self._readers:
            reader.join(PATIENCE_S)
        return code

    def _read_stdout(self) -> None:
        for line in self.process.stdout:
            self._ready.put(json.loads(line))
        self._ready.put(None)

    def _read_stderr(self) -> None:
        for line in self.process.stderr:
            self.log.append(line.decode().rstrip("\n"))


@contextmanager
def broker_command(lake: Path | str, *args: str, **more: Any) -> Iterator[BrokerCommand]:
    """The command, until the end of the block at most. `more`: as for `BrokerCommand`."""
    command = BrokerCommand(lake, *args, **more)
    try:
        yield command
    finally:
        if command.process.poll() is None:
            command.process.terminate()
            try:
                command.process.wait(30)
            except subprocess.TimeoutExpired:
                command.process.kill()
        command.ended()


def children(process: int) -> list[int]:
    """The processes that a process has started."""
    return [int(pid) for file in Path(f"/proc/{process}/task").glob("*/children") for pid in file.read_text().split()]


def runs(process: int) -> bool:
    """Whether a process is there, and is no zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def connect(listener: str) -> socket.socket:
    """A socket to a listener as its ready line names it."""
    host, _, port = listener.rpartition(":")
    return socket.create_connection((host.strip("[]"), int(port)), PATIENCE_S)


def api_versions(client: socket.socket) -> int:
    """Ask for ApiVersions 0; how many APIs there are."""
    client.sendall(struct.pack(">ihhih", 10, 18, 0, 7, -1))
    (size,) = struct.unpack(">i", _exactly(client, 4))
    correlation_id, error, count = struct.unpack_from(">ihi", _exactly(client, size))
    assert (correlation_id, error) == (7, 0)
    return count


def closed(client: socket.socket) -> bool:
    """Whether the broker closes the connection, without a word."""
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True


def metrics(address: str) -> dict[tuple[str, tuple[str, ...]], float]:
    """{(name, values of its labels in the order of their names): value}."""
    with urllib.request.urlopen(f"http://{address}/metrics") as answer:
        text = answer.read().decode()
    families = list(text_string_to_metric_families(text))
    return {
        (s.name, tuple(value for _, value in sorted(s.labels.items()))): s.value
        for family in families
        for s in family.samples
    }


def _exactly(client: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = client.recv(count - len(data))
        assert more, "the broker closed the connection"
        data += more
    return data
