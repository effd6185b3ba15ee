"""What a maintenance run did, topic by topic, or would do; as JSON and as rows of a table."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from tidelog.log.delta import layout
from tidelog.retention.compaction.run import CompactionReport
from tidelog.retention.merging import Shape
from tidelog.retention.purge.run import Purged

# The table that reports name for all tables of groups.
_GROUPS: Final = layout.OFFSETS_TABLE


@dataclass(frozen=True, slots=True)
class Failure:
    """A part that did not get done: of one partition, or of the topic (`partition` None), and why."""

    part: str
    message: str
    partition: int | None = None

    def to_json(self) -> dict[str, Any]:
        """The failure as JSON has it."""
        return {"part": self.part, "partition": self.partition, "message": self.message}


@dataclass(frozen=True, slots=True)
class Retained:
    """What expiry let go: `starts` {partition: new log start offset}, `segments` and `bytes` that left.

    `cut`: segments that were rewritten without the records below the log start, `lost` those that another writer had
    changed. `future`: {partition: ms} where a timestamp later than now keeps all from expiring by time.
    """

    starts: dict[int, int]
    segments: int
    bytes: int
    cut: int = 0
    lost: int = 0
    future: dict[int, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The figures as JSON has them."""
        return {
            "starts": {str(p): start for p, start in sorted(self.starts.items())},
            "segments": self.segments,
            "bytes": self.bytes,
            "cut": self.cut,
            "lost": self.lost,
            "future_timestamps": {str(p): ms for p, ms in sorted(self.future.items())},
        }


@dataclass(frozen=True, slots=True)
class Merged:
    """What merging did: `units` of which `lost` another writer had changed; the topic's shape around it."""

    units: int
    lost: int
    before: Shape
    after: Shape

    def to_json(self) -> dict[str, Any]:
        """The figures as JSON has them."""
        before, after = self.before, self.after
        return {
            "units": self.units,
            "lost": self.lost,
            "files": {"before": before.files, "after": after.files},
            "bytes": {"before": before.bytes, "after": after.bytes},
            "read_amplification": {
                "before": round(before.read_amplification, 2),
                "after": round(after.read_amplification, 2),
            },
        }


@dataclass(slots=True)
class TopicReport:
    """What became of one topic; a part that was not asked for, or failed, is None."""

    topic: str
    retention: Retained | None = None
    compact: CompactionReport | None = None
    merge: Merged | None = None
    purge: Purged | None = None
    failures: list[Failure] = field(default_factory=list)
    gone: bool = False

    @property
    def lost(self) -> int:
        """Units that another run rewrote first."""
        return sum(part.lost for part in (self.retention, self.compact, self.merge) if part is not None)

    def to_json(self) -> dict[str, Any]:
        """The report of the topic as JSON has it."""
        parts = {"retention": self.retention, "merge": self.merge, "compact": self.compact, "purge": self.purge}
        return {
            "topic": self.topic,
            **{name: part.to_json() for name, part in parts.items() if part is not None},
            "deleted_meanwhile": self.gone,
            "failures": [failure.to_json() for failure in self.failures],
        }


@dataclass(slots=True)
class OffsetsReport:
    """What became of the tables of groups: {group: (topic, partition) whose offset expired}, tables compacted."""

    expired: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    compacted: list[str] = field(default_factory=list)
    purged: list[Purged] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """The report as JSON has it."""
        return {
            "expired": {
                group: [{"topic": topic, "partition": p} for topic, p in gone]
                for group, gone in sorted(self.expired.items())
            },
            "compacted": self.compacted,
            "purge": {purged.topic: purged.to_json() for purged in self.purged},
            "failures": [failure.to_json() for failure in self.failures],
        }


class ReportRow(NamedTuple):
    """What became of a part of a topic's maintenance, in words. `is_idle`: nothing was due."""

    topic: str
    part: str
    what: str
    is_idle: bool = False


