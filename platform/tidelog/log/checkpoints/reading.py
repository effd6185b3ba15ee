"""Checkpoints: finding the one to start from, and reading it."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tidelog.log.base.errors import CorruptLogError, ForeignEntryError, ObjectNotFoundError
from tidelog.log.base.parquet_checksums import open_parquet
from tidelog.log.checkpoints.rows import MARK, read_kinds
from tidelog.log.delta import layout
from tidelog.log.delta.actions import Action, Add, Txn, decode_entry, parse_add, parse_metadata, parse_protocol
from tidelog.log.state.add_columns import AddColumns, CheckpointActions
from tidelog.log.state.producer_memory import ProducerColumns, joined, producer_columns
from tidelog.log.storage.port import ObjectInfo, Storage

# The rows that make up state, as many as are decoded at once: a large checkpoint is never in memory as a whole.
_KINDS = ("txn", "add", "metaData", "protocol")
_BATCH_ROWS = 32_768
# Of numbers that 64 bits hold, whatever their digits are.
_MOST_DIGITS = 18


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
        with _opened(storage, path, checkpoint.version) as file:
            missing = set(_KINDS).difference(file.schema_arrow.names)
            if missing:  # this is another kind of file
                raise KeyError(min(missing))
            parts.append(_actions(read_kinds(file, {kind: [kind] for kind in _KINDS}, _BATCH_ROWS)))
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
        with _opened(storage, f"{folder}/{layout.LOG_FOLDER}/{name}", checkpoint.version) as file:
            for batch in file.iter_batches(_BATCH_ROWS, columns=["remove.path", "remove.deletionTimestamp"]):
                for removes in batch.columns:  # none where no file was removed
                    rows = removes.filter(removes.is_valid())
                    for path, removed_ms in _columns(rows, "path", "deletionTimestamp"):
                        yield path, removed_ms or 0


@contextmanager
def _opened(storage: Storage, path: str, version: int) -> Iterator[pq.ParquetFile]:
    """A checkpoint's file; what is wrong with it, there or while it is read, is a `CorruptLogError`."""
    try:
        with storage.open(path) as source, open_parquet(source, size=None, sealed=False) as file:
            yield file
    except (pa.ArrowException, OSError, KeyError, ValueError, TypeError) as e:
        raise CorruptLogError(
            f"Checkpoint {path} can't be read: {e}. Earlier entries may be trimmed, so restore it from a copy;"
            " 'tidelog check' says whether anything rests on it.",
            version=version,
        ) from e


def _actions(batches: Iterable[pa.RecordBatch]) -> CheckpointActions:
    kept: dict[str, list[pa.StructArray]] = {kind: [] for kind in _KINDS}
    producers: list[ProducerColumns] = []
    for batch in batches:
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
    adds = pa.concat_arrays(kept["add"]) if kept["add"] else None
    columns = None if adds is None else _add_columns(adds)
    if adds is not None and columns is None:
        others.extend(_adds(adds))
    return CheckpointActions(others, columns, joined(producers))


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


def _lookup(rows: pa.StructArray, column: str, key: str) -> pa.Array:
    present = {rows.type.field(i).name for i in range(rows.type.num_fields)}
    return map_values(rows.field(column), key) if column in present else pa.nulls(len(rows), pa.string())


def map_values(maps: pa.MapArray, key: str) -> pa.Array:
    """What each map has under `key`, the first of several; null where it has none, or is null itself.

    The same as `pyarrow.compute.map_lookup`, which takes 25 times as long: it makes a value of each map.
    """
    offsets = maps.offsets.to_numpy()
    first, last = int(offsets[0]), int(offsets[-1])
    hits = np.flatnonzero(pc.equal(maps.keys.slice(first, last - first), key).to_numpy(zero_copy_only=False))
    row_of = np.repeat(np.arange(len(maps)), np.diff(offsets))[hits]
    indices = np.full(len(maps), -1)
    indices[row_of[::-1]] = hits[::-1] + first
    missing = (indices < 0) | maps.is_null().to_numpy(zero_copy_only=False)
    return maps.items.take(pa.array(indices, mask=missing))


def _add_columns(rows: pa.StructArray) -> AddColumns | None:
    """The rows as columns, None where they need a look at each."""
    if not {"path", "size", "modificationTime", "dataChange", "stats"} <= {field.name for field in rows.type}:
        return None
    texts = [_lookup(rows, "partitionValues", key) for key in ("partition", "base_offset")]
    texts.append(_lookup(rows, "tags", layout.END_TAG))
    numbers = [rows.field(name) for name in ("size", "modificationTime")]
    whole = all(column.null_count == 0 for column in (rows.field("path"), rows.field("dataChange"), *numbers))
    if not whole or not all(are_numbers(column) for column in texts):
        return None
    partition, base, end = (column.cast(pa.int64()).to_numpy() for column in texts)
    size, modified = (column.cast(pa.int64()).to_numpy() for column in numbers)
    return AddColumns(
        rows.field("path"), partition, base, end, size, modified, rows.field("dataChange"), rows.field("stats")
    )


def are_numbers(texts: pa.Array) -> bool:
    """Whether `partition_value` takes each of these texts for a number, of a size that 64 bits hold.

    By their bytes: a regular expression takes fifteen times as long.
    """
    if texts.null_count:
        return False
    texts = texts.cast(pa.large_string())
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    lengths = np.diff(ends)
    digits = np.frombuffer(data or b"", np.uint8)[ends[0] : ends[-1]] - np.uint8(ord("0"))
    return bool(np.all((lengths >= 1) & (lengths <= _MOST_DIGITS)) and np.all(digits < 10))


def _adds(rows: pa.StructArray) -> list[Add]:
    adds = [parse_add(body) for body in rows.to_pylist(maps_as_pydicts="lossy")]
    if any(add.end is None for add in adds):
        raise ValueError(f"a segment does not say (tag {layout.END_TAG}) which offsets it covers")
    return adds
