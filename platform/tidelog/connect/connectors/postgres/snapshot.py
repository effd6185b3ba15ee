"""The first copy of the tables: their rows as of one snapshot, each as a record of the operation `r`."""

from collections.abc import Iterator, Sequence
from typing import Final

from tidelog.connect.connectors.postgres.changes import READ, RecordMaker
from tidelog.connect.connectors.postgres.database import Connection, Database, connect, lost, psycopg2, quoted
from tidelog.connect.connectors.postgres.envelopes import EventTime, source_position
from tidelog.connect.connectors.postgres.positions import SnapshotState, StoredState, snapshot_offset
from tidelog.connect.connectors.postgres.settings import PostgresSettings
from tidelog.connect.connectors.postgres.tables import RowValues, TableRows
from tidelog.connect.data.errors import ConnectError
from tidelog.connect.data.records import SourceRecord
from tidelog.log.base.clock import Clock

# (the table, a row's values, whether it is the table's first)
_Row = tuple[TableRows, RowValues, bool]


class Snapshot:
    """Copies tables in the order of their names.

    `exported`: the name of the snapshot that the slot was made with, so that the copy is what was committed before the
    slot's first change; None takes one of now. `lsn`: where the slot begins; `state`: what is stored.
    """

    def __init__(
        self,
        settings: PostgresSettings,
        database: Database,
        records: RecordMaker,
        clock: Clock,
        lsn: int,
        exported: str | None,
        state: StoredState,
    ) -> None:
        self._settings, self._database, self._records, self._clock = settings, database, records, clock
        self._lsn = lsn
        self._state, self._done = state, list(state.snapshot.tables)
        self._rows_given = False
        self._connection: Connection = connect(settings)
        self._module = psycopg2()
        try:
            self._connection.set_session(isolation_level="REPEATABLE READ", readonly=True, autocommit=False)
            with self._connection.cursor() as cursor:
                if exported is not None:
                    cursor.execute("SET TRANSACTION SNAPSHOT %s", (exported,))
                cursor.execute("SELECT txid_snapshot_xmax(txid_current_snapshot()), now()")
                row = cursor.fetchone()
        except self._module.OperationalError as error:
            self.close()
            raise lost(error) from error
        assert row is not None
        self._transaction_id: int = row[0]
        self._moment = EventTime.of_us(clock.now_ms() * 1000)

    def close(self) -> None:
        """End its transaction."""
        self._connection.close()

    def batches(self) -> Iterator[list[SourceRecord]]:
        """The records, `snapshot.fetch.size` rows at a time. The last one says that the copy is complete.

        Raises `RetriableConnectError` when the connection is lost.
        """
        batch: list[SourceRecord] = []
        held: _Row | None = None
        for row in self._rows():
            if held is not None:
                # The offset after the last row of a table says that the table is done.
                batch.append(self._record(held, "last_in_data_collection" if held[0] is not row[0] else None))
                if len(batch) >= self._settings.fetch_size:
                    yield batch
                    batch = []
            held = row
        # No ALTER TABLE of another session waits until the last rows are stored.
        self.close()
        if held is not None:
            batch.append(self._record(held, "last"))
        if batch:
            yield batch

    def _record(self, row: _Row, last: str | None) -> SourceRecord:
        table, values, first_of_table = row
        if last is not None:
            self._done.append(table.id)
        marker = last or ("first_in_data_collection" if first_of_table else "true")
        if not self._rows_given and last is None:
            marker = "first"
        self._rows_given = True
        position = source_position(self._moment, self._lsn, None, self._transaction_id, marker)
        offset = snapshot_offset(
            self._lsn, self._state._replace(snapshot=SnapshotState(last == "last", tuple(self._done)))
        )
        now = EventTime.of_us(self._clock.now_ms() * 1000)
        return self._records.change(table, READ, None, values, position, None, now, offset)

    def _rows(self) -> Iterator[_Row]:
        for schema, name in self._database.selected_tables():
            if f"{schema}.{name}" in self._done:
                continue
            columns = self._database.columns(schema, name)
            table = self._records.table(schema, name, columns)
            if table is None or not columns:
                continue
            first = True
            for cells in self._cells(schema, name, [column.name for column in columns]):
                yield table, table.row(cells), first
                first = False

    def _cells(self, schema: str, table: str, columns: Sequence[str]) -> Iterator[tuple[str | None, ...]]:
        """A table's rows, each column in its type's text form, as the stream has it."""
        try:
            names = ", ".join(map(quoted, columns))
            query = f"SELECT {names} FROM ONLY {quoted(schema)}.{quoted(table)}"  # noqa: S608 all names are quoted
            with self._connection.cursor() as cursor:
                cursor.execute(f"{query} LIMIT 0")
                oids = tuple({column.type_code for column in cursor.description or ()})
            as_text = self._module.extensions.new_type(oids, "TEXT_FORM", self._module.extensions.UNICODE)
            with self._connection.cursor(_CURSOR) as cursor:
                self._module.extensions.register_type(as_text, cursor)
                cursor.execute(query)
                while rows := cursor.fetchmany(self._settings.fetch_size):
                    yield from rows
        except (self._module.OperationalError, self._module.InterfaceError) as error:
            raise lost(error) from error
        except self._module.Error as error:
            raise ConnectError(
                f"PostgreSQL does not give the rows of {schema}.{table}: {str(error).strip()}. Grant the user SELECT on"
                " the table and USAGE on its schema, or exclude it with table.exclude.list."
            ) from error


_CURSOR: Final = "tidelog_snapshot"
