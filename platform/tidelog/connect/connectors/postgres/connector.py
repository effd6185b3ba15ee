"""The connector: what it is called, what it guarantees; and its one task, the first copy and then the stream.

The stream is made again after each loss of the connection.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final

from tidelog.connect.config.definition import ConfigDef, ConfigValue
from tidelog.connect.connectors.postgres import settings
from tidelog.connect.connectors.postgres.changes import ChangeReader, RecordMaker
from tidelog.connect.connectors.postgres.database import Connection, Database, psycopg2
from tidelog.connect.connectors.postgres.envelopes import ENVELOPE_VERSION, EventTime
from tidelog.connect.connectors.postgres.pgoutput import decode
from tidelog.connect.connectors.postgres.positions import LogPosition, SnapshotState, StoredState, lsn_text, read_offset
from tidelog.connect.connectors.postgres.settings import PostgresSettings, SnapshotMode, read_settings
from tidelog.connect.connectors.postgres.snapshot import Snapshot
from tidelog.connect.connectors.postgres.stream import ChangeStream, create_slot, take_slot
from tidelog.connect.data.errors import ConnectError, RetriableConnectError
from tidelog.connect.data.records import SourceRecord
from tidelog.connect.spi.connectors import ConnectorContext, ExactlyOnceSupport, RawConfig, SourceConnector
from tidelog.connect.spi.sources import SourceTask, SourceTaskContext
from tidelog.log.base.clock import Clock, SystemClock

_NEVER: Final = (SnapshotMode.NO_DATA, SnapshotMode.NEVER)


class PostgresTask(SourceTask):
    """Reads one database.

    What `poll` gave counts as read: after a loss of the connection the stream goes on behind it, after a restart of the
    task behind what was stored. The slot forgets a transaction only after the `commit` of its records.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._database: Database | None = None
        self._snapshot: Snapshot | None = None
        self._copied: Iterator[list[SourceRecord]] | None = None
        self._stream: ChangeStream | None = None
        self._exporter: Connection | None = None
        self._failures = 0
        # Whether records were given since the last `commit`, and the end of their last whole transaction.
        self._outstanding = False
        self._given_lsn = self._confirmed_lsn = 0
        self._snapshot_due = False
        self._last_heartbeat_ms = 0

    def start(self, config: Mapping[str, str], context: SourceTaskContext) -> None:
        """Read the configuration and the stored offset; `poll` connects."""
        self._settings: PostgresSettings = read_settings(config)
        self._context = context
        stored = read_offset(context.offset_storage_reader.offset(self._settings.records.partition))
        self._has_offset = stored is not None
        self._state = stored or StoredState(LogPosition(), SnapshotState())
        mode = self._settings.snapshot_mode
        self._snapshot_due = mode is SnapshotMode.ALWAYS or (mode not in _NEVER and not self._state.snapshot.complete)
        if mode is SnapshotMode.ALWAYS and self._state.snapshot.complete:
            self._state = self._state._replace(snapshot=SnapshotState())
        self._last_heartbeat_ms = self._clock.now_ms()

    def poll(self) -> Sequence[SourceRecord]:
        """The next rows or changes."""
        try:
            records = self._poll()
        except RetriableConnectError as error:
            self._close()
            self._failures += 1
            if 0 <= self._settings.retries < self._failures:
                raise ConnectError(
                    f"{error} It was tried {self._failures} times, which is more than errors.max.retries allows."
                    " Restart the task once the server answers."
                ) from error
            if self._failures > 1:
                self._context.wait(self._settings.retry_s)
            raise  # the worker says so in the task's status, and asks again with backoff
        self._failures = 0
        if records:
            self._outstanding = True
        return records

    def commit(self) -> None:
        """All that was given is stored: the slot may forget it."""
        self._outstanding = False
        self._confirm(self._given_lsn)

    def stop(self) -> None:
        """End the connections; the slot stays, unless `slot.drop.on.stop`."""
        self._close()
        settings = getattr(self, "_settings", None)
        if settings is not None and settings.drop_slot:
            database = Database(settings)
            try:
                database.drop_slot()
            finally:
                database.close()

    # --- phases ----------------------------------------------------------------------------------------------

    def _poll(self) -> list[SourceRecord]:
        if self._database is None:
            self._open()
        if self._copied is not None:
            batch = next(self._copied, None)
            if batch is not None:
                self._state = read_offset(batch[-1].source_offset) or self._state
                return batch
            self._end_snapshot()
        if self._settings.snapshot_mode is SnapshotMode.INITIAL_ONLY:
            self._context.wait(self._settings.poll_s)
            return []
        return self._read_stream()

    def _open(self) -> None:
        """Connect, and make what is missing: the publication, the slot, the snapshot's transaction."""
        self._database = database = Database(self._settings)
        database.check()
        database.ensure_publication()
        slot = database.slot()
        self._records = RecordMaker(self._settings.records, database)
        exported = None
        lsn = slot.confirmed_flush_lsn if slot is not None else 0
        if slot is None:
            self._refuse_lost_slot()
            self._exporter, lsn, exported = create_slot(self._settings)
            # What was copied before was as of another slot's beginning.
            self._state = self._state._replace(snapshot=self._state.snapshot._replace(tables=()))
        if self._snapshot_due:
            self._snapshot = Snapshot(self._settings, database, self._records, self._clock, lsn, exported, self._state)
            self._copied = self._snapshot.batches()
        else:
            self._end_exporter()
        self._given_lsn = self._confirmed_lsn = lsn

    def _refuse_lost_slot(self) -> None:
        """The slot is gone although offsets are stored: changes may be lost, and only a new snapshot mends that."""
        if not self._has_offset or not self._state.snapshot.complete or self._snapshot_due:
            return
        if self._settings.snapshot_mode is SnapshotMode.WHEN_NEEDED:
            self._state = StoredState(LogPosition(), SnapshotState())
            self._snapshot_due = True
            return
        raise ConnectError(
            f"Replication slot {self._settings.slot} is not in {self._settings.shown}, although changes were read up to"
            f" {lsn_text(self._state.position.commit_lsn)}: what was written since the slot went is not in any log."
            " Set snapshot.mode to when_needed, or delete the connector's offsets, so that the tables are read again."
        )

    def _end_snapshot(self) -> None:
        self._copied = None
        self._snapshot_due = False
        # Where no table has a row, no record has said so.
        self._state = self._state._replace(snapshot=SnapshotState(complete=True))
        if self._snapshot is not None:
            self._snapshot.close()
            self._snapshot = None
        self._end_exporter()

    def _end_exporter(self) -> None:
        if self._exporter is not None:
            self._exporter.close()
            self._exporter = None

    def _read_stream(self) -> list[SourceRecord]:
        assert self._database is not None
        if self._stream is None:
            self._stream = take_slot(self._settings, self._database, self._context.wait)
            self._reader = ChangeReader(self._records, self._state.position, self._state.last_commit)
        reader, stream = self._reader, self._stream
        records: list[SourceRecord] = []
        now = EventTime.of_us(self._clock.now_ms() * 1000)
        take = reader.take
        count = 0
        for lsn, data in stream.messages(self._settings.batch, self._settings.poll_s):
            count += 1
            records += take(decode(data), lsn, now)
        self._state = StoredState(reader.position, SnapshotState(complete=True), reader.last_commit)
        self._given_lsn = max(self._given_lsn, reader.complete_lsn)
        if not records and not self._outstanding:
            if not count and not reader.within_transaction:
                # Nothing of what the server has looked through is for this connector.
                self._given_lsn = max(self._given_lsn, stream.sent_lsn)
            self._confirm(self._given_lsn)
        return records + self._heartbeat(now)

    def _heartbeat(self, now: EventTime) -> list[SourceRecord]:
        """The heartbeat, where one is due; not amid a transaction, whose records are yet to come."""
        due_ms = self._last_heartbeat_ms + self._settings.heartbeat_s * 1000
        if not self._settings.heartbeat_s or now.ms < due_ms or self._reader.within_transaction:
            return []
        self._last_heartbeat_ms = now.ms
        if self._settings.heartbeat_query and self._database is not None:
            self._database.ask(self._settings.heartbeat_query)
        return [self._records.heartbeat(now, self._reader.offset)]

    def _confirm(self, lsn: int) -> None:
        if self._stream is not None and self._settings.flush_lsn and lsn > self._confirmed_lsn:
            self._confirmed_lsn = lsn
            self._stream.confirm(lsn)

    def _close(self) -> None:
        """End all connections; what was read stays known."""
        self._copied = None
        for open_one in (self._stream, self._snapshot, self._exporter, self._database):
            if open_one is not None:
                open_one.close()
        self._stream = self._snapshot = self._exporter = self._database = None


