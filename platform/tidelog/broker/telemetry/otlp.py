"""Metrics as OpenTelemetry's protocol has them, read within bounds: nothing that a client sends takes more.

Only what points need is read: fields of other numbers are passed over, as Protobuf has it.
Source: `opentelemetry/proto/metrics/v1/metrics.proto`, Protobuf's "Encoding".
"""

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from tidelog.log.base.errors import InvalidRecordError

# The most fields of messages, points, attributes of a point, and characters of a text that are read of one push.
MOST_FIELDS: Final = 200_000
MOST_POINTS: Final = 10_000
MOST_ATTRIBUTES: Final = 64
MOST_CHARACTERS: Final = 1_000
# The most characters in all points together: what a resource says counts for each of its points.
MOST_TEXT: Final = 8 * 1024 * 1024
# Types on the wire.
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_TEMPORALITIES: Final = {1: "delta", 2: "cumulative"}


class _Data(NamedTuple):
    """A kind of data: which number of a point has its attributes, its least and its most."""

    kind: str
    attributes: int
    least: int | None = None
    most: int | None = None


# By the number of `Metric`'s field.
_GAUGE, _SUM = 5, 7
_KINDS: Final[Mapping[int, _Data]] = {
    _GAUGE: _Data("gauge", 7),
    _SUM: _Data("sum", 7),
    9: _Data("histogram", 9, 11, 12),
    10: _Data("histogram", 1, 12, 13),
    11: _Data("summary", 7),
}


@dataclass(frozen=True, slots=True)
class Point:
    """What one metric was at a time. Times in ms since the epoch; `start_ms`: since when it was counted, 0 for unknown.

    `kind`: gauge, sum, histogram or summary. `temporality`: of a sum, delta or cumulative, else "". `value`: of gauges
    and sums; of the others `count` and `sum`, and `least` and `most` where they are known.
    """

    metric: str
    kind: str
    unit: str = ""
    temporality: str = ""
    start_ms: int = 0
    time_ms: int = 0
    value: float | None = None
    count: int | None = None
    sum: float | None = None
    least: float | None = None
    most: float | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)


def points_of(data: bytes | memoryview) -> list[Point]:
    """The points of a `MetricsData`. Raises `InvalidRecordError` for what is none, and for more than the bounds."""
    return _PointReader().points(memoryview(data))


