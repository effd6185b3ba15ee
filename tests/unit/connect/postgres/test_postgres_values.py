"""Text forms of PostgreSQL's types as values, in each mode; what Debezium gives for them was read off its output."""

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import pytest

from tidelog.connect.connectors.postgres import literals, times
from tidelog.connect.connectors.postgres.column_types import (
    BinaryHandling,
    CellReader,
    DecimalHandling,
    HstoreHandling,
    IntervalHandling,
    PostgresType,
    TypeModes,
    reader_of,
)
from tidelog.connect.connectors.postgres.times import TimePrecision
from tidelog.connect.data.errors import ConnectError, DataError
from tidelog.connect.data.schema import check_value

NAN = "NaN"
SECOND = datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)
POINT = {"x": 1.5, "y": 2.5, "wkb": bytes.fromhex("0101000000000000000000f83f0000000000000440"), "srid": None}
ISO_INTERVALS = TypeModes(intervals=IntervalHandling.STRING)
READS = (times.days, times.day_us, times.timestamp_us, times.zoned_timestamp, literals.interval)
# (type, typmod, modes, text form, value)
CASES: tuple[tuple[str, int, TypeModes, str, Any], ...] = (
    ("bool", -1, TypeModes(), "t", True),
    ("bool", -1, TypeModes(), "f", False),
    ("int2", -1, TypeModes(), "-5", -5),
    ("int8", -1, TypeModes(), "9007199254740993", 9007199254740993),
    ("oid", -1, TypeModes(), "4000000000", 4000000000),
    ("float8", -1, TypeModes(), "-Infinity", float("-inf")),
    ("bpchar", 9, TypeModes(), "ab   ", "ab   "),
    ("numeric", (9 << 16 | 2) + 4, TypeModes(), "1234.50", Decimal("1234.50")),
    ("numeric", -1, TypeModes(), "123456789.0123", {"scale": 4, "value": bytes.fromhex("011f71fb04cb")}),
    ("numeric", -1, TypeModes(), "0.00001", {"scale": 5, "value": b"\x01"}),
    ("numeric", -1, TypeModes(), "1200", {"scale": 0, "value": bytes.fromhex("04b0")}),
    ("numeric", -1, TypeModes(), "-128", {"scale": 0, "value": b"\x80"}),
    ("numeric", -1, TypeModes(), "128", {"scale": 0, "value": b"\x00\x80"}),
    ("numeric", -1, TypeModes(), "0", {"scale": 0, "value": b"\x00"}),
    ("numeric", (3 << 16 | (-2 & 0x7FF)) + 4, TypeModes(), "12300", Decimal("1.23E+4")),
    ("numeric", -1, TypeModes(decimals=DecimalHandling.DOUBLE), "1.5", 1.5),
    ("numeric", -1, TypeModes(decimals=DecimalHandling.STRING), "1.50", "1.50"),
    ("numeric", -1, TypeModes(decimals=DecimalHandling.STRING), NAN, "NAN"),
    ("money", -1, TypeModes(), "-$1,234.50", Decimal("-1234.50")),
    ("money", -1, TypeModes(money_digits=0), "$12.00", Decimal(12)),
    ("money", -1, TypeModes(decimals=DecimalHandling.STRING), "$12.34", "12.34"),
    ("bytea", -1, TypeModes(), "\\x00ff10", b"\x00\xff\x10"),
    ("bytea", -1, TypeModes(binary=BinaryHandling.BASE64), "\\x00ff10", "AP8Q"),
    ("bytea", -1, TypeModes(binary=BinaryHandling.BASE64_URL_SAFE), "\\xfffe", "__4="),
    ("bytea", -1, TypeModes(binary=BinaryHandling.HEX), "\\x00ff10", "00ff10"),
    ("bit", 1, TypeModes(), "1", True),
    ("bit", 5, TypeModes(), "10101", b"\x15"),
    ("varbit", 20, TypeModes(), "100000001", b"\x01\x01"),
    ("date", -1, TypeModes(), "2026-11-23", 20780),
    ("date", -1, TypeModes(), "infinity", -2147472692),
    ("date", -1, TypeModes(), "0044-03-15 BC", -735160),
    ("date", -1, TypeModes(), "12000-01-01", 3663382),
    ("date", -1, TypeModes(times=TimePrecision.CONNECT), "2026-11-23", date(2026, 11, 23)),
    ("date", -1, TypeModes(times=TimePrecision.ISOSTRING), "2026-11-23", "2026-11-23Z"),
    ("time", -1, TypeModes(), "13:14:15.123456", 47655123456),
    ("time", 3, TypeModes(), "13:14:15.123", 47655123),
    ("time", -1, TypeModes(), "24:00:00", 86_400_000_000),
    ("time", 3, TypeModes(times=TimePrecision.ADAPTIVE_MICROSECONDS), "13:14:15.123", 47655123000),
    ("time", 3, TypeModes(times=TimePrecision.MICROSECONDS), "13:14:15.123", 47655123000),
    ("time", 3, TypeModes(times=TimePrecision.NANOSECONDS), "13:14:15.123", 47655123000000),
    ("time", -1, TypeModes(times=TimePrecision.CONNECT), "13:14:15.5", time(13, 14, 15, 500_000)),
    ("timetz", -1, TypeModes(), "13:14:15.5+02", "11:14:15.5Z"),
    ("timetz", -1, TypeModes(), "01:00:00+02:30", "22:30:00Z"),
    ("timestamp", -1, TypeModes(), "2026-11-23 01:02:03.456789", 1795395723456789),
    ("timestamp", -1, TypeModes(), "2026-11-23 01:02:03", 1795395723000000),
    ("timestamp", 3, TypeModes(), "2026-11-23 01:02:03.456", 1795395723456),
    ("timestamp", -1, TypeModes(), "1969-12-31 23:59:59.999999", -1),
    ("timestamp", -1, TypeModes(), "infinity", 9223372036825200000),
    ("timestamp", -1, TypeModes(times=TimePrecision.MICROSECONDS), "2026-11-23 01:02:03.5", 1795395723500000),
    ("timestamp", 0, TypeModes(times=TimePrecision.NANOSECONDS), "1970-01-01 00:00:01", 1_000_000_000),
    ("timestamp", 0, TypeModes(times=TimePrecision.CONNECT), "1970-01-01 00:00:01", SECOND),
    ("timestamp", 0, TypeModes(times=TimePrecision.ISOSTRING), "1970-01-01 00:00:01", "1970-01-01T00:00:01.000000Z"),
    ("timestamptz", -1, TypeModes(), "2026-11-23 00:02:03.4+00", "2026-11-23T00:02:03.400000Z"),
    ("timestamptz", -1, TypeModes(), "2026-11-23 00:02:03.456789+00", "2026-11-23T00:02:03.456789Z"),
    ("timestamptz", -1, TypeModes(), "2026-11-23 00:02:03+00", "2026-11-23T00:02:03.000000Z"),
    ("timestamptz", 0, TypeModes(), "2026-11-23 00:02:03+00", "2026-11-23T00:02:03Z"),
    ("timestamptz", 2, TypeModes(), "2026-11-23 00:02:03.4+00", "2026-11-23T00:02:03.40Z"),
    ("timestamptz", -1, TypeModes(), "2026-11-23 02:02:03+02", "2026-11-23T00:02:03.000000Z"),
    ("timestamptz", -1, TypeModes(), "-infinity", "-infinity"),
    ("timestamptz", -1, TypeModes(), "0044-03-15 00:00:00+00 BC", "-0043-03-15T00:00:00.000000Z"),
    ("interval", -1, TypeModes(), "1 year 2 mons 3 days 04:05:06.789", 37091106789000),
    ("interval", -1, TypeModes(), "-1 days -02:03:04", -93784000000),
    ("interval", -1, ISO_INTERVALS, "1 year 2 mons 3 days 04:05:06.789", "P1Y2M3DT4H5M6.789S"),
    ("interval", -1, ISO_INTERVALS, "-00:00:01", "P0Y0M0DT0H0M-1S"),
    ("hstore", -1, TypeModes(), '"a"=>"1", "b"=>NULL', '{"a":"1","b":null}'),
    ("hstore", -1, TypeModes(hstores=HstoreHandling.MAP), '"a\\"q"=>"x, y"', {'a"q': "x, y"}),
    ("json", -1, TypeModes(), '{"a": 1}', '{"a": 1}'),
    ("uuid", -1, TypeModes(), "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    ("point", -1, TypeModes(), "(1.5,2.5)", POINT),
)  # fmt: skip


@pytest.mark.parametrize(("name", "typmod", "modes", "text", "value"), CASES)
def test_values(name: str, typmod: int, modes: TypeModes, text: str, value: Any) -> None:
    reader = _reader(PostgresType(1, name), typmod, modes)
    assert reader.read(text) == value
    check_value(reader.schema, reader.read(text))
    check_value(reader.schema, reader.empty)
    if reader.unavailable is not None:
        check_value(reader.schema, reader.unavailable)


def _reader(found: PostgresType, typmod: int = -1, modes: TypeModes | None = None) -> CellReader:
    reader = reader_of(found, typmod, modes or TypeModes())
    assert reader is not None
    return reader


INT4, TEXT = PostgresType(23, "int4"), PostgresType(25, "text")


def test_kinds_of_types() -> None:
    mood = PostgresType(9, "mood", "e", labels=("sad", "ok"))
    assert _reader(mood).schema.parameters == {"allowed": "sad,ok"}
    numbers = _reader(PostgresType(10, "_int4", element=INT4))
    assert numbers.read("{1,NULL,{2}}") == [1, None, [2]]
    assert numbers.unavailable == list(b"__debezium_unavailable_value")
    assert _reader(PostgresType(11, "_text", element=TEXT)).unavailable == ["__debezium_unavailable_value"]
    domain = PostgresType(12, "amount", "d", base=PostgresType(13, "numeric"), base_typmod=(5 << 16 | 1) + 4)
    assert _reader(domain).read("1.5") == Decimal("1.5")
    assert _reader(PostgresType(14, "int4range", "r")).read("[1,5)") == "[1,5)"
    assert reader_of(PostgresType(15, "_money", element=PostgresType(16, "money")), -1, TypeModes()) is None


def test_types_that_are_not_known_are_left_out_or_bytes() -> None:
    box = PostgresType(1, "box")
    assert reader_of(box, -1, TypeModes()) is None
    assert _reader(box, modes=TypeModes(include_unknown=True)).read("(1,1),(0,0)") == b"(1,1),(0,0)"


def test_a_number_that_no_decimal_can_say_is_refused_with_what_to_do() -> None:
    with pytest.raises(ConnectError, match=r"decimal\.handling\.mode"):
        _reader(PostgresType(1, "numeric")).read("NaN")


def test_long_numbers_keep_their_digits() -> None:
    rounded = _reader(PostgresType(1, "numeric"), (40 << 16 | (-2 & 0x7FF)) + 4)
    assert rounded.read("9" * 40 + "00") == Decimal("9" * 40 + "E+2")
    found = _reader(PostgresType(1, "numeric")).read("9" * 5000)
    assert (int.from_bytes(found["value"], "big"), found["scale"]) == (10**5000 - 1, 0)


def test_a_time_that_has_too_many_nanoseconds_is_refused() -> None:
    with pytest.raises(DataError, match=r"time\.precision\.mode"):
        _reader(PostgresType(1, "timestamp"), modes=TypeModes(times=TimePrecision.NANOSECONDS)).read("infinity")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{}", []),
        ('{a,"b c",NULL,"NULL","q\\"x","back\\\\slash"}', ["a", "b c", None, "NULL", 'q"x', "back\\slash"]),
        ("{{1,2},{3,4}}", [["1", "2"], ["3", "4"]]),
        ("[0:1]={a,b}", ["a", "b"]),
        ('{""}', [""]),
    ],
)
def test_arrays(text: str, value: list[Any]) -> None:
    assert literals.array(text, str) == value


@pytest.mark.parametrize("text", ["", "{", "{a", "{a}b", "a"])
def test_no_arrays(text: str) -> None:
    with pytest.raises(DataError):
        literals.array(text, str)


@pytest.mark.parametrize("read", READS)
def test_no_times(read: Any) -> None:
    with pytest.raises((DataError, ValueError)):
        read("yesterday, about noon")


def test_days_are_those_of_python_where_it_has_them() -> None:
    for day in (date(1, 1, 1), date(1969, 12, 31), date(2000, 2, 29), date(9999, 12, 31)):
        assert times.days(day.isoformat()) == day.toordinal() - date(1970, 1, 1).toordinal()
        assert times.iso_date(times.days(day.isoformat())) == day.isoformat()
