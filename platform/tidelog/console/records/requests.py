"""Requests for records: pages, one record whole, one value as bytes; and one produced by hand."""

import binascii
from base64 import b64decode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from starlette.responses import Response

from tidelog.console.base.calls import ConsoleCall, whole
from tidelog.console.base.errors import ConsoleError, bad
from tidelog.console.records.filters import RecordFilter, record_filter
from tidelog.console.records.forms import FORMATS, ValueForms
from tidelog.console.records.paging import (
    BACKWARD,
    FORWARD,
    PlaceToRead,
    StoredRecord,
    page_of,
    parsed_cursor,
    records_of,
)
from tidelog.log.topic import Topic
from tidelog.operations.topics import read_topic

Ranges = Mapping[int, tuple[int, int]]
_MOST_LISTED: Final = 500
_NOT_BYTES: Final = 'must be null, {"text": "…"} or {"base64": "…"}'
# A request's body: a value of 10 MiB and what it is wrapped in, as base64 or with escapes, fits.
MOST_BODY: Final = 16 << 20


def topic_of(call: ConsoleCall) -> Topic:
    """The path's topic. Raises `UnknownTopicError`."""
    read_topic(call.console.lake, call.topic)
    return call.console.lake.topic(call.topic)


def partitions_of(call: ConsoleCall, topic: Topic) -> Ranges:
    """{partition: (start, end)} of the partition that the query names, of all of them without one."""
    ranges = topic.offsets()
    partition = call.optional_number("partition", 0, 2**31 - 1)
    if partition is None:
        return ranges
    if partition not in ranges:
        raise ConsoleError(404, f"Topic '{call.topic}' has no partition {partition}.", 3)
    return {partition: ranges[partition]}


def place_of(call: ConsoleCall, topic: Topic, ranges: Ranges, default: str = BACKWARD) -> PlaceToRead:
    """Where the query's `cursor`, or its `from` and `direction`, begin. Raises `ConsoleError` 400."""
    if call.text("cursor"):
        return parsed_cursor(call.text("cursor"))
    text = call.text("from")
    text = text or ("latest" if default == BACKWARD else "earliest")
    direction = call.choice("direction", BACKWARD if text == "latest" else FORWARD, (FORWARD, BACKWARD))
    return PlaceToRead(direction, offsets_at(text, topic, ranges))


def offsets_at(text: str, topic: Topic, ranges: Ranges) -> dict[int, int]:
    """The offset of each partition at "earliest", "latest", "time:MS", or an offset, kept within the partition."""
    if text == "earliest":
        return {p: start for p, (start, _) in ranges.items()}
    if text == "latest":
        return {p: end for p, (_, end) in ranges.items()}
    if text.startswith("time:"):
        at_ms = whole("from", text.removeprefix("time:"), 0, 2**53)
        found = topic.offsets_for_times(dict.fromkeys(ranges, at_ms))
        return {p: end if found[p] is None else found[p] or 0 for p, (_, end) in ranges.items()}
    offset = whole("from", text)
    return {p: min(max(offset, start), end) for p, (start, end) in ranges.items()}


@dataclass(frozen=True, slots=True)
class RecordView:
    """How the records of a topic are shown to one page: those that a filter takes, in a form."""

    topic: str
    wanted: RecordFilter
    form: str
    forms: ValueForms

    @classmethod
    def of(cls, call: ConsoleCall, form: str = "") -> "RecordView":
        """What a query asks for; `form`: instead of its `format`. Raises `ConsoleError` 400."""
        wanted = record_filter(call.text("key"), call.texts("header"), call.text("text"), call.text("path"))
        return cls(call.topic, wanted, form or call.choice("format", "auto", FORMATS), call.console.part(ValueForms))

    def takes(self, record: StoredRecord) -> bool:
        """Whether the page wants the record."""
        as_json: Callable[[bytes], Any] = lambda value: self.forms.as_json(self.topic, value)  # noqa: E731
        return self.wanted.takes_all or self.wanted.takes(record.key, record.value, record.headers, as_json)

    def shown(self, record: StoredRecord, *, whole: bool = False) -> Mapping[str, Any]:
        """The record as the interface gives it."""
        show = self.forms.shown
        return {
            "partition": record.partition,
            "offset": record.offset,
            "timestamp": record.timestamp,
            "timestamp_type": "create" if record.created else "append",
            "key": show(record.key, "hex" if self.form == "hex" else "auto", self.topic, whole=whole),
            "value": show(record.value, self.form, self.topic, whole=whole),
            "headers": [[name, show(value, "auto", self.topic, whole=whole)] for name, value in record.headers],
        }


