"""The demo's tables."""

from collections.abc import Iterable, Mapping

import pyarrow as pa
from rich.console import RenderableType

from tidelog.commands.terminal import number, size, table
from tidelog.jobs.flight_delays import Batch
from tidelog.log.lake import TopicDescription


def partitions(topic: TopicDescription, keys: Mapping[int, Iterable[str]]) -> RenderableType:
    """Where the records of each key went."""
    return table(
        [">partition", ">records", ">size", "carriers"],
        [
            (str(p.partition), number(p.end - p.start), size(p.bytes), ", ".join(sorted(keys[p.partition])) or "none")
            for p in topic.partitions
        ],
    )


def batches(ran: Iterable[Batch]) -> RenderableType:
    """What each micro-batch read and wrote."""
    return table(
        [">batch", ">records read", ">hours written", "written up to"],
        [(str(i), number(b.read), number(b.written), b.watermark[:10] if b.written else "") for i, b in enumerate(ran)],
    )


def worst_hours(found: pa.Table) -> RenderableType:
    """Airport, hour, flights that departed, average delay, and the airline that was latest."""
    return table(
        ["airport", "hour in New York", ">flights", ">mean delay", ">longest", "airline of the longest"],
        [
            (
                row["origin"],
                row["departure"],
                number(row["departed"]),
                _minutes(row["average_delay"]),
                _minutes(row["longest"]),
                row["carrier"],
            )
            for row in found.to_pylist()
        ],
    )


def _minutes(delay: float) -> str:
    hours, minutes = divmod(round(delay), 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min"
