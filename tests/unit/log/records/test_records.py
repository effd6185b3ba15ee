"""From a caller's table to records: what is taken, in which of Arrow's many forms, and what is refused."""

from datetime import date
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.logs import START_MS as NOW

from tidelog.log.base.errors import InvalidRecordError, InvalidTimestampError, RecordTooLargeError
from tidelog.log.config.topics_and_lakes import TopicConfig
from tidelog.log.delta.schema import HEADERS, SEGMENT
from tidelog.log.records.checks import to_records

DEFAULT = TopicConfig.parse({})
MAX_LONG = 2**63 - 1


def records(table: pa.Table | dict[str, Any], config: TopicConfig = DEFAULT, **overrides: str) -> pa.Table:
    if overrides:
        config = TopicConfig.parse({k.replace("_", "."): v for k, v in overrides.items()})
    made = to_records(table if isinstance(table, pa.Table) else pa.table(table), "t", config, NOW)
    made.validate(full=True)
    assert made.schema.types == [f.type for f in SEGMENT][1:]
    return made


def column(name: str, values: Any, **overrides: str) -> list[Any]:
    """A column of the records of a table that has it beside `value`."""
    made = records({"value": pa.nulls(len(values), pa.binary()), name: values}, **overrides)
    if name == "timestamp":
        return [int(v) for v in made.column(name).cast(pa.int64()).to_pylist()]
    found: list[Any] = made.column(name).to_pylist()
    return found


BYTES_LIKE = {
    "binary": pa.array([b"a", None, b""]),
    "large binary": pa.array([b"a", None, b""], pa.large_binary()),
    "binary view": pa.array([b"a", None, b""], pa.binary_view()),
    "string": pa.array(["a", None, ""]),
    "large string": pa.array(["a", None, ""], pa.large_string()),
    "string view": pa.array(["a", None, ""], pa.string_view()),
    "dictionary of strings": pa.array(["a", None, ""]).dictionary_encode(),
    "dictionary of large binary": pa.array([b"a", None, b""], pa.large_binary()).dictionary_encode(),
    "a slice": pa.array([b"x", b"a", None, b"", b"y"]).slice(1, 3),
    "a slice of a dictionary": pa.array(["x", "a", None, "", "y"]).dictionary_encode().slice(1, 3),
    "chunks, some empty": pa.chunked_array([[b"a"], [], [None, b""]], pa.binary()),
}


@pytest.mark.parametrize("name", ["key", "value"])
@pytest.mark.parametrize("given_", BYTES_LIKE.values(), ids=BYTES_LIKE)
def test_bytes_in_any_form(name: str, given_: pa.Array) -> None:
    table = {"value": pa.nulls(3), name: given_}
    assert records(table).column(name).to_pylist() == [b"a", None, b""]


def test_fixed_size_binary_and_nulls() -> None:
    assert records({"value": pa.array([b"ab", None], pa.binary(2))}).column("value").to_pylist() == [b"ab", None]
    assert records({"value": pa.nulls(2)}).column("value").to_pylist() == [None, None]


def test_columns_that_are_not_there_are_null_and_now() -> None:
    made = records({"value": [b"v"]})
    assert made.column("timestamp").cast(pa.int64()).to_pylist() == [NOW * 1000]
    assert [made.column(c).to_pylist() for c in ("key", "headers", "timestamp_type")] == [[None], [None], [0]]


def test_no_rows_are_no_records() -> None:
    assert records({"value": pa.array([], pa.binary())}).num_rows == 0
    empty = pa.schema({"value": pa.string(), "headers": HEADERS, "timestamp": pa.int64()}).empty_table()
    assert records(empty).num_rows == 0


PAIR = pa.struct([("key", pa.string()), ("value", pa.binary())])
TWO = [[("a", b"1"), ("a", None)], None, []]
HEADER_FORMS = {
    "as they are kept": pa.array(TWO, pa.list_(PAIR)),
    "a map": pa.array(TWO, pa.map_(pa.string(), pa.binary())),
    "strings": pa.array([[{"key": "a", "value": "1"}, {"key": "a", "value": None}], None, []]),
    "fields the other way round": pa.array([[{"value": b"1", "key": "a"}, {"value": None, "key": "a"}], None, []]),
    "large": pa.array(TWO, pa.large_list(pa.struct([("key", pa.large_string()), ("value", pa.large_binary())]))),
    "views": pa.array(TWO, pa.list_view(pa.struct([("key", pa.string_view()), ("value", pa.binary_view())]))),
    "a slice": pa.array([[("x", b"")], *TWO, [("y", b"")]], pa.list_(PAIR)).slice(1, 3),
    "chunks": pa.chunked_array([TWO[:1], [], TWO[1:]], pa.list_(PAIR)),
}


