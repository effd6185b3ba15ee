"""The keys of the JDBC sink, by Confluent's names."""

from collections.abc import Mapping
from typing import Final

from tidelog.connect.config.definition import ConfigDef, ConfigValue, Importance
from tidelog.connect.config.validators import between, non_empty, one_of
from tidelog.connect.config.values import ConfigKind
from tidelog.connect.connectors.jdbc.databases import with_connection_keys

_TEXT, _LIST, _INT, _BOOLEAN = ConfigKind.STRING, ConfigKind.LIST, ConfigKind.INT, ConfigKind.BOOLEAN
_HIGH, _MEDIUM, _LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
PK_MODES: Final = ("none", "kafka", "record_key", "record_value")
SINK_KEYS: Final = (
    with_connection_keys(ConfigDef())
    .define("insert.mode", _TEXT, "insert", _HIGH, "insert, upsert or update.", group="Writes",
            validator=one_of("insert", "upsert", "update"))
    .define("batch.size", _INT, 3000, _MEDIUM, "How many rows a statement has at most.", group="Writes",
            validator=between(1))
    .define("delete.enabled", _BOOLEAN, False, _MEDIUM, "Whether a null value deletes the row of its key; needs "
            "pk.mode=record_key.", group="Writes")
    .define("max.retries", _INT, 10, _MEDIUM, "How often a batch is tried again before the task fails.",
            group="Writes", validator=between(0))
    .define("retry.backoff.ms", _INT, 3000, _MEDIUM, "How long after a failure.", group="Writes",
            validator=between(0))
    .define("offsets.table.name", _TEXT, "tidelog_connect_offsets", _LOW, "The table for offsets, written in the rows' "
            "transaction, so that every record is written once; empty for at least once.", group="Writes")
    .define("table.name.format", _TEXT, "${topic}", _MEDIUM, "The table of a topic; schema.table where it has a dot.",
            group="Mapping", validator=non_empty)
    .define("pk.mode", _TEXT, "none", _HIGH, "What the primary key is: none, kafka (topic, partition, offset), "
            "record_key or record_value.", group="Mapping", validator=one_of(*PK_MODES))
    .define("pk.fields", _LIST, [], _MEDIUM, "The primary key's columns: names for kafka's three or for "
                                             "a key that is no "
            "struct, else fields, all of them when empty.", group="Mapping")
    .define("fields.whitelist", _LIST, [], _MEDIUM, "The value's fields to write; all when empty.", group="Mapping")
    .define("auto.create", _BOOLEAN, False, _MEDIUM, "Whether a missing table is created.", group="Tables")
    .define("auto.evolve", _BOOLEAN, False, _MEDIUM, "Whether missing columns are added.", group="Tables")
)  # fmt: skip


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
