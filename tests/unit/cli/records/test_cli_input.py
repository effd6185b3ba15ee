"""Input for produce: cut into records wherever the pieces fall, and read without waiting longer than asked."""

import io
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.cli.records.from_input import LineRule, Record, RecordInput, Splitter
from tidelog.log.base.errors import RecordTooLargeError


@given(
    st.lists(st.binary(max_size=8).map(lambda b: b.replace(b"a", b"")), max_size=6),
    st.sampled_from([b"\n", b"ab", b"aab"]),
    st.lists(st.integers(1, 5), max_size=30),
)
def test_records_do_not_depend_on_where_chunks_end(records, delimiter, cuts):
    whole = b"".join(r.replace(b"\n", b"") + delimiter for r in records)
    splitter, found, at = Splitter(delimiter, 1 << 20), [], 0
    for cut in [*cuts, len(whole) + 1]:
        found += splitter.feed(whole[at : at + cut])
        at += cut
    assert found + splitter.finish() == [r.replace(b"\n", b"") for r in records]


@pytest.mark.parametrize(
    ("text", "expected"),
    [(b"", []), (b"a", [b"a"]), (b"a\n", [b"a"]), (b"a\n\nb", [b"a", b"", b"b"]), (b"\n", [b""])],
)
def test_the_last_record_needs_no_delimiter(text, expected):
    splitter = Splitter(b"\n", 100)
    assert splitter.feed(text) + splitter.finish() == expected


def test_what_never_ends_is_refused_before_it_fills_the_memory():
    splitter = Splitter(b"\n", 10)
    assert splitter.feed(b"0123456789") == []
    with pytest.raises(RecordTooLargeError, match="over 10 bytes and no delimiter"):
        splitter.feed(b"0")


@pytest.mark.parametrize(
    ("delimiter", "nulls", "line", "key", "value"),
    [
        (None, False, b"a:b", None, b"a:b"),
        (b":", False, b"a:b:c", b"a", b"b:c"),
        (b"::", False, b"a::b", b"a", b"b"),
        (b":", False, b"no key", None, b"no key"),
        (b":", False, b":b", b"", b"b"),
        (b":", False, b"a:", b"a", b""),
        (b":", True, b":b", None, b"b"),
        (b":", True, b"a:", b"a", None),
        (None, True, b"", None, None),
        (None, False, b"", None, b""),
    ],
)
def test_lines(delimiter, nulls, line, key, value):
    assert LineRule(delimiter, empty_is_null=nulls).parse(line) == Record(key, value)


def test_a_source_gives_what_is_there_and_then_its_end():
    read, write = os.pipe()
    asleep, wake = os.pipe()
    with open(read, "rb", buffering=0) as stream:
        source = RecordInput("pipe", stream, asleep)
        assert source.read(0) is None
        os.write(write, b"abc")
        assert source.read(None) == b"abc"
        os.close(write)
        assert source.read(None) == b""
    os.close(asleep)
    os.close(wake)


def test_a_source_waits_no_longer_than_until_a_stop():
    read, write = os.pipe()
    asleep, wake = os.pipe()
    with open(read, "rb", buffering=0) as stream:
        os.write(wake, b"!")
        assert RecordInput("pipe", stream, asleep).read(None) is None
    for descriptor in (write, asleep, wake):
        os.close(descriptor)


def test_a_source_of_bytes_in_memory():
    source = RecordInput("memory", io.BytesIO(b"ab"), -1)
    assert [source.read(None), source.read(None)] == [b"ab", b""]
