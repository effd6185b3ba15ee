"""Batches of a sink without Spark: a lake in memory, processes that come and go, and what they commit."""

import pyarrow as pa
from support.logs import memory_lake, open_lake, read
from support.transactions import AtOnce

from tidelog.groups.store.adapters import LoggedOffsets
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.lake import Lake
from tidelog.sinks import commits
from tidelog.sinks.options import parse_batch, parse_stream
from tidelog.sinks.tasks import Segments, stage
from tidelog.transactions.transaction_log import TransactionLog
from tidelog.transactions.upkeep import TransactionUpkeep

QUERY = "6f9d3f2e-0000-4000-8000-000000000001"


class World:
    """A lake in memory with topic `a`, and processes that come and go; other topics are made by their writers."""

    def __init__(self) -> None:
        lake, self.storage, self.clock = memory_lake()
        lake.create_topic("a", 1)

    def process(self) -> Lake:
        lake = open_lake(self.storage, self.clock)
        lake.background = AtOnce()
        return lake

    def seen(self, *topics: str) -> list[list[str]]:
        lake = self.process()
        return [read(lake, topic) for topic in topics]

    def all_seen(self) -> dict[str, list[str]]:
        lake = self.process()
        return {topic: found for topic in lake.topics() if (found := read(lake, topic))}

    def files(self) -> int:
        lake = self.process()
        return sum(1 for topic in lake.topics() for _ in self.storage.list_after(f"{topic}/partition=0"))

    def maintain(self) -> None:
        lake = self.process()
        TransactionUpkeep(lake, LoggedOffsets(GroupLog(lake))).run()

    def undone(self) -> int:
        return len(TransactionLog(self.process()).incomplete())


def staged(lake: Lake, planned_ms: int = 0, **rows: str) -> Segments:
    """A task's segments: staged(lake, a="1") is one record for topic `a`."""
    batch = pa.record_batch({"topic": list(rows), "value": list(rows.values())})
    options = parse_stream({"lake": lake.uri, "acks": "1"}, None)
    return stage([batch], ["topic", "value"], options, lake, None, planned_ms)


def run(lake: Lake, batch_id: int, option: str | None = None, **rows: str) -> None:
    """A batch of the streaming query, by a `topic` column, or with option `topic`."""
    named = {} if option is None else {"topic": option}
    options = parse_stream({"lake": lake.uri, "acks": "1", **named}, None)
    commits.commit_stream(lake, [staged(lake, **rows)], options, QUERY, batch_id)


def write(lake: Lake, *txn: str | int, **rows: str) -> None:
    """A batch write by a `topic` column."""
    named = dict(zip(("txnAppId", "txnVersion"), map(str, txn), strict=True)) if txn else {}
    commits.commit_batch(lake, [staged(lake, **rows)], parse_batch({"lake": lake.uri, **named}, None))
