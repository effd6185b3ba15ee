"""The connector's keys, by Debezium's names, and a task's settings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from tidelog.connect.config.definition import ConfigDef, ConfigValue, Importance, config_key
from tidelog.connect.config.values import FILLED, FLAG, SECRET, TEXT, TEXTS, ConnectConfigError
from tidelog.connect.connectors.postgres.changes import RecordSettings
from tidelog.connect.connectors.postgres.column_types import (
    BinaryHandling,
    DecimalHandling,
    HstoreHandling,
    IntervalHandling,
    TypeModes,
)
from tidelog.connect.connectors.postgres.tables import Selection, any_matches
from tidelog.connect.connectors.postgres.times import TimePrecision
from tidelog.log.base.keys import REQUIRED
from tidelog.log.base.typed_values import Checked, UnfitValueError, ValueKind, listed, names
from tidelog.log.config.key_type import int_of, long_of


class SnapshotMode(StrEnum):
    """`snapshot.mode`: when the tables' rows are read before their changes."""

    ALWAYS = "always"
    INITIAL = "initial"
    INITIAL_ONLY = "initial_only"
    NO_DATA = "no_data"
    NEVER = "never"
    WHEN_NEEDED = "when_needed"


class PublicationMode(StrEnum):
    """`publication.autocreate.mode`: what to do about a publication that is not there."""

    ALL_TABLES = "all_tables"
    DISABLED = "disabled"
    FILTERED = "filtered"
    NO_TABLES = "no_tables"


# Keys of Debezium's connector that this one can't follow: to ignore them would change what is delivered.
UNSUPPORTED: Final = (
    "column.mask.", "column.propagate.source.type", "column.truncate.to.", "converters",
    "datatype.propagate.source.type", "event.processing.failure.handling.mode", "field.name.adjustment.mode",
    "incremental.snapshot.", "post.processors", "replica.identity.autoset.values",
    "schema.name.adjustment.mode", "signal.", "skip.messages.without.change", "snapshot.include.collection.list",
    "snapshot.mode.configuration.based.", "snapshot.mode.custom.name", "snapshot.select.statement.overrides",
    "topic.naming.strategy",
)  # fmt: skip


def _check_patterns(patterns: Sequence[str]) -> None:
    try:
        any_matches(patterns)
    except Exception as error:
        raise UnfitValueError(patterns, f"Invalid regular expression: {error}") from None


def _keys_of(text: str | None) -> list[tuple[str, tuple[str, ...]]]:
    """(pattern of tables, columns) of message.key.columns; the last colon is before the columns."""
    keys = []
    for one in listed(text or "", ";"):
        pattern, _, columns = one.rpartition(":")
        keys.append((pattern.strip(), tuple(name.strip() for name in columns.split(","))))
    return keys


def _check_key_columns(text: str) -> None:
    for pattern, columns in _keys_of(text):
        if not pattern or not all(columns):
            raise ValueError("It takes schema.table:column,column, with semicolons between tables")
        _check_patterns([pattern])


def _check_slot(name: str) -> None:
    if not name or len(name) > 63 or not all(one in "abcdefghijklmnopqrstuvwxyz0123456789_" for one in name):
        raise ValueError("A slot's name has 1 to 63 lower-case letters, digits and underscores")


def _check_operations(operations: Sequence[str]) -> None:
    if not {*operations} <= {"c", "u", "d", "t", "none"}:
        raise ValueError("It takes c, u, d, t, or none")


_Row = tuple[str, ValueKind[Any], Any, Importance, str]
_SLOT: Final = Checked(TEXT, _check_slot)
_OPERATIONS: Final = Checked(TEXTS, _check_operations)
_PATTERNS: Final = Checked(TEXTS, _check_patterns)
_HIGH, _MEDIUM, _LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
_SSL_MODES: Final = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")


def _postgres_rows() -> tuple[_Row, ...]:
    """The keys of the connection."""
    return (
        ("topic.prefix", FILLED, REQUIRED, _HIGH, "What every topic's name begins with, and the name of the source."),
        ("database.hostname", FILLED, REQUIRED, _HIGH, "The server's host."),
        ("database.port", int_of(1, 65535), 5432, _HIGH, "The server's port."),
        ("database.user", FILLED, REQUIRED, _HIGH, "A user with REPLICATION, and SELECT on the tables."),
        ("database.password", SECRET, None, _HIGH, "The user's password."),
        ("database.dbname", FILLED, REQUIRED, _HIGH, "The database."),
        ("database.sslmode", names(*_SSL_MODES), "prefer", _MEDIUM, "As libpq's sslmode."),
        ("database.sslrootcert", TEXT, None, _MEDIUM, "The file of the certificates that the server's is checked by."),
        ("database.sslcert", TEXT, None, _MEDIUM, "The file of the client's certificate."),
        ("database.sslkey", TEXT, None, _MEDIUM, "The file of the client's private key."),
    )  # fmt: skip


