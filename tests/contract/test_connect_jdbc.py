"""The JDBC source and sink with SQLite and PostgreSQL: every mode, crashes between steps, rows that are refused."""

import itertools
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
import sqlalchemy as sa
from support.connect_databases import postgres_database, sqlite_database
from support.connect_records import sink_record
from support.connect_tasks import StoredOffsets, polled, started_sink, started_source
from support.postgres import running_postgres
from support.waiting import eventually

from tidelog.connect.connectors.jdbc.sink import JdbcSinkConnector
from tidelog.connect.connectors.jdbc.source import JdbcSource
from tidelog.connect.converters.json_converter import JsonConverter
from tidelog.connect.converters.table import converter_plugin
from tidelog.connect.data.errors import ConnectError, DataError, RetriableConnectError
from tidelog.connect.data.schema import (
    BOOLEAN,
    BYTES,
    FLOAT64,
    INT32,
    INT64,
    STRING,
    check_value,
    date_schema,
    decimal_schema,
    struct_of,
    timestamp_schema,
)
from tidelog.log.lake import Lake

P0 = ("test", 0)
NAMES = (f"jdbc{number}" for number in itertools.count())


@pytest.fixture(scope="module")
def postgres():
    with running_postgres() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request, tmp_path):
    if request.param == "sqlite":
        found = sqlite_database(tmp_path)
    else:
        found = postgres_database(request.getfixturevalue("postgres"), next(NAMES))
    yield found
    found.engine.dispose()


def source_config(database, **others):
    config = {"connection.url": database.url, "topic.prefix": "db-", "mode": "bulk", "poll.interval.ms": "0"}
    return config | {key.replace("_", "."): value for key, value in others.items()}


# --- source ------------------------------------------------------------------------------------------------


def ids(records):
    return [record.value["id"] for record in records]


def test_bulk_gives_whole_tables_at_each_poll(database):
    database.run("CREATE TABLE a (id INTEGER)", "INSERT INTO a VALUES (1), (2)", "CREATE TABLE b (id INTEGER)")
    task, _ = started_source(JdbcSource, source_config(database, table_whitelist="a"))
    assert [ids(task.poll()) for _ in range(2)] == [[1, 2], [1, 2]]
    assert {record.topic for record in task.poll()} == {"db-a"}
    task.stop()


class Reconfigured:
    """A connector's context that counts requests for other tasks."""

    requests = 0

    def request_task_reconfiguration(self):
        self.requests += 1

    def raise_error(self, error):
        raise error


def test_tables_that_come_while_it_runs_are_read_too(database):
    database.run("CREATE TABLE a (id INTEGER)", "INSERT INTO a VALUES (1)", "CREATE TABLE skip (id INTEGER)")
    connector, context = JdbcSource(), Reconfigured()
    connector.start(source_config(database, table_blacklist="skip", table_poll_interval_ms="20"), context)
    try:
        assert [one["tables"].rpartition(".")[2] for one in connector.task_configs(3)] == ["a"]
        database.run("CREATE TABLE b (id INTEGER)")
        eventually(lambda: context.requests, "the worker hears of it")
        assert [one["tables"].rpartition(".")[2] for one in connector.task_configs(3)] == ["a", "b"]
        assert context.requests == 1
        database.run("DROP TABLE b")
        eventually(lambda: context.requests == 2, "and of one that goes")
        assert [one["tables"].rpartition(".")[2] for one in connector.task_configs(3)] == ["a"]
    finally:
        connector.stop()
    assert not connector._watching.is_alive()


def test_incrementing_gives_each_row_once_through_crashes(database):
    stored = StoredOffsets()
    database.run("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT)")
    database.run("INSERT INTO t VALUES (-3, 'a'), (2, NULL), (5, 'c')")
    config = source_config(database, mode="incrementing", batch_max_rows="2")
    task, _ = started_source(JdbcSource, config, stored)
    first = task.poll()
    assert ids(first) == [-3, 2]
    stored.keep(first)
    task.poll()  # read, and lost with the worker
    task.stop()
    database.run("INSERT INTO t VALUES (9, 'd')")
    task, _ = started_source(JdbcSource, config, stored)
    found = polled(task, stored)
    assert ids(found) == [5, 9]
    assert found[0].source_offset == {"incrementing": 5}
    assert found[0].value_schema.name == "t"
    check_value(found[0].value_schema, found[0].value)
    task.stop()


