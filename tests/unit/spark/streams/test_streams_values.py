"""Windows, configuration, functions' arguments, and the bytes of single values."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql.types import BinaryType, DataType, LongType, StringType
from support.pages import text_of

from tidelog.log.base.errors import InvalidConfigError, InvalidOptionError
from tidelog.log.base.keys import keys_of
from tidelog.spark.streams.config import StreamsConfig
from tidelog.spark.streams.functions import parameters, plain
from tidelog.spark.streams.packing import dumper, loader
from tidelog.spark.streams.windows import interval, micros
from tidelog.streams import JoinWindows, SessionWindows, TimeWindows, serdes

MINUTE = timedelta(minutes=1)
LEAST = {"application.id": "app", "lake": "/tmp/lake"}


def test_windows_have_kafkas_words() -> None:
    assert TimeWindows.of_size_and_grace(5 * MINUTE, MINUTE).advance_by(MINUTE) == TimeWindows(
        5 * MINUTE, MINUTE, MINUTE
    )
    assert TimeWindows.of_size_with_no_grace(MINUTE).emit_on_close().on_close
    assert SessionWindows.of_inactivity_gap_and_grace(MINUTE, 2 * MINUTE) == SessionWindows(MINUTE, 2 * MINUTE)
    assert JoinWindows.of_time_difference_with_no_grace(MINUTE).before(2 * MINUTE) == JoinWindows(2 * MINUTE, MINUTE)
    assert (micros(MINUTE), interval(MINUTE)) == (60_000_000, "60000000 microseconds")


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: TimeWindows.of_size_with_no_grace(timedelta(0)), "a window's size is 0:00:00"),
        (lambda: TimeWindows.of_size_with_no_grace(MINUTE).advance_by(2 * MINUTE), "advance is 0:02:00"),
        (lambda: TimeWindows.of_size_and_grace(MINUTE, -MINUTE), "grace is"),
        (lambda: SessionWindows(timedelta(0)), "the inactivity gap is 0:00:00"),
        (lambda: JoinWindows.of_time_difference_with_no_grace(MINUTE).before(-2 * MINUTE), "ends before it begins"),
    ],
)
def test_windows_that_can_not_be_are_refused(make: Any, why: str) -> None:
    with pytest.raises(InvalidOptionError, match=why):
        make()


def test_a_configuration_has_kafkas_keys_and_a_lakes() -> None:
    made = StreamsConfig.of(
        {
            **LEAST,
            "commit.interval.ms": 500,
            "auto.offset.reset": "latest",
            "processing.guarantee": "exactly_once_v2",
            "spark.sql.shuffle.partitions": 3,
            "source.maxOffsetsPerTrigger": 1000,
            "lake.s3.endpoint": "http://localhost:1",
        }
    )

    assert (made.commit_interval_ms, made.folder) == (500, "__streams/app")
    assert made.session["spark.sql.shuffle.partitions"] == "3"
    assert "RocksDB" in made.session["spark.sql.streaming.stateStore.providerClass"]
    assert made.source_options == {
        "lake": "/tmp/lake",
        "startingOffsets": "latest",
        "lake.s3.endpoint": "http://localhost:1",
        "maxOffsetsPerTrigger": "1000",
    }
    assert made.sink_options == {
        "lake": "/tmp/lake",
        "includeTimestamp": "true",
        "lake.s3.endpoint": "http://localhost:1",
    }


@pytest.mark.parametrize(
    ("own", "given", "parts"),
    [
        ({}, {}, "4"),
        ({}, {"spark.sql.shuffle.partitions": "7"}, "7"),
        ({"spark.sql.shuffle.partitions": 3}, {"spark.sql.shuffle.partitions": "7"}, "3"),
    ],
)
def test_a_state_has_a_part_for_each_core_where_nothing_says_how_many(
    own: dict[str, Any], given: dict[str, str], parts: str
) -> None:
    settings = StreamsConfig.of({**LEAST, **own}).session_settings({"spark.sql.ansi.enabled": "false", **given}, 4)

    assert settings["spark.sql.shuffle.partitions"] == parts
    assert settings["spark.sql.ansi.enabled"] == "false"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"application.id": "a/b"}, "application.id is 'a/b'"),
        ({"lake": None}, "has no lake"),
        ({"processing.guarantee": "at_least_once"}, "always exactly_once_v2"),
        ({"auto.offset.reset": "none"}, "auto.offset.reset is 'none'"),
        ({"commit.interval.ms": "-1"}, "commit.interval.ms is '-1'"),
        ({"state.dir": "/elsewhere"}, "give a folder inside the lake"),
        ({"state.dir": "../elsewhere"}, "give a folder inside the lake"),
        ({"num.stream.threads": 2}, "No such configuration: num.stream.threads"),
    ],
)
def test_a_configuration_that_is_wrong_is_refused(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidConfigError, match=why):
        StreamsConfig.of({**LEAST, **changes})


def test_the_page_has_each_key_with_its_default_and_meaning() -> None:
    page = text_of("docs/streams.md")
    for key in keys_of(StreamsConfig).values():
        usual = f"`{key.usual}` " if key.usual else ""
        assert f"\n| `{key.name}` | {usual}| {key.doc} |\n" in page


def test_functions_are_called_with_as_many_columns_as_they_take() -> None:
    assert parameters(lambda value: value) == 1
    assert parameters(lambda key, value, fixed=1: (key, value, fixed)) == 2
    assert parameters(str.upper) == 1


def test_structs_are_dicts_in_python() -> None:
    from pyspark.sql import Row

    assert plain(Row(page="a", seen=[Row(n=1), None])) == {"page": "a", "seen": [{"n": 1}, None]}


@pytest.mark.parametrize(
    ("serde", "value", "data"),
    [
        (serdes.STRING, "é", b"\xc3\xa9"),
        (serdes.BYTES, b"\x00", b"\x00"),
        (serdes.LONG, -2, b"\xff\xff\xff\xff\xff\xff\xff\xfe"),
        (serdes.INTEGER, 258, b"\x00\x00\x01\x02"),
        (serdes.json(), {"page": "a", "seconds": [1, None]}, b'{"page":"a","seconds":[1,null]}'),
        (serdes.STRING, None, None),
        (serdes.json(), None, None),
    ],
)
def test_single_values_are_kafkas_bytes(serde: serdes.Serde, value: Any, data: bytes | None) -> None:
    assert serde.dumps(value) == data
    assert serde.loads(data) == value


def test_keys_of_windows_are_read_as_kafka_streams_writes_them() -> None:
    start, end = datetime(1970, 1, 1, 0, 1, tzinfo=UTC), datetime(1970, 1, 1, 0, 2, tzinfo=UTC)
    found = {"key": "k", "window": {"start": start, "end": end}}

    assert serdes.time_windowed(serdes.STRING, MINUTE).loads(b"k" + (60_000).to_bytes(8, "big")) == found
    session = b"k" + (120_000).to_bytes(8, "big") + (60_000).to_bytes(8, "big")
    assert serdes.session_windowed(serdes.STRING).loads(session) == found


@pytest.mark.parametrize(
    ("kind", "value", "data"),
    [
        pytest.param(StringType(), "é", "é".encode(), id="text"),
        pytest.param(StringType(), "", b"", id="no text"),
        pytest.param(BinaryType(), b"\x00\xff", b"\x00\xff", id="bytes"),
    ],
)
def test_texts_and_bytes_go_to_python_as_spark_casts_them(kind: DataType, value: Any, data: bytes) -> None:
    assert dumper(kind)(value) == data
    assert loader(kind)(bytearray(data)) == value


@pytest.mark.parametrize("kind", [StringType(), BinaryType(), LongType()], ids=str)
def test_null_is_no_bytes(kind: DataType) -> None:
    assert dumper(kind)(None) is None
    assert loader(kind)(None) is None


def test_other_values_go_to_python_whole() -> None:
    """Pandas would make a float of a whole number that may be null."""
    assert loader(LongType())(dumper(LongType())(2**60 + 1)) == 2**60 + 1
