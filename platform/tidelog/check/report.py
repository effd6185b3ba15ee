"""What `check` says: findings as values, and the report that holds them. All of it turns into JSON."""

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class Severity(StrEnum):
    """`error`: an invariant is broken. `warning`: it holds, but something is wrong. `info`: worth knowing."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Kind(StrEnum):
    """What can be found: the finding's name in JSON, and how much it matters if it is no error."""

    severity: Severity

    def __new__(cls, name: str, severity: Severity = Severity.ERROR) -> "Kind":
        """A kind of this name."""
        kind = str.__new__(cls, name)
        kind._value_ = name
        kind.severity = severity
        return kind

    # the lake
    LAKE_FILE_MISSING = "lake-file-missing"
    LAKE_FILE_BROKEN = "lake-file-broken"
    LAKE_FORMAT_UNKNOWN = "lake-format-unknown"
    LAKE_CONFIG_INVALID = "lake-config-invalid", Severity.WARNING
    TOPIC_NAME_INVALID = "topic-name-invalid", Severity.WARNING
    TOPIC_NAMES_COLLIDE = "topic-names-collide", Severity.WARNING
    NOT_A_TOPIC = "not-a-topic", Severity.WARNING
    LOG_MISSING = "log-missing"
    TOPIC_UNREADABLE = "topic-unreadable"
    # the log's entries
    LOG_START_MISSING = "log-start-missing"
    FLOOR_WITHOUT_CHECKPOINT = "floor-without-checkpoint"
    TRIMMED_WITHOUT_FLOOR = "trimmed-without-floor", Severity.WARNING
    ENTRY_GAP = "entry-gap"
    ENTRY_GAP_PASSED = "entry-gap-passed", Severity.WARNING
    ENTRY_TORN = "entry-torn"
    ENTRY_BROKEN = "entry-broken"
    ENTRY_FOREIGN = "entry-foreign"
    ENTRY_UNREADABLE = "entry-unreadable"
    FORMAT_UNSUPPORTED = "format-unsupported"
    LOG_OF_ANOTHER_TOPIC = "log-of-another-topic"
    STRAY_ENTRIES = "stray-entries", Severity.INFO
    NAME_TAKEN = "name-taken"
    # checkpoints
    CHECKPOINT_UNREADABLE = "checkpoint-unreadable"
    CHECKPOINT_FOREIGN = "checkpoint-foreign"
    CHECKPOINT_DIFFERS = "checkpoint-differs"
    CHECKPOINT_INCOMPLETE = "checkpoint-incomplete", Severity.WARNING
    CHECKPOINT_OVERDUE = "checkpoint-overdue", Severity.WARNING
    HINT_MISSING = "last-checkpoint-missing", Severity.WARNING
    HINT_BROKEN = "last-checkpoint-broken", Severity.WARNING
    HINT_DANGLING = "last-checkpoint-dangling", Severity.WARNING
    # what the log says
    SEGMENTS_OVERLAP = "segments-overlap"
    COVERAGE_GAP = "coverage-gap"
    END_BELOW_SEGMENTS = "end-below-segments"
    START_PAST_END = "start-past-end"
    OFFSETS_FELL = "offsets-fell"
    CLEAN_PAST_END = "clean-past-end"
    SEGMENT_BELOW_START = "segment-below-start", Severity.WARNING
    SEGMENT_EMPTY = "segment-empty"
    SEGMENT_STATS_WRONG = "segment-stats-wrong"
    FILE_TWICE = "file-twice"
    PARTITION_UNKNOWN = "partition-unknown"
    DELETED_WITH_SEGMENTS = "deleted-with-segments"
    # configuration
    SCHEMA_WRONG = "schema-wrong"
    VALUE_SCHEMAS_WRONG = "value-schemas-wrong"
    CONFIG_INVALID = "config-invalid", Severity.WARNING
    PROPERTY_WRONG = "property-wrong", Severity.WARNING
    # files
    SEGMENT_MISSING = "segment-missing"
    SEGMENT_SIZE_WRONG = "segment-size-wrong"
    ORPHANS = "orphans", Severity.INFO
    IN_FLIGHT = "in-flight", Severity.INFO
    TEMPORARY_FILES = "temporary-files", Severity.INFO
    # records (deep)
    SEGMENT_UNREADABLE = "segment-unreadable"
    SEGMENT_SCHEMA_WRONG = "segment-schema-wrong"
    SEGMENT_ROWS_WRONG = "segment-rows-wrong"
    POSITIONS_WRONG = "positions-wrong"
    TIMESTAMPS_OUTSIDE_STATS = "timestamps-outside-stats"
    APPEND_TIME_FELL = "append-time-fell"
    NULLS_WRONG = "nulls-wrong"
    VALUES_WRONG = "values-wrong"
    KEY_MISSING = "key-missing", Severity.WARNING
    COMMITTED_PAST_END = "committed-past-end", Severity.WARNING
    INTENT_UNDONE = "intent-undone", Severity.INFO
    INTENT_FILE_MISSING = "intent-file-missing"


# A segment whose records may be lost.
LOST_SEGMENT = frozenset({Kind.SEGMENT_MISSING, Kind.SEGMENT_SIZE_WRONG, Kind.SEGMENT_UNREADABLE})


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was found.

    `topic` is "" for the lake itself; `where` names the entry, checkpoint, partition or file; `what` says what
    happened and which rule it breaks, `todo` what to do about it.
    """

    kind: Kind
    topic: str
    where: str
    what: str
    todo: str

    @property
    def severity(self) -> Severity:
        """How much it matters."""
        return self.kind.severity

    def to_dict(self) -> dict[str, str]:
        """For JSON."""
        return {"severity": self.severity.value, **asdict(self), "kind": self.kind.value}


@dataclass(frozen=True, slots=True)
class CheckedTopic:
    """What was looked at in one topic.

    `version`: the last entry that could be read, -1 for none. `entries`: how many were read. `checkpoint`: the
    newest readable one's version, or None. `records` counts rows read, so it is 0 unless the check was deep.
    """

    topic: str
    version: int
    entries: int
    checkpoint: int | None
    partitions: int
    segments: int
    bytes: int
    records: int = 0


@dataclass(frozen=True, slots=True)
class Report:
    """What a check found, in the order lake, topic by topic, and most severe first within each."""

    uri: str
    deep: bool
    topics: tuple[CheckedTopic, ...]
    findings: tuple[Finding, ...]

    @property
    def green(self) -> bool:
        """Whether there is neither an error nor a warning."""
        return all(f.severity is Severity.INFO for f in self.findings)

    def of(self, severity: Severity) -> list[Finding]:
        """The findings of one severity."""
        return [f for f in self.findings if f.severity is severity]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "lake": self.uri,
            "deep": self.deep,
            "green": self.green,
            "counts": {s.value: len(self.of(s)) for s in Severity},
            "topics": [asdict(t) for t in self.topics],
            "findings": [f.to_dict() for f in self.findings],
        }


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a deep check is in a topic: segments and bytes read so far, and of how many."""

    topic: str
    segments: int
    of_segments: int
    bytes: int
    of_bytes: int


OnProgress = Callable[[Progress], None]

_ORDER = list(Severity)


def most_severe_first(findings: Iterable[Finding]) -> list[Finding]:
    """Errors, then warnings, then infos; otherwise in the order they came."""
    return sorted(findings, key=lambda f: _ORDER.index(f.severity))
