"""ExtractNewRecordState: Debezium's options by their names, over envelopes as Debezium makes them."""

import pytest
from support.connect_records import source_record

from tidelog.connect.config.values import ConnectConfigError
from tidelog.connect.connectors.postgres.envelopes import envelope_of
from tidelog.connect.data.errors import DataError
from tidelog.connect.data.records import ConnectHeader
from tidelog.connect.data.schema import INT32, INT64, STRING, array_of, struct_of
from tidelog.connect.transforms.chain import apply_chain, chain_keys, chain_of
from tidelog.connect.transforms.plugins import TRANSFORMATIONS

ROW = struct_of({"id": INT32, "city": STRING.as_optional()}, name="shop.public.t.Value", optional=True)
ENVELOPE = envelope_of("shop.public.t", ROW)
KEY = struct_of({"id": INT32, "city": STRING.as_optional()})
OLD, NEW = {"id": 1, "city": "Ulm"}, {"id": 1, "city": "Bonn"}
NAME = "io.debezium.transforms.ExtractNewRecordState"
MODE = "delete.tombstone.handling.mode"


def change(op, before, after, *, transaction=None, headers=()):
    source = {"lsn": 77, "ts_ms": 5, "table": "t", "connector": "postgresql"}
    value = {"before": before, "after": after, "source": source, "op": op, "ts_ms": 9, "transaction": transaction}
    return source_record(ENVELOPE, value, key={"id": 1, "city": "Ulm"}, key_schema=KEY, headers=headers)


UPDATE, DELETE = change("u", OLD, NEW), change("d", OLD, None)
TOMBSTONE = source_record(None, None, key={"id": 1, "city": "Ulm"}, key_schema=KEY)


def extracted(record, name=NAME, **config):
    given = {f"transforms.t.{key}": value for key, value in config.items()}
    return apply_chain(chain_of({"transforms": "t", "transforms.t.type": name, **given}), record)


def shown(record):
    return "dropped" if record is None else record.value


@pytest.mark.parametrize("name", [NAME, "ExtractNewRecordState"])
def test_an_update_becomes_the_row_after_it_with_the_rows_schema(name):
    found = extracted(UPDATE, name)
    assert (found.value, found.value_schema, found.key, found.topic) == (NEW, ROW, UPDATE.key, "test")


@pytest.mark.parametrize(
    ("config", "update", "delete", "tombstone"),
    [
        ({}, NEW, None, "dropped"),
        ({MODE: "tombstone"}, NEW, None, "dropped"),
        ({MODE: "drop"}, NEW, "dropped", "dropped"),
        ({MODE: "Rewrite"}, {**NEW, "__deleted": "false"}, {**OLD, "__deleted": "true"}, "dropped"),
        ({MODE: "rewrite-with-tombstone"}, {**NEW, "__deleted": "false"}, {**OLD, "__deleted": "true"}, None),
        ({MODE: "delete-to-tombstone"}, NEW, None, "dropped"),
        ({"drop.tombstones": "true"}, NEW, "dropped", "dropped"),
        ({"drop.tombstones": "false"}, NEW, "dropped", None),
        ({"delete.handling.mode": "none"}, NEW, None, "dropped"),
        ({"delete.handling.mode": "none", "drop.tombstones": "false"}, NEW, None, None),
        (
            {"delete.handling.mode": "rewrite", "drop.tombstones": "false"},
            {**NEW, "__deleted": "false"}, {**OLD, "__deleted": "true"}, None,
        ),
    ],
)  # fmt: skip
def test_deletes_and_tombstones_become_what_the_mode_says(config, update, delete, tombstone):
    assert [shown(extracted(one, **config)) for one in (UPDATE, DELETE, TOMBSTONE)] == [update, delete, tombstone]


def test_a_delete_to_tombstone_has_no_schema_either():
    assert extracted(DELETE, **{MODE: "delete-to-tombstone"}).value_schema is None
    assert extracted(DELETE, **{MODE: "tombstone"}).value_schema == ROW


