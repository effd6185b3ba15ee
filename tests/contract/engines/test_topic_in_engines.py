"""A topic as a table of DuckDB, Polars and deltalake while others write to it: always one moment of its log."""

import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import deltalake
import duckdb
import pyarrow as pa
import pytest

from tidelog.log.base.errors import MissingPackageError
from tidelog.log.lake import Lake

PARTITIONS = 4
ROUNDS = 40


@pytest.fixture
def lake(tmp_path):
    with Lake(tmp_path / "lake") as opened:
        opened.create_topic("orders", PARTITIONS, config={"log.checkpoint.interval": "10", "log.min.age.ms": "10000"})
        yield opened


def one_each(number):
    """A record for each partition, in one entry: a reader that sees one of them must see all."""
    return pa.table({"value": [str(number)] * PARTITIONS, "partition": pa.array(range(PARTITIONS), pa.int32())})


@contextmanager
def busy(lake):
    """Meanwhile another program appends, and leaves others the log as long as it had it, however slow the machine."""
    stop = threading.Event()

    def write():
        with Lake(lake.uri) as own:
            number = 0
            while not stop.is_set():
                begun = time.monotonic()
                own.topic("orders").append(one_each(number))
                number += 1
                stop.wait(time.monotonic() - begun)

    lake.topic("orders").append(one_each(-1))
    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        stop.set()
        writer.join()


def test_deltalake_opens_a_busy_table_again_and_again(lake):
    topic = lake.topic("orders")
    seen = -1
    with busy(lake):
        for _ in range(ROUNDS):
            table = topic.delta_table()
            assert table.version() >= seen
            seen = table.version()
    counts = (
        topic.delta_table().to_pyarrow_table(columns=["partition"]).group_by("partition").aggregate([([], "count_all")])
    )
    assert counts.num_rows == PARTITIONS
    assert counts["count_all"].unique().to_pylist() == [topic.state().end(0)]


@pytest.mark.parametrize("library", ["arrow", "polars", "duckdb"])
def test_a_table_is_one_moment_of_all_partitions(lake, library):
    topic = lake.topic("orders")
    with busy(lake):
        for _ in range(ROUNDS):
            if library == "arrow":
                partitions = topic.to_arrow()["partition"].to_pylist()
            elif library == "polars":
                partitions = topic.to_polars()["partition"].to_list()
            else:
                partitions = [row[0] for row in topic.to_duckdb().project("partition").fetchall()]
            counts = {partitions.count(number) for number in range(PARTITIONS)}
            assert len(counts) == 1


@contextmanager
def maintained(lake):
    """Meanwhile another program merges, trims and purges as often as it can."""
    words = [sys.executable, "-m", "tidelog", "--lake", str(lake.uri), "maintain", "--every", "200ms"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        try:
            assert process.stdout.readline()
            threading.Thread(target=process.stdout.read, daemon=True).start()
            yield
        finally:
            process.terminate()


def test_tables_are_whole_and_recent_while_others_write_merge_and_purge(lake):
    topic = lake.topic("orders")
    seen = 0
    with busy(lake), maintained(lake):
        for _ in range(ROUNDS // 4):
            acknowledged = topic.append(one_each(-2))
            partitions = topic.to_polars()["partition"].to_list()
            counts = {partitions.count(number) for number in range(PARTITIONS)}
            assert len(counts) == 1
            assert counts.pop() >= max(seen, acknowledged[0][1])  # nothing that was acknowledged is missing
            seen = acknowledged[0][1]
            assert topic.to_duckdb().aggregate("count(*)").fetchall()[0][0] >= PARTITIONS * seen
            table = topic.delta_table()
            assert table.to_pyarrow_table(columns=["partition"]).num_rows >= PARTITIONS * seen
    history = [entry["operation"] for entry in topic.delta_table().history(limit=10_000)]
    assert set(history) - {"WRITE", "CREATE TABLE"}  # maintenance did something meanwhile


def test_deltalake_is_told_the_version(lake, monkeypatch):
    """It need not look for it: its listing of a busy local folder is no snapshot, and it may find a gap in it."""
    asked = []
    monkeypatch.setattr(deltalake, "DeltaTable", lambda path, **options: asked.append((path, options)))
    lake.topic("orders").delta_table()
    ((path, options),) = asked
    assert path == f"{lake.uri}/orders"
    assert options["version"] == lake.topic("orders").state().version


def test_duckdb_takes_sql_over_a_topic(lake):
    orders = lake.topic("orders")
    orders.append([{"value": '{"n": 1}', "partition": 0}, {"value": '{"n": 41}', "partition": 1}])
    with duckdb.connect() as own:
        found = orders.to_duckdb(own, value_as="json")
        assert found.query("orders", "SELECT sum(value.n) FROM orders").fetchall() == [(42,)]


def test_a_library_that_is_missing_is_named(lake, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "duckdb", None)
    with pytest.raises(MissingPackageError, match="pip install duckdb"):
        lake.topic("orders").to_duckdb()
