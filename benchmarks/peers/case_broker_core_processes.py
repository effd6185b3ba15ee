"""What a record costs several processes of tidelog's broker, and what they cost that do nothing."""

import time

import proc_times
from bench import Bench
from core_servers import Loads, Server, in_memory, kafka, loads, lower, tidelog, warm
from kafka_load import Load
from measures import Measure
from peer import KAFKA, TIDELOG

TITLE = "Processor time of several processes"
CASE = "broker core processes"
_COUNTS = (1, 2, 4, 8)
_IDLE = "idle"
_WARM_S, _WARM_KAFKA_S, _WARM_KAFKA_QUICK_S = 1.5, 15.0, 4.0


def run(bench: Bench) -> list[Measure]:
    """The same clients at 1, 2, 4 and 8 processes, each of which has 5 requests open at every leader; at Kafka's one.

    Data is in memory. tidelog's processes are started each time, so that none runs beside those that are measured.
    """
    found: dict[str, dict[str, list[float]]] = {}
    with in_memory() as folder, loads() as making, kafka(folder / "kafka") as other:
        warm(other, making, _WARM_KAFKA_QUICK_S if bench.quick else _WARM_KAFKA_S)
        for number in range(1 if bench.quick else 2):
            turn = number % len(_COUNTS)
            for processes in _COUNTS[turn:] + _COUNTS[:turn]:
                with tidelog(folder / f"lake-{number}-{processes}", processes) as own:
                    warm(own, making, _WARM_S)
                    _add(found, _name(processes), _round(bench, making, own))
            _add(found, KAFKA, _round(bench, making, other))
        bench.note(making.note())
    return [
        lower(CASE, system, metric, "cores" if metric == _IDLE else "us a record", rounds)
        for system, metrics in found.items()
        for metric, rounds in metrics.items()
    ]


def _name(processes: int) -> str:
    system = TIDELOG
    return f"{system} {processes} processes" if processes > 1 else system


def _round(bench: Bench, making: Loads, server: Server) -> dict[str, float]:
    """{metric: figure} of one server."""
    seconds, idle_s = (0.6, 3.0) if bench.quick else (2.0, 6.0)
    window = Load("window", "", "", seconds, clients=4, records=1_000, most_records=6_000_000)
    loads_of = {
        "1,000 a batch": window,
        "100 a batch": Load("window", "", "", seconds, clients=4, records=100),
        "single records": Load("single", "", "", seconds, clients=200),
    }
    told = {metric: making.on_new_topic(server, load).us for metric, load in loads_of.items()}
    return {**told, _IDLE: _idle(server, idle_s)}


def _idle(server: Server, seconds: float) -> float:
    """Cores of a server with nothing to do."""
    time.sleep(1.0)  # what it does after the last load
    before, began = proc_times.processes(), time.monotonic()
    time.sleep(seconds)
    after, took_s = proc_times.processes(), time.monotonic() - began
    return proc_times.used_s(before, after, proc_times.family(after, server.root)) / took_s


def _add(found: dict[str, dict[str, list[float]]], system: str, told: dict[str, float]) -> None:
    for metric, figure in told.items():
        found.setdefault(system, {}).setdefault(metric, []).append(figure)
