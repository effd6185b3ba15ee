"""The Delta sink: MERGE by key, each commit with the offsets behind its records as the table's transaction versions."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, TableNotFoundError

from tidelog.connect.config.values import ConnectConfigError
from tidelog.connect.connectors.arrow_values import arrow_table
from tidelog.connect.connectors.delta_changes import (
    DELTA_KEYS,
    KeyedChange,
    change_of,
    check_growth,
    columns_of,
    newest_changes,
)
from tidelog.connect.data.errors import ConnectError, DataError, RetriableConnectError
from tidelog.connect.data.records import Partition, SinkRecord
from tidelog.connect.spi.connectors import RawConfig, SinkConnector
from tidelog.connect.spi.sinks import SinkTask, SinkTaskContext
from tidelog.log.base.clock import Clock, SystemClock

_VERSION: Final = "1.0"
_DELETED: Final = "__tidelog_deleted"
_APP: Final = "tidelog-connect"
# What deltalake says of a table with features that it doesn't know.
_UNSUPPORTED: Final = "Unsupported table features"


class DeltaSinkTask(SinkTask):
    """Collects records, and commits those of each table together."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()

    def start(self, config: Mapping[str, str], context: SinkTaskContext) -> None:
        """Begin. Tables are opened with their first partition or record."""
        self._values: Mapping[str, Any] = DELTA_KEYS.parse(config)
        self._context, self._connector = context, config.get("name", "")
        self._options = storage_options(self._values["storage.options"])
        self._records: dict[str, list[SinkRecord]] = {}  # by their tables
        self._taken: dict[Partition, int] = {}  # the offset behind the last record that was collected
        self._committed: dict[tuple[str, Partition], int] = {}
        self._since_ms: dict[str, int] = {}

    def open(self, partitions: Collection[Partition]) -> None:
        """Go on at the offsets that the tables have, whatever was committed."""
        for partition in partitions:
            location = self._location(partition[0])
            version = self._version(self._table(location), partition)
            if version is not None:
                self._committed[location, partition] = self._taken[partition] = version
                self._context.seek(partition, version)

    def close(self, partitions: Collection[Partition]) -> None:
        """Forget what is not committed: the partitions' next task reads it again."""
        for partition in partitions:
            self._taken.pop(partition, None)
        self._committed = {pair: offset for pair, offset in self._committed.items() if pair[1] not in partitions}
        for location, records in self._records.items():
            self._records[location] = [one for one in records if one.original not in partitions]

    def put(self, records: Sequence[SinkRecord]) -> None:
        """Collect records, and commit the tables that are full or due."""
        now_ms = int(self._clock.elapsed_s() * 1000)
        for record in records:
            if record.offset < self._taken.get(record.original, 0):  # collected, or in the table already
                continue
            self._taken[record.original] = record.offset + 1
            location = self._location(record.topic)
            waiting = self._records.setdefault(location, [])
            if not waiting:
                self._since_ms[location] = now_ms
            waiting.append(record)
            if len(waiting) >= self._values["flush.size"]:
                self._commit(location)
        for location, waiting in self._records.items():
            full = len(waiting) >= self._values["flush.size"]  # after a commit that failed
            if full or (waiting and now_ms - self._since_ms[location] >= self._values["rotate.interval.ms"]):
                self._commit(location)

    def pre_commit(self, offsets: Mapping[Partition, int]) -> Mapping[Partition, int]:
        """Commit what is in the tables: up to the first record that is not."""
        held: dict[Partition, int] = {}
        for records in self._records.values():
            for record in records:
                held.setdefault(record.original, record.offset)
        return {one: min(offset, held.get(one, offset)) for one, offset in offsets.items()}

    def _commit(self, location: str) -> None:
        """Write a table's records. Raises `RetriableConnectError` where the table or its store may answer later."""
        table = self._table(location)
        records = [one for one in self._records[location] if self._is_new(table, location, one)]
        offsets = {record.original: record.offset + 1 for record in records}
        changes, refused = self._changes(records)
        try:
            if changes:
                self._write(table, location, changes, offsets)
                self._committed |= {(location, one): offset for one, offset in offsets.items()}
        except ConnectError:
            raise
        except (CommitFailedError, OSError) as error:
            if _UNSUPPORTED in str(error):
                raise ConnectError(
                    f"The table {location} has features that DeltaSink can't write: {error}. Use SparkDeltaSink for it"
                    " (typeWidening: a column was widened), or make a table without them."
                ) from error
            raise RetriableConnectError(f"The commit to {location} failed: {error}. It is tried again.") from error
        except Exception as error:  # deltalake raises bare ones, too, for values that it can't cast
            raise ConnectError(
                f"The table {location} refused a commit: {error}. Correct the records or the table."
            ) from error
        for record, failure in refused:
            self._context.errant_record_reporter.report(record, failure)
        self._records[location] = []

    def _is_new(self, table: DeltaTable | None, location: str, record: SinkRecord) -> bool:
        """Whether a table lacks a record. Raises `ConnectError` where another task has written its partition since."""
        pair = (location, record.original)
        version = self._version(table, record.original)
        if version is None:
            return True
        if self._committed.setdefault(pair, version) != version:
            raise ConnectError(
                f"Another task of {self._connector} has written {'-'.join(map(str, record.original))} to "
                f"{location} since "
                "this one began. Restart the task if that one is gone."
            )
        return record.offset >= version

    def _changes(self, records: Sequence[SinkRecord]) -> tuple[list[KeyedChange], list[tuple[SinkRecord, Exception]]]:
        changes: list[KeyedChange] = []
        refused: list[tuple[SinkRecord, Exception]] = []
        for record in records:
            try:
                changes.append(change_of(record, self._values["pk.fields"], keyed=self._values["merge"]))
            except DataError as error:
                refused.append((record, error))
        return changes, refused

    def _write(
        self,
        table: DeltaTable | None,
        location: str,
        changes: Sequence[KeyedChange],
        offsets: Mapping[Partition, int],
    ) -> None:
        properties = CommitProperties(
            app_transactions=[Transaction(self._app_id(one), offset) for one, offset in offsets.items()]
        )
        columns = columns_of(changes)
        if table is None:
            if not self._values["auto.create"]:
                raise ConnectError(f"There is no Delta table at {location}. Create it, or set auto.create=true.")
            table = DeltaTable.create(location, columns, mode="ignore", storage_options=self._options)
        types = {field.name: getattr(field.type, "type", "") for field in table.schema().fields}
        check_growth(location, types, changes)
        known = types.keys()
        if not known >= {*columns.names} and not self._values["auto.evolve"]:
            missing = [name for name in columns.names if name not in known]
            raise ConnectError(f"{location} has no column {missing[0]!r}. Add it, or set auto.evolve=true.")
        if self._values["merge"]:
            self._merge(table, newest_changes(changes), columns, properties)
            return
        rows = arrow_table([change.values or {} for change in changes], columns)
        write_deltalake(
            table, rows, mode="append", schema_mode="merge", commit_properties=properties, storage_options=self._options
        )

    @staticmethod
    def _merge(
        table: DeltaTable, changes: Sequence[KeyedChange], columns: pa.Schema, properties: CommitProperties
    ) -> None:
        keys = [*changes[0].key] if changes else []
        rows = arrow_table([change.values or change.key for change in changes], columns)
        deleted = pa.array([change.values is None for change in changes], pa.bool_())
        source = rows.append_column(_DELETED, deleted)
        match = " AND ".join(f"target.`{name}` = source.`{name}`" for name in keys) or "false"
        changed = {f"`{name}`": f"source.`{name}`" for name in columns.names}
        merger = table.merge(
            source, match, source_alias="source", target_alias="target", merge_schema=True, commit_properties=properties
        )
        merger = merger.when_matched_delete(f"source.`{_DELETED}`")
        merger = merger.when_matched_update(changed, f"NOT source.`{_DELETED}`")
        merger.when_not_matched_insert(changed, f"NOT source.`{_DELETED}`").execute()

    def _version(self, table: DeltaTable | None, partition: Partition) -> int | None:
        return None if table is None else table.transaction_version(self._app_id(partition))

    def _table(self, location: str) -> DeltaTable | None:
        try:
            return DeltaTable(location, storage_options=self._options)
        except TableNotFoundError:
            return None

    def _location(self, topic: str) -> str:
        return str(self._values["table.location"]).replace("${topic}", topic)

    def _app_id(self, partition: Partition) -> str:
        return f"{_APP}/{self._connector}/{partition[0]}/{partition[1]}"


def storage_options(given: Sequence[str]) -> dict[str, str]:
    """Options of name=value. Raises `ConnectConfigError` for one without a value."""
    options = dict(one.split("=", 1) for one in given if "=" in one)
    if len(options) != len(given):
        raise ConnectConfigError(f"storage.options takes name=value, separated by commas, not {', '.join(given)}.")
    return options


class DeltaSink(SinkConnector):
    """Delta tables, merged by key."""

    names = ("tidelog.connect.DeltaSink", "DeltaSink")
    version = _VERSION
    guarantee = "Exactly once: each commit of the table has the offsets behind its records as transaction versions."
    task_class = DeltaSinkTask
    keys = DELTA_KEYS

    def start(self, config: RawConfig, context: Any) -> None:
        """Check the keys. Raises `ConnectConfigError`."""
        super().start(config, context)
        storage_options(DELTA_KEYS.parse(config)["storage.options"])
