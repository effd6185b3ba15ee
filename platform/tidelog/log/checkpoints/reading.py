"""Checkpoints: finding the one to start from, and reading it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tidelog.log.base.errors import CorruptLogError, ForeignEntryError, ObjectNotFoundError
from tidelog.log.base.parquet_checksums import open_parquet
from tidelog.log.checkpoints.late_adds import Bounds, LateAdds, bounds_of, file_columns, late_adds
from tidelog.log.checkpoints.rows import MARK, kinds_by_group, read_group, read_kinds
from tidelog.log.delta import layout
from tidelog.log.delta.actions import Action, Add, Txn, decode_entry, parse_add, parse_metadata, parse_protocol
from tidelog.log.state.add_columns import AddColumns, CheckpointActions, FileGroup, decoded_group
from tidelog.log.state.producer_memory import ProducerColumns, joined, producer_columns
from tidelog.log.storage.port import ObjectInfo, Storage

# The rows that make up state, as many as are decoded at once: a large checkpoint is never in memory as a whole.
_KINDS = ("txn", "add", "metaData", "protocol")
_BATCH_ROWS = 32_768


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint that is whole: its version and its files' names below the log folder."""

    version: int
    files: tuple[str, ...]


def _files(version: int, parts: int) -> tuple[str, ...]:
    if not parts:
        return (f"{version:020d}.checkpoint.parquet",)
    return tuple(f"{version:020d}.checkpoint.{i:010d}.{parts:010d}.parquet" for i in range(1, parts + 1))


def _hint(storage: Storage, folder: str) -> Checkpoint | None:
    """What `_last_checkpoint` names. It may be stale, or name a checkpoint that is gone."""
    try:
        body = orjson.loads(storage.get(f"{folder}/{layout.LAST_CHECKPOINT}"))
        return Checkpoint(int(body["version"]), _files(int(body["version"]), int(body.get("parts") or 0)))
    except (ObjectNotFoundError, ValueError, KeyError, TypeError, AttributeError):
        return None


def newest_checkpoint_version(storage: Storage, folder: str) -> int:
    """The version that `_last_checkpoint` names, -1 when there is none."""
    hint = _hint(storage, folder)
    return -1 if hint is None else hint.version


def newest_floor(storage: Storage, folder: str, floor: int = -1) -> int:
    """The newest floor of a log: every entry up to it may be gone; -1 for none. `floor`: an earlier answer."""
    floors = storage.list_after(f"{folder}/{layout.FLOOR_FOLDER}", f"{floor:020d}" if floor >= 0 else "")
    return max((version for o in floors if (version := layout.version_of(o.path)) is not None), default=floor)


def whole_checkpoints(listing: Iterable[ObjectInfo]) -> list[Checkpoint]:
    """Every whole checkpoint by version, from a listing of the log folder."""
    names: dict[int, set[str]] = {}
    for found in listing:
        name = found.path.rpartition("/")[2]
        version = layout.version_of(name)
        if version is not None and ".checkpoint." in name and name.endswith(".parquet"):
            names.setdefault(version, set()).add(name)
    whole = []
    for version, found_names in sorted(names.items()):
        parts = {int(n.split(".")[3]) for n in found_names if n.count(".") == 4}
        for candidate in [0, *sorted(parts)]:
            files = _files(version, candidate)
            if found_names.issuperset(files):
                whole.append(Checkpoint(version, files))
                break
    return whole


def checkpoints_from(
    storage: Storage, folder: str, at_least: int, listing: Callable[[], Iterable[ObjectInfo]] | None = None
) -> Iterator[Checkpoint]:
    """The checkpoints to start from, of version `at_least` or newer: what `_last_checkpoint` names, then by listing.

    Newest first. One that `_last_checkpoint` names may be gone. The `listing` of the log folder is asked only when it
    comes to that.
    """
    hint = _hint(storage, folder)
    if hint is not None and hint.version >= at_least:
        yield hint
    listed = storage.list_after(f"{folder}/{layout.LOG_FOLDER}") if listing is None else listing()
    for found in reversed(whole_checkpoints(listed)):
        if found.version >= at_least and found != hint:
            yield found