@pytest.mark.parametrize("given_", HEADER_FORMS.values(), ids=HEADER_FORMS)
def test_headers_in_any_form(given_: pa.Array) -> None:
    wanted = [[{"key": "a", "value": b"1"}, {"key": "a", "value": None}], None, []]
    assert column("headers", given_) == wanted


def test_headers_without_values_or_of_nothing() -> None:
    assert column("headers", pa.nulls(1)) == [None]
    assert column("headers", pa.array([[{"key": "a"}]])) == [[{"key": "a", "value": None}]]
    assert column("headers", pa.array([[]])) == [[]]


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no value": ({"key": [b"k"]}, "no column 'value', which every record needs.*: key"),
    "nothing": ({}, "Its columns are: none"),
    "a number for a value": ({"value": [1]}, "'value' for topic 't' is int64, but.*binary or string. Cast it"),
    "a list for a key": ({"value": [b"v"], "key": [[1]]}, "'key' for topic 't' is list"),
    "a column that would be lost": ({"value": [b"v"], "price": [1]}, "columns that a record does not: price"),
    "headers of strings": ({"value": [b"v"], "headers": [["a"]]}, "'headers' for topic 't' is list.*list of structs"),
    "a header without a key": ({"value": [b"v"], "headers": pa.array([[(None, b"1")]], HEADERS)}, "has no key"),
    "a header that is null": ({"value": [b"v"], "headers": pa.array([[None]], HEADERS)}, "has no key"),
    "a header with more": (
        {"value": [b"v"], "headers": pa.array([[{"key": "a", "value": b"", "hash": 1}]])},
        "fields that a header does not: hash",
    ),
    "a header key of no text": (
        {"value": [b"v"], "headers": pa.array([[{"key": b"\xff", "value": b""}]])},
        "Invalid UTF8",
    ),
    "a date": ({"value": [b"v"], "timestamp": [date(2020, 1, 1)]}, "'timestamp' for topic 't' is date32"),
    "a time in words": ({"value": [b"v"], "timestamp": ["2020-01-01"]}, "'timestamp' for topic 't' is string"),
    "another topic's record": (
        {"value": [b"a", b"b"], "topic": ["t", "u"]},
        "for topic 'u' can't be appended to topic 't'",
    ),
}


@pytest.mark.parametrize(("table", "says"), REFUSED.values(), ids=REFUSED)
def test_tables_that_are_refused(table: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidRecordError, match=says):
        records(table)


def test_a_column_twice_is_refused() -> None:
    with pytest.raises(InvalidRecordError, match="'value' more than once"):
        records(pa.Table.from_arrays([pa.array([b"a"])] * 2, names=["value", "value"]))


def test_what_a_reader_adds_is_passed_over() -> None:
    read = {"value": [b"v"], "topic": ["t"], "offset": [5], "timestampType": [1], "partition": [0]}
    assert records(read).column("timestamp_type").to_pylist() == [0]
    assert records({"value": [b"v"], "topic": pa.array(["t"]).dictionary_encode()}).num_rows == 1
    assert records({"value": [b"v"], "topic": pa.nulls(1)}).num_rows == 1


# --- sizes -------------------------------------------------------------------------------------------------

TEXTS = st.none() | st.binary(max_size=6)
SOME_HEADERS = st.none() | st.lists(st.tuples(st.text(max_size=3), TEXTS), max_size=3)


@given(st.lists(st.tuples(TEXTS, TEXTS, SOME_HEADERS), min_size=1, max_size=6), st.integers(0, 20), st.integers(0, 3))
def test_max_message_bytes_counts_key_value_and_headers(rows: list[Any], limit: int, skipped: int) -> None:
    """The oracle counts by hand; the table comes as a slice, as a Spark batch may."""
    table = pa.table(
        {
            "key": pa.array([b"........"] * skipped + [k for k, _, _ in rows], pa.binary()),
            "value": pa.array([b"........"] * skipped + [v for _, v, _ in rows], pa.binary()),
            "headers": pa.array([[("........", b"")]] * skipped + [h for _, _, h in rows], HEADERS),
        }
    ).slice(skipped)
    sizes = [
        len(k or b"") + len(v or b"") + sum(len(name.encode()) + len(x or b"") for name, x in h or [])
        for k, v, h in rows
    ]
    config = TopicConfig.parse({"max.message.bytes": str(limit)})
    too_large = [row for row, size in enumerate(sizes) if size > limit]
    if too_large:
        row = too_large[0]
        says = f"Record {row} for topic 't' has {sizes[row]} bytes.*max.message.bytes={limit}"
        with pytest.raises(RecordTooLargeError, match=says):
            records(table, config)
    else:
        assert records(table, config).num_rows == len(rows)


