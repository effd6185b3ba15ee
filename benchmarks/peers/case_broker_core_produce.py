"""What a record costs that is produced: processor time of tidelog's broker and of Kafka, each on one core."""

from functools import partial
from itertools import product
from pathlib import Path

from bench import Bench
from core_servers import PARTITIONS, Loads, Server, both, in_memory, in_turns, loads, lower, processor_time
from kafka_load import Load
from measures import Measure

TITLE = "Processor time of records that are produced"
CASE = "broker core produce"
_RECORDS, _CODECS = (1_000, 100, 10, 1), ("none", "lz4")
# (mixed lengths, clients)
_LOADS = ((False, 2), (False, 4), (True, 4))
# Requests that are open at a broker, as Kafka's producers have it.
_WINDOW = 5
# So much fits into memory twice.
_MOST_RECORDS = 6_000_000


def run(bench: Bench) -> list[Measure]:
    """All sizes of batch, codecs and windows; values of 100 B and, of four clients, of 50 to 150 B, too; in memory."""
    shapes = [(records, codec, *load) for records, codec, load in product(_RECORDS, _CODECS, _LOADS)]
    with in_memory() as folder:
        return measured(CASE, bench, folder, shapes)


def measured(case: str, bench: Bench, folder: Path, shapes: list[tuple[int, str, bool, int]]) -> list[Measure]:
    """Loads of (records a batch, codec, mixed lengths, clients) in turns, with all data in a folder."""
    seconds = 0.5 if bench.quick else 1.0
    memory: dict[str, list[float]] = {}
    with loads() as making, both(folder, bench, making) as servers:
        arms = {
            _name(system, *shape): partial(_us, making, server, shape, seconds)
            for shape in shapes
            for system, server in servers.items()
        }
        found = in_turns(bench, arms)
        for system, server in servers.items():
            memory[system] = [server.memory_mib]
        bench.note(making.note())
    told = [lower(case, system, "memory of the process", "MiB", rounds) for system, rounds in memory.items()]
    return [*processor_time(case, found), *told]


def _name(system: str, records: int, codec: str, mixed: bool, clients: int) -> str:
    """As "tidelog 1,000 none w2"."""
    batch, window = f"{records:,}", f"w{clients}"
    return f"{system} {batch} {codec} mixed {window}" if mixed else f"{system} {batch} {codec} {window}"


def _us(making: Loads, server: Server, shape: tuple[int, str, bool, int], seconds: float) -> float:
    records, codec, mixed, clients = shape
    load = Load("window", "", "", seconds, partitions=PARTITIONS, clients=clients, window=_WINDOW, records=records,
                codec=codec, mixed=mixed, most_records=_MOST_RECORDS)  # fmt: skip
    return making.on_new_topic(server, load).us
