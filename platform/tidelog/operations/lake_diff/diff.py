"""Two lakes compared: topics, records or keys, groups, configurations. What both have in one file is not read."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import pyarrow as pa

from tidelog.groups.store.group_log import GroupLog
from tidelog.log.base.errors import UnknownTopicError
from tidelog.log.lake import Lake
from tidelog.log.state.topic_state import TopicState
from tidelog.operations.lake_diff.model import GroupDiff, LakeDiff, Presence, RecordDiff, TopicDiff
from tidelog.operations.lake_diff.ranges import Side, unshared, windows
from tidelog.operations.lake_diff.records import compare, first_of, newest_by_key

# How many differences of each topic are given in full.
SHOWN: Final = 10
_EMPTY: Final = (0, 0)


def diff(a: Lake, b: Lake, topic: str | None = None, *, by_key: bool = False, shown: int = SHOWN) -> LakeDiff:
    """What differs between two lakes as they are now, or of one topic of theirs.

    `by_key`: of each partition the newest record of a key is compared, as compaction leaves it, and its offset and time
    are not. `shown`: how many differences of a topic are given in full. Raises `UnknownTopicError` for a topic that
    neither has, `StorageError`.
    """
    for lake in (a, b):
        lake.require_lake()
    if topic is not None:
        if a.peek(topic) is None and b.peek(topic) is None:
            raise UnknownTopicError(f"Topic '{topic}' is in neither of {a.uri} and {b.uri}. Check its name.")
        return LakeDiff(a.uri, b.uri, by_key, (_topic(a, b, topic, by_key=by_key, shown=shown),))
    names = sorted({*a.topics(), *b.topics()})
    return LakeDiff(
        a.uri,
        b.uri,
        by_key,
        tuple(_topic(a, b, name, by_key=by_key, shown=shown) for name in names),
        tuple(_groups(a, b)),
        _changed(a.reload_config().overrides, b.reload_config().overrides),
    )


def _changed(a: Mapping[str, str], b: Mapping[str, str]) -> dict[str, tuple[str | None, str | None]]:
    return {key: (a.get(key), b.get(key)) for key in sorted(a.keys() | b.keys()) if a.get(key) != b.get(key)}


# --- topics ------------------------------------------------------------------------------------------------


def _topic(a: Lake, b: Lake, name: str, *, by_key: bool, shown: int) -> TopicDiff:
    states = [lake.peek(name) for lake in (a, b)]
    ours, theirs = states
    where = Presence.B if ours is None else Presence.A if theirs is None else None
    counts: Counter[Presence] = Counter()
    first: list[RecordDiff] = []
    read = 0
    partitions = [0 if state is None else state.partitions for state in states]
    for partition in range(max(partitions)):
        found = _keys(a, b, name, partition, states) if by_key else _records(a, b, name, partition, states, shown)
        for part in found:
            counts.update(part.counts)
            first.extend(part.first[: max(0, shown - len(first))])
            read += part.read
    config = {} if ours is None or theirs is None else _changed(ours.overrides, theirs.overrides)
    note = ""
    if ours is not None and theirs is not None and ours.topic_id != theirs.topic_id:
        note = "the two are not one topic: each was created by itself"
    return TopicDiff(name, where, dict(counts), tuple(first), config, (partitions[0], partitions[1]), note, read)


class _PieceDiff:
    """The differences of some offsets, or of some keys. `read`: how many offsets were compared."""

    def __init__(self, counts: Mapping[Presence, int], first: list[RecordDiff], read: int) -> None:
        self.counts, self.first, self.read = counts, first, read


def _sides(states: Iterable[TopicState | None], partition: int) -> tuple[Side, Side]:
    ours, theirs = (Side.of(state, partition) for state in states)
    return ours, theirs


def _records(
    a: Lake, b: Lake, name: str, partition: int, states: Iterable[TopicState | None], shown: int
) -> Iterator[_PieceDiff]:
    side_a, side_b = _sides(states, partition)
    for start, end in windows(unshared(side_a, side_b), side_a, side_b):
        ours = _read(a, name, partition, side_a.within(start, end))
        theirs = _read(b, name, partition, side_b.within(start, end))
        compared = compare(ours, theirs)
        yield _PieceDiff(compared.counts, list(first_of(compared, ours, theirs, partition, shown)), end - start)


def _read(lake: Lake, name: str, partition: int, within: tuple[int, int]) -> pa.Table:
    batches = [] if within == _EMPTY else list(lake.topic(name).read(partition, *within, include_headers=True))
    return pa.Table.from_batches(batches) if batches else _no_records()


def _no_records() -> pa.Table:
    columns = {
        "key": pa.binary(),
        "value": pa.binary(),
        "offset": pa.int64(),
        "timestamp": pa.timestamp("us", "UTC"),
        "timestampType": pa.int32(),
        "headers": pa.list_(pa.struct({"key": pa.string(), "value": pa.binary()})),
    }
    return pa.table({column: pa.array([], kind) for column, kind in columns.items()})


# --- keys --------------------------------------------------------------------------------------------------


def _keys(a: Lake, b: Lake, name: str, partition: int, states: Iterable[TopicState | None]) -> Iterator[_PieceDiff]:
    """The keys of which the newest records differ: all of them are in what the two don't share."""
    side_a, side_b = _sides(states, partition)
    ranges = unshared(side_a, side_b)
    newest_a, read_a = _newest(a, name, partition, side_a, windows(ranges, side_a, side_b))
    newest_b, read_b = _newest(b, name, partition, side_b, windows(ranges, side_a, side_b))
    keys = sorted(newest_a.keys() | newest_b.keys())
    if not keys:
        return
    # A key may be older on one side, in a file of both; or newer in one.
    shared = _shared(side_a, side_b, ranges)
    wanted = pa.array(keys, pa.binary())
    for start, end in windows(shared, side_a, side_b):
        table = _read(a, name, partition, side_a.within(start, end))
        for key, row in newest_by_key(table, wanted).items():
            for newest in (newest_a, newest_b):
                if key not in newest or newest[key]["offset"] < row["offset"]:
                    newest[key] = row
    found = [one for key in keys if (one := _of_key(partition, key, newest_a.get(key), newest_b.get(key))) is not None]
    counts = Counter(one.where for one in found)
    yield _PieceDiff(counts, found, read_a + read_b)