@dataclass(slots=True)
class MaintenanceReport:
    """What a run did. `now_ms`: the time that its plans saw (ms since the epoch)."""

    run_id: str
    lake: str
    now_ms: int
    dry_run: bool
    topics: list[TopicReport] = field(default_factory=list)
    offsets: OffsetsReport | None = None

    @property
    def failed(self) -> bool:
        """Whether a part failed. That another run was faster is no failure."""
        return bool(self.failures())

    def failures(self) -> list[tuple[str, Failure]]:
        """(topic, failure) of all that failed."""
        found = [(topic.topic, failure) for topic in self.topics for failure in topic.failures]
        return found + [(_GROUPS, f) for f in (self.offsets.failures if self.offsets else [])]

    def to_json(self) -> dict[str, Any]:
        """The report as one JSON document."""
        return {
            "run": self.run_id,
            "lake": self.lake,
            "now_ms": self.now_ms,
            "dry_run": self.dry_run,
            "failed": self.failed,
            "topics": [topic.to_json() for topic in self.topics],
            **({} if self.offsets is None else {"offsets": self.offsets.to_json()}),
        }

    def rows(self) -> list[ReportRow]:
        """A row for each part of each topic."""
        rows: list[ReportRow] = []
        for topic in self.topics:
            rows.extend(_parts(topic))
            if topic.gone:
                rows.append(ReportRow(topic.topic, "", "deleted meanwhile"))
            rows.extend(ReportRow(topic.topic, failure.part, _failed(failure)) for failure in topic.failures)
        if self.offsets is not None:
            rows.extend(_offsets(self.offsets))
            rows.extend(ReportRow(_GROUPS, failure.part, _failed(failure)) for failure in self.offsets.failures)
        return rows


def _parts(topic: TopicReport) -> list[ReportRow]:
    name = topic.topic
    rows = []
    if (retained := topic.retention) is not None:
        cut = f", {retained.cut} cut" if retained.cut else ""
        expired = f"{_many(retained.segments, 'segment')} of {retained.bytes:,} bytes expired"
        text = f"{expired if retained.segments else 'nothing expired'}{cut}{_lost(retained.lost)}"
        if retained.future:
            text += f"; timestamps in the future keep partitions {', '.join(map(str, sorted(retained.future)))}"
        rows.append(ReportRow(name, "retention", text, is_idle=not retained.segments))
    if (merged := topic.merge) is not None:
        rows.append(ReportRow(name, "merge", _merged(merged), is_idle=not merged.units))
    if (compacted := topic.compact) is not None:
        rows.append(ReportRow(name, "compact", _compacted(compacted), is_idle=not compacted.partitions))
    if (purged := topic.purge) is not None:
        rows.append(ReportRow(name, "purge", _purged(purged), is_idle=not purged.deleted))
    return rows


def _merged(merged: Merged) -> str:
    before, after = merged.before, merged.after
    if not merged.units:
        return f"nothing to merge: {_many(before.files, 'file')}, {before.bytes:,} bytes"
    change = f"{before.files:,} -> {after.files:,} files, {before.bytes:,} -> {after.bytes:,} bytes"
    amplified = f"read amplification {before.read_amplification:.1f} -> {after.read_amplification:.1f}"
    return f"{change}, {amplified}{_lost(merged.lost)}"


def _compacted(compacted: CompactionReport) -> str:
    if not compacted.partitions:
        return "nothing due"
    due = f"{_many(len(compacted.partitions), 'partition')} due"
    if not compacted.landed:
        return f"{due}, {_many(compacted.units, 'unit')}{_lost(compacted.lost)}"
    change = f"{compacted.records_in:,} -> {compacted.records_out:,} records"
    return f"{due}: {change}, {compacted.bytes_in:,} -> {compacted.bytes_out:,} bytes{_lost(compacted.lost)}"


def _offsets(offsets: OffsetsReport) -> list[ReportRow]:
    expired = sum(len(gone) for gone in offsets.expired.values())
    tables = ", ".join(offsets.compacted) or "none"
    text = f"{_many(expired, 'offset')} of {_many(len(offsets.expired), 'group')} expired; compacted: {tables}"
    return [
        ReportRow(_GROUPS, "offsets", text, is_idle=not offsets.expired),
        *(
            ReportRow(_GROUPS, "purge", f"{purged.topic}: {_purged(purged)}", is_idle=not purged.deleted)
            for purged in offsets.purged
        ),
    ]


def _purged(purged: Purged) -> str:
    size = sum(file.size for file in purged.deleted)
    waiting = f", {len(purged.waiting)} wait{_until(purged)}" if purged.waiting else ""
    entries = f", {_many(purged.entries, 'log object')}" if purged.entries else ""
    deleted = f"{_many(len(purged.deleted), 'file')} of {size:,} bytes" if purged.deleted else "no file to delete"
    return f"{deleted}{entries}{waiting}"


def _until(purged: Purged) -> str:
    """How much waits, and until when, where that is known."""
    size = sum(one.size for one in purged.waiting)
    until_ms = max((one.until_ms for one in purged.waiting if one.until_ms is not None), default=None)
    until = "" if until_ms is None else f", until {datetime.fromtimestamp(until_ms / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
    return f" ({size:,} bytes{until})"


def _failed(failure: Failure) -> str:
    where = "" if failure.partition is None else f"partition {failure.partition}: "
    return f"FAILED {where}{failure.message}"


def _lost(lost: int) -> str:
    return f"; {_many(lost, 'unit')} lost to another job" if lost else ""


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
