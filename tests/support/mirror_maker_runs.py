"""MirrorMaker 2 between Kafka and brokers, both ways at once, with groups' offsets translated; killed meanwhile."""

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition
from support.kafka_connect import mirror_maker
from support.kafka_programs import JavaProgram
from support.streams_runs import FIRST_MS, PARTITIONS, Text, create, reading, send
from support.waiting import eventually

_LIMIT_S = 180.0
# By the cluster that it goes from: its topic and its group.
_FLOWS = {"kafka": ("orders", "billing"), "tidelog": ("returns", "refunds")}

Records = dict[int, list[tuple[str, str, int]]]


def both_ways(addresses: Mapping[str, str], folder: Path, records: int) -> None:
    """Mirror a topic of each cluster into the other one; MirrorMaker is killed amid it and started again.

    `addresses`: of `kafka` and `tidelog`. Each record arrives once, in its partition and order and with its time. A
    group that moves goes on at its translated offset: it misses nothing that it has not read.
    """
    done: dict[str, dict[int, int]] = {}
    for cluster, (topic, group) in _FLOWS.items():
        create(addresses[cluster], topic)
        send(addresses[cluster], {topic: _texts(topic, 0, records // 2)})
        done[cluster] = _consume(addresses[cluster], topic, group, records // 4)
    settings = _settings(addresses)
    mirror = mirror_maker(folder, settings)
    try:
        for cluster, other in (("kafka", "tidelog"), ("tidelog", "kafka")):
            topic = f"{cluster}.{_FLOWS[cluster][0]}"
            _await_records(mirror, addresses[other], topic)
        mirror.kill()
        mirror.__exit__()
        mirror = mirror_maker(folder, settings)
        for cluster, (topic, _) in _FLOWS.items():
            send(addresses[cluster], {topic: _texts(topic, records // 2, records)})
        for cluster, other in (("kafka", "tidelog"), ("tidelog", "kafka")):
            topic, group = _FLOWS[cluster]
            sent = _read(addresses[cluster], topic, records)
            there = _read(addresses[other], f"{cluster}.{topic}", records)
            assert there == sent, f"{cluster}.{topic} in {other} is not {topic} in {cluster}"
            _check_group(addresses[other], f"{cluster}.{topic}", group, done[cluster], there)
        # It says "Could not alter configuration" in any case, and the error only where there is one.
        assert "InvalidConfigurationException" not in mirror.said(), mirror.said()[-3000:]
        assert mirror.end() in (0, 143), mirror.said()[-3000:]
    finally:
        mirror.__exit__()


def _await_records(mirror: JavaProgram, address: str, topic: str) -> None:
    def there() -> bool:
        assert mirror.process.poll() is None, mirror.said()[-3000:]
        return _count(address, topic) > 0

    eventually(there, f"records in {topic}", _LIMIT_S)


def _settings(addresses: Mapping[str, str]) -> dict[str, object]:
    settings: dict[str, object] = {
        "clusters": ", ".join(addresses),
        **{f"{cluster}.bootstrap.servers": address for cluster, address in addresses.items()},
        "plugin.discovery": "service_load",
        "replication.factor": 1,
        "checkpoints.topic.replication.factor": 1,
        "heartbeats.topic.replication.factor": 1,
        "offset-syncs.topic.replication.factor": 1,
        "offset.storage.replication.factor": 1,
        "status.storage.replication.factor": 1,
        "config.storage.replication.factor": 1,
        "refresh.topics.interval.seconds": 2,
        "refresh.groups.interval.seconds": 2,
        "emit.checkpoints.interval.seconds": 1,
        "sync.group.offsets.enabled": "true",
        "sync.group.offsets.interval.seconds": 1,
        "sync.topic.acls.enabled": "false",
        "offset.lag.max": 0,
        **{f"{cluster}.exactly.once.source.support": "enabled" for cluster in addresses},
        "dedicated.mode.enable.internal.rest": "true",
        "listeners": "http://127.0.0.1:0",
        "session.timeout.ms": 6000,
        "heartbeat.interval.ms": 1000,
        "scheduled.rebalance.max.delay.ms": 0,
        "consumer.isolation.level": "read_committed",
    }
    for cluster, other in (("kafka", "tidelog"), ("tidelog", "kafka")):
        topic, group = _FLOWS[cluster]
        flow = f"{cluster}->{other}"
        settings |= {f"{flow}.enabled": "true", f"{flow}.topics": topic, f"{flow}.groups": group}
    return settings


def _texts(topic: str, first: int, after: int) -> list[Text]:
    return [Text(f"k{n % 50}", f"{topic} {n}", FIRST_MS + n) for n in range(first, after)]


def _consume(address: str, topic: str, group: str, count: int) -> dict[int, int]:
    """Read `count` records as a member of the group, and commit; where it goes on in each partition."""
    told = {"bootstrap.servers": address, "group.id": group, "auto.offset.reset": "earliest"}
    consumer = Consumer({**told, "enable.auto.commit": False})
    try:
        consumer.subscribe([topic])
        seen: list[object] = []

        def enough() -> bool:
            seen.extend(consumer.consume(count - len(seen), 0.2))
            return len(seen) >= count

        eventually(enough, f"{group} has read {count} records", _LIMIT_S)
        consumer.commit(asynchronous=False)
        places = consumer.committed([TopicPartition(topic, p) for p in range(PARTITIONS)], 30)
        return {place.partition: max(place.offset, 0) for place in places}
    finally:
        consumer.close()


def _check_group(address: str, topic: str, group: str, done: dict[int, int], there: Records) -> None:
    """The group's offset in the other cluster is behind no record that it has not read, and it moved."""
    places = [TopicPartition(topic, partition) for partition, count in done.items() if count]
    consumer = Consumer({"bootstrap.servers": address, "group.id": group, "enable.auto.commit": False})
    try:
        eventually(
            lambda: all(one.offset > 0 for one in consumer.committed(places, 30)), f"{group} is translated", _LIMIT_S
        )
        for place in consumer.committed(places, 30):
            consumer.assign([place])
            found: list[str] = []

            def first(found: list[str] = found) -> bool:
                found.extend(one.value().decode() for one in consumer.consume(1, 0.2))
                return bool(found)

            eventually(first, f"a record of {topic} at {place.offset}", _LIMIT_S)
            at = [value for _, value, _ in there[place.partition]].index(found[0])
            assert 0 < at <= done[place.partition], f"{group} read {done} and goes on at {at} in {place.partition}"
    finally:
        consumer.close()


def _count(address: str, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": address, "group.id": "count"})
    try:
        partitions = consumer.list_topics(topic, 30).topics[topic].partitions
        return sum(consumer.get_watermark_offsets(TopicPartition(topic, p), 30)[1] for p in partitions)
    finally:
        consumer.close()


def _read(address: str, topic: str, count: int) -> Records:
    """All records of a topic by partition: keys, values and times, as soon as there are `count`."""
    found: Records = defaultdict(list)

    with reading(address, topic) as consumer:

        def whole() -> bool:
            for one in consumer.consume(2000, 0.2):
                assert one.error() is None, one.error()
                found[one.partition()].append((one.key().decode(), one.value().decode(), one.timestamp()[1]))
            return sum(map(len, found.values())) >= count

        eventually(whole, f"{count} records in {topic}", _LIMIT_S)
        for one in consumer.consume(1, 1.0):
            raise AssertionError(f"{topic} has more than {count} records: {one.value()!r}")
    return found