def test_timestamp_mode_loses_no_row_of_a_time_and_waits_for_late_ones(database):
    stored = StoredOffsets()
    database.run("CREATE TABLE t (id INTEGER, at TIMESTAMP NOT NULL)")
    base = datetime.now(UTC).replace(tzinfo=None, microsecond=0) - timedelta(hours=1)
    table = sa.Table("t", sa.MetaData(), autoload_with=database.engine)

    def insert(number, seconds):
        with database.engine.begin() as connection:
            connection.execute(table.insert().values(id=number, at=base + timedelta(seconds=seconds)))

    for number, seconds in [(1, 0), (2, 1), (3, 1), (4, 1), (5, 3600 + 3600)]:
        insert(number, seconds)
    config = source_config(database, mode="timestamp", timestamp_column_name="at", batch_max_rows="2")
    task, _ = started_source(JdbcSource, config, stored)
    first = task.poll()
    assert ids(first) == [1, 2]
    stored.keep(first)
    task.stop()  # amid the rows of one time: they come again
    task, _ = started_source(JdbcSource, config, stored)
    assert ids(polled(task, stored)) == [2, 3, 4]  # 5 is of the future
    assert polled(task, stored) == []
    task.stop()
    insert(6, 1_800)
    delayed = config | {"timestamp.delay.interval.ms": str(3_600_000)}
    task, _ = started_source(JdbcSource, delayed, stored)
    assert polled(task, stored) == []
    task.stop()
    task, _ = started_source(JdbcSource, config, stored)
    assert ids(polled(task, stored)) == [6]
    task.stop()


def test_timestamp_and_incrementing_gives_changes_once(database):
    stored = StoredOffsets()
    database.run(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, at TIMESTAMP NOT NULL, name TEXT)",
        "INSERT INTO t VALUES (1, '2026-01-01 00:00:00.000000', 'a'), (2, '2026-01-01 00:00:00.000000', 'b')",
    )
    config = source_config(
        database, mode="timestamp+incrementing", timestamp_column_name="at", incrementing_column_name="id",
        batch_max_rows="1",
    )  # fmt: skip
    task, _ = started_source(JdbcSource, config, stored)
    stored.keep(task.poll())
    task.stop()
    task, _ = started_source(JdbcSource, config, stored)
    assert ids(polled(task, stored)) == [2]
    database.run("UPDATE t SET name = 'changed', at = '2026-01-01 00:00:01.500000' WHERE id = 1")
    found = polled(task, stored)
    assert [record.value["name"] for record in found] == ["changed"]
    assert found[0].source_offset["timestamp_nanos"] == 500_000_000
    task.stop()


def test_a_query_takes_the_place_of_tables(database):
    stored = StoredOffsets()
    database.run("CREATE TABLE t (id INTEGER, kind TEXT)", "INSERT INTO t VALUES (1, 'x'), (2, 'y'), (3, 'x')")
    config = source_config(
        database, mode="incrementing", incrementing_column_name="id", query="SELECT id, kind FROM t WHERE kind = 'x'"
    )
    task, _ = started_source(JdbcSource, config, stored)
    found = polled(task, stored)
    assert [record.value for record in found] == [{"id": 1, "kind": "x"}, {"id": 3, "kind": "x"}]
    assert {record.topic for record in found} == {"db-"}
    task.stop()
    database.run("INSERT INTO t VALUES (4, 'x')")
    task, _ = started_source(JdbcSource, config, stored)
    assert ids(polled(task, stored)) == [4]
    task.stop()


def test_every_converter_takes_the_rows_of_a_table(database, tmp_path):
    database.run("CREATE TABLE t (id INTEGER, name TEXT)", "INSERT INTO t VALUES (1, 'a')")
    task, _ = started_source(JdbcSource, source_config(database, table_whitelist="t"))
    (record,) = task.poll()
    task.stop()
    with Lake(str(tmp_path / "lake")) as lake:
        for name in ("json", "avro", "json-schema", "protobuf"):
            converter = converter_plugin(name).make({}, False, lake)
            data = converter.from_connect(name, record.value_schema, record.value)
            assert converter.to_connect(name, data)[1] == {"id": 1, "name": "a"}
    assert JsonConverter(schemas=False).from_connect("t", None, record.value) == b'{"id":1,"name":"a"}'


def test_a_query_without_end_is_read_in_parts(database):
    endless = "WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n) SELECT id, 'x' AS kind FROM n"
    task, _ = started_source(JdbcSource, source_config(database, query=endless, batch_max_rows="3"))
    assert [ids(task.poll()) for _ in range(2)] == [[1, 2, 3], [4, 5, 6]]
    task.stop()


