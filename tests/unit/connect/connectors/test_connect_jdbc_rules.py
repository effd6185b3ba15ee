"""JDBC's rules without a database: addresses, offsets of rows, rows of records, keys that contradict each other."""

from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st
from support.connect_records import sink_record

from tidelog.connect.connectors.jdbc.databases import database_url, engine_of
from tidelog.connect.connectors.jdbc.queries import NewRows, RowOffset, chosen_tables
from tidelog.connect.connectors.jdbc.sink import JdbcSinkConnector
from tidelog.connect.connectors.jdbc.sink_rows import KAFKA_COLUMNS, RowRule, newest, runs_of
from tidelog.connect.connectors.jdbc.source import JdbcSource
from tidelog.connect.connectors.jdbc.sql_types import column_schema
from tidelog.connect.data.errors import DataError
from tidelog.connect.data.schema import (
    BOOLEAN,
    BYTES,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    date_schema,
    decimal_schema,
    struct_of,
    time_schema,
    timestamp_schema,
)

T0 = datetime(2026, 1, 2, 3, 4, 5, 678_901, UTC)


@pytest.mark.parametrize(
    ("text", "url"),
    [
        (
            "jdbc:postgresql://h:1/db?user=u&password=p&sslmode=require",
            "postgresql+psycopg2://u:p@h:1/db?sslmode=require",
        ),
        ("jdbc:postgresql://h/db", "postgresql+psycopg2://h/db"),
        ("jdbc:sqlite:/tmp/a.db", "sqlite:////tmp/a.db"),
        ("jdbc:sqlite:a.db", "sqlite:///a.db"),
        ("jdbc:mysql://h:3306/db", "mysql+pymysql://h:3306/db"),
        ("postgresql://u:p@h/db", "postgresql://u:p@h/db"),
    ],
)
def test_addresses_in_both_forms(text, url):
    assert database_url(text).render_as_string(hide_password=False) == url


@pytest.mark.parametrize("text", ["jdbc:oracle:thin:@h", "jdbc:postgresql", "nothing"])
def test_addresses_of_unknown_databases_are_refused(text):
    with pytest.raises(ValueError, match=r"no driver|parse"):
        database_url(text)


@given(st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1)), st.none() | st.integers(0, 1 << 62))
def test_offsets_are_read_as_they_were_stored(moment, number):
    offset = RowOffset(moment.replace(tzinfo=UTC), number)
    assert RowOffset.of(offset.stored()) == offset


def test_offsets_of_other_workers_have_milliseconds_alone():
    assert RowOffset.of({"timestamp": 1_500}) == RowOffset(datetime(1970, 1, 1, 0, 0, 1, 500_000, UTC))
    assert RowOffset.of(None) == RowOffset()


def row(seconds=None, number=None):
    return {"at": None if seconds is None else T0 + timedelta(seconds=seconds), "id": number}


def test_by_times_alone_a_row_has_the_time_before_while_others_share_its_own():
    new_rows = NewRows((sa.column("at"),))
    rows = [row(1), row(2), row(2), row(2), row(3)]
    before = RowOffset(T0)
    offsets = [offset.moment for _, offset in new_rows.offsets(rows, before)]
    first, second, third = (T0 + timedelta(seconds=seconds) for seconds in (1, 2, 3))
    assert offsets == [first, first, first, second, third]
    assert [offset for _, offset in new_rows.offsets([row(2), row(2)], before)] == [before, RowOffset(second)]


def test_with_numbers_every_row_has_an_offset_of_its_own():
    new_rows = NewRows((sa.column("at"),), sa.column("id"))
    assert [offset for _, offset in new_rows.offsets([row(2, 1), row(2, 2)], RowOffset())] == [
        RowOffset(T0 + timedelta(seconds=2), 1),
        RowOffset(T0 + timedelta(seconds=2), 2),
    ]
    assert [offset.number for _, offset in NewRows((), sa.column("id")).offsets([row(None, 7)], RowOffset())] == [7]


@pytest.mark.parametrize("bad", [{"at": 1.5, "id": 1}, {"at": T0, "id": "x"}, {"at": T0, "id": None}])
def test_columns_that_are_no_times_or_numbers_are_refused(bad):
    with pytest.raises(DataError, match=r"is no time|is no whole number"):
        list(NewRows((sa.column("at"),), sa.column("id")).offsets([bad], RowOffset()))


