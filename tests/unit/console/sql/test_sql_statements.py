"""What queries may do: statements at DuckDB as the process of a query has it, and a lake whose records it is given."""

import orjson
import pytest
from support.logs import memory_lake
from support.value_subjects import Subjects, avro_record, framed_as

from tidelog.console.sql.child import RefusedQueryError, connected, run_query
from tidelog.console.sql.tables import topic_table
from tidelog.log.lake import Lake

duckdb = pytest.importorskip("duckdb")
secret_table = ["a variable of Python that DuckDB must not find"]


class _Console:
    """The other side of a query, in this process: what `SqlSandbox` does."""

    def __init__(self, lake, *readable):
        self.lake, self.readable = lake, readable
        self.files, self.columns, self.rows, self.done = [], [], [], None

    def say(self, message):
        self.columns += message.get("columns", [])
        self.rows += message.get("rows", [])
        self.done = message if "done" in message else self.done

    def ask(self, message):
        if "topics" in message:
            return orjson.dumps(self.readable)
        found = [topic_table(n, self.lake.peek(n)) for n in message["tables"] if n in self.readable]
        documents = []
        for one in found:
            documents.append(one.document(len(self.files)))
            self.files += one.files
        return orjson.dumps(documents)

    def read(self, number, start, size):
        with self.lake.storage.open(self.files[number].path) as file:
            file.seek(start)
            return file.read(size)


@pytest.fixture(scope="module")
def lake():
    lake = Lake("memory://sql")
    lake.create_topic("orders", 2)
    for part in range(2):
        lake.topic("orders").append([{"value": {"n": n}, "key": str(n), "partition": part} for n in range(5)])
    lake.topic("orders").append([{"value": {"n": 5}, "key": "5", "partition": 0, "headers": {"h": "x"}}])
    lake.delete_records("orders", {0: 2})
    lake.create_topic("my.topic", 1)
    lake.create_topic("secret", 1)
    lake.topic("secret").append([{"value": "plan"}])
    return lake


def rows_of(lake, query, most=100):
    console = _Console(lake, "orders", "my.topic")
    run_query(console, connected(256 << 20, 2), query, most)
    return console.rows


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ('SELECT partition, "offset", decode(value) FROM orders WHERE partition = 1 LIMIT 1', [["1", "0", '{"n":0}']]),
        ("FROM orders SELECT count(*)", [["9"]]),  # not those before the log's start
        ('SELECT min("offset") FROM orders WHERE partition = 0', [["2"]]),
        ("SELECT sum(CAST(decode(value)->>'$.n' AS int)) FROM main.orders", [["24"]]),
        ("SELECT key, value FROM orders WHERE key = '5'", [["5", '{"n":5}']]),
        ("SELECT headers[1].key FROM orders WHERE len(headers) = 1", [["h"]]),
        ("WITH a AS (FROM orders) SELECT count(*) FROM a JOIN orders b USING (key)", [["15"]]),
        ("SELECT * FROM query('SELECT count(*) FROM orders')", [["9"]]),
        ('SELECT count(*) FROM "my.topic"', [["0"]]),
        ("SELECT 1 AS a, 2 AS a", [["1", "2"]]),
        ("SELECT '\\xFF'::BLOB, 'a'::BLOB, NULL", [["\\xFF", "a", None]]),
        ("SHOW TABLES", [["my.topic"], ["orders"]]),
        ("SELECT column_name FROM (DESCRIBE orders) LIMIT 2", [["key"], ["value"]]),
        ("SELECT current_setting('enable_external_access')", [["false"]]),
        ("SELECT length(repeat('x', 10)), repeat('x', 5000) = 'x'", [["10", "false"]]),
    ],
)
def test_what_a_query_gives(lake, query, rows):
    assert rows_of(lake, query) == rows


def test_rows_are_cut_where_there_are_more(lake):
    console = _Console(lake)
    run_query(console, connected(256 << 20, 2), "SELECT range FROM range(1000000)", 10)
    assert len(console.rows) == 10
    assert console.done["truncated"]
    assert console.columns == [("range", "BIGINT")]


def test_long_values_are_cut(lake):
    assert len(rows_of(lake, "SELECT repeat('x', 1000000)")[0][0]) == 4096


