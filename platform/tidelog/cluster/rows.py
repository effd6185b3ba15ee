"""The cluster as rows: the columns of `__cluster`, and the fold of its rows (docs/format.md, "Brokers")."""

from collections.abc import Hashable, Sequence
from typing import Any, Self

import pyarrow as pa

from tidelog.cluster.model import BrokerState, ClusterState, Listener, RegisteredBroker
from tidelog.log.delta.schema import TIMESTAMP
from tidelog.log.rows.schema import Row, RowSchema, list_of
from tidelog.log.rows.state import RowKind

BROKER = "broker"
EPOCH = "epoch"

# `kind` broker: all but epoch; kind epoch: that one.
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
    }
)


class ClusterFold:
    """The newest row of each broker, and of the epoch."""

    def __init__(self, state: ClusterState | None = None) -> None:
        self.state = state or ClusterState()

    def take(self, rows: Sequence[Row]) -> None:
        """Apply rows, in log order."""
        brokers, epoch = dict(self.state.brokers), self.state.epoch
        for row in rows:
            if row["kind"] == EPOCH:
                epoch = row["epoch"]
            elif row.get("deleted"):
                brokers.pop(row["id"], None)
            else:
                brokers[row["id"]] = _broker(row)
        self.state = ClusterState(brokers, epoch)

    def fork(self) -> Self:
        """One that goes its own way from here."""
        return type(self)(self.state)

    def __len__(self) -> int:
        return len(self.state.brokers) + (self.state.epoch > 0)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClusterFold) and self.state == other.state

    __hash__ = None  # type: ignore[assignment] # it changes


def key(row: Row) -> Hashable:
    """A row's key: a broker's id, or the epoch."""
    return (row["kind"], row.get("id"))


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


def _broker(row: Row) -> RegisteredBroker:
    return RegisteredBroker(
        row["id"],
        row["registration"],
        tuple(Listener(item["name"], item["host"], item["port"]) for item in row["listeners"]),
        row.get("rack"),
        row["start_time"],
        BrokerState(row["state"]),
    )
