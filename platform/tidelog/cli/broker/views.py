"""How brokers are shown: a row each, and JSON documents."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.console import RenderableType

from tidelog.cli.serving.kafka_file import KeyRow
from tidelog.cluster.model import ClusterState, RegisteredBroker
from tidelog.commands.terminal import DASH, table


def controller_of(cluster: ClusterState, silent: Mapping[str, str]) -> RegisteredBroker | None:
    """The broker that clients see as the controller: the one of the lowest id that serves, and is not silent."""
    return next((one for one in cluster.serving if one.registration not in silent), None)


def state_of(one: RegisteredBroker, silent: Mapping[str, str]) -> str:
    """A broker's state; `silent`, where it is said to run and takes no connection from here."""
    return "silent" if one.registration in silent else one.state.value


def broker_json(one: RegisteredBroker, cluster: ClusterState, silent: Mapping[str, str]) -> Mapping[str, Any]:
    """A broker as a JSON document. `silent`: {registration: why no client can connect}."""
    return {
        "id": one.id,
        "state": state_of(one, silent),
        "unreachable": silent.get(one.registration),
        "listeners": [{"name": at.name, "host": at.host, "port": at.port} for at in one.listeners],
        "rack": one.rack,
        "controller": one == controller_of(cluster, silent),
        "registration": one.registration,
        "started_ms": one.started_ms,
    }


def brokers_table(
    cluster: ClusterState, silent: Mapping[str, str], shown: ClusterState | None = None
) -> RenderableType:
    """A row for each broker of the cluster, or for those of `shown` alone."""
    return table(
        [">ID", "STATE", "LISTENER", "RACK", "CONTROLLER", "STARTED", "REGISTRATION"],
        [
            (
                str(one.id),
                state_of(one, silent),
                ",".join(f"{at.host}:{at.port}" for at in one.listeners) or DASH,
                one.rack or DASH,
                "yes" if one == controller_of(cluster, silent) else "no",
                f"{datetime.fromtimestamp(one.started_ms / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC",
                one.registration,
            )
            for _, one in sorted((shown or cluster).brokers.items())
        ],
    )


def keys_json(rows: Sequence[KeyRow]) -> list[dict[str, str]]:
    """Keys of a broker's file as JSON documents."""
    return [{"key": row.key, "value": row.value, "becomes": row.fate.value, "why": row.why} for row in rows]


def keys_table(rows: Sequence[KeyRow]) -> RenderableType:
    """A row for each key of a broker's file."""
    return table(["KEY", "VALUE", "BECOMES", "WHY"], [(r.key, r.value or DASH, r.fate.value, r.why) for r in rows])
