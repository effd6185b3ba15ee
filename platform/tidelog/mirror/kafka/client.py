"""Kafka by confluent-kafka: the adapter of `tidelog.mirror.kafka.source`."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from confluent_kafka import (
    TIMESTAMP_LOG_APPEND_TIME,
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConfigResource, ConfigSource, OffsetSpec  # type: ignore[attr-defined]

from tidelog.mirror.kafka.source import KafkaSourceError, Place, SourceGroups, SourceOffset, SourceTopic, Taken

_TIMEOUT_S: Final = 30.0
# What the mirror relies on, whatever its configuration says.
_CONSUMER: Final = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "auto.offset.reset": "error",
    "isolation.level": "read_committed",
    "enable.partition.eof": True,
    "check.crcs": True,
    "allow.auto.create.topics": False,
}
# The client goes on by itself after these.
_PASSING: Final = frozenset(
    {
        KafkaError._ALL_BROKERS_DOWN, KafkaError._TRANSPORT, KafkaError._RESOLVE, KafkaError._TIMED_OUT,
        # The consumer is in no group; the client looks for the coordinator of `group.id` all the same.
        KafkaError.GROUP_AUTHORIZATION_FAILED,
    }
)  # fmt: skip
_NO_TIMESTAMP_MS: Final = -1
# Why there is no connection that no waiting mends.
_NO_ENTRY: Final = frozenset({KafkaError._AUTHENTICATION, KafkaError._SSL})
_LOOKS: Final = 15


class ConfluentSource:
    """A cluster at `host:port[,host:port…]`. `config`: confluent-kafka's keys, for security among others."""

    def __init__(self, servers: str, config: Mapping[str, str]) -> None:
        self.address = f"kafka://{servers}"
        # What the client reports of its connections: why it could not log in, or does not trust the broker.
        self._reported = ""
        self._cluster = ""
        common: dict[str, Any] = {"log_level": 3, **config, "bootstrap.servers": servers}
        self._config = {"group.id": "tidelog-mirror", "fetch.wait.max.ms": 100, **common, **_CONSUMER}
        others = ("fetch.", "queued.", "group.")
        admin_keys: dict[str, Any] = {k: v for k, v in common.items() if not k.startswith(others)}
        admin_keys["error_cb"] = self._note
        with self._told():
            self._admin = AdminClient(admin_keys)
        self._consumer: Consumer | None = None

    def close(self) -> None:
        """End connections and threads."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    def _note(self, error: KafkaError) -> None:
        if error.code() in _NO_ENTRY:
            self._reported = error.str()

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Turn the client's errors into `KafkaSourceError`."""
        try:
            yield
        except (KafkaException, TimeoutError) as e:
            error = e.args[0] if e.args else None
            words = error.str() if isinstance(error, KafkaError) else str(error or "no answer in time")
            reported, self._reported = self._reported, ""
            raise KafkaSourceError(
                f"Kafka, or its client, refused: {reported or words}. Look at the address, at the keys of security"
                " (--config) and at what the user may do there."
            ) from e

    def cluster_id(self) -> str:
        """The cluster's id. A log-in that is refused is not waited for."""
        with self._told():
            for left in reversed(range(_LOOKS)):
                try:
                    self._cluster = str(self._admin.list_topics(timeout=_TIMEOUT_S / _LOOKS).cluster_id or "")
                    return self._cluster
                except KafkaException:
                    self._admin.poll(0)  # which calls `_note`
                    if self._reported or not left:
                        raise
        raise AssertionError

    def topics(self) -> dict[str, SourceTopic]:
        """Topics by name, with their configurations."""
        with self._told():
            names = [name for name in self._admin.list_topics(timeout=_TIMEOUT_S).topics if not name.startswith("__")]
            if not names:
                return {}
            described = self._admin.describe_topics(TopicCollection(names), request_timeout=_TIMEOUT_S)
            wanted = [ConfigResource(ConfigResource.Type.TOPIC, name) for name in names]
            configs = {r.name: f for r, f in self._admin.describe_configs(wanted, request_timeout=_TIMEOUT_S).items()}
            topics = {}
            for name, future in described.items():
                try:
                    topic, entries = future.result(_TIMEOUT_S), configs[name].result(_TIMEOUT_S)
                except KafkaException as e:
                    if e.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:  # deleted meanwhile
                        raise
                    continue
                if not topic.is_internal:
                    set_values = {
                        key: entry.value
                        for key, entry in entries.items()
                        if entry.value is not None and ConfigSource(entry.source) is not ConfigSource.DEFAULT_CONFIG
                    }
                    topics[name] = SourceTopic(
                        name, str(topic.topic_id), len(topic.partitions), set_values, frozenset(entries)
                    )
            return topics

    def ends(self, places: Collection[Place]) -> dict[Place, tuple[int, int]]:
        """{partition: (log start offset, last stable offset)}."""
        if not places:
            return {}
        starts = self._offsets(places, OffsetSpec.earliest())  # type: ignore[no-untyped-call]
        ends = self._offsets(places, OffsetSpec.latest())  # type: ignore[no-untyped-call]
        return {place: (starts[place], ends[place]) for place in places if place in starts and place in ends}

    def _offsets(self, places: Collection[Place], of: OffsetSpec) -> dict[Place, int]:
        offsets = {}
        with self._told():
            asked = self._admin.list_offsets(
                {TopicPartition(*place): of for place in places},
                isolation_level=IsolationLevel.READ_COMMITTED,
                request_timeout=_TIMEOUT_S,
            )
            for partition, future in asked.items():
                try:
                    offsets[partition.topic, partition.partition] = int(future.result(_TIMEOUT_S).offset)
                except KafkaException as e:
                    if not e.args[0].retriable() and e.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                        raise
        return offsets

    def follow(self, positions: Mapping[Place, int]) -> None:
        """Read from these offsets on, by a new consumer: nothing that an earlier one had fetched comes any more."""
        self.close()
        with self._told():
            self._consumer = Consumer(self._config)
            self._consumer.assign([TopicPartition(*place, offset) for place, offset in positions.items()])

    def take(self, most: int, timeout_s: float) -> dict[Place, Taken]:
        """What came of each partition."""
        by_place: dict[Place, Taken] = {}
        if self._consumer is None:
            return by_place
        with self._told():
            messages = self._consumer.consume(most, timeout_s)
        for message in messages:
            error, topic, partition = message.error(), message.topic(), message.partition()
            if topic is None or partition is None:
                if error is not None and error.code() not in _PASSING:
                    raise KafkaSourceError(f"Kafka's client reports: {error.str()}.")
                continue
            place = (topic, partition)
            taken = by_place.get(place)
            if taken is None:
                taken = by_place[place] = Taken()
            if taken.problem or taken.out_of_range:  # nothing after that follows what came before
                continue
            if error is None:
                _add(taken, message)
            elif error.code() == KafkaError._PARTITION_EOF:
                taken.reached = message.offset()
            elif error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
                taken.out_of_range = True
            else:
                taken.problem = f"Kafka's client reports: {error.str()}."
        return by_place

    def groups(self) -> SourceGroups:
        """Committed offsets by group."""
        if not self._cluster:
            self.cluster_id()
        with self._told():
            listed = self._admin.list_consumer_groups(request_timeout=_TIMEOUT_S).result(_TIMEOUT_S).valid
            names = sorted(one.group_id for one in listed)
            asked = {
                name: self._admin.list_consumer_group_offsets(
                    [ConsumerGroupTopicPartitions(name)], require_stable=True, request_timeout=_TIMEOUT_S
                )[name]
                for name in names
            }
        by_group: dict[str, dict[Place, SourceOffset]] = {}
        refused: dict[str, str] = {}
        for name, future in asked.items():
            try:
                partitions = future.result(_TIMEOUT_S).topic_partitions
            except KafkaException as e:
                if not e.args[0].retriable() and e.args[0].code() != KafkaError.GROUP_ID_NOT_FOUND:
                    refused[name] = f"Its offsets can't be read: {e.args[0].str()}."
                continue  # they wait for a transaction, or the group is gone
            except TimeoutError:  # of the future: the next look asks again
                continue
            by_group[name] = {
                (p.topic, p.partition): SourceOffset(p.offset, p.metadata or "", _epoch(p))
                for p in partitions
                if p.offset >= 0 and p.error is None
            }
        return SourceGroups(by_group, refused)


def _epoch(partition: TopicPartition) -> int:
    return -1 if partition.leader_epoch is None else int(partition.leader_epoch)


def _add(taken: Taken, message: Any) -> None:
    kind, timestamp = message.timestamp()
    key, value = message.key(), message.value()
    taken.offsets.append(message.offset())
    taken.keys.append(key)
    taken.values.append(value)
    taken.headers.append(message.headers())
    taken.timestamps.append(_NO_TIMESTAMP_MS if kind == TIMESTAMP_NOT_AVAILABLE else timestamp)
    taken.kinds.append(int(kind == TIMESTAMP_LOG_APPEND_TIME))
    taken.size += len(message) + (len(key) if key else 0)
