"""The source against a real server: copies while writers write, restarts of everything, slots, modes."""

import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.nursery import ForkedPython
from support.postgres import Postgres, running_postgres
from support.postgres_sources import SourceRun, config_of, fold, fresh_database, stored_lines
from support.waiting import eventually

from tidelog.connect.connectors.postgres.connector import PostgresConnector
from tidelog.connect.connectors.postgres.database import Database
from tidelog.connect.connectors.postgres.positions import lsn_number
from tidelog.connect.connectors.postgres.settings import read_settings
from tidelog.connect.data.errors import ConnectError

ITEMS = "CREATE TABLE items (id bigint PRIMARY KEY, name text, count int NOT NULL DEFAULT 0)"
# Changes of which each row's last state depends on every one of them.
CHURN = """
INSERT INTO items SELECT i, 'n' || i FROM generate_series({first}, {first} + 19) i;
UPDATE items SET count = count + 1 WHERE id % 3 = {step} % 3;
UPDATE items SET id = -id WHERE id = {first} + 1;
DELETE FROM items WHERE id = {first} + 2;
BEGIN; INSERT INTO items VALUES ({first} + 100000, 'rolled back'); ROLLBACK;
"""
MOST_ROUNDS = 60
READERS = "SELECT count(*) FROM pg_replication_slots WHERE database = '{}' AND active"
WAITS = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%'"
MARKER = "INSERT INTO items VALUES (0, 'the end')"


@contextmanager
def writer(server: Postgres, database: str) -> Iterator[threading.Event]:
    """Changes until the block ends; the event is set once some are there."""
    stop, begun, failures = threading.Event(), threading.Event(), []

    def write() -> None:
        step = 0
        while not stop.is_set() and step < MOST_ROUNDS:
            try:
                server.run(CHURN.format(first=10_000 + 20 * step, step=step), database)
            except AssertionError as error:
                failures.append(error)
                return
            step += 1
            if step == 3:
                begun.set()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield begun
    finally:
        stop.set()
        thread.join()
    assert not failures, failures


def table_of(server: Postgres, database: str) -> dict[int, dict[str, Any]]:
    rows = json.loads(server.run("SELECT coalesce(json_agg(items), '[]') FROM items", database))
    return {row["id"]: row for row in rows}


def is_whole(run: SourceRun) -> bool:
    """Whether the marker's change is there; a copy that was begun again may have its row before older changes."""
    return any(op == "c" and row["id"] == 0 for op, row in run.values)


def confirmed(server: Postgres, database: str) -> int:
    lsn = server.run(f"SELECT confirmed_flush_lsn FROM pg_replication_slots WHERE database = '{database}'").strip()
    return lsn_number(lsn) if lsn else 0


def once(run: SourceRun) -> None:
    """Each change of the stream is there once, in the order of the log."""
    places = [(one.value["source"]["lsn"], one.value["op"], str(one.key)) for one in run.records if one.value]
    streamed = [place for place in places if place[1] != "r"]
    assert len(set(streamed)) == len(streamed)


def test_a_copy_while_writers_write_equals_the_table(postgres_server: Postgres) -> None:
    statements = ITEMS, "INSERT INTO items SELECT i, 'n' || i FROM generate_series(1, 500) i"
    with fresh_database(postgres_server, *statements) as name, writer(postgres_server, name) as begun:
        begun.wait()
        run = SourceRun(config_of(postgres_server, name, snapshot_fetch_size="64"))
        run.until(lambda: any(op != "r" for op, _ in run.values), "the stream has begun")
        copied = [one.key["id"] for one in run.records if one.value and one.value["op"] == "r"]
        assert len(set(copied)) == len(copied) >= 500
        begun.clear()
        begun.wait(0.2)
        run_until_marker(postgres_server, name, run)
        run.task.stop()


def run_until_marker(server: Postgres, database: str, run: SourceRun) -> None:
    """Read until all that is written is read, whatever else is being written; then compare with the table."""
    server.run(MARKER, database)
    run.until(lambda: is_whole(run), "the marker is read")
    once(run)


