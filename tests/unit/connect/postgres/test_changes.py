"""Messages of the log become records: what each gives, and what is skipped after a restart at any message."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tidelog.connect.connectors.postgres.changes import ChangeReader, RecordMaker, RecordSettings
from tidelog.connect.connectors.postgres.column_types import PostgresType
from tidelog.connect.connectors.postgres.envelopes import EventTime
from tidelog.connect.connectors.postgres.pgoutput import (
    UNCHANGED,
    Begin,
    Commit,
    Delete,
    Insert,
    LogicalMessage,
    Message,
    Relation,
    RelationColumn,
    ReplicaIdentity,
    Truncate,
    Update,
)
from tidelog.connect.connectors.postgres.positions import LogPosition, StoredState, read_offset
from tidelog.connect.connectors.postgres.tables import Selection, TableFacts
from tidelog.connect.data.errors import DataError
from tidelog.connect.data.records import SourceRecord
from tidelog.connect.data.schema import check_value

NOW = EventTime.of_us(1_700_000_000_123_456)
TYPES = {23: PostgresType(23, "int4"), 25: PostgresType(25, "text"), 1700: PostgresType(1700, "numeric")}


class FixedCatalog:
    """Tables `keyed` (id is the primary key, name has NOT NULL) and `plain`, without a key."""

    def table(self, schema: str, table: str) -> TableFacts:
        return TableFacts(frozenset({"id", "name"}), ("id",), (("name", "none"),)) if table == "keyed" else TableFacts()

    def type(self, oid: int) -> PostgresType:
        return TYPES[oid]


KEYED = Relation(
    1,
    "public",
    "keyed",
    ReplicaIdentity.DEFAULT,
    (RelationColumn(True, "id", 23, -1), RelationColumn(False, "name", 25, -1), RelationColumn(False, "note", 25, -1)),
)
PLAIN = Relation(2, "public", "plain", ReplicaIdentity.FULL, (RelationColumn(True, "a", 23, -1),))
SETTINGS = RecordSettings("shop", "db")


def reader_with(settings: RecordSettings = SETTINGS, after: LogPosition | None = None) -> ChangeReader:
    return ChangeReader(RecordMaker(settings, FixedCatalog()), after or LogPosition())


def reader_after(settings: RecordSettings, stored: StoredState | None) -> ChangeReader:
    reader = reader_with(settings)
    return (
        ChangeReader(RecordMaker(settings, FixedCatalog()), stored.position, stored.last_commit) if stored else reader
    )


def taken(messages: Sequence[Message], reader: ChangeReader | None = None) -> list[SourceRecord]:
    reader = reader or reader_with()
    records = [record for number, one in enumerate(messages) for record in reader.take(one, 100 + number, NOW)]
    for record in records:
        if record.value_schema is not None:
            check_value(record.value_schema, record.value)
        if record.key_schema is not None:
            check_value(record.key_schema, record.key)
    return records


def transaction(*changes: Message, commit: int = 1000) -> list[Message]:
    return [Begin(commit, 1_600_000_000_000_001, 77), *changes, Commit(commit, commit + 8, 1_600_000_000_000_001)]


def shown(records: Sequence[SourceRecord]) -> list[tuple[Any, ...]]:
    """(table, key, op, before, after), op None of a tombstone."""
    rows = []
    for one in records:
        value = one.value or {"op": None, "before": None, "after": None}
        rows.append(
            (one.topic.rpartition(".")[2], one.key and one.key["id"], value["op"], value["before"], value["after"])
        )
    return rows


def row(number: int, name: str = "n", note: str | None = None) -> dict[str, Any]:
    return {"id": number, "name": name, "note": note}


# name -> (changes, what they give)
CASES: dict[str, tuple[list[Message], list[tuple[Any, ...]]]] = {
    "insert": ([Insert(1, ["1", "n", None])], [("keyed", 1, "c", None, row(1))]),
    "update": ([Update(1, None, None, ["1", "m", None])], [("keyed", 1, "u", None, row(1, "m"))]),
    "update under full identity": (
        [Update(1, None, ["1", "n", "x"], ["1", "m", "x"])],
        [("keyed", 1, "u", row(1, "n", "x"), row(1, "m", "x"))],
    ),
    "update of the key": (
        [Update(1, ["1", None, None], None, ["2", "n", None])],
        [
            ("keyed", 1, "d", row(1, "none"), None),
            ("keyed", 1, None, None, None),
            ("keyed", 2, "c", None, row(2)),
        ],
    ),
    "update of the identity's key, not of ours": (
        [Update(1, ["1", "a", None], None, ["1", "b", None])],
        [("keyed", 1, "u", None, row(1, "b"))],
    ),
    "delete": (
        [Delete(1, ["1", None, None], None)],
        [("keyed", 1, "d", row(1, "none"), None), ("keyed", 1, None, None, None)],
    ),
    "unchanged": (
        [Update(1, None, None, ["1", "n", UNCHANGED])],
        [("keyed", 1, "u", None, row(1, "n", "__debezium_unavailable_value"))],
    ),
    "unchanged, but in the old row": (
        [Update(1, None, ["1", "n", "long"], ["1", "m", UNCHANGED])],
        [("keyed", 1, "u", row(1, "n", "long"), row(1, "m", "long"))],
    ),
    "no key": (
        [Insert(2, ["5"]), Delete(2, None, ["5"])],
        [
            ("plain", None, "c", None, {"a": 5}),
            ("plain", None, "d", {"a": 5}, None),
            ("plain", None, None, None, None),
        ],
    ),
    "truncate is skipped": ([Truncate((1, 2), False, False)], []),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_changes(name: str) -> None:
    changes, records = CASES[name]
    assert shown(taken([KEYED, PLAIN, *transaction(*changes)])) == records


def test_the_envelope() -> None:
    (record,) = taken([KEYED, *transaction(Insert(1, ["1", "n", None]))])
    assert record.topic == "shop.public.keyed"
    assert record.value["source"] == {
        "version": "3.2.3.Final", "connector": "postgresql", "name": "shop", "ts_ms": 1_600_000_000_000,
        "snapshot": "false", "db": "db", "sequence": '[null,"102"]', "ts_us": 1_600_000_000_000_001,
        "ts_ns": 1_600_000_000_000_001_000, "schema": "public", "table": "keyed", "txId": 77, "lsn": 102, "xmin": None,
    }  # fmt: skip
    assert (record.value["ts_ms"], record.value["ts_us"], record.value["transaction"]) == (NOW.ms, NOW.us, None)
    assert record.value_schema is not None
    assert (record.value_schema.name, record.value_schema.version) == ("shop.public.keyed.Envelope", 2)


def test_an_update_of_the_key_names_the_other_in_headers() -> None:
    deleted, tombstone, created = taken([KEYED, *transaction(Update(1, ["1", None, None], None, ["2", "n", None]))])
    assert [(one.key, one.value) for one in deleted.headers] == [("__debezium.newkey", {"id": 2})]
    assert tombstone.headers == deleted.headers
    assert [(one.key, one.value) for one in created.headers] == [("__debezium.oldkey", {"id": 1})]


@pytest.mark.parametrize(
    ("settings", "operations"),
    [
        (SETTINGS, ["c", "u", "d", None]),
        (replace(SETTINGS, tombstones=False), ["c", "u", "d"]),
        (replace(SETTINGS, skipped=frozenset("c")), ["u", "d", None, "t"]),
        (replace(SETTINGS, skipped=frozenset("ud")), ["c", "t"]),
        (replace(SETTINGS, skipped=frozenset()), ["c", "u", "d", None, "t"]),
        (replace(SETTINGS, selection=Selection(tables=["public.plain"])), []),
        (replace(SETTINGS, selection=Selection(no_tables=["PUBLIC\\.k.*"])), []),
        (replace(SETTINGS, selection=Selection(no_schemas=["public"])), []),
    ],
)
def test_what_is_skipped(settings: RecordSettings, operations: list[str | None]) -> None:
    changes = [Insert(1, ["1", "n", None]), Update(1, None, None, ["1", "m", None]), Delete(1, ["1", None, None], None)]
    records = taken([KEYED, *transaction(*changes, Truncate((1,), False, False))], reader_with(settings))
    assert [one.value and one.value["op"] for one in records] == operations


def test_columns_that_are_not_selected() -> None:
    settings = replace(SETTINGS, selection=Selection(no_columns=["public\\.keyed\\.(id|note)"]))
    (record,) = taken([KEYED, *transaction(Insert(1, ["1", "n", "x"]))], reader_with(settings))
    assert record.value["after"] == {"id": 1, "name": "n"}  # the key is in any case


def test_a_table_that_changes_in_mid_stream() -> None:
    wider = KEYED._replace(columns=(*KEYED.columns, RelationColumn(False, "price", 1700, (9 << 16 | 2) + 4)))
    first, second = taken(
        [
            KEYED,
            *transaction(Insert(1, ["1", "n", None])),
            wider,
            *transaction(Insert(1, ["2", "n", None, "1.50"]), commit=2000),
        ]
    )
    assert list(first.value["after"]) == ["id", "name", "note"]
    assert list(second.value["after"]) == ["id", "name", "note", "price"]
    assert first.value_schema != second.value_schema


def test_a_row_of_another_width_or_relation_is_refused() -> None:
    with pytest.raises(DataError, match="2 columns"):
        taken([KEYED, *transaction(Insert(1, ["1", "n"]))])
    with pytest.raises(DataError, match="relation 9"):
        taken(transaction(Insert(9, [])))


STREAM: list[Message] = [
    KEYED,
    PLAIN,
    *transaction(Insert(1, ["1", "n", None]), Insert(2, ["1"]), Update(1, ["1", None, None], None, ["2", "n", None])),
    LogicalMessage(False, 1500, "p", b"between"),
    *transaction(Delete(1, ["2", None, None], None), LogicalMessage(True, 1600, "p", b"within"), commit=2000),
    *transaction(Insert(2, ["3"]), commit=3000),
]


@pytest.mark.parametrize("metadata", [False, True])
def test_a_restart_after_any_record_gives_the_rest_once(metadata: bool) -> None:
    """However far the slot goes back: to any Begin that is not after the stored position."""
    settings = replace(SETTINGS, transaction_metadata=metadata)
    whole = taken(STREAM, reader_with(settings))
    assert len(whole) == (16 if metadata else 10)
    offsets = [None, *(one.source_offset for one in whole)]
    for number, offset in enumerate(offsets):
        # A message's records are stored together.
        if offset is not None and number < len(whole) and whole[number].source_offset == offset:
            continue
        stored = read_offset(offset)
        again = taken(STREAM, reader_after(settings, stored))
        assert [one.value for one in again] == [one.value for one in whole[number:]]


def test_the_slot_may_forget_whole_transactions_only() -> None:
    reader = reader_with()
    ends = []
    for one in STREAM:
        reader.take(one, 1, NOW)
        ends.append(reader.complete_lsn)
    assert ends == [0] * 6 + [1008, 1500] + [1500] * 3 + [2008] * 3 + [3008]


def test_transactions_and_their_counts() -> None:
    settings = replace(SETTINGS, transaction_metadata=True)
    records = taken(
        [KEYED, PLAIN, *transaction(Insert(1, ["1", "n", None]), Insert(2, ["1"]), Insert(2, ["2"]))],
        reader_with(settings),
    )
    assert [one.value.get("status") for one in records] == ["BEGIN", None, None, None, "END"]
    assert [one.value["transaction"]["total_order"] for one in records[1:4]] == [1, 2, 3]
    assert [one.value["transaction"]["data_collection_order"] for one in records[1:4]] == [1, 1, 2]
    assert records[4].value["event_count"] == 3
    assert records[4].value["data_collections"] == [
        {"data_collection": "public.keyed", "event_count": 1},
        {"data_collection": "public.plain", "event_count": 2},
    ]


def test_logical_messages_by_their_prefixes() -> None:
    messages = [LogicalMessage(False, 10 + number, prefix, b"x") for number, prefix in enumerate(("audit", "other"))]
    for settings, prefixes in (
        (SETTINGS, ["audit", "other"]),
        (replace(SETTINGS, message_prefixes=("aud.*",)), ["audit"]),
        (replace(SETTINGS, no_message_prefixes=("audit",)), ["other"]),
        (replace(SETTINGS, skipped=frozenset("m")), []),
    ):
        records = taken(messages, reader_with(settings))
        assert [one.key["prefix"] for one in records] == prefixes
        assert all(one.topic == "shop.message" and one.value["op"] == "m" for one in records)


# --- message.key.columns ---------------------------------------------------------------------------------------

BY_NAME = replace(SETTINGS, selection=Selection(keys=[("public.k.*", ("name", "id")), (".*", ("a",))]))


def keys_of(*changes: Message) -> list[tuple[Any, Any]]:
    records = taken([KEYED, PLAIN, *transaction(*changes)], reader_with(BY_NAME))
    return [(one.key, one.value and one.value["op"]) for one in records]


def test_records_are_keyed_by_the_columns_that_are_named():
    found = keys_of(
        Insert(1, ["1", "n", None]),
        Update(1, None, ["1", "n", "x"], ["1", "n", "y"]),
        Update(1, None, ["1", "n", "y"], ["1", "m", "y"]),
        Delete(1, None, ["1", "m", "y"]),
        Insert(2, ["5"]),
    )
    n, m = {"name": "n", "id": 1}, {"name": "m", "id": 1}
    assert found == [(n, "c"), (n, "u"), (n, "d"), (n, None), (m, "c"), (m, "d"), (m, None), ({"a": 5}, "c")]


def test_a_key_that_the_log_lacks_is_refused_with_what_to_do():
    for change in (Delete(1, ["1", None, None], None), Update(1, ["1", None, None], None, ["2", "n", None])):
        with pytest.raises(DataError, match="REPLICA IDENTITY FULL"):
            keys_of(change)


def test_a_key_of_a_column_that_is_not_there_is_refused():
    reader = reader_with(replace(SETTINGS, selection=Selection(keys=[("public.keyed", ("colour",))])))
    with pytest.raises(DataError, match="has no column colour"):
        taken([KEYED, *transaction(Insert(1, ["1", "n", None]))], reader)
