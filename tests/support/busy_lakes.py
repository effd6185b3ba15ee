"""A lake with real data and all that runs beside one: the flights of the demo, Kafka's clients at a broker, schemas,
connectors, an open transaction, maintenance, and a mirror of it. Each is the command or client that people run.
"""

import itertools
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import confluent_kafka
import httpx
from support.broker_processes import broker_command
from support.nursery import ForkedPython
from support.protobuf_messages import message_of
from support.registry_servers import running_registry
from support.waiting import eventually

from tidelog.cli.demo.flights import as_records, load_flights
from tidelog.clients.values.serialization import MessageField, SerializationContext
from tidelog.groups.model import CommittedOffset
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.lake import Lake
from tidelog.operations.mirrors import read_status
from tidelog.retention.maintenance import maintain
from tidelog.schema_registry import SchemaRegistryClient
from tidelog.schema_registry.avro import AvroSerializer
from tidelog.schema_registry.protobuf import ProtobufSerializer

FLIGHTS, PARTITIONS = 40_000, 6
TICKET = {
    "type": "record",
    "name": "Ticket",
    "fields": [
        {"name": "passenger", "type": "string"},
        {"name": "flight", "type": "int"},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
    ],
}
GATE = (
    'syntax = "proto3"; package airport; message Gate { string name = 1; repeated int32 flights = 2; bool open = 3; }'
)


@dataclass(frozen=True)
class BusyLake:
    """`folder`, and `follower` that a mirror keeps; `broker`: its address."""

    folder: Path
    follower: Path
    broker: str


