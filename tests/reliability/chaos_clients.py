"""What workers do, with the public clients: a role is a function of a life, which returns when the role is stopped."""

from collections.abc import Iterable
from contextlib import closing

from chaos_life import (
    DELIVERY_MS,
    PATIENCE_S,
    Acknowledgements,
    GivesUpError,
    Life,
    Transactions,
    is_broken,
    transactional_producer,
)
from chaos_plan import AUDIT, COPIERS, INPUT, OUTPUT, READERS, SESSION_MS, TOPICS
from history import Place as LogPlace

from tidelog.clients.consumer.consumer import Consumer
from tidelog.clients.producer.producer import Producer
from tidelog.clients.values.errors import KafkaError, KafkaException
from tidelog.clients.values.message import Message
from tidelog.clients.values.partitions import TopicPartition
from tidelog.groups.store.adapters import GroupsAndTransactions, LoggedOffsets
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.base.errors import TidelogError
from tidelog.log.lake import Lake
from tidelog.retention.maintenance import maintain
from tidelog.transactions.upkeep import TransactionUpkeep

# --- producing ---------------------------------------------------------------------------------------------


def produce(life: Life) -> None:
    """An idempotent producer (with acks=1 a plain one)."""
    told = Acknowledgements(life.journal)
    conf = {"acks": life.worker.acks, "delivery.timeout.ms": DELIVERY_MS, "on_delivery": told}
    with life.lake() as lake:
        producer = Producer({"lake": lake, **conf})
        try:
            while not life.stopped:
                _produce_some(life, producer)
                if life.rng.random() < 0.3:
                    producer.flush(5)
                producer.poll(0)
                told.write()
                life.breathe()
            if producer.flush(PATIENCE_S):
                raise GivesUpError("not everything was delivered")
        finally:
            producer.close(1)
            told.write()


def _produce_some(life: Life, producer: Producer) -> None:
    topic = life.rng.choice(life.worker.topics)
    values = life.batch(1, 20, 100, 200)
    life.journal.note("send", topic=topic, values=values)
    for value in values:
        while True:
            try:
                producer.produce(topic, value, key=f"k{life.rng.randrange(40)}")
                break
            except BufferError:
                producer.poll(0.1)


def produce_transactions(life: Life) -> None:
    """A transactional producer that writes to several topics, and changes its mind now and then."""
    with life.lake() as lake, closing(transactional_producer(life, lake)) as producer:
        transactions = Transactions(life, producer)
        while not life.stopped:
            name = transactions.begin()
            for topic in life.rng.sample(life.worker.topics, k=life.rng.choice([1, 2, 2])):
                transactions.send(topic, life.batch(1, 10, 50))
                if life.rng.random() < 0.1:
                    life.pause(0.1, 1.0)
            if life.rng.random() < 0.15:
                transactions.abort(f"{name} is not wanted")
            else:
                transactions.commit()
            life.breathe()


# --- consuming ---------------------------------------------------------------------------------------------


