"""Requests of every API and version at a broker's process, well formed and mutated: `make reliability`, or

python tests/reliability/fuzz_requests.py --seed 7 --requests 100000

The broker must live, and answer a bystander on another connection all the while; its memory must stay as it was, within
a bound; and nothing that it is sent may be "a mistake in tidelog". Whether a client gets an answer or a closed
connection depends on what it sent, and is only counted.
"""

import argparse
import json
import os
import resource
import socket
import struct
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.broker_processes import BrokerCommand, api_versions, broker_command, connect
from support.record_batches import built
from support.strange_requests import ALL, Strange

from tidelog.broker.wire.apis import ApiKey
from tidelog.broker.wire.messages import is_flexible
from tidelog.log.lake import Lake

MIB = 1024 * 1024
# By how much the broker's memory may grow, and how much more of addresses than at its start its process may ask for.
GROWTH_BYTES = 200 * MIB
ADDRESSES_BYTES = 4096 * MIB
# One request may claim more than there is memory. What it is refused for must not depend on how much that is.
MUTATIONS = 4
CONNECTIONS = 8
# How long an answer is waited for before the connection is given up: some requests wait for others, or have no answer.
ANSWERED_WITHIN_S = 0.1
# Nothing else on the machine may make the bystander wait for longer; 100 ms is what it should be.
BYSTANDER_S = 5.0
# What clients need not hear of their own requests, and what is sent in every other way by other tests: users' keys
# take long to derive, and quotas would end the run by making its clients wait.
LEFT_OUT = frozenset({ApiKey.ALTER_USER_SCRAM_CREDENTIALS, ApiKey.ALTER_CLIENT_QUOTAS})
CASES = [(key, version) for key, version in ALL if key not in LEFT_OUT]
MISTAKE = "mistake in tidelog"
SETTINGS = "super.users=User:ANONYMOUS\ngroup.initial.rebalance.delay.ms=0\n"


@dataclass
class Fuzzed:
    """What a run found. Times in seconds, memory in bytes."""

    seed: int
    requests: int = 0
    seconds: float = 0.0
    answered: int = 0
    closed: int = 0
    unanswered: int = 0
    by_api: dict[str, int] = field(default_factory=dict)
    growth: int = 0
    bystander_answers: int = 0
    bystander_longest_s: float = 0.0
    bystander_above_100_ms: int = 0
    problems: list[str] = field(default_factory=list)


class Bystander:
    """A client on a connection of its own that asks on and on, and notes how long it waits."""

    def __init__(self, listener: str) -> None:
        self.times_s: list[float] = []
        self.failed = ""
        self._listener = listener
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._thread.join(60)

    def _ask(self) -> None:
        try:
            with connect(self._listener) as client:
                while not self._over.wait(0.02):
                    began_s = time.monotonic()
                    api_versions(client)
                    self.times_s.append(time.monotonic() - began_s)
        except (OSError, AssertionError, struct.error) as e:
            self.failed = f"the bystander was not answered: {e!r}"


class Attack:
    """Requests on a few connections, one at a time each."""

    def __init__(self, listener: str, strange: Strange, found: Fuzzed) -> None:
        self._listener, self._strange, self._found = listener, strange, found
        self._clients: dict[int, socket.socket] = {}

    def send(self, number: int, key: ApiKey, version: int, body: bytes) -> None:
        """One request; what becomes of it is counted."""
        found, place = self._found, number % CONNECTIONS
        client = self._clients.get(place)
        try:
            if client is None:
                client = self._clients[place] = connect(self._listener)
                client.settimeout(ANSWERED_WITHIN_S)
            client.sendall(_frame(key, version, body))
            (size,) = struct.unpack(">i", _exactly(client, 4))
            _exactly(client, size)
            found.answered += 1
            return
        except TimeoutError:
            found.unanswered += 1
        except OSError:
            found.closed += 1
        self._clients.pop(place, None)
        if client is not None:
            client.close()

    def close(self) -> None:
        for client in self._clients.values():
            client.close()


