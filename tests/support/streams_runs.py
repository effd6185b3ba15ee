"""Runs of Kafka Streams over brokers: killed amid their input and started again, compared with the data."""

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from support.kafka_programs import JavaProgram, streams
from support.waiting import eventually

PARTITIONS = 2
FIRST_MS = 1_700_000_000_000
# As StreamsPrograms.java has it.
JOINED_WITHIN_MS = 10_000
_WORDS = (
    "the",
    "quick",
    "brown",
    "fox",
    "jumps",
    "over",
    "a",
    "lazy",
    "dog",
    "and",
    "runs",
    "away",
    "from",
    "its",
    "tail",
)
_LIMIT_S = 240.0
_SENT_S = 60.0


class Text(NamedTuple):
    """A record of texts."""

    key: str | None
    value: str | None
    timestamp_ms: int


def create(address: str, *topics: str, partitions: int = PARTITIONS) -> None:
    """Create topics, and wait until they are there."""
    admin = AdminClient({"bootstrap.servers": address})
    for made in admin.create_topics([NewTopic(name, partitions, 1) for name in topics]).values():
        made.result(_SENT_S)


def send(address: str, records: Mapping[str, list[Text]]) -> None:
    """Send records of several topics, each in its order, side by side. Keys go where Java's clients put them."""
    producer = Producer(
        {"bootstrap.servers": address, "enable.idempotence": True, "partitioner": "murmur2_random", "linger.ms": 5}
    )
    longest = max(map(len, records.values()))
    for number in range(longest):
        for topic, texts in records.items():
            if number < len(texts):
                one = texts[number]
                producer.produce(topic, one.value, one.key, timestamp=one.timestamp_ms)
        producer.poll(0)
    assert producer.flush(_SENT_S) == 0


@contextmanager
def reading(address: str, topic: str) -> Iterator[Consumer]:
    """A consumer that reads all of a topic's partitions from their beginning."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": "look", "isolation.level": "read_committed"})
    try:
        partitions = consumer.list_topics(topic, _SENT_S).topics[topic].partitions
        consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
        yield consumer
    finally:
        consumer.close()


def word_count(
    address: str,
    folder: Path,
    lines: int,
    kills: int,
    *,
    protocol: str = "classic",
    at_rest: Callable[[], None] = lambda: None,
) -> None:
    """Count words, and be killed `kills` times meanwhile. Each count of each word comes once and in its order.

    `protocol`: that of the group; of "streams" two members share the work, and the killed one's goes to the other one.
    `at_rest`: is called when all are counted, before the members end.
    """
    rng = random.Random(7)
    texts = [Text(None, " ".join(rng.choices(_WORDS, k=5)), FIRST_MS + number) for number in range(lines)]
    wanted = Counter(word for one in texts for word in str(one.value).split())
    create(address, "lines", "counts")
    found: dict[str, list[int]] = defaultdict(list)

    def keep(key: str, value: str) -> None:
        found[key].append(int(value))

    total = sum(wanted.values())
    _run("word-count", address, folder, {"lines": texts}, "counts", total, kills, keep, protocol, at_rest)
    assert found == {word: list(range(1, count + 1)) for word, count in wanted.items()}, _differing(found, wanted)


def sensor_join(address: str, folder: Path, records: int, kills: int) -> None:
    """Join two topics by windows, and be killed `kills` times meanwhile. Each pair comes once."""
    rng = random.Random(8)
    sides = {
        side: [
            Text(f"k{rng.randrange(20)}", f"{side}{number}", FIRST_MS + 500 * number + rng.randrange(3000))
            for number in range(records)
        ]
        for side in ("left", "right")
    }
    by_key: dict[str | None, list[Text]] = defaultdict(list)
    for one in sides["right"]:
        by_key[one.key].append(one)
    wanted = Counter(
        (one.key, f"{one.value}/{other.value}")
        for one in sides["left"]
        for other in by_key[one.key]
        if abs(one.timestamp_ms - other.timestamp_ms) <= JOINED_WITHIN_MS
    )
    create(address, "left", "right", "joined")
    found: Counter[tuple[str, str]] = Counter()

    def keep(key: str, value: str) -> None:
        found[key, value] += 1

    _run("sensor-join", address, folder, sides, "joined", sum(wanted.values()), kills, keep)
    assert found == wanted, f"{len(wanted - found)} pairs are missing, {len(found - wanted)} are too many"


def _run(
    program: str,
    address: str,
    folder: Path,
    records: Mapping[str, list[Text]],
    out: str,
    count: int,
    kills: int,
    keep: Callable[[str, str], None],
    protocol: str = "classic",
    at_rest: Callable[[], None] = lambda: None,
) -> None:
    """Send the records in parts, a kill amid each, and keep what comes out until `count` came and all is at rest."""
    seen = 0
    with reading(address, out) as consumer:

        def read() -> bool:
            nonlocal seen
            for message in consumer.consume(2000, 0.2):
                assert message.error() is None, message.error()
                keep(message.key().decode(), message.value().decode())
                seen += 1
            return seen >= wanted

        # Restarted at once, not after the time-out of the member that was killed.
        settings: dict[str, object] = {"commit.interval.ms": 100}
        if protocol == "classic":
            settings |= {"session.timeout.ms": 6000, "heartbeat.interval.ms": 1000}
        else:
            settings |= {"group.protocol": protocol}
        folders = [folder] if protocol == "classic" else [folder / "one", folder / "other"]
        running = [streams(program, address, f"own-{program}", own, settings) for own in folders]
        try:
            for part in range(kills + 1):
                send(address, {topic: _part(texts, part, kills + 1) for topic, texts in records.items()})
                # A kill comes when some of this part is out, and not all of it.
                wanted = count if part == kills else seen + max(1, (count - seen) // (4 * (kills + 1 - part)))
                eventually(lambda: _alive(running[0]) and read(), f"{wanted} of {count} records in {out}", _LIMIT_S)
                if part < kills:
                    running[0].kill()
                    running[0].__exit__()
                    running[0] = streams(program, address, f"own-{program}", folders[0], settings)
            at_rest()
            for one in running:
                assert one.end() in (0, 143), one.said()[-3000:]
        finally:
            for one in running:
                one.__exit__()
        ends = [consumer.get_watermark_offsets(place, _SENT_S)[1] for place in consumer.assignment()]
        assert sum(ends) == count, f"{sum(ends)} records are in {out}, not {count}"


def _alive(program: JavaProgram) -> bool:
    assert program.process.poll() is None, program.said()[-3000:]
    return True


def _part(texts: list[Text], part: int, parts: int) -> list[Text]:
    return texts[len(texts) * part // parts : len(texts) * (part + 1) // parts]


def _differing(found: Mapping[str, list[int]], wanted: Mapping[str, int]) -> str:
    wrong = {word: (len(found.get(word, [])), count) for word, count in wanted.items()}
    return f"records and count by word: {wrong}"
