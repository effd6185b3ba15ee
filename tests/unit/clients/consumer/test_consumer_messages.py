"""Records as messages: few are made one by one, many at once, and all are the same."""

import pyarrow as pa
import pytest

from tidelog.clients.consumer.assignment import PartitionState
from tidelog.clients.consumer.buffer import to_messages
from tidelog.clients.values.message import Message
from tidelog.log.delta.schema import RECORDS_WITH_HEADERS
from tidelog.log.segments.fetch import as_batch
from tidelog.log.segments.few_records import FewRecords

# Microseconds since the epoch and type -> what `Message.timestamp` says.
TIMES: dict[tuple[int | None, int | None], tuple[int, int]] = {
    (1_700_000_000_123_000, 0): (1, 1_700_000_000_123),
    (1_700_000_000_123_999, 1): (2, 1_700_000_000_123),
    (0, 0): (1, 0),
    (-1, 0): (1, -1),
}
UNKNOWN: dict[tuple[int | None, int | None], tuple[int, int]] = {(None, 0): (0, -1), (5_000, None): (0, -1)}


def batch(count: int, times: list[tuple[int | None, int | None]]) -> pa.RecordBatch:
    rows = [times[i % len(times)] for i in range(count)]
    headers = [[{"key": "h", "value": None}] if i % 3 == 0 else None if i % 3 == 1 else [] for i in range(count)]
    columns = [
        [None if i % 2 else b"k" for i in range(count)],
        [b"%d" % i for i in range(count)],
        ["t"] * count,
        [1] * count,
        list(range(7, 7 + count)),
        [us for us, _ in rows],
        [kind for _, kind in rows],
        headers,
    ]
    arrays = [pa.array(c, f.type) for c, f in zip(columns, RECORDS_WITH_HEADERS, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=RECORDS_WITH_HEADERS)


@pytest.mark.parametrize("cases", [TIMES, TIMES | UNKNOWN], ids=["all known", "another engine's nulls"])
@pytest.mark.parametrize("count", [0, 1, 5, 100])
def test_messages_say_what_the_records_say(
    count: int, cases: dict[tuple[int | None, int | None], tuple[int, int]]
) -> None:
    times = list(cases)
    messages = to_messages(batch(count + 3, times).slice(3), PartitionState("t", 1))
    assert [m.timestamp() for m in messages] == [cases[times[i % len(times)]] for i in range(3, count + 3)]
    assert [m.offset() for m in messages] == list(range(10, count + 10))
    assert [m.value() for m in messages] == [b"%d" % i for i in range(3, count + 3)]
    assert [m.key() for m in messages] == [None if i % 2 else b"k" for i in range(3, count + 3)]
    assert [m.headers() for m in messages] == [[("h", None)] if i % 3 == 0 else None for i in range(3, count + 3)]


@pytest.mark.parametrize("part", [(0, 5), (0, 1), (2, 2), (4, 9), (5, 1)])
@pytest.mark.parametrize("kind", [0, 1])
def test_few_records_are_what_their_batch_is(kind: int, part: tuple[int, int]) -> None:
    columns = {
        "key": [None, b"k", b"", None, b"k2"],
        "value": [b"v", None, b"", b"v3", b"v4"],
        "timestamp": [1_700_000_000_123_999, 0, -1, 2**63 - 1, -(2**63)],
        "timestamp_type": [kind] * 5,
        "headers": [None] * 5,
    }
    few, owned = FewRecords(range(7, 12), columns), PartitionState("t", 1)
    whole, taken = as_batch(few, "t", 1), few.slice(*part)
    assert whole.schema == RECORDS_WITH_HEADERS
    assert taken.num_rows == whole.slice(*part).num_rows
    assert list(map(fields, to_messages(taken, owned))) == list(map(fields, to_messages(whole.slice(*part), owned)))
    if taken.num_rows:
        assert as_batch(taken, "t", 1) == whole.slice(*part)


def fields(message: Message) -> tuple[object, ...]:
    return tuple(getattr(message, name) for name in Message.__slots__)
