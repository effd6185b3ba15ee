"""The files of a topic, for `check`: segments that are missing, files that no entry names, leftovers of crashes."""

from collections.abc import Iterable, Iterator
from urllib.parse import unquote

from tidelog.check.report import Finding, Kind, OnProgress, Progress
from tidelog.log.base.errors import CorruptLogError, StorageError, StorageUnavailableError
from tidelog.log.delta import layout
from tidelog.log.delta.actions import Remove, decode_entry
from tidelog.log.rows.state import RowState
from tidelog.log.state.topic_state import Segment, TopicState
from tidelog.log.storage.port import ObjectInfo, Storage
from tidelog.log.upkeep.topic_files import IN_FLIGHT_MS, TopicFiles, old_temporary_files


def each_unread(
    topic: str, state: TopicState, skip: Iterable[str], on_progress: OnProgress | None
) -> Iterator[Segment]:
    """The segments to read, all but those whose path is in `skip`; progress hears of each when it was read."""
    skipped = set(skip)
    segments = [s for s in state.all_segments() if s.path not in skipped]
    done_bytes, total = 0, sum(s.size for s in segments)
    for done, segment in enumerate(segments, 1):
        yield segment
        done_bytes += segment.size
        if on_progress is not None:
            on_progress(Progress(topic, done, len(segments), done_bytes, total))


def check_segments(storage: Storage, topic: str, state: TopicState, files: TopicFiles) -> Iterator[Finding]:
    """Whether every segment is there, at the size that the log says. `files` were listed before `state` was read."""
    missing = []
    for segment in state.all_segments():
        file = files.data.get(unquote(segment.path))
        if file is None:
            missing.append(segment)
        elif file.size != segment.size:
            what = f"The file has {file.size} bytes, but the log says {segment.size}: it was cut or replaced."
            yield Finding(Kind.SEGMENT_SIZE_WRONG, topic, segment.path, what, _give_up(state))
    gone = [s for s in missing if not is_there(storage, f"{topic}/{unquote(s.path)}")]
    removed = removed_since(storage, topic, state.version) if gone else set()
    for segment in gone:
        if segment.path not in removed:
            lost = f"offsets {segment.base_offset} to {segment.end} of partition {segment.partition}"
            what = f"The file is missing: {lost} are lost."
            yield Finding(Kind.SEGMENT_MISSING, topic, segment.path, what, _give_up(state))


def _give_up(state: TopicState) -> str:
    if isinstance(state, RowState):
        again = "'tidelog check --repair' writes it again while the entry that added it is kept"
        return f"{again}; else restore it from a copy."
    return (
        "check can't bring records back: restore the file from a copy, or have 'tidelog check --repair --give-up' give"
        " up these offsets and no others."
    )


def is_there(storage: Storage, path: str) -> bool:
    """Whether an object can be opened."""
    try:
        storage.open(path).close()
    except StorageUnavailableError:
        raise
    except StorageError:
        return False
    return True


def removed_since(storage: Storage, topic: str, version: int) -> set[str]:
    """The files that entries after `version` removed: a purge may have deleted them during the check."""
    removed: set[str] = set()
    while True:
        version += 1
        path = f"{topic}/{layout.entry_path(version)}"
        try:
            entry = decode_entry(version, storage.get(path), path)
        except StorageUnavailableError:
            raise
        except (StorageError, CorruptLogError):
            return removed
        removed.update(a.path for a in entry.actions if isinstance(a, Remove))


def check_leftovers(topic: str, files: TopicFiles, named: Iterable[str], now_ms: int) -> Iterator[Finding]:
    """Files that no entry names. `now_ms` is compared with the store's clock."""
    known = {unquote(path) for path in named}
    loose = [info for path, info in files.data.items() if path not in known]
    old = [o for o in loose if o.modified_ms <= now_ms - IN_FLIGHT_MS]
    young = [o for o in loose if o.modified_ms > now_ms - IN_FLIGHT_MS]
    what = "in the topic's folder that no entry names: appends that were never committed, or another tool's"
    todo = "Nothing: they only take space until a purge deletes them. Don't delete by hand what a writer may commit."
    yield from _unnamed(Kind.ORPHANS, topic, old, what, todo)
    what = "younger than an hour that no entry names: a writer may be about to commit them"
    yield from _unnamed(Kind.IN_FLIGHT, topic, young, what, "Nothing.")


def _unnamed(kind: Kind, topic: str, files: list[ObjectInfo], what: str, todo: str) -> Iterator[Finding]:
    if files:
        size = sum(o.size for o in files)
        example = min(o.path for o in files).removeprefix(f"{topic}/")
        text = f"{len(files)} files ({size} bytes) {what}. One of them: {example}."
        yield Finding(kind, topic, "folder", text, todo)


def check_temporary_files(topic: str, unfinished: Iterable[ObjectInfo], now_ms: int) -> Iterator[Finding]:
    """Unfinished files older than an hour."""
    old = old_temporary_files(unfinished, now_ms)
    if old:
        size = sum(o.size for o in old)
        what = f"{len(old)} unfinished files ({size} bytes) that a crash left behind. One of them: {old[0].path}."
        yield Finding(Kind.TEMPORARY_FILES, topic, "folder", what, "'tidelog check --repair' deletes them.")
