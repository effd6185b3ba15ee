"""What brokers and unmodified Kafka clients do in a chaos run: brokers over a lake with faults, and librdkafka."""

import asyncio
import signal
from contextlib import suppress
from typing import Any

import confluent_kafka
from chaos_life import GivesUpError, Life
from chaos_plan import BROKERS, KAFKA_READERS, KAFKA_TOPICS, SESSION_MS
from history import Place as LogPlace

from tidelog.broker.base.settings import BrokerSettings
from tidelog.broker.broker import Broker
from tidelog.log.base.errors import TidelogError
from tidelog.server.base.listener_settings import ListenerSettings

# librdkafka's errors that end by themselves: it looks for brokers again.
_PASSING = frozenset(
    {
        confluent_kafka.KafkaError._TRANSPORT,
        confluent_kafka.KafkaError._ALL_BROKERS_DOWN,
        confluent_kafka.KafkaError._RESOLVE,
        confluent_kafka.KafkaError._TIMED_OUT,
    }
)
# Longer than any run: where a record's time is up, librdkafka begins another epoch, and sends the records of other
# batches again in it that may be there already (its issue 4953). It does so to Kafka, too.
_DELIVERY_MS = 3_600_000
_FLUSH_S = 120.0


def serve(life: Life) -> None:
    """A broker, until its role is stopped, or until SIGTERM drains it: then a successor takes over."""
    with life.lake() as lake:
        number = BROKERS.index(life.worker.name) + 1
        address = ("127.0.0.1", life.place.ports[number - 1])
        listeners = {"PLAINTEXT": ListenerSettings(*address)}
        settings = BrokerSettings(listeners, id=number, drain_s=2.0, topic_leaders="all")
        if not asyncio.run(_until_stopped(life, Broker, lake, settings)):
            raise GivesUpError("drained")


async def _until_stopped(life: Life, make: type[Broker], lake: object, settings: BrokerSettings) -> bool:
    """Serve; True where the role has ended, False where this process is asked to end."""
    asked, loop = asyncio.Event(), asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, asked.set)
    broker = make(lake, settings)  # type: ignore[arg-type]
    try:
        await broker.start()
        life.journal.note("serves")
        while not asked.is_set() and not life.stopped:
            with suppress(TimeoutError):
                await asyncio.wait_for(asked.wait(), 0.2)
    except TidelogError as e:
        life.journal.note("does not serve", why=f"{type(e).__name__}: {e}")
    await broker.close()
    return life.stopped


def produce(life: Life) -> None:
    """An idempotent producer of librdkafka's, with delivery callbacks."""
    acked: dict[str, list[tuple[int, int, str, str | None]]] = {}
    took_ms: list[float] = []
    fatal: list[confluent_kafka.KafkaError] = []
    counted: dict[tuple[str, int], int] = {}

    def delivered(error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
        value, place = message.value().decode(), (message.topic(), message.partition())
        offset = -1 if message.offset() is None else message.offset()
        if error is not None:
            life.journal.note("failed", value=value, why=error.name())
        elif offset in (-1, counted.get(place)):
            # A repeat, whose offset the broker does not know. librdkafka counts on from -1 for the batch's records.
            counted[place] = offset + 1
            life.journal.note("repeated", values=[value])
        else:
            record = (message.partition(), offset, value, message.key().decode())
            acked.setdefault(message.topic(), []).append(record)
            took_ms.append(round(message.latency() * 1000, 1))
            counted.pop(place, None)

    def failed(error: confluent_kafka.KafkaError) -> None:
        if error.fatal():
            fatal.append(error)
        if error.code() not in _PASSING:
            life.journal.note("trouble", why=f"{error!r}")

    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": life.place.bootstrap,
            "enable.idempotence": True,
            "delivery.timeout.ms": _DELIVERY_MS,
            "linger.ms": 5,
            "compression.type": life.rng.choice(["none", "zstd"]),
            "error_cb": failed,
        }
    )
    try:
        while not life.stopped:
            topic = life.rng.choice(life.worker.topics)
            values = life.batch(1, 20, 100)
            life.journal.note("send", topic=topic, values=values)
            for value in values:
                _send(life, producer, topic, value, delivered)
            producer.poll(0)
            _write(life, acked, fatal)
            if took_ms:
                life.journal.note("took", ms=took_ms)
                took_ms.clear()
            life.breathe()
        if producer.flush(_FLUSH_S):
            raise GivesUpError("not everything was delivered")
    finally:
        producer.flush(1)
        _write(life, acked, [])


def _send(life: Life, producer: confluent_kafka.Producer, topic: str, value: str, delivered: Any) -> None:
    while True:
        try:
            producer.produce(topic, value, key=f"k{life.rng.randrange(40)}", on_delivery=delivered)
            return
        except BufferError:
            producer.poll(0.1)


def _write(
    life: Life, acked: dict[str, list[tuple[int, int, str, str | None]]], fatal: list[confluent_kafka.KafkaError]
) -> None:
    for topic, records in acked.items():
        life.journal.note("acked", topic=topic, records=records)
    acked.clear()
    if fatal:
        raise GivesUpError(f"{fatal[0]!r}")


def read(life: Life) -> None:
    """A member of a group, by librdkafka: it commits what it has noted."""

    def assigned(_: confluent_kafka.Consumer, partitions: list[confluent_kafka.TopicPartition]) -> None:
        life.journal.note("assign", group=KAFKA_READERS, places=_places(partitions))

    def gave_up(_: confluent_kafka.Consumer, partitions: list[confluent_kafka.TopicPartition]) -> None:
        life.journal.note("give up", places=_places(partitions))

    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": life.place.bootstrap,
            "group.id": KAFKA_READERS,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": SESSION_MS,
            "heartbeat.interval.ms": SESSION_MS // 6,
            "partition.assignment.strategy": "range",
        }
    )
    consumer.subscribe(list(KAFKA_TOPICS), on_assign=assigned, on_revoke=gave_up, on_lost=gave_up)
    try:
        owes = False
        while not life.stopped:
            owes = _read_some(life, consumer, owes=owes)
    finally:
        consumer.close()


def _read_some(life: Life, consumer: confluent_kafka.Consumer, *, owes: bool) -> bool:
    """Read what comes next; whether something is left to commit."""
    messages = consumer.consume(1_000, 0.3)
    for error in (message.error() for message in messages if message.error() is not None):
        if error.code() not in _PASSING:
            life.journal.note("trouble", why=f"{error!r}")
        if error.fatal():
            raise GivesUpError(f"{error!r}")
    noted = [(m.topic(), m.partition(), m.offset(), m.value().decode()) for m in messages if m.error() is None]
    if noted:
        life.journal.note("read", records=noted)
    owes = bool(noted) or owes
    if not owes or life.rng.random() < 0.5:
        return owes
    try:
        consumer.commit(asynchronous=False)
    except confluent_kafka.KafkaException as e:  # a next owner reads these again
        life.journal.note("not committed", why=e.args[0].name())
        return bool(e.args[0].code() != confluent_kafka.KafkaError._NO_OFFSET)
    return False


def _places(partitions: list[confluent_kafka.TopicPartition]) -> list[LogPlace]:
    return [(one.topic, one.partition) for one in partitions]