def read_checkpoint(storage: Storage, folder: str, checkpoint: Checkpoint) -> CheckpointActions:
    """The checkpoint's actions that make up state: metaData, protocol, txn and add, in no order.

    Raises `CorruptLogError` naming the checkpoint when it can't be read, `ForeignEntryError` when it is another
    engine's and holds what tidelog did not write, `ObjectNotFoundError` when it is gone.
    """
    parts: list[CheckpointActions] = []
    for name in checkpoint.files:
        path = f"{folder}/{layout.LOG_FOLDER}/{name}"
        with _opened(storage, path, checkpoint.version) as (source, file):
            missing = set(_KINDS).difference(file.schema_arrow.names)
            if missing:  # this is another kind of file
                raise KeyError(min(missing))
            parts.append(_actions(source, file))
            own = MARK in (file.schema_arrow.metadata or {})
        if not own and is_foreign(storage, folder, checkpoint.version):
            raise ForeignEntryError(
                f"Checkpoint {path} holds entries that tidelog did not write and that are not taken back in it. Another"
                " engine made it; the log is read without it, and 'tidelog check --repair' sets it aside.",
                version=checkpoint.version,
            )
    return parts[0] if len(parts) == 1 else CheckpointActions([a for part in parts for a in part])


def is_foreign(storage: Storage, folder: str, version: int) -> bool:
    """Whether entry `version` follows, or is, one that tidelog did not write and that is not taken back by then.

    tidelog's next entry takes them back. What is trimmed away was none of them.
    """
    while True:
        path = f"{folder}/{layout.entry_path(version)}"
        try:
            entry = decode_entry(version, storage.get(path), path)
        except (ObjectNotFoundError, CorruptLogError):  # one that is torn stops its readers
            return False
        if entry.info.request_id is not None or entry.touched is not None:
            return entry.touched is not None
        version -= 1


def removed_files(storage: Storage, folder: str, checkpoint: Checkpoint) -> Iterator[tuple[str, int]]:
    """The removed files that a checkpoint still names, and when they were removed (ms since the epoch).

    Raises `CorruptLogError` naming the checkpoint when it can't be read, `ObjectNotFoundError` when it is gone.
    """
    for name in checkpoint.files:
        with _opened(storage, f"{folder}/{layout.LOG_FOLDER}/{name}", checkpoint.version) as (_, file):
            for batch in file.iter_batches(_BATCH_ROWS, columns=["remove.path", "remove.deletionTimestamp"]):
                for removes in batch.columns:  # none where no file was removed
                    rows = removes.filter(removes.is_valid())
                    for path, removed_ms in _columns(rows, "path", "deletionTimestamp"):
                        yield path, removed_ms or 0


def live_files(storage: Storage, folder: str, checkpoint: Checkpoint) -> Iterator[tuple[str, int]]:
    """The files that are live at a checkpoint, by their paths below the folder, with their bytes.

    Raises as `removed_files` does.
    """
    for name in checkpoint.files:
        with _opened(storage, f"{folder}/{layout.LOG_FOLDER}/{name}", checkpoint.version) as (_, file):
            for batch in read_kinds(file, {"add": ["add.path", "add.size"]}, _BATCH_ROWS):
                for adds in batch.columns:  # none where no file is live
                    for path, size in _columns(adds.filter(adds.is_valid()), "path", "size"):
                        yield unquote(path), int(size)


@contextmanager
def _opened(storage: Storage, path: str, version: int) -> Iterator[tuple[Any, pq.ParquetFile]]:
    """A checkpoint's file, as bytes and as Parquet.

    What is wrong with it, there or while it is read, is a `CorruptLogError`.
    """
    try:
        with storage.open(path) as source, open_parquet(source, size=None, sealed=False) as file:
            yield source, file
    except (pa.ArrowException, OSError, KeyError, ValueError, TypeError) as e:
        raise CorruptLogError(
            f"Checkpoint {path} can't be read: {e}. Earlier entries may be trimmed, so restore it from a copy;"
            " 'tidelog check' says whether anything rests on it.",
            version=version,
        ) from e


