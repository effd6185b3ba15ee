"""Opening a topic that very many appends have made."""

import json
import time
from pathlib import Path

from bench import Bench
from deltalake import DeltaTable, write_deltalake
from lakes import RECORDS_PER_APPEND, small_batch, topic_of_many_files
from measures import Measure
from opening import opened_ms
from peer import DELTA, KAFKA, TIDELOG, both, fill
from produce import keyed_records

import tidelog

TITLE = "Opening a topic after many appends"
CASE = "open"
_TOPIC = "opened"
_FILLED = 1_000_000
# deltalake writes a checkpoint after so many commits.
_CHECKPOINT_EVERY = 100


def run(bench: Bench) -> list[Measure]:
    """A hundred thousand appends of 100 records of 100 B to one partition; clients are new in each round."""
    appends = 10_000 if bench.quick else 100_000
    peers = both(bench)
    with tidelog.Lake(peers[TIDELOG].address) as lake:
        topic_of_many_files(lake, _TOPIC, appends, per_entry=1)
    peers[KAFKA].create_topic(_TOPIC, 1)
    values, keys = keyed_records(_FILLED)
    times = appends * RECORDS_PER_APPEND // _FILLED
    fill(peers[KAFKA], _TOPIC, values, keys, times, batch_num_messages=RECORDS_PER_APPEND)
    table = bench.work / DELTA
    _commits(table, appends)
    found: dict[str, list[float]] = {TIDELOG: [], KAFKA: [], DELTA: []}
    for _ in range(bench.rounds):
        found[TIDELOG].append(opened_ms(peers[TIDELOG], _TOPIC, 0))
        found[KAFKA].append(opened_ms(peers[KAFKA], _TOPIC, 0))
        found[DELTA].append(_loaded_ms(table))
    peers[KAFKA].delete_topic(_TOPIC)
    # Delta has no newest record: its figure is for DeltaTable(...) alone.
    return [Measure(CASE, system, "open", "ms", "lower", one) for system, one in found.items()]


def _commits(table: Path, count: int) -> None:
    """A table of so many appends as deltalake leaves it: entries for ever, a checkpoint after each hundred.

    deltalake itself would take hours for them. The entries are copies of its own; nobody reads the files they name.
    """
    write_deltalake(table, small_batch())
    write_deltalake(table, small_batch(), mode="append")
    log = table / "_delta_log"
    lines = [json.loads(line) for line in (log / f"{1:020}.json").read_text(encoding="utf-8").splitlines()]
    (add,) = (line["add"] for line in lines if "add" in line)
    others = [line for line in lines if "add" not in line]
    path = add["path"]
    for version in range(2, count + 1):
        add["path"] = f"{version:020}-{path}"
        text = "\n".join(json.dumps(line) for line in [*others, {"add": add}])
        (log / f"{version:020}.json").write_text(text, encoding="utf-8")
        if version == count - count % _CHECKPOINT_EVERY:
            DeltaTable(table).create_checkpoint()


def _loaded_ms(table: Path) -> float:
    began = time.perf_counter()
    DeltaTable(table).version()
    return (time.perf_counter() - began) * 1e3
