"""Traceparents as W3C has them, those in records, and how many traces may begin."""

import io

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from hypothesis import given
from hypothesis import strategies as st

from tidelog.server.telemetry.tracing import (
    LOOKED_AT_BYTES,
    MOST_LINKS,
    MOST_TRACES_A_SECOND,
    TraceBudget,
    TraceParent,
    parsed_traceparent,
    traceparents,
    traceparents_of_pieces,
    traceparents_of_records,
)

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@pytest.mark.parametrize(
    ("text", "parent"),
    [
        (f"00-{TRACE}-{SPAN}-01", TraceParent(int(TRACE, 16), int(SPAN, 16), True)),
        (f"00-{TRACE}-{SPAN}-02", TraceParent(int(TRACE, 16), int(SPAN, 16), False)),
        (f"cc-{TRACE}-{SPAN}-01-more", TraceParent(int(TRACE, 16), int(SPAN, 16), True)),
        (f"00-{TRACE}-{SPAN}-01-more", None),
        (f"ff-{TRACE}-{SPAN}-01", None),
        (f"00-{'0' * 32}-{SPAN}-01", None),
        (f"00-{TRACE}-{'0' * 16}-01", None),
        (f"00-{TRACE.upper()}-{SPAN}-01", None),
        (f"00-{TRACE}-{SPAN}", None),
        ("", None),
    ],
)
def test_a_traceparent_is_read(text, parent):
    assert parsed_traceparent(text.encode()) == parent


@given(st.binary(max_size=80))
def test_no_bytes_are_too_strange(text):
    parsed_traceparent(text)
    traceparents_of_records(text)


def batch(*headers, codec=0):
    builder = DefaultRecordBatchBuilder(2, codec, 0, -1, -1, -1, 2**20)
    for offset, own in enumerate(headers):
        builder.append(offset, 0, b"key", b"value", own)
    return builder.build()


def text(number):
    return f"00-{number:032x}-{SPAN}-01".encode()


def test_headers_of_records_are_seen_in_their_batch():
    found = traceparents_of_records(
        batch([("a", b"1"), ("traceparent", text(1))], [], [("traceparent", text(2)), ("traceparent", text(1))])
    )
    assert [one.trace_id for one in found] == [1, 2]


def test_a_value_that_looks_like_one_is_none():
    assert traceparents_of_records(batch([("other", b"traceparent" + text(1))])) == []


def test_no_more_is_looked_at_than_is_bounded():
    assert len(traceparents(text(number) for number in range(1, 100))) == MOST_LINKS
    late = io.BytesIO(bytes(LOOKED_AT_BYTES)).getvalue() + batch([("traceparent", text(1))])
    assert traceparents_of_records(late) == []
    assert traceparents_of_pieces([bytes(LOOKED_AT_BYTES), batch([("traceparent", text(1))])]) == []
    pieces = [batch([("traceparent", text(number))]) for number in range(1, 100)]
    assert len(traceparents_of_pieces(pieces)) == MOST_LINKS


def test_so_many_traces_begin_a_second():
    budget = TraceBudget(0.0)
    most = int(MOST_TRACES_A_SECOND)
    assert sum(budget.take(0.0) for _ in range(10 * most)) == most
    taken = sum(budget.take(number / 4000) for number in range(4000 * 5))
    assert taken == pytest.approx(5 * most, abs=2)
    assert budget.take(1000.0)
    assert sum(budget.take(1000.0) for _ in range(10 * most)) == most - 1
