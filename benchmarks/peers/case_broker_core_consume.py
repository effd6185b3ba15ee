"""What a record costs that is consumed: hot, just produced, and cold, from segments or files that are long there."""

from functools import partial

from bench import Bench
from core_servers import Loads, Server, both, in_memory, in_turns, loads, processor_time, tidelog
from kafka_load import Load
from measures import Measure
from peer import KAFKA, TIDELOG

TITLE = "Processor time of records that are consumed"
CASE = "broker core consume"
_HOT, _COLD = "hot", "cold"
# They fit into a broker's cache as it is.
_RECORDS = 480_000
_SMALL_CACHE = 2**20
_BATCH, _CLIENTS = 1_000, 4


def run(bench: Bench) -> list[Measure]:
    """Four clients read 12 partitions again and again; data is in memory.

    tidelog's cold broker was started on a lake of its own after another one had filled that, and has hardly a cache.
    """
    seconds = 0.5 if bench.quick else 1.5
    with in_memory() as folder, loads() as making, both(folder, bench, making) as servers:
        lake = folder / "cold"
        with tidelog(lake) as filled:
            topics = {TIDELOG: _filled(making, filled), KAFKA: _filled(making, servers[KAFKA])}
        with tidelog(lake, cache_bytes=_SMALL_CACHE) as cold:
            arms = {}
            for system, from_files in (servers | {TIDELOG: cold}).items():
                arms[f"{system} {_HOT}"] = partial(_hot, making, servers[system], seconds)
                arms[f"{system} {_COLD}"] = partial(_read, making, from_files, topics[system], seconds)
            found = in_turns(bench, arms)
        bench.note(making.note())
    return processor_time(CASE, found)


def _hot(making: Loads, server: Server, seconds: float) -> float:
    topic = _filled(making, server)
    try:
        return _read(making, server, topic, seconds)
    finally:
        server.drop(topic)


def _filled(making: Loads, server: Server) -> str:
    """A topic of all the records that are then read."""
    topic = server.new_topic()
    making.run(server, Load("window", "", topic, 60, 0, clients=2, records=_BATCH, most_records=_RECORDS))
    return topic


def _read(making: Loads, server: Server, topic: str, seconds: float) -> float:
    return making.run(server, Load("read", "", topic, seconds, clients=_CLIENTS)).us
