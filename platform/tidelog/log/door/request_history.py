"""What a request that may be a repeat got: the answer of its first commit, as the log's kept entries tell it."""

from collections.abc import Sequence

from tidelog.log.base.clock import Clock
from tidelog.log.base.errors import ObjectNotFoundError, RequestForgottenError
from tidelog.log.checkpoints.reading import newest_floor
from tidelog.log.delta import layout
from tidelog.log.delta.actions import Add, Entry, decode_entry
from tidelog.log.door.reading_ahead import ReadingAhead
from tidelog.log.rules.appends import Ranges
from tidelog.log.segments.writer import Staged
from tidelog.log.storage.port import Storage
from tidelog.log.storage.store_time import StoreTime


def find_answer(
    storage: Storage, clock: Clock, topic: str, request_id: str, staged: Sequence[Staged], after: int, head: int
) -> Ranges | None:
    """The answer that the request, or another with these segments, got by an entry past `after`, up to `head`.

    None when it got none: such an entry comes after the writers of all segments opened them, and where entries since
    are gone, after all files were stored. Raises `RequestForgottenError` where that leaves it open. What is there up to
    a floor counts as gone: it may be a stale writer's, even the request's own, and no reader reads it.
    """
    names = {layout.segment_name(s.path)[1] for s in staged}
    reading = ReadingAhead(storage, lambda version: f"{topic}/{layout.entry_path(version)}", StoreTime(clock))
    reading.begin()
    oldest: int | None = None
    floor = newest_floor(storage, topic, -1)
    for version in range(max(after, floor) + 1, head + 1):
        try:
            data = reading.get(version)
        except ObjectNotFoundError:  # trimmed, and so are all before it
            oldest = None
            continue
        oldest = version if oldest is None else oldest
        ranges = _ranges(decode_entry(version, data, topic), request_id, names)
        if ranges and (floor := newest_floor(storage, topic, floor)) < version:
            return ranges
    floor = newest_floor(storage, topic, floor)  # it counts when it is looked at after the entries
    if oldest is not None and oldest <= floor:
        oldest = floor + 1 if floor < head else None
    if oldest != after + 1 and not _is_younger(storage, topic, staged, oldest):
        raise RequestForgottenError(
            f"Whether request {request_id} was committed to topic '{topic}' before is unknown now: its segments"
            f" were staged at version {after}, segments have left the topic since, and the log is kept from version"
            f" {head + 1 if oldest is None else oldest} on (log.min.age.ms). Nothing was committed now. Read the topic"
            " to see; if the records are not there, stage them again and commit them under another id."
        )
    return None


def _ranges(entry: Entry, request_id: str, names: set[str]) -> Ranges:
    """What an entry gave the request, or these segments; {} when it is another's."""
    adds = [a for a in entry.actions if isinstance(a, Add) and a.end is not None]
    if entry.info.request_id != request_id:
        adds = [a for a in adds if layout.segment_name(a.path)[1] in names]
        if len(adds) < len(names):
            return {}
    ranges: Ranges = {}
    for add in adds:
        assert add.end is not None
        ranges[add.partition] = (ranges.get(add.partition, (add.base_offset,))[0], add.end)
    return ranges


def _is_younger(storage: Storage, topic: str, staged: Sequence[Staged], oldest: int | None) -> bool:
    """Whether some segment was stored after the entry `oldest`, so that only entries past it can name it."""
    if oldest is None:
        return False
    try:
        kept_since_ms = storage.head(f"{topic}/{layout.entry_path(oldest)}").modified_ms
        return any(storage.head(f"{topic}/{segment.path}").modified_ms > kept_since_ms for segment in reversed(staged))
    except ObjectNotFoundError:
        return False