def _shared(a: Side, b: Side, ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """What is between the ranges that are not shared, where both lakes show it."""
    low, high = max(a.start, b.start), min(a.end, b.end)
    ranges_of_both = []
    for start, end in [*ranges, (high, high)]:
        if low < min(start, high):
            ranges_of_both.append((low, min(start, high)))
        low = max(low, end)
    return ranges_of_both


def _newest(
    lake: Lake, name: str, partition: int, side: Side, pieces: Iterable[tuple[int, int]]
) -> tuple[dict[bytes, dict[str, Any]], int]:
    """The newest record of each key in pieces of a partition, and how many offsets they have here."""
    newest: dict[bytes, dict[str, Any]] = {}
    read = 0
    for start, end in pieces:
        low, high = side.within(start, end)
        newest.update(newest_by_key(_read(lake, name, partition, (low, high))))
        read += high - low
    return newest, read


def _of_key(
    partition: int, key: bytes, ours: Mapping[str, Any] | None, theirs: Mapping[str, Any] | None
) -> RecordDiff | None:
    """How a key differs; a tombstone is none."""
    a, b = (
        None if row is None or row["value"] is None else {name: row[name] for name in ("value", "headers")}
        for row in (ours, theirs)
    )
    if a == b:
        return None
    where = Presence.B if a is None else Presence.A if b is None else Presence.BOTH
    return RecordDiff(
        where, partition, None, None if a is None else {"key": key} | a, None if b is None else {"key": key} | b
    )


# --- groups ------------------------------------------------------------------------------------------------


def _groups(a: Lake, b: Lake) -> Iterator[GroupDiff]:
    views = [GroupLog(lake).views() for lake in (a, b)]
    for group in sorted(views[0].keys() | views[1].keys()):
        ours, theirs = (
            {place: one.offset for place, one in view.offsets.items()} if (view := found.get(group)) else None
            for found in views
        )
        where = Presence.B if ours is None else Presence.A if theirs is None else Presence.BOTH
        ours, theirs = ours or {}, theirs or {}
        places = sorted(ours.keys() | theirs.keys())
        positions = {p: (ours.get(p), theirs.get(p)) for p in places if ours.get(p) != theirs.get(p)}
        if positions or where is not Presence.BOTH:
            yield GroupDiff(group, where, positions)
