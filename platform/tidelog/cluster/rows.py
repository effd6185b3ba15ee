"""The cluster as rows: the columns of `__cluster`, and the fold of its rows (docs/format.md, "Brokers")."""

from collections.abc import Hashable, Sequence
from typing import Any, Final, Self

import pyarrow as pa

from tidelog.cluster.model import BrokerState, ClusterState, Listener, RegisteredBroker, TopicLeaders
from tidelog.log.delta.schema import TIMESTAMP
from tidelog.log.rows.schema import Row, RowSchema, list_of
from tidelog.log.rows.state import RowKind

BROKER = "broker"
EPOCH = "epoch"
LEADERS = "leaders"

# Columns that tables made before them lack.
LATER: Final = ("topic", "name", "leaders", "since")

# `kind` broker: up to state; kind epoch: that one; kind leaders: those after it.
SCHEMA = RowSchema(
    {
        "kind": pa.string(),
        "id": pa.int32(),
        "registration": pa.string(),
        "listeners": list_of(name=pa.string(), host=pa.string(), port=pa.int32()),
        "rack": pa.string(),
        "start_time": TIMESTAMP,
        "state": pa.string(),
        "epoch": pa.int32(),
        "deleted": pa.bool_(),
        "topic": pa.string(),
        "name": pa.string(),
        "leaders": pa.int32(),
        "since": TIMESTAMP,
    },
    later=LATER,
)


class ClusterFold:
    """The newest row of each broker, of each topic's number of leaders, and of the epoch."""

    def __init__(self, state: ClusterState | None = None) -> None:
        self.state = state or ClusterState()

    def take(self, rows: Sequence[Row]) -> None:
        """Apply rows, in log order."""
        brokers, leaders, epoch = dict(self.state.brokers), dict(self.state.leaders), self.state.epoch
        for row in rows:
            if row["kind"] == EPOCH:
                epoch = row["epoch"]
            elif row["kind"] == LEADERS and row.get("deleted"):
                leaders.pop(row.get("topic", ""), None)
            elif row["kind"] == LEADERS:
                leaders[row.get("topic", "")] = _leaders(row)
            elif row.get("deleted"):
                brokers.pop(row["id"], None)
            else:
                brokers[row["id"]] = _broker(row)
        self.state = ClusterState(brokers, epoch, leaders)

    def fork(self) -> Self:
        """One that goes its own way from here."""
        return type(self)(self.state)

    def __len__(self) -> int:
        return len(self.state.brokers) + len(self.state.leaders) + (self.state.epoch > 0)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClusterFold) and self.state == other.state

    __hash__ = None  # type: ignore[assignment] # it changes


def key(row: Row) -> Hashable:
    """A row's key: a broker's id, a topic's, or the epoch."""
    return (row["kind"], row.get("topic" if row["kind"] == LEADERS else "id"))


KIND: RowKind[ClusterFold] = RowKind("cluster", SCHEMA, ClusterFold, key)


# --- to rows and back --------------------------------------------------------------------------------------


def broker_row(broker: RegisteredBroker) -> Row:
    """The row of a broker."""
    row: dict[str, Any] = {
        "kind": BROKER,
        "id": broker.id,
        "registration": broker.registration,
        "listeners": [{"name": one.name, "host": one.host, "port": one.port} for one in broker.listeners],
        "start_time": broker.started_ms,
        "state": broker.state.value,
    }
    return row if broker.rack is None else {**row, "rack": broker.rack}


def unregistered_row(broker_id: int) -> Row:
    """The row that takes a broker away."""
    return {"kind": BROKER, "id": broker_id, "deleted": True}


def epoch_row(epoch: int) -> Row:
    """The row of another epoch."""
    return {"kind": EPOCH, "epoch": epoch}


def leaders_row(told: TopicLeaders) -> Row:
    """The row of another number of leaders; that of one leader takes what was said away."""
    of = {"kind": LEADERS, "topic": told.topic} if told.topic else {"kind": LEADERS}
    if told.leaders == 1:
        return {**of, "deleted": True}
    return {**of, "name": told.name, "leaders": told.leaders, "since": told.since_ms}


def _leaders(row: Row) -> TopicLeaders:
    return TopicLeaders(row.get("topic", ""), row["name"], row["leaders"], row["since"])


def _broker(row: Row) -> RegisteredBroker:
    return RegisteredBroker(
        row["id"],
        row["registration"],
        tuple(Listener(item["name"], item["host"], item["port"]) for item in row["listeners"]),
        row.get("rack"),
        row["start_time"],
        BrokerState(row["state"]),
    )
