"""What a job moved: as a JSON document, and as a table for people."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import RenderableType

from tidelog.commands.terminal import console, number, print_json, say, size, table
from tidelog.commands.views import counted

# A partition of a topic: its name and number.
Place = tuple[str, int]


@dataclass(frozen=True)
class Transferred:
    """Offsets [start, end) of one partition; `records` and `bytes` are None where they were not counted."""

    start: int
    end: int
    records: int | None = None
    bytes: int | None = None

    def extended(self, other: "Transferred") -> "Transferred":
        """This and what came after it."""
        return Transferred(self.start, other.end, _sum(self.records, other.records), _sum(self.bytes, other.bytes))


@dataclass(frozen=True)
class TransferReport:
    """What a job did. `records` and `bytes` are totals; bytes are those of segments, or of keys and values read.

    `batches` is None for a job that is no stream, `query_id` too. `repeated`: the batch was written by an earlier run.
    """

    job: str
    lake: str
    source: str
    target: str
    partitions: Mapping[Place, Transferred]
    records: int
    bytes: int
    seconds: float
    batches: int | None = None
    query_id: str | None = None
    repeated: bool = False

    def as_json(self) -> dict[str, Any]:
        """The document of `--format json`."""
        return {
            "job": self.job,
            "lake": self.lake,
            "from": self.source,
            "to": self.target,
            "records": self.records,
            "bytes": self.bytes,
            "seconds": round(self.seconds, 3),
            "batches": self.batches,
            "query_id": self.query_id,
            "repeated": self.repeated,
            "partitions": [
                {
                    "topic": topic,
                    "partition": partition,
                    "from": moved.start,
                    "to": moved.end,
                    "records": moved.records,
                    "bytes": moved.bytes,
                }
                for (topic, partition), moved in sorted(self.partitions.items())
            ],
        }

    def show(self, *, as_json: bool) -> None:
        """Print what was done: as JSON, or as a table and a sentence."""
        if as_json:
            print_json(self.as_json())
            return
        if self.partitions:
            console().print(self.as_table())
        say(self.in_words())

    def as_table(self) -> RenderableType:
        """A row for each partition that something was moved from or to."""
        return table(
            ["topic", ">partition", ">from", ">to", ">records", ">size"],
            [
                (
                    topic,
                    str(partition),
                    number(moved.start),
                    number(moved.end),
                    "" if moved.records is None else number(moved.records),
                    "" if moved.bytes is None else size(moved.bytes),
                )
                for (topic, partition), moved in sorted(self.partitions.items())
                if moved.end > moved.start
            ],
        )

    def in_words(self) -> str:
        """The whole in one sentence."""
        if self.repeated:
            return f"Nothing was written: an earlier run has written this --run to {self.target}."
        batches = "" if self.batches is None else f" in {self.batches} {'batch' if self.batches == 1 else 'batches'}"
        return (
            f"{counted(self.records, 'record')}, {size(self.bytes)}, from {self.source} to {self.target}{batches},"
            f" {self.seconds:.1f} s"
        )


def batch_in_words(records: int, moved: Mapping[Place, Transferred]) -> str:
    """A batch of a stream in one line: `12 records: orders 0 [40, 52)`."""
    places = [f"{t} {p} [{m.start}, {m.end})" for (t, p), m in sorted(moved.items()) if m.end > m.start]
    more = f" and {len(places) - 4} more" if len(places) > 4 else ""
    return f"{counted(records, 'record')}: {', '.join(places[:4])}{more}"


def total(parts: Iterable[Mapping[Place, Transferred]]) -> dict[Place, Transferred]:
    """What was moved in several steps, in their order."""
    by_place: dict[Place, Transferred] = {}
    for part in parts:
        for place, moved in part.items():
            by_place[place] = by_place[place].extended(moved) if place in by_place else moved
    return by_place


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other
