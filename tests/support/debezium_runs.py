"""Debezium's PostgreSQL connector, unmodified, in Kafka's Connect over brokers and a real PostgreSQL."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from support.kafka_connect import ConnectWorker
from support.kafka_programs import DEBEZIUM
from support.postgres import USER, Postgres, running_postgres
from support.streams_runs import reading
from support.waiting import eventually

CHANGES = Path(__file__).with_name("changes.sql")
# A line of JSON for each record, as `canonical` gives them.
KEPT = Path(__file__).with_name("debezium_envelopes.jsonl")
PREFIX = "shop"
_LIMIT_S = 180.0
_JSON = "org.apache.kafka.connect.json.JsonConverter"
# Of an envelope's source and itself: what differs from run to run.
_OF_A_RUN = {"ts_ms", "ts_us", "ts_ns", "lsn", "txId", "xmin", "sequence", "version", "transaction"}

Envelope = dict[str, Any]


def config(postgres: Postgres, **more: object) -> dict[str, object]:
    """A connector for all tables, with Debezium's defaults but for truncations, which are reported too."""
    return {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "database.hostname": postgres.host,
        "database.port": postgres.port,
        "database.user": USER,
        "database.dbname": "postgres",
        "topic.prefix": PREFIX,
        "plugin.name": "pgoutput",
        "skipped.operations": "none",
        "key.converter": _JSON,
        "value.converter": _JSON,
        "topic.creation.default.partitions": 1,
        "topic.creation.default.replication.factor": 1,
        **more,
    }


def worker(address: str, folder: Path) -> ConnectWorker:
    """A Connect worker that has Debezium's plugin."""
    return ConnectWorker(address, folder, {"exactly.once.source.support": "enabled"}, DEBEZIUM.folder)


def captured(address: str, folder: Path) -> list[Envelope]:
    """What Debezium makes of the changes of changes.sql: for each record its topic, key and value with their schemas.

    In the order of each topic, and topics in that of their names; `canonical` makes them comparable.
    """
    before, after = statements()
    with running_postgres() as postgres:
        postgres.run(before)
        with worker(address, folder).ready() as connect:
            connect.configure("debezium", config(postgres))
            connect.await_running("debezium")
            tables = {"full_rows": 1, "plain": 2, "two_keys": 1, "typed": 2}

            def snapped(topics: dict[str, list[Envelope]]) -> bool:
                connect.require_sound("debezium")
                return {name.split(".")[-1]: len(records) for name, records in topics.items()} == tables

            _topics(address, snapped)
            postgres.run(after)

            def ended(topics: dict[str, list[Envelope]]) -> bool:
                last = topics.get(f"{PREFIX}.public.plain", [{}])[-1]
                return ((last.get("value") or {}).get("payload", {}).get("after") or {}).get("name") == "end"

            _topics(address, ended)
            # Topics that were looked at before the end came have got more since.
            found = _topics(address, bool)
    return [one for topic in sorted(found) for one in found[topic]]


def statements() -> tuple[str, str]:
    """changes.sql: what a snapshot finds, and what follows it."""
    before, after = CHANGES.read_text(encoding="utf-8").split("-- changes\n")
    return before, after


def canonical(envelopes: list[Envelope]) -> list[Envelope]:
    """Without what differs from run to run."""
    return [_stable(one) for one in envelopes]


def kept(database: str = "postgres") -> list[Envelope]:
    """What Debezium made of changes.sql when it was last looked at, canonical, as if of a database of another name."""
    found = [json.loads(line) for line in KEPT.read_text(encoding="utf-8").splitlines()]
    for one in found:
        if one["value"] is not None:
            one["value"]["payload"]["source"]["db"] = database
    return found


def killed(address: str, folder: Path, rows: int, kills: int) -> None:
    """Rows are inserted and changed while Connect's worker is killed: each change comes once, and in order."""
    with running_postgres() as postgres:
        postgres.run("CREATE TABLE sales (id int PRIMARY KEY, amount int); INSERT INTO sales SELECT n, 0 FROM "
                     f"generate_series(1, {rows}) n")  # fmt: skip
        connect = worker(address, folder).ready()
        topic = f"{PREFIX}.public.sales"
        try:
            connect.configure("debezium", {**config(postgres), "exactly.once.support": "required"})
            connect.await_running("debezium")

            def change(amount: int, first: int, last: int) -> None:
                for at in range(first, last + 1, 50):
                    postgres.run(f"UPDATE sales SET amount = {amount} WHERE id BETWEEN {at} AND {min(last, at + 49)}")

            for part in range(kills + 1):
                change(part + 1, 1, rows // 2)
                if part < kills:
                    least = rows * (part + 1) + rows // 4
                    _topics(address, lambda all_, n=least: len(all_.get(topic, [])) >= n)  # type: ignore[misc]
                # The worker is killed while it reads these.
                change(part + 1, rows // 2 + 1, rows)
                if part < kills:
                    connect.kill()
                    connect.__exit__()
                    connect = worker(address, folder).ready()
                    connect.await_running("debezium")
            whole = rows * (kills + 2)
            records = _topics(address, lambda all_: len(all_.get(topic, [])) >= whole)[topic]
            assert connect.end() in (0, 143), connect.said()[-3000:]
        finally:
            connect.__exit__()
    seen: dict[int, list[int]] = {}
    for one in records:
        row = one["value"]["payload"]["after"]
        seen.setdefault(row["id"], []).append(row["amount"])
    wanted = {number: list(range(kills + 2)) for number in range(1, rows + 1)}
    wrong = {number: seen.get(number) for number in wanted if seen.get(number) != wanted[number]}
    assert seen == wanted, f"{len(records)} records; of {len(wrong)} rows another history: {list(wrong.items())[:5]}"


def _topics(address: str, enough: Callable[[dict[str, list[Envelope]]], bool]) -> dict[str, list[Envelope]]:
    """All records of the connector's topics by topic, read until it is enough."""
    found: dict[str, list[Envelope]] = {}

    def read() -> bool:
        found.clear()
        for topic in _names(address):
            with reading(address, topic) as consumer:
                end = consumer.get_watermark_offsets(TopicPartition(topic, 0), 30)[1]
                records = []
                while len(records) < end:
                    records += [_record(one) for one in consumer.consume(end - len(records), 0.5)]
                found[topic] = records
        return enough(found)

    eventually(read, "Debezium's records", _LIMIT_S)
    return found


def _names(address: str) -> list[str]:
    topics = AdminClient({"bootstrap.servers": address}).list_topics(timeout=30).topics
    return sorted(name for name in topics if name.startswith(f"{PREFIX}."))


def _record(message: Any) -> Envelope:
    assert message.error() is None, message.error()
    key, value = message.key(), message.value()
    return {
        "topic": message.topic(),
        "key": None if key is None else json.loads(key),
        "value": None if value is None else json.loads(value),
    }


def with_older_markers(envelopes: list[Envelope]) -> list[Envelope]:
    """As Debezium 3.2 marks a snapshot's first record where its table has no other: 3.3 calls it the first."""
    found = copy.deepcopy(envelopes)
    for one in found:
        if one["value"] is not None and (source := one["value"]["payload"]["source"])["snapshot"] == "first":
            source["snapshot"] = "last_in_data_collection"
    return found


def _stable(one: Any) -> Any:
    if isinstance(one, dict):
        return {name: _stable(value) for name, value in one.items() if name not in _OF_A_RUN}
    return [_stable(item) for item in one] if isinstance(one, list) else one