def _actions(source: Any, file: pq.ParquetFile) -> CheckpointActions:
    kept: dict[str, list[pa.StructArray]] = {kind: [] for kind in _KINDS}
    producers: list[ProducerColumns] = []
    late: list[LateAdds] = []
    for group, kinds in enumerate(kinds_by_group(file.metadata, _KINDS)):
        adds = late_adds(source, file.metadata, group) if kinds == ["add"] else None
        if adds is not None:
            late.append(adds)
            continue
        for batch in read_group(file, group, kinds, {kind: [kind] for kind in kinds}, _BATCH_ROWS):
            for kind in batch.schema.names:
                rows = batch.column(kind)
                if rows.null_count == len(rows):
                    continue
                rows = rows.filter(rows.is_valid()) if rows.null_count else rows
                if kind == "txn":
                    found, rows = _split_txns(rows)
                    producers.extend(found)
                kept[kind].append(rows)
    others: list[Action] = []
    for kind, parse in (("protocol", parse_protocol), ("metaData", parse_metadata)):
        others.extend(parse(body) for rows in kept[kind] for body in rows.to_pylist(maps_as_pydicts="lossy"))
    for rows in kept["txn"]:
        others.extend(Txn(*row) for row in _columns(rows, "appId", "version", "lastUpdated"))
    parts = [(adds.bounds, adds.files) for adds in late]
    for rows in kept["add"]:
        part = _add_columns(rows)
        if part is None:
            others.extend(_adds(rows))
        else:
            parts.append(part)
    return CheckpointActions(others, _joined_adds(parts), joined(producers))


def _split_txns(rows: pa.StructArray) -> tuple[list[ProducerColumns], pa.StructArray]:
    """The producers as columns, if there are any, and the other rows."""
    if not {"appId", "version", "lastUpdated"} <= {field.name for field in rows.type}:
        return [], rows
    timed = pc.is_valid(rows.field("lastUpdated"))
    of_producers = pc.and_(pc.starts_with(rows.field("appId"), layout.PRODUCER_PREFIX), timed)
    producers = rows.filter(of_producers)
    if not len(producers):
        return [], rows
    columns = producer_columns(*(producers.field(name) for name in ("appId", "version", "lastUpdated")))
    return [columns], rows.filter(pc.invert(of_producers))


def _columns(rows: pa.StructArray, *names: str) -> Any:
    present = {rows.type.field(i).name for i in range(rows.type.num_fields)}
    columns = [rows.field(n).to_pylist() if n in present else [None] * len(rows) for n in names]
    return zip(*columns, strict=True)


def _joined_adds(parts: Sequence[tuple[Bounds, FileGroup]]) -> AddColumns | None:
    if not parts:
        return None
    partition, base_offset, end = map(np.concatenate, zip(*(bounds for bounds, _ in parts), strict=True))
    return AddColumns(partition, base_offset, end, tuple(group for _, group in parts))


def _add_columns(rows: pa.StructArray) -> tuple[Bounds, FileGroup] | None:
    """The rows as columns, None where they need a look at each."""
    if not {"path", "size", "modificationTime", "dataChange", "stats"} <= {field.name for field in rows.type}:
        return None
    whole = (rows.field(name) for name in ("path", "dataChange", "size", "modificationTime"))
    bounds = bounds_of(rows)
    if bounds is None or any(column.null_count for column in whole):
        return None
    return bounds, decoded_group(file_columns(rows))


def _adds(rows: pa.StructArray) -> list[Add]:
    adds = [parse_add(body) for body in rows.to_pylist(maps_as_pydicts="lossy")]
    if any(add.end is None for add in adds):
        raise ValueError(f"a segment does not say (tag {layout.END_TAG}) which offsets it covers")
    return adds