def test_kafkas_default_limit() -> None:
    assert records({"value": [bytes(1_048_588)]}).num_rows == 1
    with pytest.raises(RecordTooLargeError):
        records({"value": [b"", bytes(1_048_589)]})


# --- compacted topics --------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
def test_a_compacted_topic_wants_keys(policy: str) -> None:
    table = {"key": pa.array([b"", b"k", None]), "value": [b"a", b"b", b"c"]}
    with pytest.raises(InvalidRecordError, match=r"without a key \(row 2 has none\)"):
        records(table, cleanup_policy=policy)
    assert records(pa.table(table).slice(0, 2), cleanup_policy=policy).num_rows == 2
    assert records(table, cleanup_policy="delete").num_rows == 3


# --- timestamps --------------------------------------------------------------------------------------------

US = NOW * 1000
TIMES = {
    "ms as a long": (pa.array([NOW]), US),
    "ms as an int": (pa.array([5], pa.int32()), 5000),
    "ms as an unsigned long": (pa.array([NOW], pa.uint64()), US),
    "seconds": (pa.array([NOW // 1000], pa.timestamp("s")), US),
    "milliseconds": (pa.array([NOW], pa.timestamp("ms")), US),
    "microseconds": (pa.array([US + 7], pa.timestamp("us")), US + 7),
    "nanoseconds, cut": (pa.array([US * 1000 + 1999], pa.timestamp("ns")), US + 1),
    "a time zone": (pa.array([US], pa.timestamp("us", "Europe/Berlin")), US),
    "the epoch": (pa.array([0]), 0),
    "null: now": (pa.array([None], pa.int64()), US),
    "nulls of no type: now": (pa.nulls(1), US),
    "an hour ahead": (pa.array([NOW + 3_600_000]), US + 3_600_000_000),
}


@pytest.mark.parametrize(("given_", "wanted"), TIMES.values(), ids=TIMES)
def test_timestamps_in_any_form(given_: pa.Array, wanted: int) -> None:
    assert column("timestamp", given_) == [wanted]


BAD_TIMES = {
    "before the epoch": pa.array([-1]),
    "before the epoch by a microsecond": pa.array([-1], pa.timestamp("us")),
    "more than an hour ahead": pa.array([NOW + 3_600_001]),
    "ms that overflow": pa.array([MAX_LONG]),
    "an unsigned long that overflows": pa.array([2**64 - 1], pa.uint64()),
    "seconds that overflow": pa.array([2**62], pa.timestamp("s")),
}


@pytest.mark.parametrize("given_", BAD_TIMES.values(), ids=BAD_TIMES)
def test_timestamps_out_of_range(given_: pa.Array) -> None:
    with pytest.raises(InvalidTimestampError, match=r"[Tt]imestamp.*out of range.*Correct the producer's timestamps"):
        column("timestamp", given_)


def test_message_timestamp_before_and_after_max_ms() -> None:
    bounds = {"message_timestamp_before_max_ms": "1000", "message_timestamp_after_max_ms": "2000"}
    assert column("timestamp", [NOW - 1000, NOW + 2000], **bounds) == [US - 1_000_000, US + 2_000_000]
    for wrong in (NOW - 1001, NOW + 2001):
        with pytest.raises(InvalidTimestampError, match=rf"Timestamp {wrong} .*\[{NOW - 1000}, {NOW + 2000}\]"):
            column("timestamp", [NOW, wrong], **bounds)


def test_as_far_ahead_as_microseconds_go() -> None:
    far = MAX_LONG // 1000
    assert column("timestamp", [far], message_timestamp_after_max_ms=str(MAX_LONG)) == [far * 1000]
    with pytest.raises(InvalidTimestampError):
        column("timestamp", [far + 1], message_timestamp_after_max_ms=str(MAX_LONG))


def test_log_append_time_takes_no_notice_of_the_producers() -> None:
    made = records({"value": [b"v"], "timestamp": [-5]}, message_timestamp_type="LogAppendTime")
    assert made.column("timestamp").cast(pa.int64()).to_pylist() == [US]
    assert made.column("timestamp_type").to_pylist() == [1]
