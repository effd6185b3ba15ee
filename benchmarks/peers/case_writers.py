"""Many writers, each of which waits until a hundred records are safe before it writes the next."""

from collections.abc import Callable
from functools import partial

import pyarrow as pa
from bench import Bench
from deltalake import CommitProperties, write_deltalake
from lakes import RECORDS_PER_APPEND, small_batch
from measures import Measure
from peer import DELTA, KAFKA, TIDELOG, both
from racing_writers import WRITERS, Appender, measured, producing

import tidelog

TITLE = "Small appends by many writers"
CASE = "small appends"
_APPEND, _SYNCED = "tidelog append", "kafka flush.messages=1"
# deltalake gives up after fifteen, which eight writers use up.
_RETRIES = 10_000


def run(bench: Bench) -> list[Measure]:
    """Eight processes, a partition each, 100 records of 100 B with acks=all at a time.

    tidelog has fsynced what it acknowledges. Kafka has not, but for the topic with flush.messages=1.
    """
    peers = both(bench)
    for peer in peers.values():
        peer.create_topic("produced", WRITERS)
    peers[TIDELOG].create_topic("appended", WRITERS)
    peers[KAFKA].create_topic("synced", WRITERS, {"flush.messages": "1"})
    table = str(bench.work / DELTA)
    write_deltalake(table, small_batch())
    appenders: dict[str, Appender] = {
        TIDELOG: partial(producing, peers[TIDELOG], "produced"),
        _APPEND: partial(_appending, peers[TIDELOG].address),
        KAFKA: partial(producing, peers[KAFKA], "produced"),
        _SYNCED: partial(producing, peers[KAFKA], "synced"),
        DELTA: partial(_appending_to_delta, table),
    }
    return measured(CASE, bench, appenders)


def _appending(address: str, writer: int) -> tuple[Callable[[], object], Callable[[], object]]:
    """An `Appender` when given a lake."""
    lake = tidelog.Lake(address, create=False)
    topic = lake.topic("appended")
    batch = small_batch(writer).append_column("partition", pa.array([writer] * RECORDS_PER_APPEND, pa.int32()))
    return lambda: topic.append(batch), lake.close


def _appending_to_delta(address: str, writer: int) -> tuple[Callable[[], object], Callable[[], object]]:
    """An `Appender` when given a table of Delta's."""
    batch = small_batch(writer)
    patient = CommitProperties(max_commit_retries=_RETRIES)
    return lambda: write_deltalake(address, batch, mode="append", commit_properties=patient), lambda: None