class PostgresConnector(SourceConnector):
    """Changes of a PostgreSQL database, by Debezium's configuration and in its envelope."""

    names: ClassVar[tuple[str, ...]] = ("io.debezium.connector.postgresql.PostgresConnector", "postgres")
    version: ClassVar[str] = ENVELOPE_VERSION
    guarantee: ClassVar[str] = (
        "Exactly once: each change is a record once, whatever dies. Of a first copy that is interrupted, the rows"
        " of the table that it was at come again."
    )
    task_class: ClassVar[type[SourceTask]] = PostgresTask

    @classmethod
    def config_def(cls) -> ConfigDef:
        """The connector's keys."""
        return settings.config_def()

    @classmethod
    def validate(cls, config: RawConfig) -> list[ConfigValue]:
        """What is to say of each key, Debezium's that are not supported among them."""
        return settings.validate(config)

    @classmethod
    def exactly_once_support(cls, config: RawConfig) -> ExactlyOnceSupport:  # noqa: ARG003
        """Always: a position counts the messages of a transaction, and a slot keeps them until they are stored."""
        return ExactlyOnceSupport.SUPPORTED

    @classmethod
    def alter_offsets(
        cls, config: RawConfig, offsets: Sequence[tuple[Mapping[str, Any], Mapping[str, Any] | None]]
    ) -> bool:
        """Check offsets; to reset them removes the slot, so that the next copy and its stream are in one piece."""
        connector_settings = settings.read_settings(config)
        for partition, offset in offsets:
            if partition != connector_settings.records.partition:
                raise ConnectError(
                    f"The connector has one source partition, {connector_settings.records.partition}, and no"
                    f" {dict(partition)}."
                )
            read_offset(offset)
        if any(offset is None for _, offset in offsets):
            database = Database(connector_settings)
            try:
                database.drop_slot()
            finally:
                database.close()
        return True

    def start(self, config: RawConfig, context: ConnectorContext) -> None:
        """Check the configuration, and that psycopg2 is there."""
        super().start(config, context)
        psycopg2()
