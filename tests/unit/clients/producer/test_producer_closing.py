"""A producer that one thread closes while others produce, flush and poll."""

import sys
import threading
from typing import Any

import pytest
from support.logs import read
from support.producers import Delivered, live_lake, producer
from support.waiting import eventually

from tidelog.clients.producer.producer import Producer
from tidelog.clients.values.errors import KafkaError

# Longer than any of these tests may take.
PATIENCE_S = 30.0


class Stuck:
    """A producer whose first record waits at the store, and a thread that closes it."""

    def __init__(self, **conf: Any) -> None:
        self.lake, storage = live_lake()
        self.lake.create_topic("t", 1)
        self.arrived, self.release = threading.Event(), threading.Event()
        self.delivered = Delivered()

        def wait(method: str, path: str, phase: str) -> None:
            if (method, phase) == ("put", "before"):
                self.arrived.set()
                self.release.wait(PATIENCE_S)

        storage.hook = wait
        self.producer = producer(self.lake, linger_ms=0, on_delivery=self.delivered, **conf)
        self.producer.produce("t", b"stuck")
        assert self.arrived.wait(PATIENCE_S)
        self.closing = threading.Thread(target=self.producer.close, args=(0,))

    def close(self) -> None:
        """Begin to close; returns once the producer takes no more."""
        self.closing.start()
        eventually(lambda: self.producer._in_flight.closing, "the producer closes")

    def end(self) -> None:
        """Let the store go on; returns once the producer is closed."""
        self.release.set()
        self.closing.join(PATIENCE_S)
        assert not self.closing.is_alive()


def test_flush_beside_close_keeps_its_time_and_does_not_spin() -> None:
    stuck = Stuck()
    stuck.close()
    looks, served = [0], stuck.producer._reports.serve

    def serve() -> int:
        looks[0] += 1
        return served()

    stuck.producer._reports.serve = serve  # type: ignore[method-assign]
    flushed: list[int] = []
    flushing = threading.Thread(target=lambda: flushed.append(stuck.producer.flush(0.05)), daemon=True)
    flushing.start()
    flushing.join(PATIENCE_S)
    assert flushed == [1]  # it gave up after its time, while the store still held the record
    assert looks[0] < 10
    stuck.end()


def test_flush_without_a_time_beside_close_ends_with_it() -> None:
    stuck = Stuck()
    stuck.close()
    flushing = threading.Thread(target=stuck.producer.flush, daemon=True)
    flushing.start()
    stuck.end()
    flushing.join(PATIENCE_S)
    assert not flushing.is_alive()
    assert stuck.delivered.codes == [KafkaError._PURGE_INFLIGHT]


@pytest.mark.parametrize("when", ["while it closes", "after it has closed"])
def test_a_record_that_slips_in_is_given_up_and_flush_ends(when: str) -> None:
    """Its thread was between the look at the producer and the append when another thread closed it."""
    stuck = Stuck()
    late = stuck.producer._topics["t"]

    def slip_in() -> None:
        stuck.producer._topics["t"] = late
        stuck.producer.produce("t", b"slipped in")

    stuck.close()
    if when == "while it closes":
        slip_in()
    stuck.end()
    if when == "after it has closed":
        slip_in()
    flushing = threading.Thread(target=stuck.producer.flush, daemon=True)
    flushing.start()
    flushing.join(PATIENCE_S)
    assert not flushing.is_alive()
    assert len(stuck.producer) == 0
    assert sorted(code or 0 for code in stuck.delivered.codes) == [KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT]
    assert read(stuck.lake, "t") == []


def test_free_threaded_python_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    with pytest.raises(RuntimeError, match=r"can't run on free-threaded Python: .* PYTHON_GIL=1"):
        Producer({"lake": live_lake()[0]})
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: True, raising=False)
    Producer({"lake": live_lake()[0]}).close()
