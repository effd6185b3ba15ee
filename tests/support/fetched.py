"""What a broker's Fetch answers hold, as a client reads them."""

from typing import NamedTuple

from aiokafka.record.memory_records import MemoryRecords

from tidelog.broker.records.batches import split


class FetchedRecord(NamedTuple):
    offset: int
    value: bytes | None
    key: bytes | None = None
    timestamp_ms: int = -1
    headers: tuple = ()


def records_of(data: bytes, start: int = 0) -> list[FetchedRecord]:
    """The records of an answer from an offset on: a client drops what its batch holds before."""
    found, batches = [], MemoryRecords(bytes(data))
    while (batch := batches.next_batch()) is not None:
        assert batch.validate_crc()
        found += [FetchedRecord(r.offset, r.value, r.key, r.timestamp, tuple(r.headers)) for r in batch]
    return [record for record in found if record.offset >= start]


def position_after(data: bytes, start: int) -> int:
    """Where a client goes on: behind the last offset of the last batch."""
    return max([start, *(header.last_offset + 1 for header, _ in split(data))])
