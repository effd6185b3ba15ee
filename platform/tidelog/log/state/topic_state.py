"""A topic's state: the sum of its log up to a version. Only `apply` changes it, live and at start-up alike."""

from bisect import bisect_right
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import orjson

from tidelog.log.delta import layout
from tidelog.log.delta.actions import Action, Add, Entry, Metadata, Protocol, Remove, Txn
from tidelog.log.delta.timestamps import parse_utc_ms
from tidelog.log.state.add_columns import AddColumns, CheckpointActions
from tidelog.log.state.lazy_list import LazyList
from tidelog.log.state.producer_memory import ProducerColumns, ProducerMemory, parse_app_id
from tidelog.log.state.rewrites import Rewrite, Rewrites, rewrites_of
from tidelog.log.state.txn_expiry import PRODUCER_EXPIRATION, TxnExpiry, txn_expiry

CONFIG_PREFIX = "tidelog."
# Table properties under CONFIG_PREFIX that are facts about the topic, not keys a user may set.
TOPIC_ID = "tidelog.topic.id"
PARTITIONS = "tidelog.partitions"
FORMAT = "tidelog.format"
DELETED = "tidelog.deleted"
# How many brokers a topic asked for to serve each partition.
REPLICATION = "tidelog.replication.factor"
# The schemas that values of a typed topic were written with.
VALUE_SCHEMAS = "tidelog.value.schemas"
# Whether values of it may be derived of their columns: the topic has or had value.bytes=derive.
VALUE_DERIVED = "tidelog.value.derived"
# Of a table of rows: their kind, the version of their columns, and how many tables share the keys.
ROWS = "tidelog.rows"
ROWS_VERSION = "tidelog.rows.version"
TABLES = "tidelog.tables"
FACTS = frozenset(
    {
        TOPIC_ID,
        PARTITIONS,
        FORMAT,
        DELETED,
        REPLICATION,
        ROWS,
        ROWS_VERSION,
        TABLES,
        PRODUCER_EXPIRATION,
        VALUE_SCHEMAS,
        VALUE_DERIVED,
    }
)

_NEVER_MS = 2**63


class SegmentStats(NamedTuple):
    """What a segment's statistics say; None where they don't. Timestamps in ms since the epoch."""

    records: int | None
    min_timestamp_ms: int | None
    max_timestamp_ms: int | None


@dataclass(frozen=True)
class Segment:
    """A live data file: records of one partition in [base_offset, end).

    `since`: the entry that added it, or the checkpoint that it was first read from.
    """

    path: str
    partition: int
    base_offset: int
    end: int
    size: int
    modification_ms: int
    raw_stats: str | None
    since: int = field(default=-1, compare=False, repr=False)

    @property
    def records(self) -> int | None:
        """How many records it holds; None where its statistics don't say."""
        return self.stats.records

    @cached_property
    def stats(self) -> SegmentStats:
        """The statistics of the log entry, read when first asked for; what can't be read is unknown."""
        try:
            body = orjson.loads(self.raw_stats or "{}")
            low, high = body.get("minValues") or {}, body.get("maxValues") or {}
            return SegmentStats(body.get("numRecords"), _time(low), _time(high))
        except (ValueError, AttributeError, TypeError):
            return SegmentStats(None, None, None)


def _time(bounds: Mapping[str, str]) -> int | None:
    text = bounds.get("timestamp")
    return None if text is None else parse_utc_ms(text)