@pytest.mark.parametrize("query", ["", "SELECT id, at FROM t"])
def test_times_without_a_zone_are_of_the_databases_one(database, query):
    stored = StoredOffsets()
    database.run("CREATE TABLE t (id INTEGER NOT NULL, at TIMESTAMP NOT NULL)")
    database.run("INSERT INTO t VALUES (1, '2026-07-01 12:00:00')")
    others = {"query": query} if query else {"table_whitelist": "t"}
    config = source_config(
        database, mode="timestamp+incrementing", timestamp_column_name="at", incrementing_column_name="id",
        db_timezone="Europe/Berlin", **others,
    )  # fmt: skip
    task, _ = started_source(JdbcSource, config, stored)
    (found,) = polled(task, stored)
    ten = datetime(2026, 7, 1, 10, tzinfo=UTC)
    if database.engine.dialect.name != "sqlite" or not query:  # a query to SQLite gives texts
        assert found.value["at"] == ten
    assert found.source_offset["timestamp"] == int(ten.timestamp() * 1000)
    database.run("INSERT INTO t VALUES (2, '2026-07-01 12:00:01'), (3, '2026-07-01 11:59:00')")
    assert ids(polled(task, stored)) == [2]
    task.stop()


def test_names_without_quotes_are_found_whatever_their_case(database):
    database.run("CREATE TABLE Orders (Id INTEGER PRIMARY KEY)", "INSERT INTO Orders VALUES (1)")
    given = {"mode": "incrementing", "table_whitelist": "ORDERS", "incrementing_column_name": "ID"}
    with pytest.raises(ConnectError, match="no table ORDERS"):
        started_source(JdbcSource, source_config(database, **given))
    task, _ = started_source(JdbcSource, source_config(database, quote_sql_identifiers="never", **given))
    assert len(polled(task)) == 1
    task.stop()


def test_values_of_every_type_are_of_their_schema(database):
    database.run(
        "CREATE TABLE t (i INTEGER, n NUMERIC(10, 2), f DOUBLE PRECISION, b BOOLEAN, d DATE, m TIMESTAMP, s TEXT)",
        "INSERT INTO t VALUES (1, 1.5, 0.5, true, '2026-01-02', '2026-01-02 03:04:05.000000', 'x')",
        "INSERT INTO t VALUES (NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
    )
    task, _ = started_source(JdbcSource, source_config(database))
    full, empty = task.poll()
    assert full.value == {
        "i": 1, "n": Decimal("1.50"), "f": 0.5, "b": True, "d": datetime(2026, 1, 2).date(),
        "m": datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "s": "x",
    }  # fmt: skip
    check_value(full.value_schema, full.value)
    check_value(empty.value_schema, empty.value)
    assert {*empty.value.values()} == {None}
    task.stop()


def test_columns_of_modes_must_be_there_and_not_null(database):
    database.run("CREATE TABLE t (id INTEGER, at TIMESTAMP)")
    for others, why in [
        ({"mode": "incrementing", "incrementing_column_name": "id"}, "may be null"),
        ({"mode": "timestamp", "timestamp_column_name": "at"}, "may be null"),
        ({"mode": "incrementing"}, "0 whole numbers in its primary key"),
        ({"mode": "incrementing", "incrementing_column_name": "no"}, "has no column 'no'"),
    ]:
        with pytest.raises(ConnectError, match=why):
            started_source(JdbcSource, source_config(database, **others))
    config = source_config(database, mode="incrementing", incrementing_column_name="id", validate_non_null="false")
    started_source(JdbcSource, config)[0].stop()
    with pytest.raises(ConnectError, match="has no table no"):
        started_source(JdbcSource, source_config(database, table_whitelist="no"))


def test_tables_are_shared_among_tasks(database):
    for name in "abc":
        database.run(f"CREATE TABLE {name} (id INTEGER)", f"INSERT INTO {name} VALUES (1)")
    shares = []
    for number in range(2):
        task, _ = started_source(JdbcSource, source_config(database), None, 2, number)
        shares.append({record.topic for _ in range(2) for record in task.poll()})
        task.stop()
    assert [len(share) for share in shares] == [1, 1]  # the first table that is due, at each poll
    connector = JdbcSource()
    connector.start(source_config(database), None)
    assert [config["tables"] for config in connector.task_configs(2)] == ["a,c", "b"]
    assert [config["tables"] for config in connector.task_configs(9)] == ["a", "b", "c"]


# --- sink --------------------------------------------------------------------------------------------------

ROW = struct_of({"id": INT32, "name": STRING.as_optional()})


