"""A lake on a real S3 server, with a proxy in between that fails when a test says so."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from support.fault_proxy import Fault, FaultProxy, fault_proxy, storm
from support.versitygw import S3Place, fresh_place

from tidelog.log.lake import Lake
from tidelog.log.storage import ObjectStorage, open_storage

RETRIES = 5
# Faults that a client meets with an answer, or with the end of the connection; it does not wait for its time-out.
QUICK = (Fault.LOST, Fault.DROPPED, Fault.SLOW_DOWN, Fault.ERROR, Fault.ERROR_AFTER)
_OPTIONS = {
    "lake.store.retries": str(RETRIES),
    "lake.store.retry.backoff.ms": "2",
    "lake.store.retry.backoff.max.ms": "20",
    "lake.store.request.timeout.ms": "1000",
    "lake.store.retry.timeout.ms": "5000",
}


@dataclass(frozen=True)
class FaultyStore:
    """`place` on the server, `proxy` before it."""

    place: S3Place
    proxy: FaultProxy

    def storage(self, **more: str) -> ObjectStorage:
        """The store through the proxy, repeating requests after milliseconds; `more`: options, `_` for `.`."""
        options = {**self.place.options, "lake.s3.endpoint": self.proxy.url, **_OPTIONS}
        options |= {f"lake.store.{name.replace('_', '.')}": value for name, value in more.items()}
        storage = open_storage(self.place.uri, options)
        assert isinstance(storage, ObjectStorage)
        return storage

    def lake(self, **more: str) -> Lake:
        """The lake through the proxy, opened again."""
        return Lake(self.place.uri, storage=self.storage(**more))

    def well(self) -> Lake:
        """The lake without the proxy."""
        return Lake(self.place.uri, storage=self.place.storage())


@contextmanager
def faulty_store() -> Iterator[FaultyStore]:
    """An empty one."""
    with fresh_place() as place, fault_proxy(place.endpoint) as proxy:
        yield FaultyStore(place, proxy)


def bad_weather(seed: int) -> object:
    """A quarter of all requests fail, in every quick way."""
    return storm(seed, 0.25, *QUICK)


def records(lake: Lake, topic: str) -> dict[int, list[str]]:
    """Each partition's values in the order of their offsets, which have no gap."""
    handle = lake.topic(topic)
    found: dict[int, list[str]] = {}
    for partition, (start, end) in handle.offsets().items():
        rows = [row for batch in handle.read(partition) for row in batch.select(["offset", "value"]).to_pylist()]
        assert [row["offset"] for row in rows] == list(range(start, end))
        found[partition] = [row["value"].decode() for row in rows]
    return found


def repeated(found: dict[int, list[str]]) -> list[str]:
    """Values that are there more than once."""
    counts = Counter(value for values in found.values() for value in values)
    return [value for value, count in counts.items() if count > 1]
