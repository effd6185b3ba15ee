"""Tables of rows, for `check`: which state machine reads one, its files' rows, and what their fold says of groups."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Self, TypeVar

from tidelog.access import rows as access_rows
from tidelog.check.files import each_unread
from tidelog.check.listing import LogFiles
from tidelog.check.report import Finding, Kind, OnProgress
from tidelog.cluster import rows as cluster_rows
from tidelog.cuts import rows as cut_rows
from tidelog.groups.store import rows as group_rows
from tidelog.groups.store.rows import GroupsFold
from tidelog.log.base.errors import CorruptLogError, CorruptSegmentError, StorageError, StorageUnavailableError
from tidelog.log.checkpoints.reading import read_checkpoint
from tidelog.log.delta import layout
from tidelog.log.delta.actions import Metadata, decode_entry
from tidelog.log.door.contract import Machine
from tidelog.log.door.topic_machine import topic_machine
from tidelog.log.rows.files import file_reader
from tidelog.log.rows.row_log import row_machine
from tidelog.log.rows.schema import Row, RowSchema
from tidelog.log.rows.state import Fold, RowKind, RowState
from tidelog.log.state.topic_state import ROWS, TopicState
from tidelog.log.storage.port import Storage
from tidelog.transactions import rows as transaction_rows

F = TypeVar("F", bound=Fold)

# The kinds of rows that tidelog reads. Of another one `check` knows what its table says: its columns.
_KINDS: dict[str, RowKind[Any]] = {
    kind.name: kind
    for kind in (group_rows.KIND, transaction_rows.KIND, cluster_rows.KIND, access_rows.KIND, cut_rows.KIND)
}
_FROM_A_COPY = "Restore the file from a copy. While the entry that added it is kept, the rows are in its commitInfo."


class NullFold:
    """A fold that keeps nothing, for rows of a kind that only a newer tidelog knows."""

    def take(self, rows: Sequence[Row]) -> None:
        """Nothing."""

    def fork(self) -> Self:
        """The same."""
        return self

    def __len__(self) -> int:
        return 0


def machine_of(storage: Storage, table: str, files: LogFiles) -> Machine[Any]:
    """The state machine of the topic, or of the table of rows, that the folder's first metaData names."""
    metadata = _first_metadata(storage, table, files)
    name = "" if metadata is None else metadata.configuration.get(ROWS, "")
    if metadata is None or not name:
        return topic_machine(table)
    kind = _KINDS.get(name)
    if kind is None:
        try:
            schema = RowSchema.from_delta(metadata.schema)
        except (ValueError, KeyError, TypeError):
            return topic_machine(table)  # which refuses it by name
        kind = RowKind(name, schema, NullFold, key=str)
    return row_machine(table, kind, lambda _: [])


def _first_metadata(storage: Storage, table: str, files: LogFiles) -> Metadata | None:
    for source in (_first_entry, _first_checkpoint):
        try:
            actions = source(storage, table, files)
        except StorageUnavailableError:
            raise
        except (StorageError, CorruptLogError):
            continue
        for action in actions:
            if isinstance(action, Metadata):
                return action
    return None


def _first_entry(storage: Storage, table: str, files: LogFiles) -> Iterable[Any]:
    if 0 not in files.entries:
        return ()
    path = f"{table}/{layout.entry_path(0)}"
    return decode_entry(0, storage.get(path), path).actions


def _first_checkpoint(storage: Storage, table: str, files: LogFiles) -> Iterable[Any]:
    return read_checkpoint(storage, table, files.usable[0]) if files.usable else ()


def file_again(state: TopicState, path: str) -> bytes | None:
    """A lost file of a table of rows, from the entry that added it; None when that is not kept, or it is no such file.

    The log says the file's size, so one that another version of Arrow writes longer or shorter doesn't do.
    """
    rows = state.recent.get(path) if isinstance(state, RowState) else None
    if rows is None or not isinstance(state, RowState):
        return None
    data = state.kind.schema.to_file(list(enumerate(rows)))
    return data if any(f.path == path and f.size == len(data) for f in state.files) else None


# --- records (deep) ----------------------------------------------------------------------------------------


class RowsCheck:
    """Reads the files of a table of rows; `records` counts the rows read so far."""

    def __init__(self, storage: Storage, table: str, on_progress: OnProgress | None) -> None:
        self._storage = storage
        self._table = table
        self._on_progress = on_progress
        self.records = 0
        self._rows: list[Row] = []

    def fold(self, kind: RowKind[F]) -> F:
        """The fold of all rows that were read and can be decoded."""
        return kind.folded(self._rows)

    def run(self, state: RowState[Any], skip: Iterable[str]) -> Iterator[Finding]:
        """Every broken rule of every file but those whose path is in `skip` (already known to be missing)."""
        read = file_reader(self._storage, self._table, state.kind)
        for file in each_unread(self._table, state, skip, self._on_progress):
            try:
                rows = read(file)
            except CorruptSegmentError as e:
                yield Finding(Kind.SEGMENT_UNREADABLE, self._table, file.path, str(e), _FROM_A_COPY)
                rows = []
            positions, contents = [position for position, _ in rows], [row for _, row in rows]
            self.records += len(rows)
            if positions != sorted(set(positions)) or not all(0 <= p < file.end - file.base_offset for p in positions):
                what = "Its positions don't rise within the places that the log entry gives it: rows change places."
                yield Finding(Kind.POSITIONS_WRONG, self._table, file.path, what, _FROM_A_COPY)
            said = state.recent.get(file.path)
            if rows and said is not None and said != contents:
                what = "Its rows are not those that the entry says which added it: SQL and tidelog see two truths."
                yield Finding(Kind.SEGMENT_ROWS_WRONG, self._table, file.path, what, _FROM_A_COPY)
            try:
                state.kind.folded(contents)
            except ValueError as e:
                yield Finding(Kind.SEGMENT_ROWS_WRONG, self._table, file.path, f"{e}.", _FROM_A_COPY)
            else:
                self._rows.extend(contents)


def check_offsets(table: str, groups: GroupsFold, end_of: Callable[[str, str, int], int | None]) -> Iterator[Finding]:
    """Whether a group's offset is past its partition's end. `end_of` a topic of an id: None when it is not there."""
    for group in groups.group_ids():
        for (topic, partition), committed in groups.view(group).offsets.items():
            end = end_of(topic, committed.topic_id, partition)
            if end is not None and committed.offset > end:
                what = (
                    f"It has committed offset {committed.offset} of topic '{topic}', partition {partition}, which ends"
                    f" at {end}: the topic lost records."
                )
                todo = f"Reset it: 'tidelog group reset-offsets {group} --topic {topic} --to-latest --execute'."
                yield Finding(Kind.COMMITTED_PAST_END, table, f"group '{group}'", what, todo)
