"""Records for transformations, and transformations made of configurations."""

from dataclasses import replace

from tidelog.connect.data.records import SinkRecord, SourceRecord
from tidelog.connect.transforms.chain import apply_chain, chain_of


def source_record(schema, value, side="Value", **others):
    sides = {"value": value, "value_schema": schema} if side == "Value" else {"key": value, "key_schema": schema}
    return SourceRecord(topic="test", **sides, **others)


def sink_record(schema, value, side="Value", offset=0, **others):
    sides = {"value": value, "value_schema": schema} if side == "Value" else {"key": value, "key_schema": schema}
    record = SinkRecord(topic="test", partition=0, offset=offset, original_topic="test", original_partition=0, **sides)
    return replace(record, **others)


def transformed(name, config, record):
    """The record behind one transformation of that name, both with the package of Java's class and without."""
    found = [
        apply_chain(chain_of({"transforms": "t", "transforms.t.type": prefix + name, **_prefixed(config)}), record)
        for prefix in ("", "org.apache.kafka.connect.transforms.")
    ]
    assert found[0] == found[1]
    return found[0]


def _prefixed(config):
    return {f"transforms.t.{key}": value for key, value in config.items()}
