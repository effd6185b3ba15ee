"""A producer and typed topics: columns instead of values, and records that don't fit fail alone."""

import orjson
import pyarrow as pa
import pytest
from support.producers import Delivered, live_lake, producer
from support.value_typings import FLIGHT, avro_payload, flight

from tidelog.clients.values.errors import KafkaError, KafkaException
from tidelog.log.lake import Lake

TYPED = {"value.columns": "avro", "value.schema": orjson.dumps(FLIGHT).decode()}


def typed_lake(**more: str) -> Lake:
    lake, _ = live_lake()
    lake.create_topic("t", 1, TYPED | {name.replace("_", "."): value for name, value in more.items()})
    lake.create_topic("plain", 1)
    return lake


def payload(number: int) -> bytes:
    return avro_payload(FLIGHT, flight(number))


def stored(lake: Lake) -> list[bytes | None]:
    return [value for batch in lake.topic("t").read(0) for value in batch.column("value").to_pylist()]


@pytest.mark.parametrize("bytes_", ["keep", "derive"])
def test_a_tables_columns_become_values(bytes_: str) -> None:
    lake = typed_lake(value_bytes=bytes_)
    rows = [{"carrier": "HA", "number": number} for number in range(3)]
    with producer(lake) as p:
        future = p.produce_table("t", pa.table({"columns": pa.array([*rows, None])}))
    assert future.result(0) == {0: (0, 4)}
    expected = [avro_payload(FLIGHT, {**flight(0), **row, "dep_delay": None, "seats": {}}) for row in rows]
    assert stored(lake) == [*expected, None]
    lake.topic("t").append([{"columns": rows[0]}])
    assert stored(lake)[-1] == expected[0]


def test_columns_need_a_typed_topic() -> None:
    with producer(typed_lake()) as p:
        future = p.produce_table("plain", pa.table({"columns": pa.array([{"a": 1}])}))
    with pytest.raises(KafkaException, match="no column 'value'"):
        future.result(0)


def test_a_value_that_does_not_fit_fails_alone() -> None:
    lake, told = typed_lake(topic_validate="true"), Delivered()
    with producer(lake, on_delivery=told) as p:
        for value in (payload(1), b"no", None, payload(2), b"nor"):
            p.produce("t", value)
    bad = KafkaError.INVALID_RECORD
    by_value = {message.value(): error and error.code() for error, message in told.all}
    assert by_value == {payload(1): None, b"no": bad, None: None, payload(2): None, b"nor": bad}
    texts = [error.str() for error, _ in told.all if error]
    assert all("the record is refused: it does not fit schema -1" in text for text in texts)
    assert stored(lake) == [payload(1), None, payload(2)]
