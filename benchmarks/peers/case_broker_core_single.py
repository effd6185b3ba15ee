"""Requests of one record: as fast as their answers come, and paced as many producers of a record now and then are."""

from bench import Bench
from core_servers import Cost, Loads, Server, both, in_memory, in_turns, loads, lower
from kafka_load import Load
from measures import Measure

TITLE = "Single records: processor time and latency"
CASE = "broker core single records"
_CONNECTIONS = 200
_RATE, _SLOW_RATE = 4_000, 200


def run(bench: Bench) -> list[Measure]:
    """Over 200 connections and 12 partitions, acks=all, data in memory; 200 a second go to a consumer that waits."""
    seconds = 2.0 if bench.quick else 5.0
    kinds = {
        "closed": Load("single", "", "", seconds / 2, clients=_CONNECTIONS),
        "paced": Load("paced", "", "", seconds, 1.0, clients=_CONNECTIONS, rate=_RATE),
        "read": Load("follow", "", "", seconds, 1.0, partitions=1, clients=1, rate=_SLOW_RATE),
    }
    costs: dict[tuple[str, str], list[Cost]] = {}
    with in_memory() as folder, loads() as making, both(folder, bench, making) as servers:

        def arm(system: str, server: Server, kind: str, load: Load, making: Loads = making) -> float:
            cost = making.on_new_topic(server, load)
            costs.setdefault((system, kind), []).append(cost)
            return cost.us

        arms = {
            f"{system} {kind}": lambda s=system, v=server, k=kind, load=load: arm(s, v, k, load)
            for kind, load in kinds.items()
            for system, server in servers.items()
        }
        in_turns(bench, arms)
        bench.note(making.note())
    return [one for system in servers for one in _measures(system, {kind: costs[system, kind] for kind in kinds})]


def _measures(system: str, costs: dict[str, list[Cost]]) -> list[Measure]:
    paced, read = costs["paced"], costs["read"]
    return [
        lower(CASE, system, "closed loop", "us a record", [one.us for one in costs["closed"]]),
        lower(CASE, system, "4,000/s acks p50", "ms", [one.done.percentile(50) for one in paced]),
        lower(CASE, system, "4,000/s acks p99", "ms", [one.done.percentile(99) for one in paced]),
        lower(CASE, system, "4,000/s cores", "cores", [one.cores for one in paced]),
        lower(CASE, system, "200/s read p50", "ms", [one.done.percentile(50) for one in read]),
        lower(CASE, system, "200/s read p99", "ms", [one.done.percentile(99) for one in read]),
        lower(CASE, system, "200/s cores", "cores", [one.cores for one in read]),
    ]
