"""A topic's state: what its log says up to a version. It changes in `apply`, live and at start-up alike."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import orjson

from tidelog.log import layout
from tidelog.log.actions import Action, Add, Entry, Metadata, Protocol, Remove, Txn
from tidelog.log.timestamps import parse_utc_ms

CONFIG_PREFIX = "tidelog."
# Table properties under CONFIG_PREFIX that are facts about the topic, not keys a user may set.
TOPIC_ID = "tidelog.topic.id"
PARTITIONS = "tidelog.partitions"
FORMAT = "tidelog.format"
DELETED = "tidelog.deleted"
FACTS = frozenset({TOPIC_ID, PARTITIONS, FORMAT, DELETED})


class SegmentStats(NamedTuple):
    """What a segment's statistics say; None where they don't. Timestamps in ms since the epoch."""

    records: int | None
    min_timestamp_ms: int | None
    max_timestamp_ms: int | None


@dataclass(frozen=True)
class Segment:
    """A live data file: records of one partition in [base_offset, end).

    `proven` is False for a file of another engine, which does not say what it covers: its `end` is then the
    next segment's base, and its rows may be in any order.
    """

    path: str
    partition: int
    base_offset: int
    end: int
    size: int
    modification_ms: int
    raw_stats: str | None
    proven: bool = True

    @cached_property
    def stats(self) -> SegmentStats:
        """The statistics of the log entry, read when first asked for."""
        if self.raw_stats is None:
            return SegmentStats(None, None, None)
        body = orjson.loads(self.raw_stats)
        low = (body.get("minValues") or {}).get("timestamp")
        high = (body.get("maxValues") or {}).get("timestamp")
        return SegmentStats(
            body.get("numRecords"),
            None if low is None else parse_utc_ms(low),
            None if high is None else parse_utc_ms(high),
        )


@dataclass
class TopicState:
    """What a topic's log says after entry `version` (-1: no entry yet).

    Only `apply` and `restore` change it. The segment lists are replaced when segments leave, and only ever
    appended to otherwise, so a reader that holds a list and an end offset sees a consistent past.
    """

    version: int = -1
    metadata: Metadata | None = None
    protocol: Protocol | None = None
    segments: dict[int, list[Segment]] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)
    starts: dict[int, int] = field(default_factory=dict)
    cleans: dict[int, int] = field(default_factory=dict)
    txns: dict[str, Txn] = field(default_factory=dict)
    last_modification_ms: int = 0

    # --- what it says --------------------------------------------------------------------------------------

    @property
    def exists(self) -> bool:
        """Whether the topic is there: created, and not deleted since."""
        return self.metadata is not None and self.metadata.configuration.get(DELETED) != "true"

    @property
    def topic_id(self) -> str:
        """The id of this life of the topic; it changes when a deleted topic is created again."""
        return "" if self.metadata is None else self.metadata.configuration.get(TOPIC_ID, "")

    @property
    def partitions(self) -> int:
        """How many partitions the topic has."""
        return 0 if self.metadata is None else int(self.metadata.configuration.get(PARTITIONS, "0"))

    @property
    def overrides(self) -> dict[str, str]:
        """The topic's own configuration, keys without prefix."""
        if self.metadata is None:
            return {}
        return {
            k.removeprefix(CONFIG_PREFIX): v
            for k, v in self.metadata.configuration.items()
            if k.startswith(CONFIG_PREFIX) and k not in FACTS
        }

    def start(self, partition: int) -> int:
        """The partition's log start offset."""
        return self.starts.get(partition, 0)

    def end(self, partition: int) -> int:
        """The partition's log end offset: the offset the next record gets."""
        return self.ends.get(partition, 0)

    def txn(self, app_id: str) -> int | None:
        """The newest version of an application id, or None."""
        found = self.txns.get(app_id)
        return None if found is None else found.version

    def live(self, partition: int) -> list[Segment]:
        """The partition's segments by offset. Not to be changed."""
        return self.segments.get(partition, [])

    def all_segments(self) -> Iterable[Segment]:
        """Every live segment, by partition and offset."""
        for partition in sorted(self.segments):
            yield from self.segments[partition]

    def last_timestamp_ms(self, partition: int) -> int:
        """The newest segment's largest timestamp, 0 when there is none."""
        live = self.live(partition)
        return (live[-1].stats.max_timestamp_ms or 0) if live else 0

    def holds(self, entry: Entry) -> bool:
        """Whether a segment that `entry` added is live, which proves that the entry was committed."""
        adds = (a for a in entry.actions if isinstance(a, Add))
        return any(s.path == a.path for a in adds for s in self.live(a.partition))

    # --- how it changes ------------------------------------------------------------------------------------

    def apply(self, entry: Entry) -> None:
        """Move on by one entry, which `tidelog.log.verify` has passed."""
        removed = {a.path: a for a in entry.actions if isinstance(a, Remove)}
        ends_of_removed = self._drop(removed) if removed else {}
        for action in entry.actions:
            if isinstance(action, Add):
                self._insert(action, ends_of_removed)
            else:
                self._apply_other(action)
        self.version = entry.version

    def restore(self, version: int, actions: Iterable[Action]) -> None:
        """Become what a checkpoint of `version` says. Its rows come in no order."""
        untagged: list[Add] = []
        for action in actions:
            if not isinstance(action, Add):
                self._apply_other(action)
            elif action.end is None:
                untagged.append(action)
            else:
                self._note(self.segments.setdefault(action.partition, []), action, action.end)
        for action in untagged:
            self._note(self.segments.setdefault(action.partition, []), action, -1)
        for partition, live in self.segments.items():
            live.sort(key=lambda s: (s.base_offset, s.path))
            self.segments[partition] = _with_ends(live, self.end(partition))
        self.version = version

    def _apply_other(self, action: Action) -> None:
        if isinstance(action, Txn):
            self._apply_txn(action)
        elif isinstance(action, Metadata):
            self.metadata = action
        elif isinstance(action, Protocol):
            self.protocol = action

    def _apply_txn(self, txn: Txn) -> None:
        for prefix, offsets in (
            (layout.END_PREFIX, self.ends),
            (layout.START_PREFIX, self.starts),
            (layout.CLEAN_PREFIX, self.cleans),
        ):
            if txn.app_id.startswith(prefix):
                offsets[int(txn.app_id[len(prefix) :])] = txn.version
                return
        self.txns[txn.app_id] = txn

    def _drop(self, removed: Mapping[str, Remove]) -> dict[tuple[int, int], int]:
        """Take segments out; returns {(partition, base offset): end} of those that left."""
        ends: dict[tuple[int, int], int] = {}
        touched = {r.partition for r in removed.values()}
        for partition in touched if -1 not in touched else set(self.segments):
            kept = []
            for segment in self.live(partition):
                if segment.path in removed:
                    at = (partition, segment.base_offset)
                    ends[at] = max(segment.end, ends.get(at, 0))
                else:
                    kept.append(segment)
            self.segments[partition] = kept
        return ends

    def _insert(self, add: Add, ends_of_removed: Mapping[tuple[int, int], int]) -> None:
        end = add.end if add.end is not None else ends_of_removed[(add.partition, add.base_offset)]
        self._note(self.segments.setdefault(add.partition, []), add, end)
        live = self.segments[add.partition]
        if len(live) > 1 and live[-2].base_offset > add.base_offset:
            at = bisect_right(live, add.base_offset, hi=len(live) - 1, key=lambda s: s.base_offset)
            self.segments[add.partition] = [*live[:at], live[-1], *live[at:-1]]

    def _note(self, live: list[Segment], add: Add, end: int) -> None:
        live.append(
            Segment(
                add.path,
                add.partition,
                add.base_offset,
                end,
                add.size,
                add.modification_ms,
                add.stats,
                add.end is not None,
            )
        )
        self.last_modification_ms = max(self.last_modification_ms, add.modification_ms)


def _with_ends(live: list[Segment], log_end: int) -> list[Segment]:
    """Give each unproven segment (end -1) the next base as its end; `live` is sorted by base."""
    if all(s.proven for s in live):
        return live
    result: list[Segment] = []
    next_base = log_end
    last_base = log_end
    for segment in reversed(live):
        if segment.base_offset != last_base:
            next_base, last_base = last_base, segment.base_offset
        result.append(
            segment
            if segment.proven
            else Segment(
                segment.path,
                segment.partition,
                segment.base_offset,
                next_base,
                segment.size,
                segment.modification_ms,
                segment.raw_stats,
                proven=False,
            )
        )
    result.reverse()
    return result
