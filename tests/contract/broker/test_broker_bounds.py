"""A broker's process among clients that send what no client should: they get an error, or are dropped.

Each test has a bystander beside it, a client that is served all the time, and looks at the memory of the process.
"""

import gzip
import os
import re
import resource
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest
from confluent_kafka import Producer
from kio.index import load_response_schema
from kio.serial import entity_reader
from support.broker_processes import BrokerCommand, api_versions, broker_command, closed, connect
from support.broker_requests import request_of
from support.produce_requests import encoded_produce
from support.record_batches import packed
from support.waiting import eventually

from tidelog.broker.wire.apis import ApiKey
from tidelog.log.lake import Lake

MIB = 1024 * 1024
# What a broker's memory may grow by for its own work: threads' stacks, buffers of the allocator.
OWN_BYTES = 48 * MIB
# What all batches of an entry may unpack to, beyond a multiple of their size.
UNPACKED_BYTES = 128 * MIB
SETTINGS = {"TIDELOG_BROKER_STALLED_READER_MS": "1000", "TIDELOG_BROKER_CACHE_BYTES": str(16 * MIB)}
CORRUPT_MESSAGE = 2
TLS_HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500)


class Attacked:
    """A broker's process, its listener, how many clients it has dropped, and how much its memory has grown."""

    def __init__(self, command: BrokerCommand, listener: str, metrics: str) -> None:
        self.command = command
        self.listener = listener
        self._metrics = metrics
        self._before = self._bytes()

    def _bytes(self) -> int:
        lines = Path(f"/proc/{self.command.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))

    def dropped(self) -> float:
        with urlopen(f"http://{self._metrics}/metrics") as answer:
            (line,) = re.findall(rb"^tidelog_broker_connections_dropped_total (.+)$", answer.read(), re.MULTILINE)
        return float(line)

    def grown(self) -> int:
        return self._bytes() - self._before

    def flat_after(self, attack: Callable[[], None], most_bytes: int) -> None:
        """Attack again and again: the broker's memory grows by so much at most, which the allocator may keep.

        What each attack left behind would add up to more.
        """
        before = self.grown()
        attack()
        assert self.grown() - before < most_bytes
        for _ in range(3):
            attack()
        assert self.grown() - before < most_bytes + OWN_BYTES


@contextmanager
def served(listener: str) -> Iterator[None]:
    """A bystander, a client that asks and produces all the time, on connections of its own, and gets every answer."""
    over, failed, rounds = threading.Event(), [], 0
    producer = Producer({"bootstrap.servers": listener, "retries": 0})

    def live() -> None:
        nonlocal rounds
        try:
            with connect(listener) as client:
                while not over.is_set():
                    api_versions(client)
                    producer.produce("t", b"x", on_delivery=lambda error, _: failed.append(error) if error else None)
                    producer.flush(60)
                    rounds += 1
        except Exception as e:
            failed.append(e)

    thread = threading.Thread(target=live)
    thread.start()
    try:
        eventually(lambda: rounds or failed, "the bystander's first round")
        yield
        after = rounds + 2
        eventually(lambda: rounds >= after or failed, "the bystander's next rounds")
    finally:
        over.set()
        thread.join(120)
    assert not failed


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    folder = tmp_path_factory.mktemp("bounds") / "lake"
    with Lake(folder) as lake:
        lake.create_topic("t")
        lake.create_topic("large")
        for _ in range(8):
            lake.topic("large").append([{"value": os.urandom(MIB // 2)} for _ in range(8)])
    with broker_command(folder, "--listener", "127.0.0.1:0", "--metrics", "127.0.0.1:0", env=SETTINGS) as command:
        ready = command.ready()
        listener = ready["listener"]
        with served(listener):
            pass
        yield Attacked(command, listener, ready["metrics"])


def frame(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def header(key: ApiKey, version: int) -> bytes:
    return struct.pack(">hhih", key, version, 1, -1) + b"\0"


@pytest.mark.parametrize(
    "sent",
    [
        b"\xff" * 64,
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        TLS_HELLO,
        struct.pack(">i", 2**31 - 1) + b"\0\0\0\3" * 1000,
        frame(b"\0"),
        frame(struct.pack(">hhih", 999, 0, 1, -1)),
        frame(struct.pack(">hhih", ApiKey.METADATA, 99, 1, -1)),
        frame(struct.pack(">hhih", ApiKey.METADATA, 1, 1, 30_000)),
        frame(struct.pack(">hhihi", ApiKey.METADATA, 1, 1, -1, 2**31 - 1)),
        frame(header(ApiKey.FETCH, 12) + b"\xff" * 100),
        frame(header(ApiKey.FETCH, 12) + bytes(25) + b"\xff\xff\xff\xff\x07" + b"\x07" * 1000),
        frame(header(ApiKey.FETCH, 12)[:-1] + b"\xff\xff\xff\xff\x0f" + b"\0" * 100_000),
        frame(struct.pack(">hhihhi", ApiKey.PRODUCE, 0, 1, -1, 1, 0) + b"\0\x0f\xff\xff" + bytes(1_000_000)),
    ],
    ids=[
        *("ones", "http", "tls", "2GB", "tiny", "no-api", "no-version", "client-id", "array", "varints", "topics"),
        *("header-tags", "refused-produce"),
    ],
)
def test_senders_of_garbage_are_dropped(attacked: Attacked, sent: bytes) -> None:
    with served(attacked.listener):
        for _ in range(20):
            with connect(attacked.listener) as client:
                client.sendall(sent)
                assert closed(client)
    assert attacked.grown() < OWN_BYTES


def test_half_frames_take_what_has_come_and_not_what_was_announced(attacked: Attacked) -> None:
    """500 clients announce 90 MiB each, 45 GB in all."""
    with served(attacked.listener), ExitStack() as open_:
        for _ in range(500):
            client = open_.enter_context(connect(attacked.listener))
            client.sendall(struct.pack(">i", 90 * MIB) + bytes(100))
        with served(attacked.listener):
            pass
        assert attacked.grown() < OWN_BYTES + 500 * 64 * 1024


def test_a_bomb_is_refused_with_its_error(attacked: Attacked) -> None:
    bomb = packed(gzip.compress(bytes(256 * MIB)), 1, 1)
    request = encoded_produce(9, {"t": {0: bomb}})
    read = entity_reader(load_response_schema(ApiKey.PRODUCE, 9))

    def attack() -> None:
        with connect(attacked.listener) as client, client.makefile("rb") as stream:
            client.sendall(frame(header(ApiKey.PRODUCE, 9) + request) * 3)
            for _ in range(3):
                (size,) = struct.unpack(">i", stream.read(4))
                answer, _ = read(memoryview(stream.read(size)), 5)
                assert int(answer.responses[0].partition_responses[0].error_code) == CORRUPT_MESSAGE

    with served(attacked.listener):
        attacked.flat_after(attack, UNPACKED_BYTES + OWN_BYTES)


def test_a_reader_that_takes_no_answers_is_dropped(attacked: Attacked) -> None:
    """It asks for 32 MiB ten times. What the system had taken of the answers it may still read."""
    partition = {"partition": 0, "partition_max_bytes": 32 * MIB}
    wanted = {"min_bytes": 1, "max_bytes": 32 * MIB, "topics": [{"topic": "large", "partitions": [partition]}]}
    asked = frame(header(ApiKey.FETCH, 12) + request_of(ApiKey.FETCH, 12, wanted)) * 10

    def attack() -> None:
        before = attacked.dropped()
        with connect(attacked.listener) as client:
            client.sendall(asked)
            eventually(lambda: attacked.dropped() > before, "it is dropped")

    with served(attacked.listener):
        attacked.flat_after(attack, OWN_BYTES + 4 * 32 * MIB)


def test_thousands_of_idle_sockets_cost_little(attacked: Attacked) -> None:
    """As many as the system permits, 3,000 at most: `benchmarks/broker_idle.py` has 10,000."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        count = min(3_000, hard - 500)
        with served(attacked.listener), ExitStack() as open_:
            before = attacked.grown()
            for number in range(count):
                client = open_.enter_context(connect(attacked.listener))
                if number % 100 == 0:
                    api_versions(client)
            with served(attacked.listener):
                pass
            assert attacked.grown() - before < OWN_BYTES // 2 + count * 16 * 1024
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
