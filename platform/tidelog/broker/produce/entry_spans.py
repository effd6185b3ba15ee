"""What traces of Produce requests say of an entry: which part of it is theirs, and how long all of it took."""

from collections.abc import Sequence
from itertools import chain

from tidelog.broker.produce.entry import Settled
from tidelog.broker.produce.request import ProducedBatch
from tidelog.broker.records.batches import HEADER, NONE
from tidelog.broker.records.unpacking import unpacked
from tidelog.log.base.errors import TidelogError
from tidelog.log.base.request_ids import RequestSpan
from tidelog.server.telemetry.tracing import LOOKED_AT_BYTES, TraceParent, traceparents_of_records


def entry_spans(name: str, settled: Settled, began_s: float, ended_s: float) -> None:
    """Tell the traces of its requests, from a request's last byte to the entry. `name`: what was done, and the topic.

    An entry is of many requests, and its span in the trace of the first one; those of the others name it.
    """
    appended = ((one.unit, one.landed.offset, "") for one in settled.appended)
    refused = ((unit, -1, type(error).__name__) for unit, error in settled.refused)
    entry: RequestSpan | None = None
    for unit, offset, error in chain(appended, refused):
        span = unit.request.id.span if unit.request.id is not None else None
        if span is None:
            continue
        append = span.part(
            f"append {unit.topic}-{unit.partition}", span.start_s, ended_s, _about(unit, offset), error,
            [] if entry is None else [entry], _parents(unit),
        )  # fmt: skip
        if entry is None:
            counts = {
                "tidelog.entry_batches": len(settled.appended),
                "tidelog.entry_records": sum(one.unit.header.count for one in settled.appended),
                "tidelog.entry_bytes": sum(one.unit.header.size for one in settled.appended),
            }
            entry = append.part(name, began_s, ended_s, counts, error)


def _about(unit: ProducedBatch, offset: int) -> dict[str, str | int | float | bool]:
    return {
        "messaging.destination.name": str(unit.topic),
        "messaging.destination.partition.id": str(unit.partition),
        "messaging.batch.message_count": unit.header.count,
        "messaging.kafka.offset": offset,
    }


def _parents(unit: ProducedBatch) -> Sequence[TraceParent]:
    """The traces of records that are compressed: the request's own span knows of the others."""
    if unit.header.codec == NONE:
        return ()
    try:
        records = unpacked(unit.header.codec, memoryview(unit.batch)[HEADER.size :], LOOKED_AT_BYTES)
    except TidelogError:  # as large as that it is not looked at
        return ()
    return traceparents_of_records(records)
