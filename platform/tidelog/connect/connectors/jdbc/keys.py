"""The keys of the JDBC source and sink, by Confluent's names."""

from collections.abc import Mapping
from typing import Any, Final

from tidelog.connect.config.definition import ConfigDef, ConfigValue, Importance
from tidelog.connect.config.values import FILLED, FLAG, TEXT, TEXTS
from tidelog.connect.connectors.jdbc.databases import with_connection_keys
from tidelog.connect.connectors.jdbc.sql_types import NUMERIC_MAPPINGS
from tidelog.log.base.keys import REQUIRED
from tidelog.log.base.typed_values import names
from tidelog.log.config.key_type import int_of, long_of

MODES: Final = ("bulk", "timestamp", "incrementing", "timestamp+incrementing")
_HIGH, _MEDIUM, _LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
SOURCE_KEYS: Final = (
    with_connection_keys(ConfigDef())
    .define("mode", names(*MODES), REQUIRED, _HIGH,
            "bulk: whole tables at each poll. The others give what is new by columns.", group="Mode")
    .define("incrementing.column.name", TEXT, "", _MEDIUM,
            "The column whose values only grow; empty for the primary key's, of one whole number.", group="Mode")
    .define("timestamp.column.name", TEXTS, [], _MEDIUM,
            "Columns with the time of the last change, the first that is not null counts.", group="Mode")
    .define("timestamp.initial", long_of(), None, _LOW, "Where the first poll begins, in ms since 1970; -1 for now.",
            group="Mode")
    .define("validate.non.null", FLAG, True, _LOW,
            "Whether the columns of the mode must be NOT NULL: rows with null in them are never given.", group="Mode")
    .define("query", TEXT, "", _MEDIUM, "A SELECT in place of tables; the mode's condition is put around it.",
            group="Mode")
    .define("table.whitelist", TEXTS, [], _MEDIUM, "The tables to read, as table or schema.table.", group="Tables")
    .define("table.include.list", TEXTS, [], _MEDIUM, "The same under its newer name.", group="Tables")
    .define("table.blacklist", TEXTS, [], _MEDIUM, "The tables not to read; all others are.", group="Tables")
    .define("table.exclude.list", TEXTS, [], _MEDIUM, "The same under its newer name.", group="Tables")
    .define("schema.pattern", TEXT, None, _HIGH, "The database's schema to list tables of.", group="Tables")
    .define("topic.prefix", TEXT, REQUIRED, _HIGH, "What topics' names begin with; the whole name for a query.",
            group="Connector")
    .define("poll.interval.ms", int_of(0), 5000, _HIGH, "How long after a poll the same table is polled again.",
            group="Connector")
    .define("table.poll.interval.ms", long_of(1), 60_000, _LOW,
            "How often tables are listed, so that tasks read new ones, too.", group="Connector")
    .define("batch.max.rows", int_of(1), 100, _LOW, "How many rows are given at a time.", group="Connector")
    .define("timestamp.delay.interval.ms", long_of(0), 0, _HIGH,
            "How old a change must be to be given, so that transactions with earlier times end before.",
            group="Connector")
    .define("numeric.mapping", names(*NUMERIC_MAPPINGS), "none", _LOW,
            "How numeric columns of small precision are given: none (decimals), precision_only (whole numbers), "
            "best_fit (whole numbers and doubles), best_fit_eager_double.",
            group="Connector")
)  # fmt: skip
PK_MODES: Final = ("none", "kafka", "record_key", "record_value")
SINK_KEYS: Final = (
    with_connection_keys(ConfigDef())
    .define("insert.mode", names("insert", "upsert", "update"), "insert", _HIGH,
            "insert, upsert or update.", group="Writes")
    .define("batch.size", int_of(1), 3000, _MEDIUM, "How many rows a statement has at most.", group="Writes")
    .define("delete.enabled", FLAG, False, _MEDIUM,
            "Whether a null value deletes the row of its key; needs pk.mode=record_key.", group="Writes")
    .define("max.retries", int_of(0), 10, _MEDIUM, "How often a batch is tried again before the task fails.",
            group="Writes")
    .define("retry.backoff.ms", int_of(0), 3000, _MEDIUM, "How long after a failure.", group="Writes")
    .define("offsets.table.name", TEXT, "tidelog_connect_offsets", _LOW, "The table for offsets, written in the rows' "
            "transaction, so that every record is written once; empty for at least once.", group="Writes")
    .define("table.name.format", FILLED, "${topic}", _MEDIUM, "The table of a topic; schema.table where it has a dot.",
            group="Mapping")
    .define("pk.mode", names(*PK_MODES), "none", _HIGH,
            "What the primary key is: none, kafka (topic, partition, offset), record_key or record_value.",
            group="Mapping")
    .define("pk.fields", TEXTS, [], _MEDIUM,
            "The primary key's columns: names for kafka's three or for a key that is no struct, else fields, all of "
            "them when empty.", group="Mapping")
    .define("fields.whitelist", TEXTS, [], _MEDIUM, "The value's fields to write; all when empty.", group="Mapping")
    .define("auto.create", FLAG, False, _MEDIUM, "Whether a missing table is created.", group="Tables")
    .define("auto.evolve", FLAG, False, _MEDIUM, "Whether missing columns are added.", group="Tables")
)  # fmt: skip


def mode_errors(values: Mapping[str, ConfigValue]) -> None:
    """Add what only several keys together show to the keys' errors."""
    parsed: Mapping[str, Any] = {name: value.value for name, value in values.items()}
    mode = parsed["mode"] if parsed["mode"] in MODES else "bulk"
    if "timestamp" in mode and not parsed["timestamp.column.name"]:
        values["timestamp.column.name"].errors.append(f"mode {mode} needs timestamp.column.name: give its columns.")
    if parsed["query"] and mode.endswith("incrementing") and not parsed["incrementing.column.name"]:
        values["incrementing.column.name"].errors.append("A query has no primary key: give incrementing.column.name.")
    lists = [name for name in ("table.whitelist", "table.include.list") if parsed[name]]
    excluded = [name for name in ("table.blacklist", "table.exclude.list") if parsed[name]]
    if lists and excluded:
        values[excluded[0]].errors.append(f"{excluded[0]} and {lists[0]} contradict each other: give one of them.")
    if parsed["query"] and (lists or excluded):
        values["query"].errors.append(f"A query takes no tables: leave out {(lists + excluded)[0]}, or the query.")


def pk_errors(values: Mapping[str, ConfigValue]) -> None:
    """Add what only several keys together show to the keys' errors."""
    mode, fields = values["pk.mode"].value, values["pk.fields"].value or []
    if values["delete.enabled"].value is True and mode != "record_key":
        values["delete.enabled"].errors.append("delete.enabled needs pk.mode=record_key: a tombstone has a key only.")
    if values["insert.mode"].value in ("upsert", "update") and mode == "none":
        values["pk.mode"].errors.append(f"insert.mode={values['insert.mode'].value} needs a primary key: give pk.mode.")
    if mode == "kafka" and len(fields) not in (0, 3):
        values["pk.fields"].errors.append("pk.mode=kafka takes three names, of topic, partition and offset, or none.")
    if mode == "none" and fields:
        values["pk.fields"].errors.append("pk.mode=none takes no pk.fields: give pk.mode, or leave pk.fields out.")