def _replication_rows() -> tuple[_Row, ...]:
    """The keys of the slot, the publication and the stream."""
    return (
        ("plugin.name", names("pgoutput"), "pgoutput", _MEDIUM, "The output plugin: pgoutput."),
        ("slot.name", _SLOT, "debezium", _MEDIUM, "The replication slot, made where it is not there."),
        ("slot.drop.on.stop", FLAG, False, _MEDIUM, "Whether the slot goes when the connector is deleted or stopped."),
        ("slot.max.retries", long_of(0), 6, _LOW, "How often a slot that is in use is asked for."),
        ("slot.retry.delay.ms", long_of(1), 10_000, _LOW, "How long to wait between them."),
        ("slot.stream.params", TEXT, None, _LOW, "Further parameters of the plugin: name=value;name=value."),
        ("publication.name", FILLED, "dbz_publication", _MEDIUM, "The publication."),
        (
            "publication.autocreate.mode", names(*PublicationMode), "all_tables", _MEDIUM,
            "What the connector makes a publication for that is not there.",
        ),
        ("status.update.interval.ms", long_of(1), 10_000, _LOW, "How often the server hears what is stored."),
        ("flush.lsn.source", FLAG, True, _LOW, "Whether the slot moves on behind what is stored."),
        ("heartbeat.interval.ms", long_of(0), 0, _MEDIUM, "How often a heartbeat is written; 0: never."),
        ("heartbeat.action.query", TEXT, None, _LOW, "A statement that the connector runs with each heartbeat."),
        ("topic.heartbeat.prefix", TEXT, "__debezium-heartbeat", _LOW, "What the heartbeats' topic begins with."),
        ("errors.max.retries", long_of(-1), -1, _LOW, "How often a lost connection is made again; -1: always."),
        ("retriable.restart.connector.wait.ms", long_of(0), 10_000, _LOW, "How long to wait before that."),
        ("max.batch.size", long_of(1), 2048, _MEDIUM, "How many messages one poll takes at most."),
        ("poll.interval.ms", long_of(1), 500, _MEDIUM, "How long a poll waits for the first message."),
    )  # fmt: skip


def _event_rows() -> tuple[_Row, ...]:
    """The keys of what is read and what records hold."""
    return (
        ("snapshot.mode", names(*SnapshotMode), "initial", _MEDIUM, "When the tables' rows are read first."),
        ("snapshot.fetch.size", long_of(1), 10_240, _MEDIUM, "How many rows are read at once."),
        ("schema.include.list", _PATTERNS, [], _HIGH, "The schemas to read, regular expressions."),
        ("schema.exclude.list", _PATTERNS, [], _MEDIUM, "The schemas not to read."),
        ("table.include.list", _PATTERNS, [], _HIGH, "The tables to read, patterns of schema.table."),
        ("table.exclude.list", _PATTERNS, [], _MEDIUM, "The tables not to read."),
        ("column.include.list", _PATTERNS, [], _MEDIUM, "The columns to read, of schema.table.column."),
        ("column.exclude.list", _PATTERNS, [], _MEDIUM, "The columns not to read."),
        (
            "message.key.columns", Checked(TEXT, _check_key_columns), None, _MEDIUM,
            "The columns that records are keyed by: schema.table:column,column;…, tables as patterns.",
        ),
        ("message.prefix.include.list", _PATTERNS, [], _LOW, "The prefixes of logical messages to read."),
        ("message.prefix.exclude.list", _PATTERNS, [], _LOW, "The prefixes of logical messages not to read."),
        ("skipped.operations", _OPERATIONS, ["t"], _LOW, "Operations that give no record: c, u, d, t, none."),
        ("tombstones.on.delete", FLAG, True, _MEDIUM, "Whether a record without a value follows a delete."),
        ("provide.transaction.metadata", FLAG, False, _LOW, "Whether transactions have records of their own."),
        ("decimal.handling.mode", names(*DecimalHandling), "precise", _MEDIUM, "What numeric becomes."),
        ("time.precision.mode", names(*TimePrecision), "adaptive", _MEDIUM, "What dates and times become."),
        ("binary.handling.mode", names(*BinaryHandling), "bytes", _LOW, "What bytea becomes."),
        ("hstore.handling.mode", names(*HstoreHandling), "json", _LOW, "What hstore becomes."),
        ("interval.handling.mode", names(*IntervalHandling), "numeric", _LOW, "What interval becomes."),
        ("money.fraction.digits", int_of(0, 20), 2, _LOW, "The digits of money's fraction."),
        ("include.unknown.datatypes", FLAG, False, _LOW, "Whether columns of other types are there, as bytes."),
        (
            "unavailable.value.placeholder", FILLED, "__debezium_unavailable_value", _LOW,
            "What stands for a TOASTed value that an update left as it is.",
        ),
    )  # fmt: skip


def config_def() -> ConfigDef:
    """The connector's keys."""
    groups = (("Postgres", _postgres_rows()), ("Replication", _replication_rows()), ("Events", _event_rows()))
    return ConfigDef(config_key(*row, group) for group, rows in groups for row in rows)