@dataclass
class TopicState:
    """A topic after entry `version` of its log (-1: no entry yet).

    Only `apply` and `restore` change it. A segment list is replaced as a whole when segments leave, and only ever
    appended to otherwise, so a caller that holds one goes on seeing the past.
    """

    version: int = -1
    metadata: Metadata | None = None
    protocol: Protocol | None = None
    segments: dict[int, list[Segment] | LazyList[Segment]] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)
    starts: dict[int, int] = field(default_factory=dict)
    cleans: dict[int, int] = field(default_factory=dict)
    # Transaction ids but for offsets' and producers'.
    txns: dict[str, Txn] = field(default_factory=dict)
    producers: ProducerMemory = field(default_factory=ProducerMemory, compare=False, repr=False)
    # The newest time of a transaction id, by which they expire; ms since the epoch.
    updated_ms: int = 0
    last_modification_ms: int = 0
    _expiry: TxnExpiry = field(default=TxnExpiry(), init=False, compare=False, repr=False)
    # No id in `txns` that expires is older.
    _oldest_ms: int = field(default=_NEVER_MS, init=False, compare=False, repr=False)
    # The newest entry that took segments out, as far as is known: at most the checkpoint that this was restored from.
    removed_at: int = field(default=-1, compare=False, repr=False)
    # What readers that remember records must forget.
    rewrites: Rewrites = field(default_factory=Rewrites, compare=False, repr=False)
    # The newest entries, when tidelog did not write them: they change nothing, and wait to be taken back.
    foreign: tuple[Entry, ...] = ()

    # --- queries ------------------------------------------------------------------------------------------

    @property
    def exists(self) -> bool:
        """Whether the topic is there: created, and not deleted since."""
        return self.metadata is not None and self.metadata.configuration.get(DELETED) != "true"

    @property
    def topic_id(self) -> str:
        """The id of this incarnation of the topic: a deleted topic that is created again has a new one."""
        return "" if self.metadata is None else self.metadata.configuration.get(TOPIC_ID, "")

    @property
    def partitions(self) -> int:
        """How many partitions the topic has."""
        return 0 if self.metadata is None else int(self.metadata.configuration.get(PARTITIONS, "0"))

    @property
    def replication_factor(self) -> int | None:
        """How many brokers the topic asked for to serve each partition; None where it left that open."""
        text = "" if self.metadata is None else self.metadata.configuration.get(REPLICATION, "")
        return int(text) if text.isascii() and text.isdigit() else None

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

    @property
    def offsets_by_prefix(self) -> tuple[tuple[str, dict[int, int]], ...]:
        """(prefix of transaction ids, {partition: the offset that they hold})."""
        return (layout.END_PREFIX, self.ends), (layout.START_PREFIX, self.starts), (layout.CLEAN_PREFIX, self.cleans)

    def txn(self, app_id: str) -> int | None:
        """The newest version of an application id, None when this incarnation has none."""
        found = self.txns.get(app_id)
        return None if found is None or found.version < 0 else found.version

    def producer(self, producer_id: int, partition: int) -> int | None:
        """epoch · 2^32 + last sequence of an idempotent producer in a partition, None where it is not known."""
        return self.producers.find(producer_id, partition, self._expiry.producers_since_ms(self.updated_ms))

    def producer_txns(self) -> list[Txn]:
        """The producers that are known, as transaction ids."""
        return list(self.producers.txns(self._expiry.producers_since_ms(self.updated_ms)))

    def live(self, partition: int) -> Sequence[Segment]:
        """The partition's segments by offset. Not to be changed."""
        return self.segments.get(partition, [])

    def live_between(self, partition: int, first: int, last: int) -> Sequence[Segment]:
        """Those that begin at an offset from `first` to `last`: none of the others is looked at."""
        live = self.live(partition)
        return live[beginning_up_to(live, first - 1) : beginning_up_to(live, last)]

    def all_segments(self) -> Iterable[Segment]:
        """Every live segment, by partition and offset."""
        for partition in sorted(self.segments):
            yield from self.segments[partition]

    def last_timestamp_ms(self, partition: int) -> int:
        """The newest segment's largest timestamp, or that of the newest one that left; 0 when there was none."""
        live = self.live(partition)
        left = self.txn(f"{layout.TIMESTAMP_PREFIX}{partition}") or 0
        return max(left, (live[-1].stats.max_timestamp_ms or 0) if live else 0)

    def proves_committed(self, entry: Entry) -> bool:
        """Whether a segment that `entry` added is live, which proves that the entry was committed."""
        adds = (a for a in entry.actions if isinstance(a, Add))
        found = ((a, self.find(a.partition, a.path)) for a in adds)
        return any(s is not None and s.path == a.path for a, s in found)

    def find(self, partition: int, path: str) -> Segment | None:
        """The live segment that is this file, or its records written again; None when the partition has none.

        It costs as much as came after its writer's last look at the log, unless segments left meanwhile.
        """
        version, name = layout.segment_name(path)
        live = self.live(partition)
        settled = version >= self.removed_at  # what was added since, and only that, is the list's end
        newest: Sequence[Segment] = live.newer if isinstance(live, LazyList) else live
        for segment in reversed(newest):
            if settled and segment.since <= version:
                return None
            if layout.segment_name(segment.path)[1] == name:
                return segment
        restored = None if settled or not isinstance(live, LazyList) else live.make
        return restored.find(partition, name) if isinstance(restored, _Restored) else None

    # --- changes -----------------------------------------------------------------------------------------

    def apply(self, entry: Entry) -> None:
        """Move on by one entry, which `tidelog.log.state.verify` has passed."""
        if entry.info.request_id is None:
            self.foreign = (*self.foreign, *([entry] if entry.touched else []))
        elif self.foreign:
            self._take_back(entry)
        else:
            self._apply_own(entry)
        self.version = entry.version

    def _take_back(self, entry: Entry) -> None:
        """Other engines come back to this state by the entry's actions: it changes no more than its ids."""
        self.foreign = ()
        for txn in (a for a in entry.actions if isinstance(a, Txn)):
            self._apply_txn(txn)

    def _apply_own(self, entry: Entry) -> None:
        adds: dict[int, list[Add]] = {}
        for add in (a for a in entry.actions if isinstance(a, Add)):
            adds.setdefault(add.partition, []).append(add)
        removed = {a.path: a.partition for a in entry.actions if isinstance(a, Remove)}
        left = set(removed.values())
        gone: dict[int, list[Segment]] = {}
        added: dict[int, list[Segment]] = {}
        for partition in adds.keys() | left:
            new = added[partition] = [self._segment(a, entry.version) for a in adds.get(partition, [])]
            gone[partition] = self._change(partition, new, removed.keys() if partition in left else ())
        rewrites = [*(rewrites_of(entry.version, gone, added) if removed else ()), *self._raised_starts(entry)]
        for action in entry.actions:
            self._apply_other(action)
        self._forget_expired()
        if removed:
            self._shrink_columns()
            self.last_modification_ms = max((s.modification_ms for s in self.all_segments()), default=0)
            self.removed_at = entry.version
        if rewrites:
            self.rewrites.add(rewrites)

    def _raised_starts(self, entry: Entry) -> Iterator[Rewrite]:
        """What the entry takes from readers by raising log start offsets, segments or none."""
        for txn in entry.actions:
            if isinstance(txn, Txn) and txn.app_id.startswith(layout.START_PREFIX):
                partition = layout.number(txn.app_id[len(layout.START_PREFIX) :])
                if partition is not None and txn.version > self.start(partition):
                    yield Rewrite(entry.version, partition, self.start(partition), txn.version)

    def restore(self, version: int, actions: Iterable[Action]) -> None:
        """Become the state that a checkpoint of `version` holds. Its rows come in no order."""
        producers: ProducerColumns | None = None
        if isinstance(actions, CheckpointActions):
            taken = actions.adds is not None and self._take_columns(actions.adds, version)
            producers, actions = actions.producers, actions.values(adds=not taken, producers=False)
        adds: dict[int, list[Segment]] = {}
        for action in actions:
            if isinstance(action, Add):
                adds.setdefault(action.partition, []).append(self._segment(action, version))
            else:
                self._apply_other(action)
        for partition, segments in adds.items():
            self.segments[partition] = _in_order(segments)
        if producers is not None:
            self.updated_ms = max(self.updated_ms, producers.newest_ms)
            self.producers.restore(producers, self._expiry.producers_since_ms(self.updated_ms))
        self._forget_expired()
        self.version = self.removed_at = version
        self.rewrites.restored(version)

    def _take_columns(self, adds: AddColumns, version: int) -> bool:
        """Take the segments over as columns; False where two of a partition begin at one offset."""
        order = np.lexsort((adds.base_offset, adds.partition))
        partitions, bases = adds.partition[order], adds.base_offset[order]
        if ((np.diff(partitions) == 0) & (np.diff(bases) == 0)).any():
            return False
        restored = _Restored(adds, version)
        for rows in np.split(order, np.flatnonzero(np.diff(partitions)) + 1):
            self.segments[int(adds.partition[rows[0]])] = LazyList(rows, restored)
        self.last_modification_ms = max(self.last_modification_ms, adds.newest_ms)
        return True

    def _shrink_columns(self) -> None:
        """Let go of a checkpoint's columns when most of their segments have left, as by a merge of some partitions."""
        lists = {p: live for p, live in self.segments.items() if isinstance(live, LazyList) and len(live.rows)}
        rows = np.concatenate([live.rows for live in lists.values()]) if lists else np.empty(0, np.int64)
        restored = next((live.make for live in lists.values()), None)
        if not isinstance(restored, _Restored) or len(rows) > len(restored.adds) // 2:
            return
        kept = _Restored(restored.adds.take(rows), restored.since)
        at = 0
        for partition, live in lists.items():
            self.segments[partition] = live.moved(np.arange(at, at + len(live.rows)), kept)
            at += len(live.rows)

    def _apply_other(self, action: Action) -> None:
        if isinstance(action, Txn):
            self._apply_txn(action)
        elif isinstance(action, Metadata):
            self.metadata = action
            self._expiry = txn_expiry(action.configuration)
        elif isinstance(action, Protocol):
            self.protocol = action

    def _apply_txn(self, txn: Txn) -> None:
        for prefix, offsets in self.offsets_by_prefix:
            if txn.app_id.startswith(prefix) and (partition := layout.number(txn.app_id[len(prefix) :])) is not None:
                offsets[partition] = txn.version
                return
        if txn.last_updated_ms is not None:
            self.updated_ms = max(self.updated_ms, txn.last_updated_ms)
            producer = parse_app_id(txn.app_id) if txn.app_id.startswith(layout.PRODUCER_PREFIX) else None
            if producer is not None:
                self.producers.note(*producer, txn.version, txn.last_updated_ms)
                return
            self._oldest_ms = min(self._oldest_ms, txn.last_updated_ms)
        self.txns[txn.app_id] = txn

    def _forget_expired(self) -> None:
        """Drop the ids that checkpoints drop, too. `txns` is replaced as a whole, for threads that read it."""
        self.producers.forget(self._expiry.producers_since_ms(self.updated_ms))
        since_ms = self._expiry.others_since_ms(self.updated_ms)
        if self._oldest_ms < since_ms:
            kept = [t for t in self.txns.values() if t.last_updated_ms is None or t.last_updated_ms >= since_ms]
            self.txns = {txn.app_id: txn for txn in kept}
            self._oldest_ms = min((t.last_updated_ms for t in kept if t.last_updated_ms is not None), default=_NEVER_MS)

    def _change(self, partition: int, new: list[Segment], removed: Container[str]) -> list[Segment]:
        """Have segments come and others leave; those that left."""
        live = self.segments.setdefault(partition, [])
        if not removed and all(not live or s.base_offset >= live[-1].end for s in new):
            live.extend(new)
            return []
        kept, gone = list[Segment](), list[Segment]()
        for segment in live:
            (gone if segment.path in removed else kept).append(segment)
        left = _in_order([*kept, *new])
        if left:
            self.segments[partition] = left
        else:
            del self.segments[partition]
        return gone

    def _segment(self, add: Add, since: int) -> Segment:
        self.last_modification_ms = max(self.last_modification_ms, add.modification_ms)
        return Segment(
            add.path,
            add.partition,
            add.base_offset,
            -1 if add.end is None else add.end,
            add.size,
            add.modification_ms,
            add.stats,
            since,
        )


