"""The invariants of what a topic's log says: pure, over its state (docs/format.md, "Invariants")."""

from collections.abc import Iterable, Iterator

import orjson

from tidelog.check.report import Finding, Kind
from tidelog.log.state.topic_state import Segment, TopicState

_FROM_A_COPY = "Stop the writers and restore the log folder from a copy; send the report of this check with a question."


def check_state(state: TopicState, topic: str) -> Iterator[Finding]:
    """Every broken invariant of a topic's state."""
    yield from _files_once(state, topic)
    if not state.exists:
        live = sum(1 for _ in state.all_segments())
        if live:
            what = f"The topic is deleted, but {live} of its segments are still in the table."
            yield Finding(Kind.DELETED_WITH_SEGMENTS, topic, "topic", what, _FROM_A_COPY)
        return
    partitions = range(state.partitions)
    used = {p for p, live in state.segments.items() if live} | {p for p, end in state.ends.items() if end}
    for p in sorted(used - set(partitions)):
        what = (
            f"The log has records or offsets of partition {p}, but the topic has {state.partitions}, numbered from 0."
        )
        yield Finding(Kind.PARTITION_UNKNOWN, topic, f"partition {p}", what, _FROM_A_COPY)
    for p in partitions:
        yield from _offsets(state, topic, p)
        yield from _coverage(state, topic, p)
        yield from _segments(state.live(p), topic, state.start(p))


def _files_once(state: TopicState, topic: str) -> Iterator[Finding]:
    seen: set[str] = set()
    for segment in state.all_segments():
        if segment.path in seen:
            what = f"The file is in the table twice, once for partition {segment.partition} from {segment.base_offset}."
            yield Finding(Kind.FILE_TWICE, topic, segment.path, what, _FROM_A_COPY)
        seen.add(segment.path)


def _offsets(state: TopicState, topic: str, p: int) -> Iterator[Finding]:
    """0 <= start <= end, and nothing past the end is compacted."""
    start, end, clean = state.start(p), state.end(p), state.cleans.get(p, 0)
    if not 0 <= start <= end:
        what = f"Its log start offset {start} is past its log end offset {end}, or below 0."
        yield Finding(Kind.START_PAST_END, topic, f"partition {p}", what, _FROM_A_COPY)
    if not 0 <= clean <= max(end, 0):
        what = f"It is compacted up to offset {clean}, but it ends at {end}."
        yield Finding(Kind.CLEAN_PAST_END, topic, f"partition {p}", what, _FROM_A_COPY)


def _coverage(state: TopicState, topic: str, p: int) -> Iterator[Finding]:
    """Segments lie end to end and cover [start, end)."""
    start, end = max(state.start(p), 0), state.end(p)
    reached: int | None = None  # segments so far cover up to here
    for segment in sorted(state.live(p), key=lambda s: (s.base_offset, s.path)):
        base, wanted = segment.base_offset, start if reached is None else max(start, reached)
        if reached is not None and base < reached:
            what = (
                f"Offsets {base} to {reached} are given twice: {segment.path} covers them, and so does the segment"
                " before or beside it."
            )
            yield Finding(Kind.SEGMENTS_OVERLAP, topic, f"partition {p}, offset {base}", what, _FROM_A_COPY)
        if base > wanted:
            yield _gap(topic, p, wanted, base)
        reached = segment.end if reached is None else max(reached, segment.end)
    wanted = start if reached is None else max(start, reached)
    if wanted < end:
        yield _gap(topic, p, wanted, end)
    if reached is not None and reached > end:
        what = f"The log end offset is {end}, but segments reach {reached}: the next records would get offsets again."
        yield Finding(Kind.END_BELOW_SEGMENTS, topic, f"partition {p}", what, _FROM_A_COPY)


def _gap(topic: str, p: int, start: int, end: int) -> Finding:
    where = f"partition {p}, offsets {start} to {end}"
    what = "No segment covers them, between the log start and the log end offset: their records are lost."
    todo = f"Restore the log folder from a copy, or give the offsets up: delete_records('{topic}', {{{p}: {end}}})."
    return Finding(Kind.COVERAGE_GAP, topic, where, what, todo)


def _segments(live: Iterable[Segment], topic: str, start: int) -> Iterator[Finding]:
    """Rules of single segments."""
    for segment in live:
        covers = f"{segment.base_offset} to {segment.end} of partition {segment.partition}"
        if segment.end <= segment.base_offset or segment.base_offset < 0:
            what = f"It is to cover offsets {covers}, which is nothing."
            yield Finding(Kind.SEGMENT_EMPTY, topic, segment.path, what, _FROM_A_COPY)
            continue
        if segment.end <= start:
            what = f"It covers offsets {covers}, all below the log start offset {start}, and no reader reads it."
            todo = "Nothing: the next retention or delete_records past it takes it out of the table."
            yield Finding(Kind.SEGMENT_BELOW_START, topic, segment.path, what, todo)
        if wrong := stats_problem(segment, covers):
            todo = "Readers by time may skip it. 'tidelog check --deep' says what the file holds."
            yield Finding(Kind.SEGMENT_STATS_WRONG, topic, segment.path, f"{wrong}.", todo)


def stats_problem(segment: Segment, covers: str) -> str:
    """What is wrong with a segment's statistics; "" when nothing is."""
    if segment.raw_stats is None:
        return "It has no statistics"
    try:
        body = orjson.loads(segment.raw_stats)
        bounds = [(body.get(side) or {}).get("timestamp") for side in ("minValues", "maxValues")]
    except (ValueError, AttributeError):
        return f"Its statistics can't be read: {segment.raw_stats[:80]}"
    told = (segment.stats.min_timestamp_ms, segment.stats.max_timestamp_ms)
    if any(given is not None and read is None for given, read in zip(bounds, told, strict=True)):
        return f"Its statistics name times that can't be read: {bounds}"
    records = body.get("numRecords")
    if records is None:
        return "Its statistics don't say how many records it holds"
    room = segment.end - segment.base_offset
    if not isinstance(records, int) or not 0 <= records <= max(room, 0):
        return f"Its statistics say {records} records, but it covers offsets {covers}"
    return ""