def test_lists_choose_tables_with_and_without_schema():
    found = [("b", "t1"), (None, "t2"), ("a", "t1")]
    assert chosen_tables(found, [], []) == [(None, "t2"), ("a", "t1"), ("b", "t1")]
    assert chosen_tables(found, ["a.t1", "t2"], []) == [(None, "t2"), ("a", "t1")]
    assert chosen_tables(found, [], ["t1"]) == [(None, "t2")]


# (type, dialect, numeric.mapping, schema)
TYPES = [
    (sa.Boolean(), "postgresql", "none", BOOLEAN),
    (sa.SmallInteger(), "postgresql", "none", INT16),
    (sa.Integer(), "postgresql", "none", INT32),
    (sa.Integer(), "sqlite", "none", INT64),
    (sa.BigInteger(), "postgresql", "none", INT64),
    (sa.REAL(), "postgresql", "none", FLOAT32),
    (sa.REAL(), "sqlite", "none", FLOAT64),
    (sa.Double(), "postgresql", "none", FLOAT64),
    (sa.Numeric(10, 2), "postgresql", "none", decimal_schema(2)),
    (sa.Numeric(2, 0), "postgresql", "precision_only", INT8),
    (sa.Numeric(4, 0), "postgresql", "precision_only", INT16),
    (sa.Numeric(9, 0), "postgresql", "best_fit", INT32),
    (sa.Numeric(18, 0), "postgresql", "best_fit", INT64),
    (sa.Numeric(19, 0), "postgresql", "best_fit", decimal_schema(0)),
    (sa.Numeric(10, 2), "postgresql", "precision_only", decimal_schema(2)),
    (sa.Numeric(10, 2), "postgresql", "best_fit", FLOAT64),
    (sa.Numeric(30, 2), "postgresql", "best_fit_eager_double", FLOAT64),
    (sa.Numeric(), "postgresql", "none", STRING),
    (sa.DateTime(), "postgresql", "none", timestamp_schema()),
    (sa.Date(), "postgresql", "none", date_schema()),
    (sa.Time(), "postgresql", "none", time_schema()),
    (sa.LargeBinary(), "postgresql", "none", BYTES),
    (sa.Text(), "postgresql", "none", STRING),
    (sa.JSON(), "postgresql", "none", STRING),
    (sa.Uuid(), "postgresql", "none", STRING),
]


@pytest.mark.parametrize(("kind", "dialect", "mapping", "schema"), TYPES)
def test_types_of_columns(kind, dialect, mapping, schema):
    found, read = column_schema(kind, dialect, mapping)
    assert found == schema
    assert read(None) is None


# --- rows of records ---------------------------------------------------------------------------------------

VALUE = struct_of({"id": INT32, "name": STRING.as_optional()})


def rule(mode="none", fields=(), whitelist=(), deletes=False, table="${topic}"):
    return RowRule(table, mode, fields, whitelist, deletes)


def record(value=None, key=None, key_schema=None, offset=5):
    found = sink_record(VALUE, value or {"id": 1, "name": "n"}, offset=offset)
    return found.but(key=key, key_schema=key_schema)


@pytest.mark.parametrize(
    ("made_by", "keys", "values"),
    [
        (rule(), (), {"id": 1, "name": "n"}),
        (rule(whitelist=["name"]), (), {"name": "n"}),
        (rule("kafka"), KAFKA_COLUMNS, dict(zip(KAFKA_COLUMNS, ("test", 0, 5), strict=True)) | {"id": 1, "name": "n"}),
        (rule("kafka", ["t", "p", "o"]), ("t", "p", "o"), {"t": "test", "p": 0, "o": 5, "id": 1, "name": "n"}),
        (rule("record_value", ["id"]), ("id",), {"id": 1, "name": "n"}),
        (rule("record_value"), ("id", "name"), {"id": 1, "name": "n"}),
        (rule("record_key", ["k"]), ("k",), {"k": 9, "id": 1, "name": "n"}),
        (rule("record_key", ["id"], ["name"]), ("id",), {"id": 9, "name": "n"}),
    ],
)
def test_rows_have_keys_by_pk_mode(made_by, keys, values):
    found = made_by.row(record(key=9, key_schema=INT32))
    assert (found.table, found.keys, found.values) == ("test", keys, values)
    assert found.key == tuple(values[name] for name in keys)
    assert [*found.columns] == [*values]


