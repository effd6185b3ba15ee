"""`produce_batch`: a list of dicts at once."""

from typing import Any

import pyarrow as pa
import pytest
from support.producers import Delivered, live_lake, producer

from tidelog.clients.values.errors import KafkaError, KafkaException


def test_each_dict_is_a_record() -> None:
    lake, _ = live_lake()
    lake.create_topic("t", 3)
    every, own = Delivered(), Delivered()
    messages = [
        {"value": "a", "key": "k", "partition": 2, "timestamp": 1_700_000_000_123, "headers": [("h", b"1")]},
        {"value": b"b", "callback": own, "unknown": 7},
        {"key": None},
    ]
    with producer(lake) as p:
        assert p.produce_batch("t", messages, partition=1, on_delivery=every) == 3
        assert p.flush() == 0
    assert [(m.partition(), m.key(), m.value()) for _, m in every.all] == [(2, b"k", b"a"), (1, None, None)]
    assert [m.value() for _, m in own.all] == [b"b"]
    (batch,) = lake.topic("t").read(2, include_headers=True)
    assert batch.column("timestamp").cast(pa.int64()).to_pylist() == [1_700_000_000_123_000]
    assert batch.column("headers").to_pylist() == [[{"key": "h", "value": b"1"}]]


@pytest.mark.parametrize(
    ("messages", "says"),
    [
        ({"value": "a"}, "messages must be a list of dicts, not dict"),
        ([{"value": "a"}, "b"], r"messages\[1\] must be a dict, not str"),
        ([{"value": "a"}, {"value": 7}], r"messages\[1\]: value must be str, bytes or None"),
        ([{"value": "a"}, {"key": 7}], r"messages\[1\]: key must be"),
        ([{"partition": "1"}], r"messages\[0\]: partition must be int"),
        ([{"headers": 3}], r"messages\[0\]: headers must be"),
        ([{"callback": 3}], r"messages\[0\]: a delivery callback is a callable"),
    ],
)
def test_what_is_no_record_stops_all_of_them(messages: Any, says: str) -> None:
    lake, _ = live_lake()
    with producer(lake) as p:
        with pytest.raises(TypeError, match=says):
            p.produce_batch("t", messages)
        assert len(p) == 0


def test_records_that_can_not_be_queued_are_marked() -> None:
    lake, _ = live_lake()
    messages: list[dict[str, Any]] = [{"value": b"x" * 2_000}, {"value": "a"}, {"value": "b"}, {"value": "c"}]
    with producer(lake, linger_ms=60_000, message_max_bytes=1_000, queue_buffering_max_messages=2) as p:
        assert p.produce_batch("t", messages) == 2
        assert [m["_error"].code() for m in messages if "_error" in m] == [
            KafkaError.MSG_SIZE_TOO_LARGE,
            KafkaError._QUEUE_FULL,
        ]
        assert p.produce_batch("t", []) == 0
        with pytest.raises(KafkaException, match="a/b"):
            p.produce_batch("a/b", [{"value": "a"}])
    with pytest.raises(RuntimeError, match="Producer closed"):
        p.produce_batch("u", [{"value": "a"}])
