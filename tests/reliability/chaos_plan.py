"""A chaos run's lake and workers: what is there, and which worker does what."""

import json
import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any

from chaos_storage import ChaosStorage, PowerNotes, Switch
from history import Copy, Policy, Rule

from tidelog.log.base.clock import SystemClock, SystemIds
from tidelog.log.lake import Lake

# Small rules, so that minutes see many checkpoints, trims, merges, time-outs and evictions.
LAKE_CONFIG = {"log.checkpoint.interval": "50", "log.min.age.ms": "10000"}
SESSION_MS = 6_000
TRANSACTION_TIMEOUT_MS = 8_000
PARTITIONS = 3
COPIERS, READERS = "copiers", "readers"
# Brokers, a topic that Kafka's clients write, and the group in which they read.
BROKERS = ("broker-1", "broker-2", "broker-3")
KAFKA, KAFKA_READERS = "kafka", "kafka-readers"
INPUT, OUTPUT, AUDIT = "in", "out", "audit"
# acks=1 survives processes, not power cuts: that is what it promises.
QUICK = "quick"
# What the Spark query writes to.
EVEN, ODD = "even", "odd"


@dataclass(frozen=True)
class TopicPlan:
    """A topic: its rule, and how it is configured."""

    rule: Rule
    config: dict[str, str]


KEPT = TopicPlan(Rule(), {"file.delete.delay.ms": "2000"})
TOPICS: dict[str, TopicPlan] = {
    INPUT: KEPT,
    OUTPUT: KEPT,
    AUDIT: KEPT,
    KAFKA: KEPT,
    "a": KEPT,
    "b": KEPT,
    "expiring": TopicPlan(Rule(Policy.EXPIRE), {"retention.bytes": "60000", "file.delete.delay.ms": "2000"}),
    "latest": TopicPlan(
        Rule(Policy.COMPACT),
        {
            "cleanup.policy": "compact",
            "segment.ms": "1",
            "min.cleanable.dirty.ratio": "0.1",
            "file.delete.delay.ms": "2000",
        },
    ),
    QUICK: TopicPlan(Rule(once=False), {"file.delete.delay.ms": "2000"}),
    EVEN: KEPT,
    ODD: KEPT,
}
KAFKA_TOPICS = (KAFKA, INPUT)
COPIES = [Copy((INPUT,), (OUTPUT,), COPIERS)]
COPIES_BY_QUERY = [Copy((INPUT,), (EVEN, ODD))]


@dataclass(frozen=True)
class Worker:
    """One process that is started again and again: its name, its role, and the topics that it writes or reads."""

    name: str
    role: str
    topics: tuple[str, ...] = ()
    acks: str = "all"


WORKERS = (
    Worker("producer-1", "producer", (INPUT,)),
    Worker("producer-2", "producer", ("expiring", "latest", INPUT)),
    Worker("producer-3", "producer", (QUICK,), acks="1"),
    Worker("transactional-1", "transactional", ("a", "b")),
    Worker("transactional-2", "transactional", ("b", "a", AUDIT)),
    Worker("copier-1", "copier", (OUTPUT, AUDIT)),
    Worker("copier-2", "copier", (OUTPUT, AUDIT)),
    Worker("reader-1", "reader", (INPUT, OUTPUT, "a", "b", QUICK)),
    Worker("reader-2", "reader", (INPUT, OUTPUT, "a", "b", QUICK)),
    Worker("maintainer", "maintainer"),
    Worker("watcher", "watcher"),
)
KAFKA_WORKERS = (
    *(Worker(name, "broker") for name in BROKERS),
    Worker("kafka-producer-1", "kafka-producer", (KAFKA,)),
    Worker("kafka-producer-2", "kafka-producer", KAFKA_TOPICS),
    Worker("kafka-reader-1", "kafka-reader", KAFKA_TOPICS),
    Worker("kafka-reader-2", "kafka-reader", KAFKA_TOPICS),
)
# Native clients beside Kafka's in a run in which nothing but brokers ends.
BESIDE_BROKERS = tuple(worker for worker in WORKERS if worker.name in ("producer-1", "watcher"))
QUERY = Worker("query", "query", (EVEN, ODD))
FEW_WORKERS = tuple(
    worker
    for worker in WORKERS
    if worker.name in ("producer-1", "producer-2", "transactional-1", "copier-1", "reader-1", "maintainer", "watcher")
)


@dataclass(frozen=True)
class Pace:
    """How fast producers are: how many times as long they pause between batches, and how large those are."""

    pauses: float = 1.0
    batches: float = 1.0


@dataclass(frozen=True)
class Place:
    """The folder of a run, and the paths in it."""

    folder: Path

    @property
    def lake(self) -> Path:
        return self.folder / "lake"

    @property
    def journals(self) -> Path:
        return self.folder / "journals"

    @property
    def notes(self) -> Path:
        return self.folder / "power"

    @property
    def words(self) -> Path:
        """What workers print."""
        return self.folder / "words"

    @property
    def ports(self) -> list[int]:
        """Of the brokers, in their order."""
        return [int(port) for port in json.loads((self.folder / "ports.json").read_text())]

    @property
    def bootstrap(self) -> str:
        """Where Kafka's clients look for brokers."""
        return ",".join(f"127.0.0.1:{port}" for port in self.ports)

    @property
    def switch(self) -> Switch:
        return Switch(self.folder / "switch.json")

    @property
    def store(self) -> dict[str, Any]:
        """Of a lake in an object store, its address and options; {} for one on this disk."""
        path = self.folder / "store.json"
        return dict(json.loads(path.read_text())) if path.exists() else {}

    @property
    def address(self) -> str:
        """The lake's address, as Spark takes it."""
        return str(self.store.get("uri", f"file://{self.lake}"))

    def seen(self) -> Lake:
        """The lake as the run itself looks at it, without faults of its own."""
        store = self.store
        return Lake(store["uri"], options=store["options"]) if store else Lake(self.lake)

    @property
    def pace(self) -> Pace:
        return Pace(**json.loads((self.folder / "pace.json").read_text()))

    def make(self, store: Mapping[str, Any] | None = None, pace: Pace | None = None) -> None:
        """Make the folders, and the lake with its topics; `store`: the address and the options of one elsewhere."""
        for folder in (self.journals, self.notes, self.words):
            folder.mkdir(parents=True)
        if store:
            (self.folder / "store.json").write_text(json.dumps(store))
        (self.folder / "pace.json").write_text(json.dumps(asdict(pace or Pace())))
        (self.folder / "ports.json").write_text(json.dumps(_free_ports(len(BROKERS))))
        with self.seen() as lake:
            lake.alter_config(LAKE_CONFIG)
            for name, topic in TOPICS.items():
                lake.create_topic(name, PARTITIONS, topic.config)

    def open(self, worker: str, life: int, rng: Random) -> Lake:
        """The lake as a worker has it."""
        if self.store:
            return self.seen()
        notes = PowerNotes(self.notes, f"{worker}.{life}")
        storage = ChaosStorage(self.lake, worker, self.switch, notes, rng)
        return Lake(storage.uri, storage=storage, clock=SystemClock(), ids=SystemIds())

    def journals_of(self) -> Iterator[tuple[str, Path]]:
        """(worker and life, its journal), in the order in which they began."""
        for path in sorted(self.journals.glob("*.jsonl")):
            yield path.stem, path


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        taken = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [one.getsockname()[1] for one in taken]
