"""Records on several machines' disks: Kafka with three replicas, and tidelog over a store of four nodes."""

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from unittest import mock

import broker as kafka_broker
import brokers
import proc_times
from bench import Bench
from core_servers import PARTITIONS, Cost, Loads, Server, cores, in_turns, loads, lower
from kafka_load import Load
from measures import Measure
from peer import KAFKA, TIDELOG

from tidelog.cli.demo.store_nodes import BUCKET, StoreNodes

TITLE = "Replicated records: processor time and latency"
CASE = "broker replicas"
_REPLICAS = 3
_CONNECTIONS, _RATE = 50, 200
# As operators set it, so that a record that is acknowledged outlives a machine.
_KAFKA = {
    "default.replication.factor": _REPLICAS,
    "min.insync.replicas": 2,
    "offsets.topic.replication.factor": _REPLICAS,
    "log.segment.delete.delay.ms": 0,
}


def run(bench: Bench) -> list[Measure]:
    """100 B, 12 partitions, acks=all. Processor time: of three brokers, or of a broker and the four nodes of its store.

    All servers have one core, and the load another. Data is on disk: Kafka waits for no disk, MinIO and tidelog do.
    """
    seconds = 3.0 if bench.quick else 10.0
    kinds = {
        "1,000 none w4": Load("window", "", "", seconds, partitions=PARTITIONS, clients=4, records=1_000),
        "100 none w4": Load("window", "", "", seconds, partitions=PARTITIONS, clients=4, records=100),
        "closed loop": Load("single", "", "", seconds, clients=_CONNECTIONS),
        "200/s": Load("paced", "", "", 2 * seconds, 1.0, clients=_CONNECTIONS, rate=_RATE),
    }
    costs: dict[tuple[str, str], list[Cost]] = {}
    with loads() as making, _kafka(bench.work / "kafka") as other, _tidelog(bench.work / "nodes") as own:
        servers = {TIDELOG: own, KAFKA: other}
        for load in kinds.values():  # what is measured, once before
            for server in servers.values():
                making.on_new_topic(server, load)

        def arm(system: str, kind: str, making: Loads = making) -> float:
            cost = making.on_new_topic(servers[system], kinds[kind])
            costs.setdefault((system, kind), []).append(cost)
            return cost.us

        in_turns(bench, {f"{s} {k}": partial(arm, s, k) for k in kinds for s in servers})
        bench.note(making.note())
    return [one for system in servers for one in _measures(system, {kind: costs[system, kind] for kind in kinds})]


def _measures(system: str, costs: Mapping[str, list[Cost]]) -> list[Measure]:
    paced = costs["200/s"]
    measures = [
        lower(CASE, system, kind, "us a record", [one.us for one in found])
        for kind, found in costs.items()
        if kind != "200/s"
    ]
    return [
        *measures,
        lower(CASE, system, "200/s acks p50", "ms", [one.done.percentile(50) for one in paced]),
        lower(CASE, system, "200/s acks p99", "ms", [one.done.percentile(99) for one in paced]),
        lower(CASE, system, "200/s cores", "cores", [one.cores for one in paced]),
    ]


@contextmanager
def _kafka(folder: Path) -> Iterator[Server]:
    """Three brokers on one core."""
    with ExitStack() as stack:
        with proc_times.on_cores(cores()[0][:1]):
            first, *others = stack.enter_context(kafka_broker.cluster(folder, _REPLICAS, _KAFKA))
        yield Server(KAFKA, first.address, first.pid, others=tuple(one.pid for one in others), replicas=_REPLICAS)


@contextmanager
def _tidelog(folder: Path) -> Iterator[Server]:
    """A store of four nodes, and a broker over it, on one core."""
    with ExitStack() as stack:
        folder.mkdir(parents=True)
        with proc_times.on_cores(cores()[0][:1]):
            nodes = stack.enter_context(StoreNodes(folder))
            stack.enter_context(mock.patch.dict(os.environ, nodes.environment))
            lake = f"s3://{BUCKET}/lake"
            (process,) = stack.enter_context(brokers.running(lake, log=folder / "broker.log"))
        yield Server(TIDELOG, process.address, process.pid, others=tuple(nodes.pids))