_EXCLUSIVE: Final = ("schema", "table", "column", "message.prefix")


def validate(config: Mapping[str, str]) -> list[ConfigValue]:
    """What is to say of each key, those that this connector can't follow and pairs that exclude each other too."""
    values = config_def().validate(config)
    by_name = {value.name: value for value in values}
    for what in _EXCLUSIVE:
        include, exclude = f"{what}.include.list", f"{what}.exclude.list"
        if config.get(include) and config.get(exclude):
            by_name[exclude].errors.append(f"Either {include} or {exclude} may be given, not both.")
    for name in config:
        if name not in by_name and name.startswith(UNSUPPORTED):
            errors = [
                f"{name} of Debezium's connector is not supported by this one; docs/connect-postgres.md says more."
            ]
            values.append(ConfigValue(name, config[name], errors=errors))
    return values


@dataclass(frozen=True, slots=True)
class PostgresSettings:
    """A task's configuration. Times in seconds."""

    host: str
    port: int
    user: str
    password: str | None
    database: str
    ssl: Mapping[str, str]
    slot: str
    drop_slot: bool
    slot_retries: int
    slot_retry_s: float
    plugin_options: Mapping[str, str]
    publication: str
    publication_mode: PublicationMode
    status_interval_s: float
    flush_lsn: bool
    heartbeat_s: float
    heartbeat_query: str | None
    retries: int
    retry_s: float
    batch: int
    poll_s: float
    snapshot_mode: SnapshotMode
    fetch_size: int
    records: RecordSettings

    @property
    def shown(self) -> str:
        """The database, for messages."""
        return f"{self.database} at {self.host}:{self.port}"


def read_settings(config: Mapping[str, str]) -> PostgresSettings:
    """The settings of a configuration. Raises `ConnectConfigError` with all that is wrong."""
    wrong = [error for value in validate(config) for error in value.errors]
    if wrong:
        raise ConnectConfigError(" ".join(wrong))
    given = config_def().parse(config)
    password = given["database.password"]
    return PostgresSettings(
        host=given["database.hostname"],
        port=given["database.port"],
        user=given["database.user"],
        password=password.text if password is not None else None,
        database=given["database.dbname"],
        ssl={name: given[f"database.{name}"] for name in _SSL_KEYS if given[f"database.{name}"]},
        slot=given["slot.name"],
        drop_slot=given["slot.drop.on.stop"],
        slot_retries=given["slot.max.retries"],
        slot_retry_s=given["slot.retry.delay.ms"] / 1000,
        plugin_options=_plugin_options(given["slot.stream.params"]),
        publication=given["publication.name"],
        publication_mode=PublicationMode(given["publication.autocreate.mode"]),
        status_interval_s=given["status.update.interval.ms"] / 1000,
        flush_lsn=given["flush.lsn.source"],
        heartbeat_s=given["heartbeat.interval.ms"] / 1000,
        heartbeat_query=given["heartbeat.action.query"],
        retries=given["errors.max.retries"],
        retry_s=given["retriable.restart.connector.wait.ms"] / 1000,
        batch=given["max.batch.size"],
        poll_s=given["poll.interval.ms"] / 1000,
        snapshot_mode=SnapshotMode(given["snapshot.mode"]),
        fetch_size=given["snapshot.fetch.size"],
        records=_record_settings(given),
    )


_SSL_KEYS: Final = ("sslmode", "sslrootcert", "sslcert", "sslkey")


def _plugin_options(text: str | None) -> dict[str, str]:
    pairs = [one.partition("=") for one in listed(text or "", ";")]
    return {name.strip(): value.strip() for name, _, value in pairs}


def _record_settings(given: Mapping[str, Any]) -> RecordSettings:
    return RecordSettings(
        prefix=given["topic.prefix"],
        database=given["database.dbname"],
        selection=Selection(
            given["schema.include.list"],
            given["schema.exclude.list"],
            given["table.include.list"],
            given["table.exclude.list"],
            given["column.include.list"],
            given["column.exclude.list"],
            _keys_of(given["message.key.columns"]),
        ),
        modes=TypeModes(
            DecimalHandling(given["decimal.handling.mode"]),
            TimePrecision(given["time.precision.mode"]),
            BinaryHandling(given["binary.handling.mode"]),
            HstoreHandling(given["hstore.handling.mode"]),
            IntervalHandling(given["interval.handling.mode"]),
            given["money.fraction.digits"],
            given["include.unknown.datatypes"],
            given["unavailable.value.placeholder"],
        ),
        skipped=frozenset(given["skipped.operations"]) - {"none"},
        tombstones=given["tombstones.on.delete"],
        transaction_metadata=given["provide.transaction.metadata"],
        message_prefixes=given["message.prefix.include.list"],
        no_message_prefixes=given["message.prefix.exclude.list"],
        heartbeat_topic=given["topic.heartbeat.prefix"],
    )