def test_fields_of_the_envelope_are_added_to_the_row_and_to_its_schema():
    named = {"add.fields": "op,lsn,source.ts_ms:at,source.table,ts_ms,transaction.id", "add.fields.prefix": "meta_"}
    found = extracted(change("u", OLD, NEW, transaction={"id": "x7"}), **named)
    added = {
        "meta_op": "u", "meta_lsn": 77, "meta_at": 5, "meta_source_table": "t", "meta_ts_ms": 9,
        "meta_transaction_id": "x7",
    }  # fmt: skip
    assert found.value == {**NEW, **added}
    schemas = {one.name: one.schema for one in found.value_schema.fields}
    assert [*schemas] == [*NEW, *added]
    assert (schemas["meta_op"], schemas["meta_lsn"]) == (STRING, INT64.as_optional())
    assert schemas["meta_transaction_id"] == STRING.as_optional()
    deleted = extracted(DELETE, **{MODE: "rewrite", "add.fields": "op,transaction.id"})
    assert deleted.value == {**OLD, "__op": "d", "__transaction_id": None, "__deleted": "true"}


def test_fields_of_the_envelope_become_headers_and_a_tombstone_has_its_operation():
    config = {"add.headers": "op,lsn:position", MODE: "rewrite-with-tombstone"}
    headers = extracted(UPDATE, **config).headers
    assert [(one.key, one.value) for one in headers] == [("__op", "u"), ("__position", 77)]
    assert extracted(TOMBSTONE, **config).headers == (ConnectHeader("__op", "d", STRING),)
    bare = extracted(UPDATE, **{"add.headers": "op", "add.headers.prefix": ""}).headers
    assert [one.key for one in bare] == ["op"]


def test_a_column_names_the_topic_of_changes_and_of_deletes():
    config = {"route.by.field": "city", MODE: "tombstone"}
    assert [extracted(one, **config).topic for one in (UPDATE, DELETE)] == ["Bonn", "Ulm"]
    with pytest.raises(DataError, match=r"Field city .* names no topic"):
        extracted(change("c", None, {"id": 1, "city": None}), **config)
    with pytest.raises(DataError, match=r"Field id .* names no topic"):
        extracted(UPDATE, **{"route.by.field": "id"})


def test_a_header_lists_fields_to_leave_out():
    names = (ConnectHeader("drop", ["city", "id"], array_of(STRING)),)
    record, named = change("u", OLD, NEW, headers=names), {"drop.fields.header.name": "drop"}
    found = extracted(record, **named)
    assert (found.value, found.key) == ({"id": 1}, record.key)
    assert [one.name for one in found.value_schema.fields] == ["id"]
    assert extracted(record, **named, **{"drop.fields.from.key": "true"}).key == {"id": 1}
    assert extracted(record, **named, **{"drop.fields.keep.schema.compatible": "false"}).value == {}
    assert extracted(UPDATE, **named).value == NEW


def test_what_is_no_rows_change_passes_and_truncations_are_dropped():
    heartbeat = source_record(struct_of({"ts_ms": INT64}, name="io.debezium.connector.common.Heartbeat"), {"ts_ms": 1})
    plain = source_record(None, {"after": NEW})
    assert [extracted(one) for one in (heartbeat, plain)] == [heartbeat, plain]
    assert extracted(change("t", None, None)) is None


def test_what_no_envelope_has_is_refused_by_name():
    with pytest.raises(DataError, match="Unexpected field name: speed: source has none"):
        extracted(UPDATE, **{"add.fields": "speed"})
    assert extracted(UPDATE, **{"add.fields": "nowhere.speed"}).value == NEW
    with pytest.raises(ConnectConfigError, match=r"add.fields.*is no field"):
        extracted(UPDATE, **{"add.fields": "a.b.c"})
    with pytest.raises(ConnectConfigError, match="Leave those out"):
        extracted(UPDATE, **{MODE: "drop", "drop.tombstones": "true"})
    with pytest.raises(ConnectConfigError, match="String must be one of"):
        extracted(UPDATE, **{MODE: "keep"})


def test_its_keys_are_shown_below_its_alias():
    assert NAME in TRANSFORMATIONS
    assert "org.apache.kafka.connect.transforms.ExtractNewRecordState" not in TRANSFORMATIONS
    keys = {key.name: key for key in chain_keys({"transforms": "t", "transforms.t.type": NAME})}
    assert keys[f"transforms.t.{MODE}"].as_json()["required"] is False
    assert keys["transforms.t.drop.tombstones"].as_json()["default_value"] is None