def records(call: ConsoleCall) -> Any:
    """One page of records."""
    view, limit = RecordView.of(call), call.number("limit", 50, 1, _MOST_LISTED)
    topic = topic_of(call)
    ranges = partitions_of(call, topic)
    page = page_of(topic, place_of(call, topic, ranges), ranges, limit, view.takes, call.console.lake.clock)
    return {
        "records": [view.shown(one) for one in page.records],
        "next": None if page.next is None else page.next.cursor(),
        "previous": None if page.previous is None else page.previous.cursor(),
        "looked_at": page.looked_at,
        "ended": page.ended,
    }


def record(call: ConsoleCall) -> Any:
    """One record, whole."""
    return RecordView.of(call).shown(_one(call), whole=True)


def raw(call: ConsoleCall) -> Response:
    """A record's key or value as a file."""
    part = call.choice("part", "value", ("key", "value"))
    stored = _one(call)
    data = stored.key if part == "key" else stored.value
    if data is None:
        raise ConsoleError(404, f"The record's {part} is null.")
    name = f"{call.topic}-{stored.partition}-{stored.offset}.{part}"
    headers = {"content-disposition": f'attachment; filename="{name}"'}  # a topic's name has no quotes
    return Response(data, 200, headers, "application/octet-stream")


def _one(call: ConsoleCall) -> StoredRecord:
    topic = topic_of(call)
    partition = whole("partition", call.variables["partition"], 0, 2**31 - 1)
    offset = whole("offset", call.variables["offset"])
    start, end = topic.offsets().get(partition, (0, 0))
    if start <= offset < end:
        for batch in topic.read(partition, offset, offset + 1, include_headers=True):
            for found in records_of(batch):
                return found
    raise ConsoleError(404, f"Partition {partition} of topic '{call.topic}' has no record at offset {offset}.", 1)


def produce(call: ConsoleCall) -> Any:
    """Append one record."""
    body = call.fields("partition", "key", "value", "headers")
    partition = body.get("partition")
    if not (partition is None or (isinstance(partition, int) and not isinstance(partition, bool))):
        raise bad("'partition' must be a whole number, or null to go by the key.")
    row = {
        "key": bytes_of(body.get("key"), "key"),
        "value": bytes_of(body.get("value"), "value"),
        "headers": _headers(body.get("headers")),
        "partition": partition,
    }
    ranges = topic_of(call).append([row])
    call.console.invalidate()
    ((found, (offset, _)),) = ranges.items()
    return {"partition": found, "offset": offset}


def bytes_of(given: Any, what: str) -> bytes | None:
    """The bytes of a part of the body. Raises `ConsoleError` 400.

    >>> bytes_of({"text": "ü"}, "key"), bytes_of({"base64": "/w=="}, "key"), bytes_of(None, "key")
    (b'\\xc3\\xbc', b'\\xff', None)
    """
    if given is None:
        return None
    if not isinstance(given, Mapping) or len(given) != 1:
        raise bad(f"'{what}' {_NOT_BYTES}.")
    (kind, text), *_ = given.items()
    if not isinstance(text, str) or kind not in ("text", "base64"):
        raise bad(f"'{what}' {_NOT_BYTES}.")
    if kind == "text":
        return text.encode()
    try:
        return b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise bad(f"'{what}' is no base64: {error}.") from None


def _headers(given: Any) -> list[dict[str, Any]] | None:
    if not given:
        return None
    if not isinstance(given, list) or not all(isinstance(one, list) and len(one) == 2 for one in given):
        raise bad("'headers' must be a list of [name, value].")
    if not all(isinstance(name, str) for name, _ in given):
        raise bad("A header's name must be a text.")
    return [{"key": name, "value": bytes_of(value, f"header {name}")} for name, value in given]
