"""AdminClient: topics, configurations, records, offsets and consumer groups of a lake, as confluent-kafka's."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self, TypeVar

from tidelog.clients.admin import configs, group_requests, topic_requests
from tidelog.clients.admin.access import operations_told
from tidelog.clients.admin.answers import Answers, checked_timeout
from tidelog.clients.admin.checks import (
    check_flag,
    check_group_partitions,
    check_list,
    check_members,
    check_offset_specs,
    check_partitions,
    check_set,
)
from tidelog.clients.admin.configs import ConfigResource
from tidelog.clients.admin.enums import ConsumerGroupState, ConsumerGroupType, IsolationLevel, ResourceType
from tidelog.clients.admin.group_types import ConsumerGroupTopicPartitions, GroupMetadata, ListConsumerGroupsResult
from tidelog.clients.admin.refused_requests import RefusedRequests
from tidelog.clients.admin.topics import DescribeClusterResult, NewPartitions, NewTopic, OffsetSpec, TopicCollection
from tidelog.clients.cluster import BROKER_ID, ClusterMetadata, cluster_metadata, lake_node
from tidelog.clients.open_lake import open_lake
from tidelog.clients.settings import AdminSettings
from tidelog.clients.values.partitions import TopicPartition
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.lake import Lake
from tidelog.operations.groups import delete_group

R = TypeVar("R")


class AdminClient(RefusedRequests):
    """Looks after a lake: `AdminClient({"lake": "/data/lake"})`. All methods may be called from many threads.

    Methods answer with futures, one for each topic, partition, resource or group that a request names; `result()`
    raises KafkaException. `request_timeout`: seconds until the futures give up, 60 by default. `operation_timeout` is
    checked and not needed: what a future has answered, every client sees. Wrong arguments raise TypeError and
    ValueError at once. A context manager; a closed client raises RuntimeError.
    """

    def __init__(self, conf: Mapping[str, Any], **more: Any) -> None:
        self._opened = open_lake(AdminSettings.parse({**conf, **more}))
        self._lake = self._opened.lake
        self._groups = GroupLog(self._lake)
        self._answers = Answers(self._lake.clock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Wait for requests that are under way, and close the lake if this client opened it."""
        self._answers.close()
        self._opened.close()

    def cluster_id(self, timeout: float = -1) -> str:
        """Return the lake's address, which stands for the id of a cluster."""
        checked_timeout("timeout", timeout)
        return self._lake.uri

    def poll(self, timeout: float = -1) -> int:  # noqa: ARG002
        """Return 0, at once: an AdminClient has no callbacks to serve."""
        return 0

    # --- topics --------------------------------------------------------------------------------------------

    def create_topics(
        self,
        new_topics: Sequence[NewTopic],
        *,
        operation_timeout: float | None = None,
        request_timeout: float | None = None,
        validate_only: bool = False,
    ) -> dict[str, Future[None]]:
        """Create topics: {name: future of None}."""
        by_name = {new.topic: new for new in check_list("NewTopic objects", new_topics, NewTopic)}
        self._check(operation_timeout, validate_only=validate_only)
        return self._answers.each(
            by_name,
            lambda name: topic_requests.create_topic(self._lake, by_name[name], validate_only=validate_only),
            request_timeout,
        )

    def delete_topics(
        self,
        topics: Sequence[str],
        *,
        operation_timeout: float | None = None,
        request_timeout: float | None = None,
    ) -> dict[str, Future[None]]:
        """Delete topics and their records: {name: future of None}."""
        self._check(operation_timeout)
        return self._answers.each(check_list("topic strings", topics, str), self._lake.delete_topic, request_timeout)

    def create_partitions(
        self,
        new_partitions: Sequence[NewPartitions],
        *,
        operation_timeout: float | None = None,
        request_timeout: float | None = None,
        validate_only: bool = False,
    ) -> dict[str, Future[None]]:
        """Add partitions to topics: {name: future of None}."""
        by_name = {new.topic: new for new in check_list("NewPartitions objects", new_partitions, NewPartitions)}
        self._check(operation_timeout, validate_only=validate_only)
        return self._answers.each(
            by_name,
            lambda name: topic_requests.create_partitions(self._lake, by_name[name], validate_only=validate_only),
            request_timeout,
        )

    def list_topics(self, topic: str | None = None, timeout: float = -1) -> ClusterMetadata:
        """Return all topics but internal ones, or one. At once: raises KafkaException."""
        return self._now(lambda: cluster_metadata(self._lake, topic), timeout)

    def describe_topics(
        self,
        topics: TopicCollection,
        *,
        include_authorized_operations: bool = False,
        request_timeout: float | None = None,
    ) -> dict[str, Future[Any]]:
        """Describe topics: {name: future of TopicDescription}, with the operations that are allowed where asked for."""
        if not isinstance(topics, TopicCollection):
            raise TypeError("Expected input to be instance of TopicCollection")
        told = operations_told(ResourceType.TOPIC, include_authorized_operations)
        wanted = check_list("topic names", topics.topic_names, str)
        return self._answers.each(wanted, lambda t: topic_requests.describe_topic(self._lake, t, told), request_timeout)

    def describe_cluster(
        self, *, include_authorized_operations: bool = False, request_timeout: float | None = None
    ) -> Future[DescribeClusterResult]:
        """Describe the lake as a cluster of one broker."""
        told = operations_told(ResourceType.BROKER, include_authorized_operations)
        node = lake_node(self._lake)
        return self._answers.one(lambda: DescribeClusterResult(node, [node], self._lake.uri, told), request_timeout)

    # --- configurations ------------------------------------------------------------------------------------

    def describe_configs(
        self, resources: Sequence[ConfigResource], *, request_timeout: float | None = None
    ) -> dict[ConfigResource, Future[Any]]:
        """Tell configurations: {resource: future of {key: ConfigEntry}}."""
        wanted = check_list("ConfigResource objects", resources, ConfigResource)
        return self._answers.each(wanted, lambda r: configs.describe(self._lake, r), request_timeout)

    def alter_configs(
        self,
        resources: Sequence[ConfigResource],
        *,
        request_timeout: float | None = None,
        validate_only: bool = False,
    ) -> dict[ConfigResource, Future[None]]:
        """Replace configurations: keys that a resource does not set are reset. Deprecated, as in Kafka."""
        warnings.warn(
            "alter_configs resets every key that it does not set; use incremental_alter_configs instead.",
            category=DeprecationWarning,
            stacklevel=2,
        )
        wanted = check_list("ConfigResource objects", resources, ConfigResource)
        self._check(None, validate_only=validate_only)
        return self._answers.each(
            wanted, lambda r: configs.replace(self._lake, r, validate_only=validate_only), request_timeout
        )

    def incremental_alter_configs(
        self,
        resources: Sequence[ConfigResource],
        *,
        request_timeout: float | None = None,
        validate_only: bool = False,
        broker: int | None = None,
    ) -> dict[ConfigResource, Future[None]]:
        """Change the keys that the resources' `incremental_configs` name. `broker` is 0 or None: there is no other."""
        if broker not in (None, BROKER_ID):
            raise ValueError(f"broker must be {BROKER_ID}, the lake itself, not {broker!r}")
        wanted = check_list("ConfigResource objects", resources, ConfigResource)
        if not all(resource.incremental_configs for resource in wanted):
            raise ValueError("expected non-empty list of ConfigEntry to alter incrementally in incremental_configs")
        if not all(entry.incremental_operation for resource in wanted for entry in resource.incremental_configs):
            raise ValueError("expected an incremental_operation in each ConfigEntry")
        self._check(None, validate_only=validate_only)
        return self._answers.each(
            wanted, lambda r: configs.alter(self._lake, r, validate_only=validate_only), request_timeout
        )

    # --- records and offsets -------------------------------------------------------------------------------

    def delete_records(
        self,
        topic_partition_offsets: Sequence[TopicPartition],
        *,
        request_timeout: float | None = None,
        operation_timeout: float | None = None,
    ) -> dict[TopicPartition, Future[Any]]:
        """Delete the records below the partitions' offsets, OFFSET_END: all. {partition: future of DeletedRecords}."""
        partitions = check_partitions(topic_partition_offsets, "delete_records")
        self._check(operation_timeout)
        return self._by_topic({p: p.offset for p in partitions}, topic_requests.delete_records, request_timeout)

    def list_offsets(
        self,
        topic_partition_offsets: Mapping[TopicPartition, OffsetSpec],
        *,
        isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
        request_timeout: float | None = None,
    ) -> dict[TopicPartition, Future[Any]]:
        """Find offsets: {partition: future of ListOffsetsResultInfo}. Both isolation levels find the same."""
        check_offset_specs(topic_partition_offsets)
        if not isinstance(isolation_level, IsolationLevel):
            raise TypeError("isolation_level argument should be an IsolationLevel")
        return self._by_topic(topic_partition_offsets, topic_requests.list_offsets, request_timeout)

    def _by_topic(
        self,
        wanted: Mapping[TopicPartition, R],
        ask: Callable[[Lake, str, dict[int, R]], Mapping[int, object]],
        request_timeout: float | None,
    ) -> dict[TopicPartition, Future[Any]]:
        """One request a topic, and a future for each partition of it."""
        topics: dict[str, dict[int, R]] = {}
        for partition, value in wanted.items():
            topics.setdefault(partition.topic, {})[partition.partition] = value
        by_topic = self._answers.each(topics, lambda topic: ask(self._lake, topic, topics[topic]), request_timeout)
        return self._answers.each(
            wanted, lambda p: topic_requests.outcome(by_topic[p.topic].result()[p.partition]), request_timeout
        )

    # --- consumer groups -----------------------------------------------------------------------------------

    def list_groups(self, group: str | None = None, timeout: float = -1) -> list[GroupMetadata]:
        """Return all groups, or one, as Kafka's older tools see them. At once: raises KafkaException."""

        def listed() -> list[GroupMetadata]:
            node = lake_node(self._lake)
            views = self._groups.views() if group is None else {group: self._groups.view(group)}
            return [group_requests.metadata(view, node, name) for name, view in views.items()]

        return self._now(listed, timeout)

    def list_consumer_groups(
        self,
        *,
        states: set[ConsumerGroupState] | None = None,
        types: set[ConsumerGroupType] | None = None,
        request_timeout: float | None = None,
    ) -> Future[ListConsumerGroupsResult]:
        """List groups, those of some states and types only: future of ListConsumerGroupsResult."""
        check_set("states", states, ConsumerGroupState)
        check_set("types", types, ConsumerGroupType)

        def listed() -> ListConsumerGroupsResult:
            every = [group_requests.listing(view, name) for name, view in self._groups.views().items()]
            return ListConsumerGroupsResult(
                [one for one in every if (not states or one.state in states) and (not types or one.type in types)]
            )

        return self._answers.one(listed, request_timeout)

    def describe_consumer_groups(
        self,
        group_ids: Sequence[str],
        *,
        include_authorized_operations: bool = False,
        request_timeout: float | None = None,
    ) -> dict[str, Future[Any]]:
        """Describe groups and their members: {group id: future of ConsumerGroupDescription}."""
        told = operations_told(ResourceType.GROUP, include_authorized_operations)
        wanted = check_members("described", group_ids)
        node = lake_node(self._lake)
        return self._answers.each(
            wanted, lambda g: group_requests.describe(self._lake, self._groups, node, g, told), request_timeout
        )

    def delete_consumer_groups(
        self, group_ids: Sequence[str], *, request_timeout: float | None = None
    ) -> dict[str, Future[None]]:
        """Delete groups without members, and their offsets: {group id: future of None}."""
        wanted = check_members("deleted", group_ids)
        return self._answers.each(wanted, lambda g: delete_group(self._lake, self._groups, g), request_timeout)

    def list_consumer_group_offsets(
        self,
        list_consumer_group_offsets_request: Sequence[ConsumerGroupTopicPartitions],
        *,
        require_stable: bool = False,
        request_timeout: float | None = None,
    ) -> dict[str, Future[ConsumerGroupTopicPartitions]]:
        """Tell committed offsets: {group id: future of ConsumerGroupTopicPartitions}.

        `require_stable`: a group whose offsets wait for an open transaction fails with `UNSTABLE_OFFSET_COMMIT`.
        """
        check_flag("require_stable", require_stable)
        requests = check_group_partitions(list_consumer_group_offsets_request)
        return self._answers.each(
            requests,
            lambda g: group_requests.offsets(self._groups, requests[g], require_stable=require_stable),
            request_timeout,
        )

    def alter_consumer_group_offsets(
        self,
        alter_consumer_group_offsets_request: Sequence[ConsumerGroupTopicPartitions],
        *,
        request_timeout: float | None = None,
    ) -> dict[str, Future[ConsumerGroupTopicPartitions]]:
        """Set committed offsets of groups without members: {group id: future of ConsumerGroupTopicPartitions}."""
        requests = check_group_partitions(alter_consumer_group_offsets_request, offsets=True)
        return self._answers.each(
            requests, lambda g: group_requests.alter_offsets(self._lake, self._groups, requests[g]), request_timeout
        )

    def delete_consumer_group_offsets(
        self,
        delete_consumer_group_offsets_request: Sequence[ConsumerGroupTopicPartitions],
        *,
        request_timeout: float | None = None,
    ) -> dict[str, Future[ConsumerGroupTopicPartitions]]:
        """Delete committed offsets: {group id: future of ConsumerGroupTopicPartitions}, an `error` where one stays.

        The Java client's; confluent-kafka has no such method.
        """
        requests = check_group_partitions(delete_consumer_group_offsets_request, partitions=True)
        return self._answers.each(
            requests,
            lambda g: group_requests.delete_offsets(self._lake, self._groups, g, requests[g].topic_partitions or []),
            request_timeout,
        )

    # --- inside --------------------------------------------------------------------------------------------

    def _check(self, operation_timeout: float | None, *, validate_only: bool = False) -> None:
        checked_timeout("operation_timeout", operation_timeout)
        check_flag("validate_only", validate_only)

    def _now(self, work: Callable[[], R], timeout: float) -> R:
        found: R = self._answers.one(work, timeout).result()
        return found
