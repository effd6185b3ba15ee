"""What a record costs that is consumed: hot, just produced, and cold, which memory has no more, or never had."""

from functools import partial

from bench import Bench
from core_servers import Loads, Server, both, in_memory, in_turns, loads, processor_time, tidelog
from kafka_load import Load
from measures import Measure
from peer import KAFKA, TIDELOG

TITLE = "Processor time of records that are consumed"
CASE = "broker core consume"
_HOT, _COLD, _SEGMENTS = "hot", "cold", "cold, from segments"
# They fit into a broker's cache as it is.
_RECORDS = 480_000
_SMALL_CACHE, _FILES = 2**20, 2**30
_BATCH, _CLIENTS = 1_000, 4


def run(bench: Bench) -> list[Measure]:
    """Four clients read 12 partitions again and again; data is in memory.

    *Cold* is what a broker has taken in itself and has hardly a cache for: Kafka has it in its log, tidelog in files
    beside its cache. *From segments* reads a broker without such files, started on a lake that another one has filled.
    """
    seconds = 0.5 if bench.quick else 1.5
    with in_memory() as folder, loads() as making, both(folder, bench, making) as servers:
        lake, kept = folder / "cold", {"cache_files_bytes": _FILES, "cache_files_dir": folder}
        with tidelog(lake) as other:
            topics = {_SEGMENTS: _filled(making, other), KAFKA: _filled(making, servers[KAFKA])}
        small = partial(tidelog, cache_bytes=_SMALL_CACHE)
        with small(folder / "kept", **kept) as cold, small(lake) as segments:
            topics[TIDELOG] = _filled(making, cold)
            arms = {f"{system} {_HOT}": partial(_hot, making, server, seconds) for system, server in servers.items()}
            arms[f"{TIDELOG} {_COLD}"] = partial(_read, making, cold, topics[TIDELOG], seconds)
            arms[f"{TIDELOG} {_SEGMENTS}"] = partial(_read, making, segments, topics[_SEGMENTS], seconds)
            # Kafka has its records in one place.
            for name in (_COLD, _SEGMENTS):
                arms[f"{KAFKA} {name}"] = partial(_read, making, servers[KAFKA], topics[KAFKA], seconds)
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
