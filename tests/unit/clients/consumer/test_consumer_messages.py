"""Records as messages: few are made one by one, many at once, and all are the same."""

import pyarrow as pa
import pytest

from tidelog.clients.consumer.assignment import PartitionState
from tidelog.clients.consumer.buffer import to_messages
from tidelog.log.delta.schema import RECORDS_WITH_HEADERS

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
