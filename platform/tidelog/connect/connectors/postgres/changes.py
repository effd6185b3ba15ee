"""Messages of the log become Debezium's records. Pure: the clock and the catalog are passed in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tidelog.connect.connectors.postgres import envelopes
from tidelog.connect.connectors.postgres.column_types import TypeModes
from tidelog.connect.connectors.postgres.envelopes import EventTime, SourcePosition, source_position
from tidelog.connect.connectors.postgres.pgoutput import (
    Begin,
    Cells,
    Commit,
    Delete,
    Insert,
    LogicalMessage,
    Message,
    Relation,
    RelationColumn,
    Truncate,
    Update,
)
from tidelog.connect.connectors.postgres.positions import LogPosition, stream_offset
from tidelog.connect.connectors.postgres.tables import (
    RowValues,
    Selection,
    TableCatalog,
    TableRows,
    passes,
    topic_name,
)
from tidelog.connect.data.errors import DataError
from tidelog.connect.data.packed import LazyRecord, RecordLayout, StructLayout
from tidelog.connect.data.records import ConnectHeader, SourceRecord

READ, CREATE, UPDATE, DELETE, TRUNCATE, MESSAGE = "rcudtm"


@dataclass(frozen=True, slots=True)
class RecordSettings:
    """What records are made of which changes. `prefix`: `topic.prefix`; `skipped`: operations by their letters."""

    prefix: str
    database: str
    selection: Selection = field(default_factory=Selection)
    modes: TypeModes = field(default_factory=TypeModes)
    skipped: frozenset[str] = frozenset("t")
    tombstones: bool = True
    transaction_metadata: bool = False
    message_prefixes: Sequence[str] = ()
    no_message_prefixes: Sequence[str] = ()
    heartbeat_topic: str = "__debezium-heartbeat"

    @property
    def partition(self) -> dict[str, Any]:
        """The source partition, as Debezium has it."""
        return {"server": self.prefix}

    def takes_message(self, prefix: str) -> bool:
        """Whether messages of a prefix become records."""
        return passes(prefix, self.message_prefixes, self.no_message_prefixes)


class RecordMaker:
    """Makes the records of rows; shared by the snapshot and the stream."""

    def __init__(self, settings: RecordSettings, catalog: TableCatalog) -> None:
        self.settings = settings
        self.partition = settings.partition
        self._catalog = catalog

    def table(self, schema: str, table: str, columns: Sequence[RelationColumn]) -> TableRows | None:
        """The records' form of a table, None of one that is not read."""
        settings = self.settings
        if not settings.selection.takes_table(schema, table):
            return None
        return TableRows(settings.prefix, schema, table, columns, self._catalog, settings.selection, settings.modes)

    def source(self, schema: str, table: str, first: int = 0) -> StructLayout:
        """The layout of the source of a table's records."""
        return envelopes.source_layout(self.settings.prefix, self.settings.database, schema, table, first)

    def change(
        self,
        table: TableRows,
        op: str,
        before: RowValues | None,
        after: RowValues | None,
        position: SourcePosition,
        transaction: dict[str, Any] | None,
        now: EventTime,
        offset: Mapping[str, Any],
        headers: tuple[ConnectHeader, ...] = (),
    ) -> SourceRecord:
        """The record of a change of a row. Its key is of the new row, where there is one."""
        parts = (*(after or ()), *(before or ()), *position, transaction, *now)
        kind = op, before is not None, after is not None
        layout = table.layouts.get(kind)
        if layout is None:
            layout = table.layouts[kind] = self._layout(table, *kind)
        return LazyRecord(layout, parts, offset, headers)

    def _layout(self, table: TableRows, op: str, before: bool, after: bool) -> RecordLayout:
        rows = [name for name, given in (("after", after), ("before", before)) if given]
        value = envelopes.change_layout(
            table.envelope, table.row_schema, lambda first: self.source(table.schema, table.table, first), op, rows
        )
        return RecordLayout(table.topic, table.key_layout if rows else None, value, self.partition)

    def heartbeat(self, now: EventTime, offset: Mapping[str, Any]) -> SourceRecord:
        """The record that says that the connector lives (`heartbeat.interval.ms`)."""
        return SourceRecord(
            topic=topic_name(f"{self.settings.heartbeat_topic}.{self.settings.prefix}"),
            key={"serverName": self.settings.prefix},
            key_schema=envelopes.HEARTBEAT_KEY,
            value={"ts_ms": now.ms},
            value_schema=envelopes.HEARTBEAT_VALUE,
            source_partition=self.partition,
            source_offset=offset,
        )


_NO_TRANSACTION: Final = Begin(0, 0, 0)


