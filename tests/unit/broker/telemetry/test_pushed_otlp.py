"""Metrics of OpenTelemetry's protocol: as its own library writes them, and as no client should."""

import random
import struct

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from tidelog.broker.telemetry import otlp
from tidelog.broker.telemetry.otlp import MOST_ATTRIBUTES, MOST_CHARACTERS, Point, points_of
from tidelog.log.base.errors import InvalidRecordError

MS = 1_000_000


def written() -> MetricsData:
    data = MetricsData()
    resource = data.resource_metrics.add()
    resource.resource.attributes.add(key="client_rack").value.string_value = "r1"
    metrics = resource.scope_metrics.add().metrics
    latency = metrics.add(name="latency.avg", unit="ms", description="passed over").gauge.data_points.add()
    latency.as_double, latency.time_unix_nano = 1.5, 7 * MS
    sent = metrics.add(name="sent").sum
    sent.aggregation_temporality, sent.is_monotonic = 1, True
    point = sent.data_points.add(as_int=-3, start_time_unix_nano=2 * MS, time_unix_nano=3 * MS)
    for name, value in {"string_value": "t", "bool_value": True, "int_value": -1, "double_value": 0.5}.items():
        setattr(point.attributes.add(key=name).value, name, value)
    sizes = metrics.add(name="sizes").histogram
    sizes.aggregation_temporality = 2
    sizes.data_points.add(count=3, sum=6.0, min=1.0, max=3.0, bucket_counts=[1, 2], explicit_bounds=[2.0])
    metrics.add(name="growing").exponential_histogram.data_points.add(count=2, sum=4.0, min=1.0, max=3.0)
    metrics.add(name="summed").summary.data_points.add(count=5, sum=9.0)
    return data


def test_points_are_read_as_the_library_writes_them() -> None:
    rack = {"client_rack": "r1"}
    attributes = {"string_value": "t", "bool_value": "true", "int_value": "-1", "double_value": "0.5"}
    assert points_of(written().SerializeToString()) == [
        Point("latency.avg", "gauge", "ms", time_ms=7, value=1.5, attributes=rack),
        Point("sent", "sum", "", "delta", 2, 3, -3.0, attributes=rack | attributes),
        Point("sizes", "histogram", "", "cumulative", count=3, sum=6.0, least=1.0, most=3.0, attributes=rack),
        Point("growing", "histogram", count=2, sum=4.0, least=1.0, most=3.0, attributes=rack),
        Point("summed", "summary", count=5, sum=9.0, attributes=rack),
    ]
    assert points_of(b"") == []


def length(data: bytes) -> bytes:
    size, out = len(data), b""
    while size >= 0x80:
        out += bytes([size & 0x7F | 0x80])
        size >>= 7
    return out + bytes([size]) + data


def metric(body: bytes) -> bytes:
    """A push of one metric with these fields."""
    for tag in (b"\x12", b"\x12", b"\x0a"):
        body = tag + length(body)
    return body


HOSTILE = {
    "a field that ends early": b"\x0a\xff\x01",
    "a size of 2^63": b"\x0a" + b"\xff" * 9 + b"\x01",
    "a number without end": b"\xff" * 11,
    "a group": b"\x0b\x0c",
    "a number where a message is": b"\x08\x01",
    "a text that is no UTF-8": metric(b"\x0a\x01\xff"),
    "a long text": metric(b"\x0a" + length(b"x" * (MOST_CHARACTERS + 1))),
    "a float where a double is": metric(b"\x2a" + length(b"\x0a" + length(b"\x25" + struct.pack("<f", 1.0)))),
    "many attributes": metric(
        b"\x2a" + length(b"\x0a" + length(b"".join(b"\x3a" + length(b"\x0a\x01" + bytes([i])) for i in range(65))))
    ),
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_what_is_no_otlp_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidRecordError):
        points_of(data)
    assert MOST_ATTRIBUTES == 64


def test_fields_and_points_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp, "MOST_FIELDS", 100)
    monkeypatch.setattr(otlp, "MOST_POINTS", 10)
    with pytest.raises(InvalidRecordError, match="more than 100 fields"):
        points_of(b"\x0a\x00" * 101)
    with pytest.raises(InvalidRecordError, match="more than 10 points"):
        points_of(metric(b"\x2a" + length(b"\x0a\x00" * 11)))
    assert len(points_of(metric(b"\x2a" + length(b"\x0a\x00" * 10)))) == 10


def test_bytes_with_mistakes_are_refused_by_a_sentence_or_read() -> None:
    """A few thousand of them, from one seed."""
    told: list[str] = []
    whole, drawn = written().SerializeToString(), random.Random(7)
    for _ in range(3_000):
        data = bytearray(whole)
        for _ in range(drawn.randint(1, 4)):
            data[drawn.randrange(len(data))] = drawn.randrange(256)
        try:
            points_of(bytes(data[: drawn.randint(0, len(data))]))
        except InvalidRecordError as e:
            told.append(str(e))
    assert all(one.startswith(("A push", "A point")) for one in told)
    assert len(told) > 300


def test_what_a_resource_says_counts_for_each_of_its_points(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp, "MOST_TEXT", 1_000)
    data = MetricsData()
    resource = data.resource_metrics.add()
    resource.resource.attributes.add(key="k").value.string_value = "v" * 98
    points = resource.scope_metrics.add().metrics.add(name="m").gauge.data_points
    for _ in range(10):
        points.add(as_int=1)
    assert len(points_of(data.SerializeToString())) == 10
    points.add(as_int=1)
    with pytest.raises(InvalidRecordError, match="more than 1000 characters"):
        points_of(data.SerializeToString())
