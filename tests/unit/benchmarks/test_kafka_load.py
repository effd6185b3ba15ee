"""The load: when requests are due, what is open, and what it says was done."""

import json
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict

import pytest
from kafka_load import Done, Load, Pace, Runner, as_line, from_line

from tidelog.broker.wire.fetch_answer import FetchAnswer, PartitionAnswer, encode_fetch
from tidelog.broker.wire.produce_answer import ProducedPartition, produce_answer

HEAD = b"\0\0\0\1\0"
PRODUCE = 0


def test_requests_are_due_at_their_rate_whatever_becomes_of_them() -> None:
    pace = Pace(4.0, 10.0)
    assert list(pace.due(9.9)) == []
    assert list(pace.due(10.0)) == [10.0]
    assert pace.next_s == 10.25
    assert list(pace.due(10.8)) == [10.25, 10.5, 10.75]
    assert list(pace.due(10.8)) == []


class Toy:
    """A server that has answers for all its partitions, and counts. `ends`: of what can be read."""

    def __init__(self, partitions: int) -> None:
        self.partitions = partitions
        self.produced = self.fetched = self.most_open = 0
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:{1}".format(*self.listening.getsockname())

    def serve(self) -> None:
        try:
            while True:
                connection, _ = self.listening.accept()
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()
        except OSError:
            return

    def _answer(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rwb") as stream:
            while head := stream.read(4):
                body = stream.read(struct.unpack(">i", head)[0])
                (key,) = struct.unpack_from(">h", body)
                said = self._produced() if key == PRODUCE else self._fetched()
                stream.write(struct.pack(">i", len(said)) + said)
                stream.flush()

    def _produced(self) -> bytes:
        self.produced += 1
        partitions = [ProducedPartition(p, 0, 0, -1, 0) for p in range(self.partitions)]
        return HEAD + produce_answer(9, [("t", partitions)])

    def _fetched(self) -> bytes:
        self.fetched += 1
        parts = [PartitionAnswer(p, 0, 30, 30, 0, [batch(20)], len(batch(20))) for p in range(self.partitions)]
        return HEAD + b"".join(encode_fetch(12, FetchAnswer([("t", parts)])))


def batch(base_offset: int) -> bytes:
    """The head of a batch of ten records, as far as a consumer must look."""
    body = bytearray(61)
    struct.pack_into(">qi", body, 0, base_offset, 61 - 12)
    struct.pack_into(">i", body, 23, 9)
    return bytes(body)


@contextmanager
def toy(partitions: int) -> Iterator[Toy]:
    server = Toy(partitions)
    threading.Thread(target=server.serve, daemon=True).start()
    try:
        yield server
    finally:
        server.listening.close()


@pytest.mark.parametrize(
    ("load", "each"),
    [
        (Load("window", "", "t", 0, clients=2, window=5, records=3, partitions=4), 3 * 4),
        (Load("single", "", "t", 0, clients=7, partitions=4), 1),
    ],
)
def test_what_was_sent_is_answered_before_it_ends(load: Load, each: int) -> None:
    with toy(load.partitions if load.kind == "window" else 1) as server:
        runner = Runner(load, [server.address] * load.partitions)
        done = runner.run(0.0)
        assert done.records == server.produced * each
        assert server.produced == len(done.times_ms) == (10 if load.kind == "window" else 7)
        assert runner.run(0.0).records == done.records
        runner.close()


def test_no_more_is_sent_than_it_may_send() -> None:
    load = Load("window", "", "t", 60, clients=1, window=2, records=10, partitions=3, most_records=200)
    with toy(3) as server:
        runner = Runner(load, [server.address] * 3)
        assert runner.run(60.0).records == 210
        runner.close()


def test_paced_requests_are_as_many_as_the_rate_says() -> None:
    load = Load("paced", "", "t", 0, clients=3, partitions=1, rate=1e6)
    with toy(1) as server:
        runner = Runner(load, [server.address])
        done = runner.run(1e-9)
        assert done.records == server.produced == len(done.times_ms) <= 1
        runner.close()


def test_a_reader_goes_on_to_the_end_and_counts_what_it_read() -> None:
    with toy(2) as server:
        runner = Runner(Load("read", "", "t", 0, clients=1, partitions=2), [server.address] * 2)
        assert runner.run(0.0).records == 2 * 30
        runner.close()


def test_a_connection_that_ends_is_an_error() -> None:
    with toy(1) as server:
        server._answer = lambda connection: connection.close()  # type: ignore[method-assign]
        runner = Runner(Load("single", "", "t", 0, clients=1, partitions=1), [server.address])
        with pytest.raises(ConnectionError):
            runner.run(0.0)
        runner.close()


def test_a_load_and_what_it_did_are_lines() -> None:
    load = Load("paced", "a:1", "t", 3.0, rate=4_000)
    assert Load(**json.loads(as_line(load))) == load
    done = Done(12, 1.5, 0.1, [1.0, 3.0, 2.0])
    assert from_line(json.dumps(asdict(done))) == done
    assert done.percentile(50) == 2.0