def test_a_connection_lost_between_any_two_steps(postgres_server: Postgres) -> None:
    """All sessions of the connector are ended after each step, or the task is killed before or after its store."""
    statements = ITEMS, "INSERT INTO items SELECT i, 'n' || i FROM generate_series(1, 300) i"
    with fresh_database(postgres_server, *statements) as name:
        run = SourceRun(config_of(postgres_server, name, snapshot_fetch_size="100", max_batch_size="7"))
        ends = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'tidelog%{name}'"
        for step in range(40):
            if step % 5 == 2:
                postgres_server.run(CHURN.format(first=10_000 + 20 * step, step=step), name)
            records = run.ask()
            match step % 4:
                case 0:
                    run.store(records)
                    run.task.commit()
                case 1:  # killed before the records are stored
                    run.kill()
                    run.begin()
                case 2:  # killed after it, before the slot hears of it
                    run.store(records)
                    run.kill()
                    run.begin()
                case 3:
                    run.store(records)
                    postgres_server.run(ends)
        postgres_server.run(MARKER, name)
        run.until(lambda: is_whole(run), "the marker is read")
        assert run.tables()["items"] == table_of(postgres_server, name)
        once(run)
        run.task.stop()


def test_the_server_dies_and_comes_back() -> None:
    with running_postgres() as server, fresh_database(server, ITEMS) as name:
        run = SourceRun(config_of(server, name, max_batch_size="10"))
        for round_number in range(3):
            server.run(CHURN.format(first=10_000 + 20 * round_number, step=round_number), name)
            run.until(lambda: len(run.records) > 10 * round_number, "changes are read")  # noqa: B023 called at once
            server.stop(signal.SIGQUIT)
            run.step()
            server.start()
        server.run(MARKER, name)
        run.until(lambda: is_whole(run), "the marker is read")
        assert run.tables()["items"] == table_of(server, name)
        once(run)
        run.task.stop()


def test_a_worker_that_is_killed_again_and_again(postgres_server: Postgres, tmp_path: Path) -> None:
    """kill -9, amid the copy and amid changes: what is stored has each change once, and makes the table."""
    statements = ITEMS, "INSERT INTO items SELECT i, 'n' || i FROM generate_series(1, 2000) i"
    stored = tmp_path / "stored"
    with fresh_database(postgres_server, *statements) as name:
        config = config_of(postgres_server, name, snapshot_fetch_size="200", max_batch_size="50")
        command = [sys.executable, "-m", "support.postgres_sources", str(stored), json.dumps(config)]
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}

        def batches() -> int:
            return stored.read_bytes().count(b"\n") if stored.exists() else 0

        def is_read() -> bool:
            """As `is_whole`."""
            values = (value for line in stored_lines(stored) for _, _, value in line["records"])
            return any(value and value["op"] == "c" and value["after"]["id"] == 0 for value in values)

        for number in range(4):
            before = batches()
            for step in range(5 * number, 5 * number + 5):
                postgres_server.run(CHURN.format(first=10_000 + 20 * step, step=step), name)
            process = ForkedPython(command, env=environment)
            try:
                eventually(lambda: batches() > before + 1 or process.poll() is not None, "more is stored")  # noqa: B023
                assert process.poll() is None
            finally:
                process.kill()
                process.wait()
        postgres_server.run(MARKER, name)
        process = ForkedPython(command, env=environment)
        try:
            eventually(lambda: is_read() or process.poll() is not None, "the marker is read")
            assert process.poll() is None
        finally:
            process.kill()
            process.wait()
        rows = [tuple(row) for line in stored_lines(stored) for row in line["records"]]
        assert fold(rows)["items"] == table_of(postgres_server, name)
        changes = [
            (value["source"]["lsn"], value["op"], str(key)) for _, key, value in rows if value and value["op"] != "r"
        ]
        assert len(set(changes)) == len(changes)


def test_a_copy_that_is_interrupted_goes_on_with_the_table_it_was_at(postgres_server: Postgres) -> None:
    tables = [f"CREATE TABLE t{number} (id int PRIMARY KEY)" for number in range(3)]
    rows = [f"INSERT INTO t{number} SELECT generate_series(1, 10)" for number in range(3)]
    with fresh_database(postgres_server, *tables, *rows) as name:
        run = SourceRun(config_of(postgres_server, name, snapshot_fetch_size="4"))
        while len(run.records) < 14:
            run.step()
        run.kill()
        # What is changed meanwhile is in the log: a row that was copied goes, another one comes.
        postgres_server.run("DELETE FROM t1 WHERE id = 1; INSERT INTO t2 VALUES (11)", name)
        run.begin()
        run.until(lambda: len([one for one in run.values if one[0] in "cd"]) == 2, "the changes are read")
        copied = [one.topic for one in run.records if one.value and one.value["op"] == "r"]
        assert copied.count("shop.public.t0") == 10  # not again
        assert sorted(run.tables()["t1"]) == list(range(2, 11))
        assert sorted(run.tables()["t2"]) == list(range(1, 12))
        run.task.stop()