def test_rows_of_struct_keys_and_tombstones():
    schema = struct_of({"a": INT32, "b": STRING})
    keyed = record(key={"a": 1, "b": "x"}, key_schema=schema)
    assert rule("record_key").row(keyed).key == (1, "x")
    assert rule("record_key", ["b"], table="s.${topic}").row(keyed).table == "s.test"
    tombstone = keyed.but(value=None, value_schema=None)
    deleted = rule("record_key", deletes=True).row(tombstone)
    assert (deleted.values, deleted.key, deleted.keys) == (None, (1, "x"), ("a", "b"))
    with pytest.raises(DataError, match=r"delete\.enabled is false"):
        rule("record_key").row(tombstone)


@pytest.mark.parametrize(
    ("made_by", "bad"),
    [
        (rule(), sink_record(None, {"id": 1})),
        (rule(), sink_record(INT32, 1)),
        (rule("record_key", ["k"]), record()),
        (rule("record_key"), record(key=1, key_schema=INT32)),
        (rule("record_key", ["c"]), record(key={"a": 1}, key_schema=struct_of({"a": INT32}))),
        (rule("record_value", ["c"]), record()),
    ],
)
def test_records_without_a_row_are_refused(made_by, bad):
    with pytest.raises(DataError, match=r"at offset \d of test-0"):
        made_by.row(bad)


def test_runs_keep_the_order_and_upserts_the_newest():
    made_by = rule("record_key", ["k"], deletes=True)
    rows = [made_by.row(record(key=key, key_schema=INT32)) for key in (1, 2, 1)]
    deleted = made_by.row(record(key=1, key_schema=INT32).but(value=None, value_schema=None))
    assert [len(run) for run in runs_of([*rows, deleted, rows[0]], 100)] == [3, 1, 1]
    assert [len(run) for run in runs_of(rows, 2)] == [2, 1]
    assert [found.key for found in newest(rows)] == [(1,), (2,)]
    assert newest(rows)[0] is rows[2]


# --- keys that contradict each other -----------------------------------------------------------------------

SOURCE = {"connection.url": "sqlite://", "mode": "bulk", "topic.prefix": "p-"}
SINK = {"connection.url": "sqlite://"}


@pytest.mark.parametrize(
    ("connector", "config", "key"),
    [
        (JdbcSource, SOURCE | {"mode": "timestamp"}, "timestamp.column.name"),
        (JdbcSource, SOURCE | {"mode": "incrementing", "query": "SELECT 1"}, "incrementing.column.name"),
        (JdbcSource, SOURCE | {"table.whitelist": "a", "table.blacklist": "b"}, "table.blacklist"),
        (JdbcSource, SOURCE | {"table.whitelist": "a", "query": "SELECT 1"}, "query"),
        (JdbcSource, SOURCE | {"mode": "no"}, "mode"),
        (JdbcSource, SOURCE | {"connection.url": "jdbc:oracle:x"}, "connection.url"),
        (JdbcSource, SOURCE | {"dialect.name": "OracleDatabaseDialect"}, "dialect.name"),
        (JdbcSource, SOURCE | {"db.timezone": "Mars/Olympus"}, "db.timezone"),
        (JdbcSource, SOURCE | {"quote.sql.identifiers": "sometimes"}, "quote.sql.identifiers"),
        (JdbcSource, {"mode": "bulk", "topic.prefix": ""}, "connection.url"),
        (JdbcSinkConnector, SINK | {"delete.enabled": "true"}, "delete.enabled"),
        (JdbcSinkConnector, SINK | {"insert.mode": "upsert"}, "pk.mode"),
        (JdbcSinkConnector, SINK | {"pk.mode": "kafka", "pk.fields": "a"}, "pk.fields"),
        (JdbcSinkConnector, SINK | {"pk.fields": "a"}, "pk.fields"),
        (JdbcSinkConnector, SINK | {"insert.mode": "merge"}, "insert.mode"),
    ],
)
def test_validation_names_the_key(connector, config, key):
    assert [value.name for value in connector.validate(config) if value.errors] == [key]


def test_a_dialect_goes_over_the_address():
    for name, found in (("", "postgresql"), ("PostgreSqlDatabaseDialect", "postgresql")):
        url = "jdbc:postgresql://h/d" if not name else "jdbc:mysql://h/d"
        given = SINK | {"connection.url": url, "dialect.name": name}
        assert engine_of(JdbcSinkConnector.config_def().parse(given)).dialect.name == found


def test_good_configurations_have_no_errors():
    good = SOURCE | {"mode": "timestamp+incrementing", "timestamp.column.name": "a,b", "incrementing.column.name": "id"}
    assert not [value for value in JdbcSource.validate(good) if value.errors]
    assert JdbcSource.exactly_once_support(good).value == "SUPPORTED"
    assert JdbcSource.exactly_once_support(SOURCE).value == "UNSUPPORTED"
