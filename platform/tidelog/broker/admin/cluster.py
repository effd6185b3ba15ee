"""What describes a cluster, and the requests about brokers and features that a cluster of this kind has no use for."""

from typing import Any, Final

from tidelog.broker.admin.refusals import result
from tidelog.broker.base.access import NOT_ASKED, cluster_operations
from tidelog.broker.base.calls import Call, Reply
from tidelog.broker.base.cluster_view import ClusterView
from tidelog.broker.base.context import Context
from tidelog.broker.wire.errors import UNKNOWN_TOPIC_OR_PARTITION, InvalidRequestError
from tidelog.broker.wire.messages import Answer
from tidelog.cluster.cluster_log import ClusterLog
from tidelog.log.base.errors import TidelogError
from tidelog.log.base.kafka_codes import KafkaCode

# Kafka's endpoint types. Source: `EndpointType`.
_BROKERS: Final = 1
_CONTROLLERS: Final = 2

# The partition that Kafka's controllers vote about. Clients ask for it by this name.
METADATA_TOPIC: Final = "__cluster_metadata"


class UnsupportedEndpointTypeError(TidelogError, kafka_code=KafkaCode.UNSUPPORTED_ENDPOINT_TYPE):
    """A type of endpoints that Kafka does not have."""


class MismatchedEndpointTypeError(TidelogError, kafka_code=KafkaCode.MISMATCHED_ENDPOINT_TYPE):
    """Controllers are asked for: each broker is one, and none listens as one."""


class UnknownFeatureError(TidelogError, kafka_code=KafkaCode.INVALID_UPDATE_VERSION):
    """A feature whose version brokers can't change."""


class ClusterHandlers:
    """Answers what describes the cluster. All of it follows from the view."""

    def __init__(self, context: Context) -> None:
        self._context = context

    async def describe(self, call: Call) -> Reply:
        """DescribeCluster."""
        view, body = self._context.cluster(), call.body
        endpoints = getattr(body, "endpoint_type", _BROKERS)
        allowed = NOT_ASKED
        if body.include_cluster_authorized_operations:
            allowed = cluster_operations(self._context.access, call.peer)
        try:
            require_brokers_asked(endpoints)
        except TidelogError as e:
            return {**result(e), "endpoint_type": endpoints, "cluster_id": view.cluster_id, "brokers": ()}
        return {
            **result(),
            "endpoint_type": endpoints,
            "cluster_id": view.cluster_id,
            "controller_id": view.controller.id,
            "brokers": [
                {"broker_id": one.id, "host": one.host, "port": one.port, "rack": one.rack, "is_fenced": False}
                for one in view.reachable(call.peer.listener)
            ],
            "cluster_authorized_operations": allowed,
        }

    async def describe_quorum(self, call: Call) -> Reply:
        """DescribeQuorum: the brokers as the voters of Kafka's metadata."""
        return quorum(self._context.cluster(), call.body)

    async def update_features(self, call: Call) -> Reply:
        """UpdateFeatures: there is none whose version can be changed."""
        named = [one.feature for one in call.body.feature_updates]
        if not named:
            return result()
        error = UnknownFeatureError(
            "The update failed for all features since the following feature had an error: brokers of this kind have no"
            f" feature '{named[0]}' that can be changed. Leave it: what a broker can do follows from its version."
        )
        return {**result(error), "results": [{"feature": feature, **result(error)} for feature in named]}

    async def unregister(self, call: Call) -> Reply:
        """UnregisterBroker: what the log says of a broker that is gone is forgotten."""
        broker_id = call.body.broker_id
        try:
            require_gone(self._context.cluster(), broker_id)
            await self._context.blocking(ClusterLog(self._context.lake).unregister, broker_id)
        except TidelogError as e:
            return result(e)
        return result()


def require_brokers_asked(endpoints: int) -> None:
    """Refuse another type of endpoints than brokers, as Kafka's listeners for clients do (KIP-919)."""
    if endpoints == _CONTROLLERS:
        raise MismatchedEndpointTypeError(
            "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER. There"
            " are no others: every broker takes requests of administration."
        )
    if endpoints != _BROKERS:
        raise UnsupportedEndpointTypeError(f"Unsupported endpoint type {endpoints}. Ask for brokers, {_BROKERS}.")


def require_gone(view: ClusterView, broker_id: int) -> None:
    """Refuse to unregister a broker that runs: it would register again."""
    if view.node(broker_id) is not None:
        raise InvalidRequestError(
            f"Broker {broker_id} is running. Stop it (SIGTERM drains it): then its registration ends by itself."
        )


def quorum(view: ClusterView, body: Any) -> Answer:
    """The answer to DescribeQuorum.

    What Kafka's voters agree about, the log orders here. Its offset is the version of the log that the view was read
    from, which all running brokers follow; the leader is the one that clients take for the controller.
    """

    def partition(topic: str, number: int) -> Answer:
        if topic != METADATA_TOPIC or number != 0:
            text = f"No quorum for {topic}-{number}: there is one, {METADATA_TOPIC}-0."
            return _no_quorum(number) | {"error_code": UNKNOWN_TOPIC_OR_PARTITION, "error_message": text}
        followed = max(view.epoch, 0)
        voters = [
            {"replica_id": node.id, "replica_directory_id": None, "log_end_offset": followed} for node in view.nodes
        ]
        return {
            **result(),
            "partition_index": number,
            "leader_id": view.controller.id,
            "leader_epoch": followed,
            "high_watermark": followed,
            "current_voters": voters,
            "observers": (),
        }

    return {
        **result(),
        "topics": [
            {
                "topic_name": topic.topic_name,
                "partitions": [partition(topic.topic_name, one.partition_index) for one in topic.partitions],
            }
            for topic in body.topics
        ],
        "nodes": [
            {
                "node_id": node.id,
                "listeners": [
                    {"name": name, "host": host, "port": port} for name, (host, port) in sorted(node.addresses.items())
                ],
            }
            for node in view.nodes
        ],
    }


def _no_quorum(number: int) -> dict[str, Any]:
    return {
        "partition_index": number,
        "leader_id": -1,
        "leader_epoch": -1,
        "high_watermark": -1,
        "current_voters": (),
        "observers": (),
    }
