"""Any history of a compacted partition: what compaction keeps, and what readers see of it."""

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from support.logs import memory_lake, open_lake

from tidelog.check.lake import Severity, check_lake
from tidelog.log.lake import Lake
from tidelog.retention.compaction.run import LocalCompactor, compact
from tidelog.retention.maintenance import maintain

RETENTION_S = 100
CONFIG = {
    "cleanup.policy": "compact,delete",
    "retention.ms": "-1",
    "delete.retention.ms": str(RETENTION_S * 1000),
    "segment.ms": "10000",
    "min.cleanable.dirty.ratio": "0",
}
CHANGES = ("put", "put_if_absent", "create", "write", "delete")

RECORDS = st.lists(st.tuples(st.sampled_from("abcd"), st.booleans()), min_size=1, max_size=4)
STEPS = st.one_of(
    st.tuples(st.just("append"), RECORDS),
    st.tuples(st.just("wait"), st.sampled_from([1, 11, 40, RETENTION_S])),
    st.tuples(st.just("compact"), st.sampled_from([1, 200, 10**6])),
    st.tuples(st.just("killed"), st.integers(0, 6)),
    st.tuples(st.just("merge"), st.none()),
    st.tuples(st.just("delete"), st.floats(0, 1)),
    st.tuples(st.just("read"), st.integers(1, 5)),
)


class KilledError(BaseException):
    """The process ends here."""


@dataclass
class Reader:
    """Reads from the start in small steps; knows each key's value as of its position."""

    began_ms: int
    position: int
    values: dict[str, str] = field(default_factory=dict)


@dataclass
class World:
    """A partition, and all that was ever written to it: (key, value, None for a tombstone) by offset."""

    lake: Lake
    storage: Any
    clock: Any
    written: list[tuple[str, str | None]] = field(default_factory=list)
    met_ms: dict[int, int] = field(default_factory=dict)
    reader: Reader | None = None

    def run(self, step: str, what: Any) -> None:
        getattr(self, step)(what)
        state = self.lake.topic("t").state()
        for offset in range(state.cleans.get(0, 0)):
            self.met_ms.setdefault(offset, self.clock.now_ms())

    def append(self, records: list[tuple[str, bool]]) -> None:
        values = [None if deleted else f"v{len(self.written) + n}" for n, (_, deleted) in enumerate(records)]
        keys = [key for key, _ in records]
        self.lake.topic("t").append(pa.table({"key": keys, "value": pa.array(values, pa.string())}))
        self.written.extend(zip(keys, values, strict=True))

    def wait(self, seconds: int) -> None:
        self.clock.pass_s(seconds)

    def compact(self, map_bytes: int) -> None:
        compactor = LocalCompactor(self.lake.storage, self.lake.ids, map_bytes=map_bytes)
        compact(self.lake, "t", now_ms=self.clock.now_ms(), compactor=compactor)

    def killed(self, at: int) -> None:
        calls = iter(range(1 << 30))

        def kill(method: str, _: str, phase: str) -> None:
            if method in CHANGES and phase == "before" and next(calls) >= at:
                raise KilledError

        self.storage.hook = kill
        with suppress(KilledError):
            self.compact(10**6)
        self.storage.hook = lambda *_: None
        self.lake = open_lake(self.storage, self.clock)

    def merge(self, _: None) -> None:
        assert not maintain(self.lake, only=["merge"]).failed

    def delete(self, share: float) -> None:
        self.lake.delete_records("t", {0: int(share * len(self.written))})

    def read(self, count: int) -> None:
        start, end = self.lake.offsets("t")[0]
        if self.reader is None or self.reader.position < start:
            self.reader = Reader(self.clock.now_ms(), start)
        reader = self.reader
        for offset, key, value in self.live(reader.position)[:count]:
            reader.position = offset + 1
            reader.values[key] = value
        if not self.live(reader.position):
            reader.position = end
            if self.clock.now_ms() - reader.began_ms < RETENTION_S * 1000:
                self.sees_the_newest(reader, start)
            self.reader = None

    def sees_the_newest(self, reader: Reader, start: int) -> None:
        """Each key has its newest value, or is as gone as its tombstone says."""
        truth = dict(self.written[start:])
        seen = {key: value for key, value in reader.values.items() if value is not None}
        known = {key: value for key, value in truth.items() if value is not None}
        # A key whose records were all cut off while the reader was under way may still be known to it.
        assert {key: value for key, value in seen.items() if key in truth} == known

    def live(self, start: int) -> list[tuple[int, str, str | None]]:
        low, high = self.lake.offsets("t")[0]
        rows = [
            row
            for batch in self.lake.topic("t").read(0, min(max(start, low), high))
            for row in batch.select(["offset", "key", "value"]).to_pylist()
        ]
        return [(r["offset"], r["key"].decode(), None if r["value"] is None else r["value"].decode()) for r in rows]

    def check(self) -> None:
        """Below the clean offset each key has its newest record; above, all records are there."""
        start, end = self.lake.offsets("t")[0]
        assert end == len(self.written)
        clean = max(start, self.lake.topic("t").state().cleans.get(0, 0))
        live = self.live(start)
        assert live == [(offset, *self.written[offset]) for offset, _, _ in live], "offsets, order and records stay"
        offsets = [offset for offset, _, _ in live]
        assert [offset for offset in offsets if offset >= clean] == list(range(clean, end)), "nothing dirty is missing"
        newest = {key: offset for offset, (key, _) in enumerate(self.written[:clean]) if offset >= start}
        now_ms = self.clock.now_ms()
        gone = {
            offset
            for offset in newest.values()
            if self.written[offset][1] is None and now_ms - self.met_ms[offset] >= RETENTION_S * 1000
        }
        below = {offset for offset in offsets if offset < clean}
        assert set(newest.values()) - gone <= below <= set(newest.values())


@given(begun=RECORDS, steps=st.lists(STEPS, min_size=4, max_size=16))
def test_any_history_keeps_the_newest_of_each_key(begun: list[tuple[str, bool]], steps: list[tuple[str, Any]]) -> None:
    lake, storage, clock = memory_lake()
    lake.create_topic("t", partitions=1, config=CONFIG)
    world = World(lake, storage, clock)
    for step, what in [("append", begun), *steps]:
        world.run(step, what)
        world.check()
    for _ in range(4):  # no writer is left: the active segment ends, and tombstones have their time
        world.run("wait", RETENTION_S)
        world.run("compact", 10**6)
        world.check()
    start, _ = world.lake.offsets("t")[0]
    newest = {key: (offset, key, value) for offset, (key, value) in enumerate(world.written) if offset >= start}
    assert world.live(start) == sorted(row for row in newest.values() if row[2] is not None)
    assert not check_lake(storage, None, True).of(Severity.ERROR)