class ChangeReader:
    """Reads the stream's messages one after another, and skips what was read before.

    `position`: after the last message taken; what is not after the position that it began at gives no records.
    `last_commit`: the end of the last whole transaction, for records to name. A message's records are in one list, and
    must be stored together.
    """

    def __init__(self, records: RecordMaker, begin_after: LogPosition, last_commit: int | None = None) -> None:
        self._records = records
        self._settings = records.settings
        self._begin_after = begin_after
        self.position = begin_after
        # The end of the last whole transaction: a slot may forget what is before it once all its records are stored.
        self.complete_lsn = 0
        self.last_commit = last_commit
        self._transaction = _NO_TRANSACTION
        self._moment = EventTime(0, 0, 0)
        self._messages = 0
        self._tables: dict[int, TableRows | None] = {}
        self._names: dict[int, str] = {}
        self._events_of: dict[str, int] = {}
        self._events = 0

    @property
    def within_transaction(self) -> bool:
        """Whether a transaction has begun whose Commit is not read yet."""
        return self._transaction is not _NO_TRANSACTION

    @property
    def offset(self) -> dict[str, Any]:
        """The offset of all that was read, for a record that is of no change."""
        return stream_offset(self.position, self.last_commit, self.last_commit or 0, None, self._moment.us)

    def take(self, message: Message, lsn: int, now: EventTime) -> list[SourceRecord]:
        """The records of a message. `lsn`: where PostgreSQL says the message is in the log; `now`: for the records."""
        kind = message.__class__
        if kind is Insert or kind is Update or kind is Delete or kind is Truncate:
            new = self._is_new()
            if not new and not self._settings.transaction_metadata:
                return []
            records = self._change(message, lsn, now)  # type: ignore[arg-type]
            # What was read before still counts in its transaction.
            return records if new else []
        if isinstance(message, Relation):
            self._relation(message)
            return []
        if isinstance(message, Begin):
            return self._begin(message)
        if isinstance(message, Commit):
            return self._commit(message)
        if isinstance(message, LogicalMessage):
            return self._logical_message(message, now)
        return []

    # --- transactions ----------------------------------------------------------------------------------------

    def _is_new(self) -> bool:
        """Count a message of the transaction; whether it is after the position that the reader began at."""
        self._messages += 1
        position = LogPosition(self._transaction.final_lsn, self._messages)
        if position <= self._begin_after:
            return False
        self.position = position
        return True

    def _begin(self, message: Begin) -> list[SourceRecord]:
        self._transaction = message
        self._moment = EventTime.of_us(message.commit_us)
        self._messages = self._events = 0
        self._events_of = {}
        if not self._is_new() or not self._settings.transaction_metadata:
            return []
        return [self._metadata("BEGIN", message.final_lsn, None, None)]

    def _commit(self, message: Commit) -> list[SourceRecord]:
        new = self._is_new()
        records = []
        if new and self._settings.transaction_metadata:
            tables = [{"data_collection": name, "event_count": count} for name, count in self._events_of.items()]
            records = [self._metadata("END", message.end_lsn, self._events, tables)]
        self._transaction = _NO_TRANSACTION
        self.complete_lsn = self.last_commit = message.end_lsn
        return records

    def _metadata(self, status: str, lsn: int, events: int | None, tables: list[Any] | None) -> SourceRecord:
        identity = f"{self._transaction.xid}:{lsn}"
        return SourceRecord(
            topic=topic_name(f"{self._settings.prefix}.transaction"),
            key={"id": identity},
            key_schema=envelopes.TRANSACTION_KEY,
            value={
                "status": status,
                "id": identity,
                "event_count": events,
                "data_collections": tables,
                "ts_ms": self._moment.ms,
            },
            value_schema=envelopes.TRANSACTION_VALUE,
            source_partition=self._records.partition,
            source_offset=self._offset(lsn),
        )

    def _offset(self, lsn: int) -> dict[str, Any]:
        return stream_offset(self.position, self.last_commit, lsn, self._transaction.xid or None, self._moment.us)

    def _block(self, table: str, lsn: int) -> dict[str, Any] | None:
        """The `transaction` of a record, where they are asked for."""
        if not self._settings.transaction_metadata:
            return None
        self._events += 1
        self._events_of[table] = self._events_of.get(table, 0) + 1
        return {
            "id": f"{self._transaction.xid}:{lsn}",
            "total_order": self._events,
            "data_collection_order": self._events_of[table],
        }

    # --- rows ------------------------------------------------------------------------------------------------

    def _relation(self, message: Relation) -> None:
        self._tables[message.relation_id] = self._records.table(message.schema, message.table, message.columns)

    def _table(self, relation_id: int) -> TableRows | None:
        try:
            return self._tables[relation_id]
        except KeyError:
            raise DataError(
                f"PostgreSQL sent a change of relation {relation_id} before it described the relation."
                " Restart the connector's task, so that the stream begins again."
            ) from None

    def _change(self, message: Insert | Update | Delete | Truncate, lsn: int, now: EventTime) -> list[SourceRecord]:
        if isinstance(message, Truncate):
            return self._truncate(message, lsn, now)
        table = self._table(message.relation_id)
        if table is None:
            return []
        if isinstance(message, Insert):
            return self._insert(table, message.new, lsn, now)
        if isinstance(message, Update):
            return self._update(table, message, lsn, now)
        return self._delete(table, message, lsn, now)

    def _record(
        self,
        table: TableRows,
        op: str,
        before: RowValues | None,
        after: RowValues | None,
        lsn: int,
        now: EventTime,
        headers: tuple[ConnectHeader, ...] = (),
    ) -> SourceRecord:
        position = source_position(self._moment, lsn, self.last_commit, self._transaction.xid)
        block, offset = self._block(table.id, lsn), self._offset(lsn)
        return self._records.change(table, op, before, after, position, block, now, offset, headers)

    def _insert(self, table: TableRows, cells: Cells, lsn: int, now: EventTime) -> list[SourceRecord]:
        if CREATE in self._settings.skipped:
            return []
        return [self._record(table, CREATE, None, table.row(cells), lsn, now)]

    def _update(self, table: TableRows, message: Update, lsn: int, now: EventTime) -> list[SourceRecord]:
        """An update; one of the key is a delete of the old and a create of the new one, each naming the other."""
        after = table.row(message.new, message.old)
        old = message.old or message.key
        before = table.row(old) if old is not None else None
        key = table.key(after)
        old_key = table.old_key(before, whole=message.old is not None) if before is not None else key
        if UPDATE in self._settings.skipped:
            return []
        layout = table.key_layout
        if old_key == key or before is None or layout is None:
            return [self._record(table, UPDATE, before if message.old is not None else None, after, lsn, now)]
        to_new = (ConnectHeader("__debezium.newkey", layout.unpacked(after), layout.schema),)
        to_old = (ConnectHeader("__debezium.oldkey", layout.unpacked(before), layout.schema),)
        records = [self._record(table, DELETE, before, None, lsn, now, to_new)]
        records += self._tombstone(table, before, to_new, lsn)
        return [*records, self._record(table, CREATE, None, after, lsn, now, to_old)]

    def _delete(self, table: TableRows, message: Delete, lsn: int, now: EventTime) -> list[SourceRecord]:
        if DELETE in self._settings.skipped:
            return []
        before = table.row(message.old or message.key or [])
        table.old_key(before, whole=message.old is not None)
        return [self._record(table, DELETE, before, None, lsn, now), *self._tombstone(table, before, (), lsn)]

    def _tombstone(
        self, table: TableRows, row: RowValues, headers: tuple[ConnectHeader, ...], lsn: int
    ) -> list[SourceRecord]:
        """The record without a value that lets compaction drop a key. Debezium writes it for rows without keys, too."""
        if not self._settings.tombstones:
            return []
        layout = table.key_layout
        return [
            SourceRecord(
                topic=table.topic,
                key=layout.unpacked(row) if layout is not None else None,
                key_schema=table.key_schema,
                headers=headers,
                source_partition=self._records.partition,
                source_offset=self._offset(lsn),
            )
        ]

    def _truncate(self, message: Truncate, lsn: int, now: EventTime) -> list[SourceRecord]:
        if TRUNCATE in self._settings.skipped:
            return []
        tables = filter(None, map(self._table, message.relation_ids))
        return [self._record(table, TRUNCATE, None, None, lsn, now) for table in tables]

    def _logical_message(self, message: LogicalMessage, now: EventTime) -> list[SourceRecord]:
        """What a program wrote into the log; outside of a transaction it is one of its own."""
        if not message.transactional:
            new = (after := LogPosition(message.lsn, 1)) > self._begin_after
            self.position = max(self.position, after)
            self.complete_lsn = max(self.complete_lsn, message.lsn)
            # Debezium counts it as a commit.
            self.last_commit = max(self.last_commit or 0, message.lsn)
        else:
            new = self._is_new()
        if MESSAGE in self._settings.skipped or not self._settings.takes_message(message.prefix):
            return []
        block = self._block("message", message.lsn) if message.transactional else None
        if not new:
            return []
        xid = self._transaction.xid if message.transactional else None
        position = source_position(self._moment, message.lsn, self.last_commit, xid)
        return [
            SourceRecord(
                topic=topic_name(f"{self._settings.prefix}.message"),
                key={"prefix": message.prefix},
                key_schema=envelopes.MESSAGE_KEY,
                value={
                    "op": MESSAGE,
                    "ts_ms": now.ms,
                    "source": self._records.source("", "").unpacked(position),
                    "transaction": block,
                    "message": {"prefix": message.prefix, "content": message.content},
                },
                value_schema=envelopes.MESSAGE_VALUE,
                source_partition=self._records.partition,
                source_offset=self._offset(message.lsn),
            )
        ]