def fuzz(folder: Path, seed: int, requests: int, seconds: float = float("inf")) -> Fuzzed:
    """A run of that number of requests, or of `seconds` if they end before."""
    found = Fuzzed(seed)
    config = folder / "broker.properties"
    config.write_text(SETTINGS)
    with Lake(folder / "lake") as lake:
        lake.create_topic("t", partitions=2)
        topic_id = lake.topic("t").id
    strange = Strange(seed, blobs=[built([(1, b"k", b"v", [])]), built([(1, None, b"v", [])] * 3)], ids=[topic_id])
    counted: Counter[str] = Counter()
    arguments = ("--listener", "127.0.0.1:0", "--config", str(config))
    with broker_command(folder / "lake", *arguments) as command:
        listener = command.ready()["listener"]
        _bound_addresses(command)
        began_s = time.monotonic()
        bystander, attack = Bystander(listener), Attack(listener, strange, found)
        start = _memory(command)
        try:
            while found.requests < requests and time.monotonic() - began_s < seconds:
                key, version = strange.random.choice(CASES)
                body = strange.request(key, version)
                for one in (body, *(strange.mutated(body) for _ in range(MUTATIONS))):
                    attack.send(found.requests, key, version, one)
                    found.requests += 1
                    counted[key.name] += 1
                if command.process.poll() is not None:
                    found.problems.append(f"the broker ended after {key.name} {version}: {command.log[-5:]}")
                    break
                if found.requests % 1000 < MUTATIONS + 1:
                    found.growth = max(found.growth, _memory(command) - start)
                    if bystander.failed:
                        break
        finally:
            attack.close()
            bystander.stop()
        found.seconds = round(time.monotonic() - began_s, 1)
    _judge(found, command, bystander)
    found.by_api = dict(sorted(counted.items()))
    return found


def _judge(found: Fuzzed, command: BrokerCommand, bystander: Bystander) -> None:
    found.bystander_answers = len(bystander.times_s)
    found.bystander_longest_s = round(max(bystander.times_s, default=0.0), 3)
    found.bystander_above_100_ms = sum(one > 0.1 for one in bystander.times_s)
    mistakes = [line for line in command.log if MISTAKE in line]
    if mistakes:
        found.problems.append(f"{len(mistakes)} requests ended as mistakes, the first: {mistakes[0]}")
    if bystander.failed:
        found.problems.append(bystander.failed)
    if not bystander.times_s:
        found.problems.append("the bystander had no answer")
    if found.growth > GROWTH_BYTES:
        found.problems.append(f"the broker's memory grew by {found.growth // MIB} MiB")


def _frame(key: ApiKey, version: int, body: bytes) -> bytes:
    header = struct.pack(">hhih", key, version, 7, -1) + (b"\0" if is_flexible(key, version) else b"")
    return struct.pack(">i", len(header) + len(body)) + header + body


def _exactly(client: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = client.recv(count - len(data))
        if not more:
            raise ConnectionError("closed")
        data += more
    return data


def _memory(command: BrokerCommand, what: str = "VmRSS") -> int:
    """Bytes of the broker's process, 0 when it has ended."""
    try:
        lines = Path(f"/proc/{command.process.pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(what)), 0)


def _bound_addresses(command: BrokerCommand) -> None:
    most = _memory(command, "VmSize") + ADDRESSES_BYTES
    resource.prlimit(command.process.pid, resource.RLIMIT_AS, (most, most))


def main() -> int:
    """Run once; 1 when something was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=None, help="what is sent; by default something else each time")
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="at most")
    given = parser.parse_args()
    seed = given.seed if given.seed is not None else int.from_bytes(os.urandom(3), "big")
    print(f"seed {seed}; again: python tests/reliability/fuzz_requests.py --seed {seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="tidelog-fuzz-") as folder:
        found = fuzz(Path(folder), seed, given.requests, given.seconds)
    if found.bystander_longest_s > BYSTANDER_S:
        found.problems.append(f"the bystander waited for {found.bystander_longest_s} s")
    print(json.dumps(asdict(found), indent=2))
    return bool(found.problems)


if __name__ == "__main__":
    sys.exit(main())