@contextmanager
def busy_lake(folder: Path) -> Iterator[BusyLake]:
    """The lake in a folder below this one, until the end of the block; flights go on all the while."""
    found = folder / "lake"
    flights = as_records(load_flights().year.slice(0, FLIGHTS))
    with ExitStack() as stack:
        lake = stack.enter_context(Lake(found))
        for name, partitions in (("flights", PARTITIONS), ("tickets", 2), ("gates", 1), ("bookings", 2)):
            lake.create_topic(name, partitions, {"retention.ms": "-1"})
        for at in range(0, FLIGHTS // 2, FLIGHTS // 20):
            lake.topic("flights").append(flights.slice(at, FLIGHTS // 20))
        broker = stack.enter_context(broker_command(found, "--listener", "127.0.0.1:0")).ready()["listener"]
        _write_values(found)
        stack.enter_context(_booking(broker))
        stack.enter_context(_reading(broker))
        stack.enter_context(_connectors(found, folder))
        maintain(lake)
        late = {("flights", p): CommittedOffset(end // 3) for p, (_, end) in lake.offsets("flights").items()}
        GroupLog(lake).commit_offsets("monthly-report", late)
        stack.enter_context(_mirror(found, folder / "follower"))
        stack.enter_context(_going_on(lake, flights.slice(FLIGHTS // 2)))
        yield BusyLake(found, folder / "follower", broker)


def _write_values(folder: Path) -> None:
    """Tickets in Avro and gates in Protobuf, by a registry."""
    with (
        running_registry(folder) as registry,
        SchemaRegistryClient({"url": registry.url}) as client,
        Lake(folder) as lake,
    ):
        avro = AvroSerializer(client, json.dumps(TICKET))
        kind = message_of(GATE, "airport.Gate")
        protobuf = ProtobufSerializer(kind, client)
        tickets = [
            {"passenger": name, "flight": 1545 + number, "price": Decimal(9900 + 25 * number) / 100}
            for number, name in enumerate(("Ada Lovelace", "Grace Hopper", "Edsger Dijkstra", "Barbara Liskov") * 5)
        ]
        context = SerializationContext("tickets", MessageField.VALUE, [])
        lake.topic("tickets").append([{"key": one["passenger"], "value": avro(one, context)} for one in tickets])
        gates = [kind(name=f"C{number}", flights=[number, number + 20], open=number % 3 > 0) for number in range(12)]
        context = SerializationContext("gates", MessageField.VALUE, [])
        lake.topic("gates").append([{"key": one.name, "value": protobuf(one, context)} for one in gates])


@contextmanager
def _booking(broker: str) -> Iterator[None]:
    """A transaction of Kafka's client that stays open."""
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": broker, "transactional.id": "booking-desk-1", "transaction.timeout.ms": 900_000}
    )
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce("bookings", key="EWR", value="a booking that is not paid yet")
    producer.flush(60)
    try:
        yield
    finally:
        producer.abort_transaction(60)


@contextmanager
def _reading(broker: str) -> Iterator[None]:
    """A member of a group that reads flights, and commits what it has read, at a walk."""
    settings = {
        "bootstrap.servers": broker, "group.id": "delays", "auto.offset.reset": "earliest", "client.id": "board",
        "enable.auto.commit": False,
    }  # fmt: skip
    began = threading.Event()

    def turn(consumer: confluent_kafka.Consumer) -> None:
        if consumer.consume(100, 0.5):
            consumer.commit(asynchronous=False)
            began.set()

    with closing(confluent_kafka.Consumer(settings)) as consumer:
        consumer.subscribe(["flights"])
        with _again_and_again(0.25, lambda: turn(consumer)):
            eventually(began.is_set, "the group reads flights")
            yield


@contextmanager
def _connectors(lake: Path, folder: Path) -> Iterator[None]:
    """A worker with two connectors: one that runs, and one whose task fails."""
    (folder / "airports.txt").write_text("Newark\nKennedy\nLaGuardia\n")
    strings = {f"{part}.converter": "org.apache.kafka.connect.storage.StringConverter" for part in ("key", "value")}
    kind = "org.apache.kafka.connect.file.FileStream{}Connector"
    wanted = {
        "airports": {
            "connector.class": kind.format("Source"),
            "topic": "airports",
            "file": str(folder / "airports.txt"),
        },
        "delays-to-file": {
            "connector.class": kind.format("Sink"),
            "topics": "flights",
            "file": str(folder / "no" / "x"),
        },
    }
    with broker_command(lake, "--listener", "127.0.0.1:0", family="connect") as worker:
        url = worker.ready()["url"]
        for name, config in wanted.items():
            answer = httpx.put(f"{url}/connectors/{name}/config", json={**config, **strings}, timeout=60)
            assert answer.status_code == 201, answer.text

        def states() -> list[str]:
            found = [httpx.get(f"{url}/connectors/{name}/status", timeout=60) for name in wanted]
            return [task["state"] for one in found if one.status_code == 200 for task in one.json()["tasks"]]

        eventually(lambda: states() == ["RUNNING", "FAILED"], "one task runs and one has failed")
        yield


@contextmanager
def _mirror(source: Path, follower: Path) -> Iterator[None]:
    words = [sys.executable, "-m", "tidelog", "mirror", "start", "--from", str(source), "--to", str(follower)]
    with ForkedPython(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            with Lake(follower, create=False) as lake:
                eventually(
                    lambda: (said := read_status(lake.storage)) and "flights" in said.tables, "flights are there"
                )
            yield
        finally:
            process.terminate()


@contextmanager
def _going_on(lake: Lake, flights: Any) -> Iterator[None]:
    """The flights of later days, a few hundred a second."""
    at = itertools.cycle(range(0, len(flights) - 200, 130))

    def turn() -> None:
        first = next(at)
        lake.topic("flights").append(flights.slice(first, 40 + first % 90))

    with _again_and_again(0.25, turn):
        yield


@contextmanager
def _again_and_again(every_s: float, turn: Callable[[], None]) -> Iterator[None]:
    """Call it in a thread until the end of the block, which raises what it raised."""
    ended = threading.Event()

    def run() -> None:
        while not ended.wait(every_s):
            turn()

    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(run)
        try:
            yield
        finally:
            ended.set()
            running.result()
