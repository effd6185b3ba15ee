"""What every worker has: its journal, its lake, and the words for its requests and their answers."""

import time
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

from chaos_plan import TRANSACTION_TIMEOUT_MS, Place, Worker
from journals import JournalFile

from tidelog.clients.producer.producer import Producer
from tidelog.clients.values.errors import KafkaError, KafkaException
from tidelog.clients.values.message import Message
from tidelog.log.base.errors import CorruptLogError, CorruptSegmentError
from tidelog.log.lake import Lake

# A worker goes on for so long against a fault, then leaves it to its successor. Seconds.
PATIENCE_S = 20.0
DELIVERY_MS = 30_000
# A replicated store's calls take about this many times as long as a local disk's.
SLOW_STORE = 12.0


class GivesUpError(Exception):
    """The worker's client can't go on: a successor takes over."""


def is_broken(error: BaseException) -> bool:
    """Whether an error says that data is damaged, which no fault of a run explains."""
    if isinstance(error, KafkaException):
        return bool(error.args[0].code() == KafkaError.INVALID_MSG)
    return isinstance(error, CorruptLogError | CorruptSegmentError)


class Life:
    """One run of a worker, until it ends or is killed."""

    def __init__(self, place: Place, worker: Worker, number: int, rng: Random) -> None:
        self.place = place
        self.worker = worker
        self.number = number
        self.rng = rng
        self.name = f"{worker.name}.{number}"
        self.journal = JournalFile(place.journals / f"{worker.name}.{number:04}.jsonl")
        self._switch = place.switch
        self._pace = place.pace
        self._values = 0
        self._transactions = 0

    def lake(self) -> Lake:
        """The lake, with the faults of the run."""
        return self.place.open(self.worker.name, self.number, self.rng)

    @property
    def stopped(self) -> bool:
        """Whether the role is to end."""
        return self.worker.role in self._switch.get().stopped

    def pause(self, least_s: float, most_s: float) -> None:
        """Do something else meanwhile."""
        time.sleep(self.rng.uniform(least_s, most_s))

    def breathe(self) -> None:
        """A producer's pause between batches: longer where the store's calls are, so that copiers can follow."""
        pace = (SLOW_STORE if self.place.store else 1.0) * self._pace.pauses
        self.pause(0.02 * pace, 0.15 * pace)

    def batch(self, *sizes: int) -> list[str]:
        """Values that no other worker writes: about as many as one of the sizes says."""
        size = max(1, round(self.rng.choice(sizes) * self._pace.batches))
        return [self.value() for _ in range(size)]

    def value(self) -> str:
        """A value that no other worker writes."""
        self._values += 1
        return f"{self.name}:{self._values}"

    def transaction(self) -> str:
        """A name that no other transaction has."""
        self._transactions += 1
        return f"{self.name}#{self._transactions}"

    def insist(self, call: Callable[[], Any], what: str) -> Any:
        """Repeat a call while its error is no fatal one. Raises `GivesUpError` when patience is over."""
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                return call()
            except KafkaException as e:
                error = e.args[0]
                if is_broken(e):
                    raise
                if error.fatal() or time.monotonic() > until:
                    raise GivesUpError(f"{what}: {error!r}") from e
                self.journal.note("again", what=what, why=error.name())
                self.pause(0.05, 0.5)


class Acknowledgements:
    """Delivery callbacks, noted once they have come."""

    def __init__(self, journal: JournalFile) -> None:
        self._journal = journal
        self._acked: dict[str, list[tuple[int, int, str, str | None]]] = {}
        self._took_ms: list[float] = []
        self.fatal: KafkaError | None = None

    def __call__(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._journal.note("failed", value=message.value().decode(), why=error.name())
            self.fatal = error if error.fatal() else self.fatal
            return
        key = message.key()
        self._took_ms.append(round((message.latency() or 0.0) * 1000, 1))
        self._acked.setdefault(message.topic(), []).append(
            (message.partition(), message.offset(), message.value().decode(), None if key is None else key.decode())
        )

    def write(self) -> None:
        """Note those that came since the last time."""
        for topic, records in self._acked.items():
            self._journal.note("acked", topic=topic, records=records)
        if self._took_ms:
            self._journal.note("took", ms=self._took_ms)
        self._acked.clear()
        self._took_ms.clear()
        if self.fatal is not None:
            raise GivesUpError(f"{self.fatal!r}")


class Transactions:
    """A producer's transactions, noted before and after each call."""

    def __init__(self, life: Life, producer: Producer) -> None:
        self._life = life
        self._producer = producer
        self._name = ""

    def begin(self) -> str:
        """Begin one; returns its name."""
        self._name = self._life.transaction()
        self._life.journal.note("begin", txn=self._name)
        self._producer.begin_transaction()
        return self._name

    def send(self, topic: str, values: Iterable[str]) -> None:
        """Produce values within it."""
        wanted = list(values)
        self._life.journal.note("send", topic=topic, values=wanted, txn=self._name)
        for value in wanted:
            self._producer.produce(topic, value, key=value[-2:])

    def commit(self) -> bool:
        """Commit, however often it takes; False when it had to be aborted. Raises `GivesUpError`."""
        self._life.journal.note("committing", txn=self._name)
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                self._producer.commit_transaction()
            except KafkaException as e:
                error = e.args[0]
                if is_broken(e):
                    raise
                if error.txn_requires_abort():
                    self.abort(str(error.name()))
                    return False
                if error.fatal() or time.monotonic() > until:
                    raise GivesUpError(f"commit: {error!r}") from e
                self._life.journal.note("again", what="commit", why=error.name())
                self._life.pause(0.05, 0.5)
            else:
                self._life.journal.note("committed", txn=self._name)
                return True

    def abort(self, why: str) -> None:
        """Abort, or finish what turns out to be committed. Raises `GivesUpError`."""

        def give_up() -> str:
            try:
                self._producer.abort_transaction()
            except KafkaException as e:
                if e.args[0].code() != KafkaError._STATE:
                    raise
                self._producer.commit_transaction()
                return "committed"
            return "aborted"

        told = self._life.insist(give_up, "abort")
        self._life.journal.note(told, txn=self._name, why=why)


def transactional_producer(life: Life, lake: Lake) -> Producer:
    """A producer that has taken over from the worker's last life."""
    producer = Producer(
        {
            "lake": lake,
            "transactional.id": life.worker.name,
            "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
            "delivery.timeout.ms": DELIVERY_MS,
        }
    )
    life.insist(producer.init_transactions, "init_transactions")
    life.journal.note("took over")
    return producer