REFUSED = {
    # statement: what the refusal says
    "SELECT * FROM read_csv('/etc/passwd')": "disabled by configuration",
    "SELECT * FROM read_csv_auto('/etc/passwd')": "disabled by configuration",
    "SELECT * FROM read_parquet('/etc/passwd')": "disabled by configuration",
    "SELECT * FROM parquet_metadata('/etc/passwd')": "disabled by configuration",
    "SELECT * FROM read_json('/etc/passwd')": "disabled by configuration",
    "SELECT * FROM read_text('/etc/passwd')": "disabled by configuration",
    "SELECT * FROM read_blob('/etc/passwd')": "disabled by configuration",
    "SELECT * FROM read_text('http://127.0.0.1/')": "disabled",
    "SELECT * FROM sniff_csv('/etc/passwd')": "disabled by configuration",
    "SELECT * FROM glob('/*')": "disabled by configuration",
    "SELECT * FROM '/etc/passwd'": "no topic",
    "SELECT * FROM 'x.parquet'": "disabled by configuration",
    "SELECT * FROM 's3://bucket/x.parquet'": "disabled by configuration",
    "SELECT * FROM query('SELECT * FROM read_text(''/etc/passwd'')')": "disabled by configuration",
    "COPY orders TO '/tmp/x'": "COPY is not allowed",
    "COPY (SELECT 1) TO '/dev/stdout'": "COPY is not allowed",
    "COPY x FROM '/etc/passwd'": "COPY is not allowed",
    "ATTACH '/tmp/x.db'": "ATTACH is not allowed",
    "ATTACH ':memory:' AS x": "ATTACH is not allowed",
    "DETACH memory": "DETACH is not allowed",
    "INSTALL httpfs": "LOAD is not allowed",
    "LOAD httpfs": "LOAD is not allowed",
    "SET memory_limit = '99GB'": "SET is not allowed",
    "SET GLOBAL enable_external_access = true": "SET is not allowed",
    "RESET enable_external_access": "SET is not allowed",
    "USE memory": "SET is not allowed",
    "PRAGMA version": "PRAGMA is not allowed",
    "PRAGMA enable_profiling": "PRAGMA is not allowed",
    "CALL pragma_version()": "CALL is not allowed",
    "CHECKPOINT": "not allowed",
    "VACUUM": "not allowed",
    "EXPORT DATABASE '/tmp/x'": "EXPORT is not allowed",
    "IMPORT DATABASE '/tmp/x'": "not allowed",
    "CREATE TABLE x AS SELECT 1": "CREATE is not allowed",
    "CREATE SECRET x (TYPE s3, KEY_ID 'a', SECRET 'b')": "not allowed",
    "CREATE MACRO f(a) AS a": "CREATE is not allowed",
    "DROP VIEW orders": "DROP is not allowed",
    "INSERT INTO orders VALUES (1)": "INSERT is not allowed",
    "DELETE FROM orders": "DELETE is not allowed",
    "UPDATE orders SET key = 1": "UPDATE is not allowed",
    "PREPARE p AS SELECT 1": "PREPARE is not allowed",
    "BEGIN": "TRANSACTION is not allowed",
    "EXPLAIN ANALYZE COPY (SELECT 1) TO '/tmp/x'": "not allowed",
    "EXPLAIN ATTACH '/tmp/x'": "parser error",
    "SELECT 1; COPY (SELECT 1) TO '/tmp/x'": "one statement, not 2",
    "-- nothing": "one statement, not 0",
    "SELECT getenv('HOME')": "getenv does not exist",
    "SELECT * FROM pandas_scan(1)": "No function matches",
    "SELECT * FROM arrow_scan(1, 1, 1)": "No function matches",
    "SELECT * FROM secret_table": "no topic",
    "SELECT * FROM lake": "no topic",
    "SELECT * FROM secret": 'no topic "secret"',
    'SELECT * FROM "segments of secret"': "no topic",
    "SELECT * FROM my.topic": 'FROM "my-topic"',
    "SELECT * FROM query_table('secret')": 'no topic "secret"',
    "SELECT": "Parser Error",
    "SELECT '": "unterminated",
}


@pytest.mark.parametrize("query", REFUSED)
def test_what_is_refused(lake, query):
    with pytest.raises((RefusedQueryError, duckdb.Error)) as caught:
        rows_of(lake, query)
    assert REFUSED[query].lower() in str(caught.value).lower()


NOTHING = ["FROM duckdb_secrets()", "FROM which_secret('s3://x', 's3')", "FROM orders WHERE false"]


@pytest.mark.parametrize("query", NOTHING)
def test_what_gives_nothing(lake, query):
    assert rows_of(lake, query) == []


def test_records_before_the_start_are_not_read_by_another_name(lake):
    """A segment that begins before the log's start is there whole, and its first records are not."""
    query = 'SELECT count(*) FROM "segments of orders" WHERE partition = 0 AND base_offset + position {}'
    for end, count in ((">= 0", "4"), ("< 2", "0")):
        assert rows_of(lake, f"SELECT ({query.format(end)}) FROM orders LIMIT 1") == [[count]]


def test_a_typed_topic_has_its_columns_also_in_segments_of_before_they_grew():
    lake, _, _ = memory_lake()
    subjects = Subjects(lake).no_rules()
    lake.create_topic("orders", 1, {"value.columns": "avro", "value.schema.subject": "s"})
    lake.topic("orders").append(framed_as(subjects.register("s", avro_record(a="int"))))
    later = subjects.register("s", avro_record(a="int", b="string"))
    lake.topic("orders").append(framed_as(later, payload=lambda _: b"\x04\x02x"))
    console = _Console(lake, "orders")
    run_query(console, connected(256 << 20, 2), "SELECT columns.a, columns.b FROM orders ORDER BY 1", 10)
    assert console.rows == [["1", None], ["2", "x"]]