class _PointReader:
    def __init__(self) -> None:
        self._left = MOST_FIELDS
        self._text_left = MOST_TEXT
        self._points: list[Point] = []

    def points(self, data: memoryview) -> list[Point]:
        for number, resource in self._fields(data):
            if number == 1:
                self._resource(_message(resource))
        return self._points

    def _resource(self, data: memoryview) -> None:
        attributes: dict[str, str] = {}
        scopes: list[memoryview] = []
        for number, value in self._fields(data):
            if number == 1:
                for inner, attribute in self._fields(_message(value)):
                    if inner == 1:
                        self._attribute(_message(attribute), attributes)
            elif number == 2:
                scopes.append(_message(value))
        for scope in scopes:
            for number, value in self._fields(scope):
                if number == 2:
                    self._metric(_message(value), attributes)

    def _metric(self, data: memoryview, attributes: Mapping[str, str]) -> None:
        name, unit = "", ""
        kinds: list[tuple[_Data, memoryview]] = []
        for number, value in self._fields(data):
            if number == 1:
                name = _text(value)
            elif number == 3:
                unit = _text(value)
            elif number in _KINDS:
                kinds.append((_KINDS[number], _message(value)))
        for of, message in kinds:
            points: list[memoryview] = []
            temporality = ""
            for number, value in self._fields(message):
                if number == 1:
                    points.append(_message(value))
                elif number == 2 and of.kind != "gauge":
                    temporality = _TEMPORALITIES.get(_number(value), "")
            for point in points:
                if len(self._points) >= MOST_POINTS:
                    raise InvalidRecordError(f"A push of metrics has more than {MOST_POINTS} points. Ask for fewer.")
                facts = self._point(point, of, dict(attributes))
                self._points.append(Point(name, of.kind, unit, temporality, **facts))
                self._text_left -= len(name) + len(unit) + sum(len(k) + len(v) for k, v in facts["attributes"].items())
                if self._text_left < 0:
                    raise InvalidRecordError(
                        f"A push of metrics has more than {MOST_TEXT} characters in its points. Ask for fewer."
                    )

    def _point(self, data: memoryview, of: _Data, attributes: dict[str, str]) -> dict[str, Any]:
        facts: dict[str, Any] = {"attributes": attributes}
        plain = of.kind in ("gauge", "sum")
        for number, value in self._fields(data):
            if number == of.attributes:
                self._attribute(_message(value), attributes)
            elif number == 2:
                facts["start_ms"] = _ms(value)
            elif number == 3:
                facts["time_ms"] = _ms(value)
            elif number == 4:
                facts["value" if plain else "count"] = _double(value) if plain else _number(value)
            elif plain and number == 6:
                facts["value"] = float(_signed(value))
            elif not plain and number == 5:
                facts["sum"] = _double(value)
            elif number == of.least:
                facts["least"] = _double(value)
            elif number == of.most:
                facts["most"] = _double(value)
        return facts

    def _attribute(self, data: memoryview, attributes: dict[str, str]) -> None:
        name, text = "", ""
        for number, value in self._fields(data):
            if number == 1:
                name = _text(value)
            elif number == 2:
                for kind, inner in self._fields(_message(value)):
                    text = _any(kind, inner)
        if len(attributes) >= MOST_ATTRIBUTES and name not in attributes:
            raise InvalidRecordError(f"A point of a push of metrics has more than {MOST_ATTRIBUTES} attributes.")
        attributes[name] = text

    def _fields(self, data: memoryview) -> Iterator[tuple[int, int | memoryview]]:
        """(number, value) of each field of a message: an int of varints, else bytes."""
        at = 0
        while at < len(data):
            self._left -= 1
            if self._left < 0:
                raise InvalidRecordError(
                    f"A push of metrics has more than {MOST_FIELDS} fields. Ask for fewer metrics."
                )
            tag, at = _varint(data, at)
            number, kind = tag >> 3, tag & 7
            if kind == _VARINT:
                value, at = _varint(data, at)
                yield number, value
                continue
            if kind == _BYTES:
                size, at = _varint(data, at)
            elif kind in (_FIXED64, _FIXED32):
                size = 8 if kind == _FIXED64 else 4
            else:
                raise InvalidRecordError(f"A push of metrics is no OTLP: a field of the unknown type {kind}.")
            if size > len(data) - at:
                raise InvalidRecordError("A push of metrics is no OTLP: it ends within a field.")
            yield number, data[at : at + size]
            at += size


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            break
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, at
    raise InvalidRecordError("A push of metrics is no OTLP: it ends within a number, or has one of more than 64 bits.")


def _message(value: int | memoryview) -> memoryview:
    if isinstance(value, int):
        raise InvalidRecordError("A push of metrics is no OTLP: it has a number where a message is.")
    return value


def _text(value: int | memoryview) -> str:
    try:
        text = str(_message(value)[: 4 * MOST_CHARACTERS], "utf-8")
    except UnicodeDecodeError as e:
        raise InvalidRecordError(f"A push of metrics is no OTLP: {e}.") from e
    if len(text) > MOST_CHARACTERS:
        raise InvalidRecordError(f"A push of metrics has a text of more than {MOST_CHARACTERS} characters.")
    return text


def _number(value: int | memoryview) -> int:
    return value if isinstance(value, int) else int.from_bytes(value[:8], "little")


def _signed(value: int | memoryview) -> int:
    number = _number(value)
    return number - 2**64 if number >= 2**63 else number


def _double(value: int | memoryview) -> float:
    if isinstance(value, int) or len(value) != 8:
        raise InvalidRecordError("A push of metrics is no OTLP: it has something else where a double is.")
    return float(struct.unpack("<d", value)[0])


def _ms(value: int | memoryview) -> int:
    return _number(value) // 1_000_000


def _any(kind: int, value: int | memoryview) -> str:
    """The text of an `AnyValue` by the number of its field; lists and bytes are none."""
    if kind == 1:
        return _text(value)
    if kind == 2:
        return "true" if _number(value) else "false"
    if kind == 3:
        return str(_signed(value))
    return str(_double(value)) if kind == 4 else ""
