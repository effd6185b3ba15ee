"""One run of one worker of a chaos run, as a process: `chaos_worker.py FOLDER NAME LIFE SEED`.

It ends with 0 when its role is stopped, with `GIVES_UP` when its client can't go on (fenced, or cut off for too long):
a successor takes over. Whatever else it raises is a fault of the product. On SIGUSR1 it prints what its threads do.
"""

import faulthandler
import signal
import sys
from importlib import import_module
from pathlib import Path
from random import Random

from chaos_clients import copy, maintain_lake, produce, produce_transactions, read, watch
from chaos_life import GivesUpError, Life, is_broken
from chaos_plan import KAFKA_WORKERS, QUERY, WORKERS, Place

from tidelog.clients.values.errors import KafkaException
from tidelog.log.base.errors import TidelogError

GIVES_UP = 3


def run_query(life: Life) -> None:
    """A Spark query; only this worker loads Spark."""
    import_module("chaos_query").query(life)


def run_with_kafka(life: Life) -> None:
    """A broker, or a client of one; only these workers load Kafka's client."""
    brokers = import_module("chaos_brokers")
    roles = {"broker": brokers.serve, "kafka-producer": brokers.produce, "kafka-reader": brokers.read}
    roles[life.worker.role](life)


ROLES = {
    "producer": produce,
    "transactional": produce_transactions,
    "copier": copy,
    "reader": read,
    "maintainer": maintain_lake,
    "watcher": watch,
    "query": run_query,
    "broker": run_with_kafka,
    "kafka-producer": run_with_kafka,
    "kafka-reader": run_with_kafka,
}


def main(folder: str, name: str, number: str, seed: str) -> int:
    """Live."""
    faulthandler.register(signal.SIGUSR1)
    worker = next(one for one in (*WORKERS, *KAFKA_WORKERS, QUERY) if one.name == name)
    life = Life(Place(Path(folder)), worker, int(number), Random(f"{seed} {name} {number}"))
    try:
        ROLES[worker.role](life)
    except (GivesUpError, KafkaException, TidelogError) as e:
        if is_broken(e):
            raise
        life.journal.note("gave up", why=f"{type(e).__name__}: {e}")
        return GIVES_UP
    life.journal.note("ended")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