class Reading:
    """A member of a group that notes what it is assigned and what it reads."""

    def __init__(self, life: Life, lake: Lake, group: str, topics: Iterable[str], strategy: str) -> None:
        self._life = life
        self._group = group
        self.consumer = Consumer(
            {
                "lake": lake,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "session.timeout.ms": SESSION_MS,
                "heartbeat.interval.ms": SESSION_MS // 6,
                "max.poll.interval.ms": 30_000,
                "partition.assignment.strategy": strategy,
            }
        )
        self.consumer.subscribe(list(topics), on_assign=self._assigned, on_revoke=self._gave_up)

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._life.journal.note("assign", group=self._group, places=_places(partitions))

    def _gave_up(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._life.journal.note("give up", places=_places(partitions))

    def next(self, most: int) -> list[Message]:
        """The next records, noted. Raises `GivesUpError` when the consumer can't go on."""
        messages = self.consumer.consume(most, 0.3)
        for error in (m.error() for m in messages if m.error() is not None):
            self._life.journal.note("trouble", why=repr(error))
            if is_broken(KafkaException(error)):
                raise KafkaException(error)
            if error.fatal():
                raise GivesUpError(f"{error!r}")
        records = [m for m in messages if m.error() is None]
        if records:
            noted = [(m.topic(), m.partition(), m.offset(), m.value().decode()) for m in records]
            self._life.journal.note("read", records=noted)
        return records

    def rewind(self) -> None:
        """Go back to what is committed, as a program does after its transaction was aborted."""
        owned = self.consumer.assignment()
        committed = self._life.insist(lambda: self.consumer.committed(owned, timeout=5.0), "committed")
        self._life.journal.note("seek", group=self._group, places=_places(owned))
        for one in committed:
            self.consumer.seek(TopicPartition(one.topic, one.partition, max(one.offset, 0)))


def read(life: Life) -> None:
    """Reads all topics, and commits what it has noted."""
    with life.lake() as lake:
        reading = Reading(life, lake, READERS, TOPICS, "cooperative-sticky")
        with reading.consumer as consumer:
            owes = False
            while not life.stopped:
                owes = bool(reading.next(1_000)) or owes
                if not owes or life.rng.random() < 0.2:
                    continue
                try:
                    consumer.commit(asynchronous=False)
                    owes = False
                except KafkaException as e:  # a next owner reads these again
                    life.journal.note("not committed", why=e.args[0].name())
                    owes = e.args[0].code() != KafkaError._NO_OFFSET


def copy(life: Life) -> None:
    """Reads, transforms and produces, with its offsets in the transaction."""
    with life.lake() as lake, closing(transactional_producer(life, lake)) as producer:
        transactions = Transactions(life, producer)
        reading = Reading(life, lake, COPIERS, [INPUT], "range")
        with reading.consumer:
            while not life.stopped:
                records = reading.next(life.rng.choice([20, 200, 500]))
                if not records:
                    continue
                if life.rng.random() < 0.1:
                    life.pause(0.1, 2.0)  # the transformation takes its time
                if not _copied(life, transactions, producer, reading, records):
                    reading.rewind()


def _copied(
    life: Life, transactions: Transactions, producer: Producer, reading: Reading, records: list[Message]
) -> bool:
    """Whether the transaction that copies these records is committed."""
    transactions.begin()
    transactions.send(OUTPUT, [f"{life.value()}<{m.topic()}/{m.partition()}/{m.offset()}" for m in records])
    transactions.send(AUDIT, [life.value()])
    behind: dict[LogPlace, int] = {(m.topic(), m.partition()): m.offset() + 1 for m in records}
    positions = [TopicPartition(topic, partition, offset) for (topic, partition), offset in behind.items()]
    try:
        producer.send_offsets_to_transaction(positions, reading.consumer.consumer_group_metadata())
    except KafkaException as e:
        error = e.args[0]
        if error.fatal():
            raise GivesUpError(f"send_offsets_to_transaction: {error!r}") from e
        transactions.abort(error.name())
        return False
    if life.rng.random() < 0.05:
        transactions.abort("changed its mind")
        return False
    return transactions.commit()


def _places(partitions: list[TopicPartition]) -> list[LogPlace]:
    return [(one.topic, one.partition) for one in partitions]


# --- looking after the lake --------------------------------------------------------------------------------


def maintain_lake(life: Life) -> None:
    """Runs maintenance over and over. What it reports as failed is noted; data that is broken ends it."""
    with life.lake() as lake:
        while not life.stopped:
            groups = GroupLog(lake)
            transactions = TransactionUpkeep(lake, LoggedOffsets(groups))
            try:
                report = maintain(
                    lake, groups=GroupsAndTransactions(groups, transactions), needed=transactions.needed_files
                )
                failures = [f"{topic}, {one.part}: {one.message}" for topic, one in report.failures()]
                life.journal.note("maintained", failures=failures)
            except TidelogError as e:
                if is_broken(e):
                    raise
                life.journal.note("not maintained", why=f"{type(e).__name__}: {e}")
            life.pause(0.5, 2.0)


def watch(life: Life) -> None:
    """Looks at all bounds and committed offsets, in one lake that stays open."""
    with life.lake() as lake:
        groups = {
            group: Consumer({"lake": lake, "group.id": group, "enable.auto.commit": False})
            for group in (COPIERS, READERS)
        }
        while not life.stopped:
            try:
                committed = [found for group in groups for found in _committed(groups[group], group, lake)]
                bounds = [
                    (topic, partition, start, end)
                    for topic in TOPICS
                    for partition, (start, end) in lake.offsets(topic).items()
                ]
                life.journal.note("look", bounds=bounds, committed=committed)
            except (KafkaException, TidelogError) as e:
                if is_broken(e):
                    raise
                life.journal.note("not seen", why=f"{type(e).__name__}: {e}")
            life.pause(0.1, 0.6)
        for consumer in groups.values():
            consumer.close()


def _committed(consumer: Consumer, group: str, lake: Lake) -> list[tuple[str, str, int, int]]:
    places = [TopicPartition(topic, p) for topic in TOPICS for p in lake.offsets(topic)]
    try:
        found = consumer.committed(places, timeout=0.2)
    except KafkaException as e:
        if e.args[0].code() != KafkaError.UNSTABLE_OFFSET_COMMIT:
            raise
        return []  # they wait for a transaction
    return [(group, one.topic, one.partition, one.offset) for one in found if one.offset >= 0]