@dataclass(frozen=True, slots=True)
class _Restored:
    """Makes segments of a checkpoint's rows; `since` is its version."""

    adds: AddColumns
    since: int

    def __call__(self, rows: npt.NDArray[np.int64]) -> list[Segment]:
        return [
            Segment(path, p, base, end, size, ms, stats, self.since)
            for path, p, base, end, size, ms, _, stats in self.adds.values(rows)
        ]

    def find(self, partition: int, name: str) -> Segment | None:
        """The partition's segment whose file has this name, as `segment_name` gives it."""
        alike = (s for s in self(self.adds.named(name)) if s.partition == partition)
        return next((s for s in alike if layout.segment_name(s.path)[1] == name), None)


def beginning_up_to(live: Sequence[Segment], offset: int) -> int:
    """How many segments of a list by offset begin at an offset or before it."""
    return _up_to(live, offset, lambda segment: segment.base_offset, lambda adds: adds.base_offset)


def ending_up_to(live: Sequence[Segment], offset: int) -> int:
    """How many segments of a list by offset end at an offset or before it."""
    return _up_to(live, offset, lambda segment: segment.end, lambda adds: adds.end)


def _up_to(
    live: Sequence[Segment],
    offset: int,
    of_segment: Callable[[Segment], int],
    of_adds: Callable[[AddColumns], npt.NDArray[np.int64]],
) -> int:
    """How many of a sorted list have up to that; no segment is made of a checkpoint's rows."""
    if not isinstance(live, LazyList) or not isinstance(live.make, _Restored):
        return bisect_right(live, offset, key=of_segment)
    rows, column = live.rows, of_adds(live.make.adds)
    old = bisect_right(range(len(rows)), offset, key=lambda at: column[rows[at]])
    return old if old < len(rows) else old + bisect_right(live.newer, offset, key=of_segment)


def _in_order(segments: list[Segment]) -> list[Segment]:
    return sorted(segments, key=lambda s: (s.base_offset, s.path))
