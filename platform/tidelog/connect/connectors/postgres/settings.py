"""The connector's keys, by Debezium's names, and a task's settings."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from tidelog.connect.config.definition import REQUIRED, ConfigDef, ConfigValue, Importance
from tidelog.connect.config.validators import between, non_empty, one_of
from tidelog.connect.config.values import ConfigKind, ConnectConfigError, invalid_value
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
from tidelog.log.base.typed_values import listed


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


def _patterns(name: str, value: Any) -> None:
    """A list of regular expressions."""
    try:
        any_matches(value or ())
    except Exception as error:
        raise invalid_value(name, value, f"Invalid regular expression: {error}") from None


def _keys_of(text: str | None) -> list[tuple[str, tuple[str, ...]]]:
    """(pattern of tables, columns) of message.key.columns; the last colon is before the columns."""
    keys = []
    for one in listed(text or "", ";"):
        pattern, _, columns = one.rpartition(":")
        keys.append((pattern.strip(), tuple(name.strip() for name in columns.split(","))))
    return keys


def _key_columns(name: str, value: Any) -> None:
    for pattern, columns in _keys_of(value):
        if not pattern or not all(columns):
            raise invalid_value(name, value, "It takes schema.table:column,column, with semicolons between tables")
        _patterns(name, [pattern])


def _slot_name(name: str, value: Any) -> None:
    if not value or len(value) > 63 or not all(one in "abcdefghijklmnopqrstuvwxyz0123456789_" for one in value):
        raise invalid_value(name, value, "A slot's name has 1 to 63 lower-case letters, digits and underscores")


def _operations(name: str, value: Any) -> None:
    for one in value:
        if one not in ("c", "u", "d", "t", "none"):
            raise invalid_value(name, value, "It takes c, u, d, t, or none")


_Row = tuple[Any, ...]
_TEXT, _WHOLE, _FLAG, _NAMES = ConfigKind.STRING, ConfigKind.LONG, ConfigKind.BOOLEAN, ConfigKind.LIST
_HIGH, _MEDIUM, _LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
_SSL_MODES: Final = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")


def _postgres_rows() -> tuple[_Row, ...]:
    """The keys of the connection."""
    return (
        (
            "topic.prefix",
            _TEXT,
            REQUIRED,
            _HIGH,
            "What every topic's name begins with, and the name of the source.",
            non_empty,
        ),
        ("database.hostname", _TEXT, REQUIRED, _HIGH, "The server's host.", non_empty),
        ("database.port", ConfigKind.INT, 5432, _HIGH, "The server's port.", between(1, 65535)),
        ("database.user", _TEXT, REQUIRED, _HIGH, "A user with REPLICATION, and SELECT on the tables.", non_empty),
        ("database.password", ConfigKind.PASSWORD, None, _HIGH, "The user's password."),
        ("database.dbname", _TEXT, REQUIRED, _HIGH, "The database.", non_empty),
        ("database.sslmode", _TEXT, "prefer", _MEDIUM, "As libpq's sslmode.", one_of(*_SSL_MODES)),
        ("database.sslrootcert", _TEXT, None, _MEDIUM, "The file of the certificates that the server's is checked by."),
        ("database.sslcert", _TEXT, None, _MEDIUM, "The file of the client's certificate."),
        ("database.sslkey", _TEXT, None, _MEDIUM, "The file of the client's private key."),
    )  # fmt: skip


def _replication_rows() -> tuple[_Row, ...]:
    """The keys of the slot, the publication and the stream."""
    return (
        ("plugin.name", _TEXT, "pgoutput", _MEDIUM, "The output plugin: pgoutput.", one_of("pgoutput")),
        ("slot.name", _TEXT, "debezium", _MEDIUM, "The replication slot, made where it is not there.", _slot_name),
        ("slot.drop.on.stop", _FLAG, False, _MEDIUM, "Whether the slot goes when the connector is deleted or stopped."),
        ("slot.max.retries", _WHOLE, 6, _LOW, "How often a slot that is in use is asked for.", between(0)),
        ("slot.retry.delay.ms", _WHOLE, 10_000, _LOW, "How long to wait between them.", between(1)),
        ("slot.stream.params", _TEXT, None, _LOW, "Further parameters of the plugin: name=value;name=value."),
        ("publication.name", _TEXT, "dbz_publication", _MEDIUM, "The publication.", non_empty),
        (
            "publication.autocreate.mode", _TEXT, "all_tables", _MEDIUM,
            "What the connector makes a publication for that is not there.", one_of(*PublicationMode),
        ),
        ("status.update.interval.ms", _WHOLE, 10_000, _LOW, "How often the server hears what is stored.", between(1)),
        ("flush.lsn.source", _FLAG, True, _LOW, "Whether the slot moves on behind what is stored."),
        ("heartbeat.interval.ms", _WHOLE, 0, _MEDIUM, "How often a heartbeat is written; 0: never.", between(0)),
        ("heartbeat.action.query", _TEXT, None, _LOW, "A statement that the connector runs with each heartbeat."),
        ("topic.heartbeat.prefix", _TEXT, "__debezium-heartbeat", _LOW, "What the heartbeats' topic begins with."),
        ("errors.max.retries", _WHOLE, -1, _LOW, "How often a lost connection is made again; -1: always.", between(-1)),
        ("retriable.restart.connector.wait.ms", _WHOLE, 10_000, _LOW, "How long to wait before that.", between(0)),
        ("max.batch.size", _WHOLE, 2048, _MEDIUM, "How many messages one poll takes at most.", between(1)),
        ("poll.interval.ms", _WHOLE, 500, _MEDIUM, "How long a poll waits for the first message.", between(1)),
    )  # fmt: skip


def _event_rows() -> tuple[_Row, ...]:
    """The keys of what is read and what records hold."""
    return (
        ("snapshot.mode", _TEXT, "initial", _MEDIUM, "When the tables' rows are read first.", one_of(*SnapshotMode)),
        ("snapshot.fetch.size", _WHOLE, 10_240, _MEDIUM, "How many rows are read at once.", between(1)),
        ("schema.include.list", _NAMES, [], _HIGH, "The schemas to read, regular expressions.", _patterns),
        ("schema.exclude.list", _NAMES, [], _MEDIUM, "The schemas not to read.", _patterns),
        ("table.include.list", _NAMES, [], _HIGH, "The tables to read, patterns of schema.table.", _patterns),
        ("table.exclude.list", _NAMES, [], _MEDIUM, "The tables not to read.", _patterns),
        ("column.include.list", _NAMES, [], _MEDIUM, "The columns to read, of schema.table.column.", _patterns),
        ("column.exclude.list", _NAMES, [], _MEDIUM, "The columns not to read.", _patterns),
        (
            "message.key.columns", _TEXT, None, _MEDIUM,
            "The columns that records are keyed by: schema.table:column,column;…, tables as patterns.", _key_columns,
        ),
        ("message.prefix.include.list", _NAMES, [], _LOW, "The prefixes of logical messages to read.", _patterns),
        ("message.prefix.exclude.list", _NAMES, [], _LOW, "The prefixes of logical messages not to read.", _patterns),
        ("skipped.operations", _NAMES, ["t"], _LOW, "Operations that give no record: c, u, d, t, none.", _operations),
        ("tombstones.on.delete", _FLAG, True, _MEDIUM, "Whether a record without a value follows a delete."),
        ("provide.transaction.metadata", _FLAG, False, _LOW, "Whether transactions have records of their own."),
        ("decimal.handling.mode", _TEXT, "precise", _MEDIUM, "What numeric becomes.", one_of(*DecimalHandling)),
        ("time.precision.mode", _TEXT, "adaptive", _MEDIUM, "What dates and times become.", one_of(*TimePrecision)),
        ("binary.handling.mode", _TEXT, "bytes", _LOW, "What bytea becomes.", one_of(*BinaryHandling)),
        ("hstore.handling.mode", _TEXT, "json", _LOW, "What hstore becomes.", one_of(*HstoreHandling)),
        ("interval.handling.mode", _TEXT, "numeric", _LOW, "What interval becomes.", one_of(*IntervalHandling)),
        ("money.fraction.digits", ConfigKind.INT, 2, _LOW, "The digits of money's fraction.", between(0, 20)),
        ("include.unknown.datatypes", _FLAG, False, _LOW, "Whether columns of other types are there, as bytes."),
        (
            "unavailable.value.placeholder", _TEXT, "__debezium_unavailable_value", _LOW,
            "What stands for a TOASTed value that an update left as it is.", non_empty,
        ),
    )  # fmt: skip


def config_def() -> ConfigDef:
    """The connector's keys."""
    definition = ConfigDef()
    groups = (("Postgres", _postgres_rows()), ("Replication", _replication_rows()), ("Events", _event_rows()))
    for group, rows in groups:
        for name, kind, default, importance, documentation, *validator in rows:
            checked = validator[0] if validator else None
            definition.define(name, kind, default, importance, documentation, group=group, validator=checked)
    return definition


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
