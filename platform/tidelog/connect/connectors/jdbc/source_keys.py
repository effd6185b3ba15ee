"""The keys of the JDBC source, by Confluent's names."""

from collections.abc import Mapping
from typing import Any, Final

from tidelog.connect.config.definition import REQUIRED, ConfigDef, ConfigValue, Importance
from tidelog.connect.config.validators import between, one_of
from tidelog.connect.config.values import ConfigKind
from tidelog.connect.connectors.jdbc.databases import with_connection_keys
from tidelog.connect.connectors.jdbc.sql_types import NUMERIC_MAPPINGS

MODES: Final = ("bulk", "timestamp", "incrementing", "timestamp+incrementing")
_TEXT, _LIST, _INT, _LONG, _BOOLEAN = (
    ConfigKind.STRING, ConfigKind.LIST, ConfigKind.INT, ConfigKind.LONG, ConfigKind.BOOLEAN,
)  # fmt: skip
_HIGH, _MEDIUM, _LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
SOURCE_KEYS: Final = (
    with_connection_keys(ConfigDef())
    .define("mode", _TEXT, REQUIRED, _HIGH, "bulk: whole tables at each poll. The others give what is new by columns.",
            group="Mode", validator=one_of(*MODES))
    .define("incrementing.column.name", _TEXT, "", _MEDIUM,
            "The column whose values only grow; empty for the primary key's, of one whole number.", group="Mode")
    .define("timestamp.column.name", _LIST, [], _MEDIUM,
            "Columns with the time of the last change, the first that is not null counts.", group="Mode")
    .define("timestamp.initial", _LONG, None, _LOW, "Where the first poll begins, in ms since 1970; -1 for now.",
            group="Mode")
    .define("validate.non.null", _BOOLEAN, True, _LOW,
            "Whether the columns of the mode must be NOT NULL: rows with null in them are never given.", group="Mode")
    .define("query", _TEXT, "", _MEDIUM, "A SELECT in place of tables; the mode's condition is put around it.",
            group="Mode")
    .define("table.whitelist", _LIST, [], _MEDIUM, "The tables to read, as table or schema.table.", group="Tables")
    .define("table.include.list", _LIST, [], _MEDIUM, "The same under its newer name.", group="Tables")
    .define("table.blacklist", _LIST, [], _MEDIUM, "The tables not to read; all others are.", group="Tables")
    .define("table.exclude.list", _LIST, [], _MEDIUM, "The same under its newer name.", group="Tables")
    .define("schema.pattern", _TEXT, None, _HIGH, "The database's schema to list tables of.", group="Tables")
    .define("topic.prefix", _TEXT, REQUIRED, _HIGH, "What topics' names begin with; the whole name for a query.",
            group="Connector")
    .define("poll.interval.ms", _INT, 5000, _HIGH, "How long after a poll the same table is polled again.",
            group="Connector", validator=between(0))
    .define("table.poll.interval.ms", _LONG, 60_000, _LOW,
            "How often tables are listed, so that tasks read new ones, too.", group="Connector", validator=between(1))
    .define("batch.max.rows", _INT, 100, _LOW, "How many rows are given at a time.", group="Connector",
            validator=between(1))
    .define("timestamp.delay.interval.ms", _LONG, 0, _HIGH,
            "How old a change must be to be given, so that transactions with earlier times end before.",
            group="Connector", validator=between(0))
    .define("numeric.mapping", _TEXT, "none", _LOW, "How numeric columns of small precision are given: "
                                                    "none (decimals), "
            "precision_only (whole numbers), best_fit (whole numbers and doubles), best_fit_eager_double.",
            group="Connector", validator=one_of(*NUMERIC_MAPPINGS))
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
