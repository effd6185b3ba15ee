"""The rules of a table of rows: which entry may follow, how rows are appended, how it is created. All pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import orjson

from tidelog.log.base.errors import CorruptLogError
from tidelog.log.delta import layout
from tidelog.log.delta.actions import NO_PARTITION, Add, Entry, Metadata, Remove, Txn
from tidelog.log.rows.schema import POSITION, Row
from tidelog.log.rows.state import Fold, RowState, as_one_partition, rows_version
from tidelog.log.rules.topics import GROW, Outcome, decide_create, require_topic
from tidelog.log.state.topic_state import ROWS, ROWS_VERSION
from tidelog.log.state.verify import verify_entry

F = TypeVar("F", bound=Fold)
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class RowOutcome(Generic[R]):
    """The result of a decision over a table of rows: rows to append (none: nothing to do), and the answer."""

    rows: Sequence[Row]
    response: R


def verify_rows(state: RowState[F], entry: Entry, table: str) -> None:
    """Raise unless `entry` may follow `state`. `table` is the table's name."""
    plain = as_one_partition(entry)
    verify_entry(state, plain, table)
    for metadata in (a for a in entry.actions if isinstance(a, Metadata)):
        rows_version(metadata, state.kind)
    if entry.info.request_id is None:
        return
    for problem in _problems(state, plain):
        raise CorruptLogError(
            f"Table '{table}': log entry {entry.version} ({entry.info.operation or 'no operation'}) breaks the format:"
            f" {problem}. Only tidelog writes to a table of rows. Run 'tidelog check' to see what the entry holds.",
            version=entry.version,
        )


def _problems(state: RowState[F], entry: Entry) -> Iterator[str]:
    files = [a for a in entry.actions if isinstance(a, Add | Remove)]
    for metadata in (a for a in entry.actions if isinstance(a, Metadata)):
        if metadata.configuration.get(ROWS) != state.kind.name:
            yield f"its metaData has {ROWS} '{metadata.configuration.get(ROWS, '')}', not '{state.kind.name}'"
        if (version := rows_version(metadata, state.kind)) < state.rows_version:
            yield f"it makes a table of version {state.rows_version} one of version {version}"
    appended = [a for a in files if isinstance(a, Add) and a.base_offset >= state.next_order]
    covered = sum((a.end or 0) - a.base_offset for a in appended)
    if len(entry.info.rows) != covered:
        yield f"it appends {covered} rows, and says {len(entry.info.rows)}"
    try:
        state.kind.folded(map(state.kind.schema.from_json, entry.info.rows))
    except ValueError as e:
        yield str(e)
        return
    if (needed := state.kind.schema.version_of(entry.info.rows)) > state.rows_version:
        yield f"it has rows of version {needed} in a table of version {state.rows_version}"


def decide_create_rows(
    state: RowState[F],
    table: str,
    properties: Mapping[str, str],
    *,
    table_id: str,
    now_ms: int,
) -> Outcome[str]:
    """Create the table; nothing when it is there. The response is its id.

    `properties`: Delta's, and further facts about the table.
    """
    if state.exists:
        return Outcome((), state.topic_id)
    facts = {**properties, ROWS: state.kind.name}
    made = decide_create(
        state, table, 1, {}, facts, topic_id=table_id, table_id=table_id, now_ms=now_ms, shape=state.kind.schema.shape()
    )
    return replace(made, parameters={"rows": state.kind.name})


def decide_grow_rows(state: RowState[F], table: str, version: int) -> Outcome[None]:
    """Give the table the columns of a version, which rows are to have values in; nothing where it has them.

    The entry changes the version, the table's schema and nothing else. Of two writers that see the need at once, the
    second finds them there.
    """
    metadata = require_topic(state, table)
    if version <= state.rows_version:
        return Outcome((), None)
    configuration = {**metadata.configuration, ROWS_VERSION: str(version)}
    grown = replace(metadata, schema=state.kind.schema.shape(version).schema, configuration=configuration)
    return Outcome((grown,), None, GROW, parameters={"version": str(version)})


def append_rows(
    state: RowState[F], rows: Sequence[Row], path: str, data: bytes, response: R, now_ms: int
) -> Outcome[R]:
    """Append rows as one file, `data` (as `RowSchema.to_file` gives it), at `path`."""
    base, end = state.next_order, state.next_order + len(rows)
    add = Add(
        path,
        NO_PARTITION,
        base,
        len(data),
        max(now_ms, state.last_modification_ms),
        True,
        row_stats_json(len(rows), 0, len(rows) - 1),
        end,
    )
    return Outcome(
        (add, Txn(f"{layout.END_PREFIX}0", end)),
        response,
        blind_append=True,
        rows=tuple(map(state.kind.schema.to_json, rows)),
        files={path: data},
    )


def row_stats_json(rows: int, first_position: int, last_position: int) -> str:
    """Delta's statistics of a file of rows."""
    low, high = {POSITION: first_position}, {POSITION: last_position}
    return orjson.dumps({"numRecords": rows, "minValues": low, "maxValues": high}).decode()