def test_the_slot_forgets_only_what_is_stored(postgres_server: Postgres) -> None:
    with fresh_database(postgres_server, ITEMS) as name:
        run = SourceRun(config_of(postgres_server, name, status_update_interval_ms="1"))
        run.until(lambda: confirmed(postgres_server, name), "the slot is there")
        postgres_server.run("INSERT INTO items VALUES (1)", name)
        records = eventually(run.ask, "the row is read")
        before = confirmed(postgres_server, name)
        (lsn,) = [one.value["source"]["lsn"] for one in records]
        for _ in range(5):
            assert run.ask() == []
        assert confirmed(postgres_server, name) == before <= lsn
        run.store(records)
        run.task.commit()
        eventually(lambda: run.step() == [] and confirmed(postgres_server, name) > lsn, "the slot moves on")
        run.task.stop()


def test_an_idle_slot_moves_on_and_heartbeats_are_written(postgres_server: Postgres) -> None:
    """Another table's changes, which are not published, fill the log."""
    statements = ITEMS, "CREATE TABLE other (a int)", "CREATE TABLE beats (a int)"
    with fresh_database(postgres_server, *statements) as name:
        config = config_of(postgres_server, name, table_include_list="public.items", heartbeat_interval_ms="1")
        config |= {"publication.autocreate.mode": "filtered", "status.update.interval.ms": "1"}
        config["heartbeat.action.query"] = "INSERT INTO beats VALUES (1)"
        run = SourceRun(config)
        run.until(lambda: confirmed(postgres_server, name), "the slot is there")
        postgres_server.run("INSERT INTO other SELECT generate_series(1, 1000)", name)
        now = lsn_number(postgres_server.run("SELECT pg_current_wal_lsn()", name).strip())
        run.until(lambda: confirmed(postgres_server, name) >= now, "the slot moves on")
        beats = [one for one in run.records if one.topic == "__debezium-heartbeat.shop"]
        assert beats
        assert beats[0].key == {"serverName": "shop"}
        assert int(postgres_server.run("SELECT count(*) FROM beats", name)) >= len(beats)
        run.task.stop()


def test_modes_of_the_copy(postgres_server: Postgres) -> None:
    with fresh_database(postgres_server, ITEMS, "INSERT INTO items VALUES (1)") as name:
        run = SourceRun(config_of(postgres_server, name, snapshot_mode="no_data"))
        run.until(lambda: confirmed(postgres_server, name), "the slot is there")
        postgres_server.run("INSERT INTO items VALUES (2)", name)
        run.until(lambda: run.values, "the change is read")
        assert [op for op, _ in run.values] == ["c"]
        run.task.stop()
        for mode in ("initial", "always"):  # an offset is stored: only `always` copies again
            again = SourceRun({**run.configs, "snapshot.mode": mode})
            again.stored = run.stored
            again.begin()
            postgres_server.run("UPDATE items SET count = count + 1 WHERE id = 2", name)
            again.until(lambda: any(op == "u" for op, _ in again.values), "the change is read")  # noqa: B023
            assert [op for op, _ in again.values] == (["u"] if mode == "initial" else ["r", "r", "u"])
            again.task.stop()
            run.stored = again.stored
        only = SourceRun(config_of(postgres_server, name, snapshot_mode="initial_only", slot_name=f"only_{name}"))
        only.until(lambda: len(only.values) == 2, "the copy is whole")
        postgres_server.run("INSERT INTO items VALUES (3)", name)
        assert [only.step() for _ in range(3)] == [[], [], []]
        only.task.stop()


def test_a_slot_that_is_gone(postgres_server: Postgres) -> None:
    with fresh_database(postgres_server, ITEMS, "INSERT INTO items VALUES (1)") as name:
        run = SourceRun(config_of(postgres_server, name, slot_drop_on_stop="true"))
        run.until(lambda: run.values, "the row is copied")
        run.step()
        run.task.stop()
        assert not confirmed(postgres_server, name)
        run.begin()
        with pytest.raises(ConnectError, match=r"snapshot\.mode to when_needed"):
            run.task.poll()
        run.kill()
        run.configs["snapshot.mode"] = "when_needed"
        run.begin()
        run.until(lambda: len(run.values) == 2, "the row is copied again")
        run.task.stop()


