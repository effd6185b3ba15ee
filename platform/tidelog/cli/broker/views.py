"""How brokers are shown: a row each, and JSON documents."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import RenderableType

from tidelog.cli.serving.kafka_file import KeyRow
from tidelog.cluster.model import RegisteredBroker
from tidelog.commands.terminal import DASH, moment, table
from tidelog.operations.cluster import ClusterDescription, LedTopic


def broker_json(broker: RegisteredBroker, cluster: ClusterDescription) -> Mapping[str, Any]:
    """A broker as a JSON document."""
    return {
        "id": broker.id,
        "state": cluster.state_of(broker),
        "unreachable": cluster.silent.get(broker.registration),
        "listeners": [{"name": at.name, "host": at.host, "port": at.port} for at in broker.listeners],
        "rack": broker.rack,
        "controller": broker == cluster.controller,
        "registration": broker.registration,
        "started_ms": broker.started_ms,
    }


def brokers_table(brokers: Sequence[RegisteredBroker], cluster: ClusterDescription) -> RenderableType:
    """A row for each broker."""
    return table(
        [">ID", "STATE", "LISTENER", "RACK", "CONTROLLER", "STARTED", "REGISTRATION"],
        [
            (
                str(broker.id),
                cluster.state_of(broker),
                ",".join(f"{at.host}:{at.port}" for at in broker.listeners) or DASH,
                broker.rack or DASH,
                "yes" if broker == cluster.controller else "no",
                moment(broker.started_ms),
                broker.registration,
            )
            for broker in brokers
        ],
    )


def topic_json(topic: LedTopic) -> Mapping[str, Any]:
    """A topic that brokers lead, as a JSON document."""
    return {"name": topic.name, "leaders": topic.leaders, "load": topic.cores, "since_ms": topic.since_ms}


def topics_table(topics: Sequence[LedTopic]) -> RenderableType:
    """A row for each topic."""
    return table(
        ["TOPIC", ">LEADERS", ">LOAD", "SINCE"],
        [
            (
                topic.name,
                str(topic.leaders),
                f"{topic.cores:.2f}",
                DASH if topic.since_ms is None else moment(topic.since_ms),
            )
            for topic in topics
        ],
    )


def keys_json(rows: Sequence[KeyRow]) -> list[dict[str, str]]:
    """Keys of a broker's file as JSON documents."""
    return [{"key": row.key, "value": row.value, "becomes": row.fate.value, "why": row.why} for row in rows]


def keys_table(rows: Sequence[KeyRow]) -> RenderableType:
    """A row for each key of a broker's file."""
    return table(["KEY", "VALUE", "BECOMES", "WHY"], [(r.key, r.value or DASH, r.fate.value, r.why) for r in rows])