def sink_config(database, **others):
    config = {"name": "c", "connection.url": database.url, "auto.create": "true", "pk.mode": "record_key",
              "pk.fields": "id", "insert.mode": "upsert", "delete.enabled": "true"}  # fmt: skip
    return config | {key.replace("_", "."): value for key, value in others.items()}


def change(offset, key, name="n", schema=ROW, **values):
    record = sink_record(schema, {"id": key, "name": name, **values}, offset=offset)
    return record.but(key={"id": key}, key_schema=struct_of({"id": INT32}))


def tombstone(offset, key):
    return change(offset, key).but(value=None, value_schema=None)


def test_upserts_and_deletes_leave_the_newest_of_each_key(database):
    task, _ = started_sink(JdbcSinkConnector, sink_config(database), [P0])
    task.put([change(0, 1, "a"), change(1, 2, "b"), change(2, 1, "c"), tombstone(3, 2), change(4, 3, None)])
    assert database.rows("SELECT id, name FROM test ORDER BY id") == [(1, "c"), (3, None)]
    task.put([tombstone(5, 3), change(6, 2, "d"), tombstone(7, 1), change(8, 1, "e")])
    assert database.rows("SELECT id, name FROM test ORDER BY id") == [(1, "e"), (2, "d")]
    task.stop()


def test_rows_have_the_databases_time_zone_and_names_without_quotes(database):
    schema = struct_of({"Id": INT32, "At": timestamp_schema()})
    record = sink_record(schema, {"Id": 1, "At": datetime(2026, 7, 1, 10, tzinfo=UTC)}, offset=0)
    config = sink_config(
        database, pk_mode="record_value", pk_fields="Id", delete_enabled="false", auto_create="true",
        table_name_format="Made", db_timezone="Europe/Berlin", quote_sql_identifiers="never",
    )  # fmt: skip
    task, _ = started_sink(JdbcSinkConnector, config, [P0])
    task.put([record, record.but(offset=1)])
    assert [str(row[0])[:19] for row in database.rows("SELECT at FROM made")] == ["2026-07-01 12:00:00"]
    task.stop()


@pytest.mark.parametrize("crash", ["before the commit", "after the commit"])
def test_rows_and_offsets_are_one_transaction(database, crash, monkeypatch):
    config = sink_config(database, insert_mode="insert", pk_mode="none", pk_fields="", delete_enabled="false")
    task, _ = started_sink(JdbcSinkConnector, config, [P0])
    task.put([change(0, 1)])
    if crash == "before the commit":
        monkeypatch.setattr(task, "_advance", lambda *_: (_ for _ in ()).throw(RuntimeError("crash")))
        with pytest.raises(RuntimeError, match="crash"):
            task.put([change(1, 2), change(2, 3)])
    else:
        task.put([change(1, 2), change(2, 3)])
    task.stop()
    # Another worker, which the group's committed offset has begin at 0.
    task, context = started_sink(JdbcSinkConnector, config, [P0])
    assert context.seeks == {P0: 1 if crash == "before the commit" else 3}
    task.put([change(offset, offset + 1) for offset in range(4)])
    assert database.rows("SELECT id FROM test ORDER BY id") == [(1,), (2,), (3,), (4,)]
    task.stop()


def test_a_task_that_was_replaced_writes_nothing(database):
    config = sink_config(database, insert_mode="insert", pk_mode="none", pk_fields="", delete_enabled="false")
    old, _ = started_sink(JdbcSinkConnector, config, [P0])
    old.put([change(0, 1)])
    new, _ = started_sink(JdbcSinkConnector, config, [P0])
    new.put([change(1, 2)])
    with pytest.raises(ConnectError, match="Another task of c has written test-0"):
        old.put([change(1, 2), change(2, 3)])
    assert database.rows("SELECT id FROM test ORDER BY id") == [(1,), (2,)]
    old.stop()
    new.stop()


def test_rows_that_are_refused_are_reported_and_the_others_written(database):
    database.run("CREATE TABLE test (id INTEGER PRIMARY KEY, name TEXT NOT NULL)")
    task, context = started_sink(JdbcSinkConnector, sink_config(database), [P0])
    no_key = change(3, 4).but(key=None)
    task.put([change(0, 1), change(1, 2, None), change(2, 3), no_key])
    assert database.rows("SELECT id FROM test ORDER BY id") == [(1,), (3,)]
    assert sorted(record.offset for record, _ in context.refused) == [1, 3]
    assert {type(error) for _, error in context.refused} == {ConnectError, DataError}
    task.stop()
    task, context = started_sink(JdbcSinkConnector, sink_config(database), [P0], tolerant=False)
    assert context.seeks == {P0: 4}
    with pytest.raises(ConnectError, match="refused a row of test"):
        task.put([change(4, 5), change(5, 6, None)])
    assert database.rows("SELECT id FROM test ORDER BY id") == [(1,), (3,)]
    task.stop()


