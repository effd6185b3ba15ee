"""Format strings, escapes and the numbers that people read."""

import pyarrow as pa
import pytest

from tidelog.cli.records.as_text import compile_format, needs_headers
from tidelog.cli.records.escapes import to_bytes, unescape
from tidelog.commands.terminal import duration, in_words, size
from tidelog.log.delta.schema import RECORDS_WITH_HEADERS

BATCH = pa.RecordBatch.from_pylist(
    [
        {
            "key": b"k1",
            "value": b"one",
            "topic": "orders",
            "partition": 2,
            "offset": 41,
            "timestamp": 1_700_000_000_123_456,
            "timestampType": 0,
            "headers": [{"key": "a", "value": b"1"}, {"key": "b", "value": None}],
        },
        {
            "key": None,
            "value": None,
            "topic": "orders",
            "partition": 2,
            "offset": 42,
            "timestamp": 1_700_000_000_124_000,
            "timestampType": 0,
            "headers": None,
        },
    ],
    schema=RECORDS_WITH_HEADERS,
)


@pytest.mark.parametrize(
    ("text", "with_null_as_nothing", "with_null_as_text"),
    [
        (r"%s\n", b"one\n\n", b"one\nNULL\n"),
        (r"%k=%s;", b"k1=one;=;", b"k1=one;NULL=NULL;"),
        (r"%t [%p] %o\n", b"orders [2] 41\norders [2] 42\n", None),
        (r"%T,", b"1700000000123,1700000000124,", None),
        (r"%S/%K ", b"3/2 -1/-1 ", None),
        ("%R", b"\x00\x00\x00\x03\xff\xff\xff\xff", None),
        (r"%h\n", b"a=1,b=\n\n", b"a=1,b=NULL\n\n"),
        ("100%%: %o ", b"100%: 41 100%: 42 ", None),
        (r"\x1e%o\0", b"\x1e41\x00\x1e42\x00", None),
        ("ü%o", "ü41ü42".encode(), None),
        (r"\\%o", b"\\41\\42", None),
        ("-", b"--", None),
        ("", b"", None),
    ],
)
def test_format(text, with_null_as_nothing, with_null_as_text):
    assert compile_format(text)(BATCH) == with_null_as_nothing
    assert compile_format(text, nulls=True)(BATCH) == (with_null_as_text or with_null_as_nothing)


@pytest.mark.parametrize(
    ("text", "why"), [("%x", "%x is no token"), ("%s %", "% is no token"), (r"%s\q", r"\q is no escape")]
)
def test_unknown_tokens_are_named(text, why):
    with pytest.raises(ValueError, match="is no") as error:
        compile_format(text)
    assert why in str(error.value)


def test_headers_are_needed_only_where_they_are_shown():
    assert needs_headers("%s %h")
    assert not needs_headers("%s %%h")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (":", b":"),
        (r"\t", b"\t"),
        (r"\x1f|\n", b"\x1f|\n"),
        ("→", "→".encode()),
        (r"a\\b", b"a\\b"),
        ("", b""),
        ("\udcff", b"\xff"),
    ],
)
def test_unescape(text, expected):
    assert unescape(text) == expected


@pytest.mark.parametrize("text", [r"\q", "\\", r"\x1", r"\xzz"])
def test_unescape_refuses_what_it_does_not_know(text):
    with pytest.raises(ValueError, match="is no escape"):
        unescape(text)


def test_arguments_are_taken_as_they_were_typed():
    assert to_bytes("é\udcff") == b"\xc3\xa9\xff"


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1536, "1.5 KiB"),
        (1 << 20, "1.0 MiB"),
        ((1 << 20) - 1, "1.0 MiB"),
        (5 << 40, "5.0 TiB"),
    ],
)
def test_size(count, expected):
    assert size(count) == expected


@pytest.mark.parametrize(
    ("ms", "expected"),
    [(604_800_000, "7 d"), (5_400_000, "90 min"), (1500, "1500 ms"), (0, "0 ms"), (3_600_000, "1 h")],
)
def test_duration(ms, expected):
    assert duration(ms) == expected


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("retention.ms", "604800000", "7 d"),
        ("retention.ms", "-1", ""),
        ("retention.ms", "1500", ""),
        ("max.compaction.lag.ms", "9223372036854775807", "no limit"),
        ("segment.bytes", "1073741824", "1.0 GiB"),
        ("segment.bytes", "14", ""),
        ("cleanup.policy", "compact", ""),
        ("num.partitions", "8", ""),
    ],
)
def test_numbers_in_words(name, value, expected):
    assert in_words(name, value) == expected
