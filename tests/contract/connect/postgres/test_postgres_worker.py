"""The source in `tidelog connect start` with a real PostgreSQL: the worker, the server, and both are killed.

Triggers write down each change of the table in its own transaction, so that it is known what was committed, whatever
died: the topic must have exactly that, each row's changes in their order.
"""

import json
import random
import signal
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import psycopg2
from support.broker_processes import BrokerCommand, broker_command
from support.postgres import Postgres, running_postgres
from support.postgres_sources import config_of
from support.waiting import eventually

from tidelog.log.lake import Lake

ROWS = 1000
TABLES = f"""
CREATE TABLE items (id bigint PRIMARY KEY, amount int NOT NULL);
CREATE TABLE written (number bigserial, op text, id bigint, amount int);
CREATE FUNCTION write_down() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO written (op, id, amount) VALUES (
    CASE TG_OP WHEN 'INSERT' THEN 'c' WHEN 'UPDATE' THEN 'u' ELSE 'd' END,
    CASE TG_OP WHEN 'DELETE' THEN OLD.id ELSE NEW.id END, CASE TG_OP WHEN 'DELETE' THEN NULL ELSE NEW.amount END);
  RETURN NULL; END $$;
INSERT INTO items SELECT n, 0 FROM generate_series(1, {ROWS}) n;
CREATE TRIGGER writes AFTER INSERT OR UPDATE OR DELETE ON items FOR EACH ROW EXECUTE FUNCTION write_down();
"""
TOPIC = "shop.public.items"
WORKER, SERVER = "worker", "server"
# Writers don't wait for the worker: on a busy machine it has much to read when they end.
BACKLOG_S = 400.0
# What is killed in each round, after the worker was amid the copy of the table.
KILLS = ((WORKER,), (SERVER,), (WORKER, SERVER), (SERVER,), (WORKER,))
JSON = "org.apache.kafka.connect.json.JsonConverter"
THE_END = -1

History = dict[int, list[tuple[str, int | None]]]


class Writer(threading.Thread):
    """Transactions of one to ten changes, some of which are rolled back, on rows that no other writer changes."""

    def __init__(self, server: Postgres, number: int, stop: threading.Event) -> None:
        super().__init__()
        self._server, self._number, self._stop_asked = server, number, stop
        self._rng = random.Random(number)
        self._step = 0

    def run(self) -> None:
        while not self._stop_asked.is_set():
            with suppress(psycopg2.Error):  # the server is gone; what was committed is in `written`
                connection = psycopg2.connect(self._server.dsn)
                try:
                    while not self._stop_asked.wait(0.1):
                        self._transaction(connection)
                finally:
                    connection.close()
            self._stop_asked.wait(0.1)

    def _transaction(self, connection: Any) -> None:
        self._step += 1
        with connection.cursor() as cursor:
            for _ in range(self._rng.choice((1, 2, 10))):
                row = 2 * self._rng.randrange(ROWS) + self._number
                if self._rng.random() < 0.2:
                    cursor.execute("DELETE FROM items WHERE id = %s", (row,))
                else:
                    cursor.execute(
                        "INSERT INTO items VALUES (%s, %s) ON CONFLICT (id) DO UPDATE SET amount = excluded.amount",
                        (row, self._step),
                    )
        if self._rng.random() < 0.2:
            connection.rollback()
        else:
            connection.commit()


@contextmanager
def writing(server: Postgres) -> Iterator[None]:
    stop = threading.Event()
    writers = [Writer(server, number, stop) for number in (0, 1)]
    for writer in writers:
        writer.start()
    try:
        yield
    finally:
        stop.set()
        for writer in writers:
            writer.join()