def test_tables_are_made_and_evolved_when_asked(database):
    fields = ({"name": STRING, "b": BOOLEAN, "d": decimal_schema(2), "t": timestamp_schema(),
                        "day": date_schema(), "raw": BYTES, "f": FLOAT64})  # fmt: skip
    schema = struct_of({"id": INT32} | {name: kind.as_optional() for name, kind in fields.items()})
    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    values = {"b": True, "d": Decimal("1.25"), "t": moment, "day": moment.date(), "raw": b"\x01", "f": 0.5}
    task, _ = started_sink(JdbcSinkConnector, sink_config(database, auto_evolve="true"), [P0])
    task.put([change(0, 1, "n", schema, **values)])
    evolved = struct_of({"id": INT32, "name": STRING, "extra": INT64.as_optional()})
    task.put([change(1, 1, "m", evolved, extra=7)])
    assert database.rows("SELECT name, extra FROM test") == [("m", 7)]
    required = struct_of({"id": INT32, "name": STRING, "more": INT64})
    with pytest.raises(ConnectError, match="its field is required and has no default"):
        task.put([change(2, 1, "m", required, more=7)])
    task.stop()
    task, _ = started_source(JdbcSource, source_config(database, table_whitelist="test"))
    found = task.poll()[0].value
    assert {name: found[name] for name in ("t", "raw", "f")} == {"t": moment, "raw": b"\x01", "f": 0.5}
    assert (found["d"], found["day"], found["b"]) == (Decimal("1.25"), moment.date(), True)
    task.stop()


@pytest.mark.parametrize(
    ("others", "why"), [({"auto_create": "false"}, "The table test is missing"), ({}, "has no column 'extra'")]
)
def test_tables_are_left_alone_unless_asked(database, others, why):
    if "auto_create" not in others:
        database.run("CREATE TABLE test (id INTEGER PRIMARY KEY, name TEXT)")
    task, _ = started_sink(JdbcSinkConnector, sink_config(database, **others), [P0])
    with pytest.raises(ConnectError, match=why):
        task.put([change(0, 1, "m", struct_of({"id": INT32, "name": STRING, "extra": INT64}), extra=1)])
    task.stop()


def test_update_mode_changes_rows_that_are_there(database):
    database.run("CREATE TABLE test (id INTEGER PRIMARY KEY, name TEXT)", "INSERT INTO test VALUES (1, 'old')")
    task, _ = started_sink(JdbcSinkConnector, sink_config(database, insert_mode="update"), [P0])
    task.put([change(0, 1, "a"), change(1, 2, "b"), change(2, 1, "new")])
    assert database.rows("SELECT id, name FROM test") == [(1, "new")]
    task.stop()


def test_without_an_offsets_table_upserts_are_idempotent(database):
    config = sink_config(database, offsets_table_name="")
    task, context = started_sink(JdbcSinkConnector, config, [P0])
    assert context.seeks == {}
    for _ in range(2):
        task.put([change(0, 1, "a"), change(1, 1, "b")])
    assert database.rows("SELECT id, name FROM test") == [(1, "b")]
    assert not sa.inspect(database.engine).has_table("tidelog_connect_offsets")
    task.stop()


def test_a_database_that_is_away_is_tried_again_a_number_of_times(database, monkeypatch):
    task, context = started_sink(JdbcSinkConnector, sink_config(database, max_retries="2", retry_backoff_ms="50"), [P0])

    def away(*_):
        raise sa.exc.OperationalError("write", {}, Exception("server closed the connection"))

    with monkeypatch.context() as patch:
        patch.setattr(task, "_write_rows", away)
        for _ in range(2):
            with pytest.raises(RetriableConnectError, match="server closed the connection"):
                task.put([change(0, 1)])
        with pytest.raises(ConnectError, match="server closed") as raised:
            task.put([change(0, 1)])
        assert not raised.value.retriable
    assert context.waits == [0.05, 0.05]
    task.put([change(0, 1)])
    assert database.rows("SELECT id FROM test") == [(1,)]
    task.stop()


def test_a_database_that_does_not_answer_is_named(tmp_path):
    with pytest.raises(ConnectError, match="doesn't answer"):
        started_sink(JdbcSinkConnector, {"connection.url": f"jdbc:sqlite:{tmp_path}/no/folder.db"})
