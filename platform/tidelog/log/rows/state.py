"""The state of a table of rows: its files, and the rows in log order folded into what they mean.

The table is a log of one partition; its files hold typed rows in place of records. A row's place in the log is
`base_offset + position`, and of two rows with one key the later one counts.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, Protocol, Self, TypeVar

from tidelog.log.base.errors import CorruptSegmentError, UnsupportedFormatError
from tidelog.log.delta.actions import NO_PARTITION, Action, Add, Entry, Metadata, Remove
from tidelog.log.delta.table_schema import TableShape, topic_shape
from tidelog.log.rows.schema import Row, RowSchema
from tidelog.log.state.topic_state import FORMAT, ROWS, ROWS_VERSION, Segment, TopicState


class Fold(Protocol):
    """The state that rows add up to. It changes in `take` only; what it hands out stays as it is."""

    def take(self, rows: Sequence[Row]) -> None:
        """Apply rows, in log order."""

    def fork(self) -> Self:
        """A copy that changes by itself; cheap, and this one must not change while the copy is in use."""

    def __len__(self) -> int:
        """How many rows it would take to say all of it."""


F = TypeVar("F", bound=Fold)
# The longest version that is read as a number: a foreign program may have written any text.
_MOST_DIGITS = 9


def says_deleted(row: Row) -> bool:
    """Whether a row has the mark that its key is gone."""
    return bool(row.get("deleted"))


@dataclass(frozen=True)
class RowKind(Generic[F]):
    """A kind of rows: `name` (the table property `tidelog.rows`), columns, the fold of no rows.

    `key`: of two rows with one key the later one counts. `is_tombstone`: the row only says
    that its key is gone.
    """

    name: str
    schema: RowSchema
    fold: Callable[[], F]
    key: Callable[[Row], Hashable]
    is_tombstone: Callable[[Row], bool] = says_deleted

    def folded(self, rows: Iterable[Row]) -> F:
        """The fold of rows in log order. Raises ValueError when one of them is none of this kind."""
        fold = self.fold()
        try:
            fold.take(list(rows))
        except (ValueError, KeyError, TypeError) as e:
            raise ValueError(f"it has a row that is none of '{self.name}': {e!r}") from e
        return fold


# The (position, row)s of a file of the table.
ReadRows = Callable[[Segment], list[tuple[int, Row]]]


@dataclass
class RowState(TopicState, Generic[F]):
    """What the log of a table of rows says. `kind` and `read` are given with the empty state."""

    kind: RowKind[F] = field(kw_only=True)
    read: ReadRows = field(kw_only=True, compare=False)
    fold: F = field(init=False)
    # The rows of files that came by entries: compaction need not read what has just been here.
    recent: dict[str, list[Row]] = field(default_factory=dict, kw_only=True, compare=False, repr=False)

    def __post_init__(self) -> None:
        self.fold = self.kind.fold()

    @property
    def rows_version(self) -> int:
        """The version of the table's columns."""
        return 1 if self.metadata is None else rows_version(self.metadata, self.kind)

    @property
    def files(self) -> Sequence[Segment]:
        """The live files in log order. Not to be changed."""
        return self.live(0)

    @property
    def next_order(self) -> int:
        """The place in the log that the next row gets."""
        return self.end(0)

    def rows(self, file: Segment) -> list[tuple[int, Row]]:
        """The (place in the log, row)s of a live file. Raises `CorruptSegmentError`."""
        known = self.recent.get(file.path)
        rows = self.read(file) if known is None else enumerate(known)
        return [(file.base_offset + position, row) for position, row in rows]

    def proves_committed(self, entry: Entry) -> bool:
        """Whether a file that `entry` added is live: then the entry was committed."""
        return super().proves_committed(as_one_partition(entry))

    def apply(self, entry: Entry) -> None:
        """Apply one entry, which `tidelog.log.rows.rules` has passed."""
        super().apply(as_one_partition(entry))
        for action in entry.actions:
            if isinstance(action, Remove):
                self.recent.pop(action.path, None)
        if entry.info.rows:
            rows = [self.kind.schema.from_json(body) for body in entry.info.rows]
            self.fold.take(rows)
            added = [a for a in entry.actions if isinstance(a, Add)]
            if len(added) == 1:
                self.recent[added[0].path] = rows

    def restore(self, version: int, actions: Iterable[Action]) -> None:
        """Take the content of the checkpoint of `version`: its files' rows make up the fold.

        Raises `CorruptSegmentError` for a file that is gone or can't be read, and as `rows_version`.
        """
        super().restore(version, [_in_one_partition(a) for a in actions])
        if self.metadata is not None and self.metadata.configuration.get(ROWS) == self.kind.name:
            rows_version(self.metadata, self.kind)  # before a row is read that may have columns of a newer version
        for file in self.files:
            rows = [row for _, row in self.read(file)]
            try:
                self.fold.take(rows)
            except (ValueError, KeyError, TypeError) as e:
                raise CorruptSegmentError(
                    f"File {file.path} (rows {file.base_offset} to {file.end}) has a row that is none of"
                    f" '{self.kind.name}': {e!r}. Restore the file from a copy."
                ) from e


def rows_version(metadata: Metadata, kind: RowKind[F]) -> int:
    """The version of a table's columns. Raises `UnsupportedFormatError` for one that this tidelog does not know."""
    text = metadata.configuration.get(ROWS_VERSION, "1")
    version = int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else 0
    if not 1 <= version <= kind.schema.version:
        raise UnsupportedFormatError(
            f"Table '{metadata.name}' has rows of '{kind.name}' in version {text[:80]!r}; this tidelog knows versions"
            f" 1 to {kind.schema.version}. A newer tidelog writes columns there that this one would lose. Upgrade it."
        )
    return version


def shape_of(state: TopicState) -> TableShape:
    """What the columns of a topic's table, or of this table of rows, must be."""
    if isinstance(state, RowState):
        return state.kind.schema.shape(state.rows_version)
    return topic_shape("" if state.metadata is None else state.metadata.configuration.get(FORMAT, ""))


def as_stored(state: TopicState, actions: Iterable[Action]) -> tuple[Action, ...]:
    """Actions on a state's files as its log has them: the files of a table of rows are in no partition."""
    if not isinstance(state, RowState):
        return tuple(actions)
    return tuple(replace(a, partition=NO_PARTITION) if isinstance(a, Add | Remove) else a for a in actions)


def as_one_partition(entry: Entry) -> Entry:
    """The entry as one of a topic with a single partition, 0."""
    return replace(entry, actions=tuple(map(_in_one_partition, entry.actions)))


def _in_one_partition(action: Action) -> Action:
    if isinstance(action, Add | Remove) and action.partition == NO_PARTITION:
        return replace(action, partition=0)
    return action