def test_a_slot_that_is_to_go_waits_for_the_session_that_ends(postgres_server: Postgres) -> None:
    with fresh_database(postgres_server, ITEMS, "INSERT INTO items VALUES (1)") as name:
        reader = SourceRun(config_of(postgres_server, name))
        reader.until(lambda: reader.values, "the row is copied")
        reader.until(lambda: postgres_server.run(READERS.format(name)).strip() == "1", "a session reads from the slot")
        database = Database(read_settings(reader.configs))
        dropping = threading.Thread(target=database.drop_slot)
        dropping.start()
        eventually(lambda: postgres_server.run(WAITS).strip() != "0", "it has seen that session")
        reader.task.stop()
        dropping.join()
        database.close()
        assert not confirmed(postgres_server, name)


def test_offsets_that_are_reset_begin_with_a_copy(postgres_server: Postgres) -> None:
    with fresh_database(postgres_server, ITEMS, "INSERT INTO items VALUES (1)") as name:
        run = SourceRun(config_of(postgres_server, name))
        run.until(lambda: run.values, "the row is copied")
        run.task.stop()
        partition = {"server": "shop"}
        assert PostgresConnector.alter_offsets(run.configs, [(partition, run.stored)])
        with pytest.raises(ConnectError, match="transaction_lsn"):
            PostgresConnector.alter_offsets(run.configs, [(partition, {"position": 1})])
        with pytest.raises(ConnectError, match="source partition"):
            PostgresConnector.alter_offsets(run.configs, [({"server": "other"}, None)])
        assert confirmed(postgres_server, name)
        assert PostgresConnector.alter_offsets(run.configs, [(partition, None)])
        assert not confirmed(postgres_server, name)


def test_the_session_of_a_worker_that_is_gone_is_ended(postgres_server: Postgres) -> None:
    """Its connection is still open: the machine is away, and the server has not noticed."""
    with fresh_database(postgres_server, ITEMS) as name:
        gone = SourceRun(config_of(postgres_server, name))
        gone.until(lambda: gone.task._stream is not None, "the stream has begun")
        run = SourceRun(config_of(postgres_server, name))
        run.until(lambda: confirmed(postgres_server, name), "the slot is there")
        postgres_server.run("INSERT INTO items VALUES (1)", name)
        run.until(lambda: run.values, "the change is read")
        gone.kill()
        run.task.stop()


def test_a_table_that_is_altered_amid_its_changes(postgres_server: Postgres) -> None:
    with fresh_database(postgres_server, ITEMS, "CREATE TYPE mood AS ENUM ('ok')") as name:
        run = SourceRun(config_of(postgres_server, name, snapshot_mode="no_data"))
        run.until(lambda: confirmed(postgres_server, name), "the slot is there")
        postgres_server.run(
            "INSERT INTO items VALUES (1); ALTER TABLE items ADD COLUMN feeling mood;"
            "INSERT INTO items VALUES (2, 'n', 1, 'ok'); ALTER TYPE mood ADD VALUE 'well';"
            "ALTER TABLE items DROP COLUMN name; INSERT INTO items VALUES (3, 1, 'well');"
            "CREATE TABLE later (a int); INSERT INTO later VALUES (5)",
            name,
        )
        run.until(lambda: len(run.values) == 4, "the changes are read")
        assert [row for _, row in run.values] == [
            {"id": 1, "name": None, "count": 0},
            {"id": 2, "name": "n", "count": 1, "feeling": "ok"},
            {"id": 3, "count": 1, "feeling": "well"},
            {"a": 5},
        ]
        run.task.stop()


def test_what_is_wrong_is_said_with_what_to_do(postgres_server: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    with fresh_database(postgres_server, ITEMS) as name:
        run = SourceRun(config_of(postgres_server, name, publication_autocreate_mode="disabled"))
        with pytest.raises(ConnectError, match="CREATE PUBLICATION"):
            run.task.poll()
        run.kill()
        wrong = {"publication.autocreate.mode": "filtered", "table.include.list": "public.none"}
        run = SourceRun({**config_of(postgres_server, name), **wrong})
        with pytest.raises(ConnectError, match=r"table\.include\.list"):
            run.task.poll()
        run.kill()
        run = SourceRun({**config_of(postgres_server, name), "database.port": "1", "errors.max.retries": "0"})
        with pytest.raises(ConnectError, match="Check that the server runs"):
            run.task.poll()
        monkeypatch.setitem(sys.modules, "psycopg2", None)
        with pytest.raises(ConnectError, match="pip install"):
            SourceRun(config_of(postgres_server, name)).task.poll()