class Follower:
    """Reads the topic's records as they come."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._positions: dict[int, int] = {}
        self.copied: list[int] = []
        self.changes: History = defaultdict(list)

    def count(self) -> int:
        """How many changes there are by now."""
        if self._lake.peek(TOPIC) is not None:
            topic = self._lake.topic(TOPIC)
            for partition, (start, end) in topic.offsets().items():
                for rows in topic.read(partition, self._positions.get(partition, start), end):
                    for key, value in zip(
                        rows.column("key").to_pylist(), rows.column("value").to_pylist(), strict=True
                    ):
                        self._take(json.loads(key)["id"], json.loads(value))
                self._positions[partition] = end
        return sum(map(len, self.changes.values()))

    def _take(self, row: int, value: dict[str, Any]) -> None:
        if value["op"] == "r":
            self.copied.append(row)
        else:
            self.changes[row].append((value["op"], value["after"] and value["after"]["amount"]))


def configure(worker: BrokerCommand, config: dict[str, str]) -> None:
    url = worker.ready()["url"]

    def taken() -> bool:
        answer = httpx.put(f"{url}/connectors/shop/config", json=config, timeout=60)
        assert answer.status_code in (200, 201, 409), answer.text
        return answer.status_code != 409

    eventually(taken, "the connector is configured")


def sound(worker: BrokerCommand) -> bool:
    assert worker.process.poll() is None, worker.log[-20:]
    # A warning is of what is tried again.
    failed = [line for line in worker.log if " ERROR" in line]
    assert not failed, failed
    return True


def slots(server: Postgres) -> str:
    return server.run("SELECT slot_name FROM pg_replication_slots").strip()


def history(server: Postgres) -> History:
    found: History = defaultdict(list)
    for line in server.run("SELECT op, id, coalesce(amount, -1) FROM written ORDER BY number").splitlines():
        op, row, amount = line.split("\t")
        found[int(row)].append((op, None if op == "d" else int(amount)))
    return found


def test_each_change_is_in_the_topic_once_whatever_dies(tmp_path: Path) -> None:
    folder = tmp_path / "lake"
    with ExitStack() as stack:
        server = stack.enter_context(running_postgres())
        lake = stack.enter_context(Lake(str(folder)))

        def started() -> BrokerCommand:
            told = "--listener", "127.0.0.1:0", "--config", str(properties)
            return stack.enter_context(broker_command(folder, *told, family="connect"))

        properties = tmp_path / "worker.properties"
        properties.write_text("session.timeout.ms=2000\nheartbeat.interval.ms=500\n")
        server.run(TABLES)
        config = {
            **config_of(server, "postgres", table_exclude_list="public.written", snapshot_fetch_size="20"),
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector", "max.batch.size": "500",
            "exactly.once.support": "required", "tombstones.on.delete": "false",
            "topic.creation.default.partitions": "2", "topic.creation.default.replication.factor": "1",
            **{f"{kind}.converter{more}": what for kind in ("key", "value")
               for more, what in (("", JSON), (".schemas.enable", "false"))},
        }  # fmt: skip
        worker = started()
        configure(worker, config)
        # All that writers write from here on is behind the slot's beginning.
        eventually(lambda: slots(server), "the slot is there")
        follower = Follower(lake)
        eventually(lambda: follower.count() or len(follower.copied) > 200, "the copy has begun")
        worker.stop(signal.SIGKILL)
        worker = started()
        with writing(server):
            for killed in KILLS:
                enough = follower.count() + 50
                eventually(lambda: sound(worker) and follower.count() > enough, "changes are read", BACKLOG_S)  # noqa: B023 ended here
                if SERVER in killed:
                    server.stop(signal.SIGQUIT)
                if WORKER in killed:
                    worker.stop(signal.SIGKILL)
                    worker = started()
                if SERVER in killed:
                    server.start()
        server.run(f"INSERT INTO items VALUES ({THE_END}, 0)")
        eventually(lambda: sound(worker) and follower.count() and follower.changes[THE_END], "all is read", BACKLOG_S)
        wanted = history(server)
        assert worker.stop() == 0, worker.log[-20:]
        follower.count()
    seen = follower.changes
    wrong = [(row, seen[row], wanted[row]) for row in {*seen, *wanted} if seen[row] != wanted[row]]
    assert not wrong, f"{len(wrong)} rows have another history, as {wrong[:3]}"
    # Rows of a copy that was interrupted may be there twice. The copy that follows it is as of its own beginning: what
    # it no longer found was deleted, and the stream has that.
    deleted = {row for row, changes in seen.items() if ("d", None) in changes}
    assert {*follower.copied} | deleted >= {*range(1, ROWS + 1)}
