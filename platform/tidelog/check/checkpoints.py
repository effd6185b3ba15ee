"""Checkpoints, for `check`: whether one can be read, belongs to its topic and says what the log says."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson
import pyarrow as pa

from tidelog.check.listing import LogFiles, list_log
from tidelog.check.report import Finding, Kind
from tidelog.log.base.errors import (
    CorruptLogError,
    ForeignEntryError,
    NotATopicError,
    ObjectNotFoundError,
    StorageError,
    StorageUnavailableError,
    UnsupportedFormatError,
)
from tidelog.log.checkpoints.reading import Checkpoint, read_checkpoint
from tidelog.log.delta import layout
from tidelog.log.delta.actions import Txn
from tidelog.log.door.contract import Machine
from tidelog.log.state.topic_state import Segment, TopicState
from tidelog.log.storage.port import Storage

# What a damaged Parquet file, or one with other columns, makes pyarrow and the code that reads its rows raise.
UNREADABLE = (pa.ArrowException, OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, MemoryError)
_SHOWN = 3
# A checkpoint is there before `_last_checkpoint` names it.
_HINT_FOLLOWS_MS = 60_000


class BadCheckpointError(Exception):
    """A checkpoint that no reader can start from; `kind` and `why` say what is wrong with it."""

    def __init__(self, kind: Kind, why: str) -> None:
        super().__init__(why)
        self.kind = kind
        self.why = why


def checkpoint_state(storage: Storage, topic: str, checkpoint: Checkpoint, machine: Machine[TopicState]) -> TopicState:
    """The state that a checkpoint holds. Raises `BadCheckpointError`, `ObjectNotFoundError` when it is gone."""
    state = machine.empty()
    try:
        state.restore(checkpoint.version, read_checkpoint(storage, topic, checkpoint))
        machine.verify_checkpoint(state, checkpoint.version)
    except (ObjectNotFoundError, StorageUnavailableError):
        raise
    except UnsupportedFormatError as e:
        raise BadCheckpointError(Kind.FORMAT_UNSUPPORTED, str(e)) from e
    except (NotATopicError, ForeignEntryError) as e:
        raise BadCheckpointError(Kind.CHECKPOINT_FOREIGN, str(e)) from e
    except CorruptLogError as e:
        # `restore` gives the version only at its end: before that nothing was read.
        kind = Kind.CHECKPOINT_FOREIGN if state.version >= 0 else Kind.CHECKPOINT_UNREADABLE
        raise BadCheckpointError(kind, str(e)) from e
    except (*UNREADABLE, StorageError) as e:
        raise BadCheckpointError(Kind.CHECKPOINT_UNREADABLE, f"It can't be read: {e!r}.") from e
    return state


def differences(held: TopicState, replayed: TopicState) -> list[str]:
    """What a checkpoint's state `held` says otherwise than the log up to there, in words; [] when they agree.

    What a checkpoint may drop is no difference: transaction ids that expire.
    """
    problems: list[str] = []
    if held.metadata != replayed.metadata:
        problems.append("its metaData (configuration, schema) is not the log's")
    if held.protocol != replayed.protocol:
        problems.append(f"its protocol is {held.protocol}, the log's {replayed.protocol}")
    for name, mine, theirs in (
        ("end", held.ends, replayed.ends),
        ("start", held.starts, replayed.starts),
        ("compacted", held.cleans, replayed.cleans),
    ):
        problems.extend(
            f"its {name} offset of partition {p} is {mine.get(p, 0)}, the log's {theirs.get(p, 0)}"
            for p in sorted(mine.keys() | theirs.keys())
            if mine.get(p, 0) != theirs.get(p, 0)
        )
    problems.extend(_txn_differences(_txns(held), _txns(replayed)))
    problems.extend(_segment_differences(held, replayed))
    return problems


def _txns(state: TopicState) -> dict[str, Txn]:
    return state.txns | {txn.app_id: txn for txn in state.producer_txns()}


def _txn_differences(held: Mapping[str, Txn], replayed: Mapping[str, Txn]) -> Iterator[str]:
    for app_id in sorted(held.keys() | replayed.keys()):
        mine, theirs = held.get(app_id), replayed.get(app_id)
        if mine is None and theirs is not None and theirs.last_updated_ms is not None:
            continue  # expired
        if mine != theirs:
            yield f"its transaction id {app_id} is at {mine and mine.version}, the log's at {theirs and theirs.version}"


def _segment_differences(held: TopicState, replayed: TopicState) -> Iterator[str]:
    mine, theirs = list(map(_identity, held.all_segments())), list(map(_identity, replayed.all_segments()))
    if len(set(mine)) < len(mine):
        yield "it holds a segment twice"
    yield from _named("it holds segments that the log does not", set(mine) - set(theirs))
    yield from _named("it lacks segments that the log has", set(theirs) - set(mine))


def _identity(s: Segment) -> tuple[Any, ...]:
    return (s.path, s.partition, s.base_offset, s.end, s.size, s.modification_ms, str(s.stats))


def _named(what: str, segments: Iterable[tuple[Any, ...]]) -> Iterator[str]:
    ordered = sorted(segments, key=lambda s: (s[1], s[2], s[0]))
    if ordered:
        shown = ", ".join(f"{s[0]} (partition {s[1]}, from offset {s[2]})" for s in ordered[:_SHOWN])
        more = f" and {len(ordered) - _SHOWN} more" if len(ordered) > _SHOWN else ""
        yield f"{what}: {shown}{more}"


def check_hint(storage: Storage, topic: str, files: LogFiles, now_ms: int) -> Iterator[Finding]:
    """Whether `_last_checkpoint` names a checkpoint that is there. `now_ms` is compared with the store's clock."""
    mend = "'tidelog check --repair' writes it again; the next checkpoint does too."
    listing = "so a program that opens the topic lists the log folder"
    try:
        data = storage.get(f"{topic}/{layout.LAST_CHECKPOINT}")
    except ObjectNotFoundError:
        if any(files.written_ms[c.version] <= now_ms - _HINT_FOLLOWS_MS for c in files.usable):
            what = f"It is missing while there are checkpoints, {listing}."
            yield Finding(Kind.HINT_MISSING, topic, layout.LAST_CHECKPOINT, what, mend)
        return
    named = _hinted(data)
    if named is None:
        what = f"It can't be read as a checkpoint's version ({data[:60]!r}), {listing}."
        yield Finding(Kind.HINT_BROKEN, topic, layout.LAST_CHECKPOINT, what, mend)
        return
    version, parts = named
    listed = files
    if all(c.version != version for c in files.usable):
        listed = list_log(storage, topic)  # it may be newer than the listing
    if not any(c.version == version and (parts or 1) == len(c.files) for c in listed.usable):
        why = "which a floor has passed" if version <= files.floor else "which is not there, or not whole"
        what = f"It names the checkpoint of version {version}, {why}: readers must look for another one."
        yield Finding(Kind.HINT_DANGLING, topic, layout.LAST_CHECKPOINT, what, mend)


def _hinted(data: bytes) -> tuple[int, int | None] | None:
    try:
        body = orjson.loads(data)
        version, parts = body["version"], body.get("parts")
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    if not isinstance(version, int) or version < 0 or not isinstance(parts, int | None):
        return None
    return version, parts
