"""Opening a topic that very many appends have made."""

import json
import os
import shutil
import time
from pathlib import Path
from unittest.mock import patch

from bench import Bench
from deltalake import DeltaTable, write_deltalake
from lakes import RECORDS_PER_APPEND, small_batch, topic_of_many_files
from measures import Measure
from opening import opened_ms
from peer import DELTA, KAFKA, TIDELOG, Peer, both, fill
from produce import keyed_records

import tidelog
from tidelog.log.base.clock import SystemClock

TITLE = "Opening a topic after many appends"
CASE = "open after {:,} appends"
_TOPIC = "opened"
_FILLED = 1_000_000
_LOG = "_delta_log"
# deltalake writes a checkpoint after this number of commits.
_CHECKPOINT_EVERY = 100


def run(bench: Bench) -> list[Measure]:
    """A hundred thousand appends of 100 records of 100 B to one partition; clients are new in each round."""
    appends = 10_000 if bench.quick else 100_000
    peers = both(bench)
    _appends(peers[TIDELOG], appends)
    peers[KAFKA].create_topic(_TOPIC, 1)
    values, keys = keyed_records(_FILLED)
    times = appends * RECORDS_PER_APPEND // _FILLED
    fill(peers[KAFKA], _TOPIC, values, keys, times, batch_num_messages=RECORDS_PER_APPEND)
    table = bench.work / DELTA
    _commits(table, bench.work / "scratch", appends)
    found: dict[str, list[float]] = {TIDELOG: [], KAFKA: [], DELTA: []}
    for _ in range(bench.rounds):
        found[TIDELOG].append(opened_ms(peers[TIDELOG], _TOPIC, 0))
        found[KAFKA].append(opened_ms(peers[KAFKA], _TOPIC, 0))
        found[DELTA].append(_loaded_ms(table))
    peers[KAFKA].delete_topic(_TOPIC)
    # Delta has no newest record: its figure is for DeltaTable(...) alone.
    case = CASE.format(appends)
    return [Measure(case, system, "open", "ms", "lower", one) for system, one in found.items()]


class _Hasty(SystemClock):
    """A clock whose sleeps take no time: a log takes no more than 100 entries a second for long, by its writers' sleep.

    What would take a quarter of an hour is there in a minute.
    """

    def __init__(self) -> None:
        super().__init__()
        self._slept_s = 0.0

    def elapsed_s(self) -> float:
        return super().elapsed_s() + self._slept_s

    def sleep(self, seconds: float) -> None:
        self._slept_s += seconds


def _appends(peer: Peer, count: int) -> None:
    """A topic of this number of entries. They go to the disk together: one by one the disk would take minutes."""
    with patch.object(os, "fsync"), tidelog.Lake(peer.address, clock=_Hasty()) as lake:
        topic_of_many_files(lake, _TOPIC, count, per_entry=1)
    os.sync()


def _commits(table: Path, scratch: Path, count: int) -> None:
    """A table of this number of appends as deltalake leaves it: entries for ever, a checkpoint after each hundred.

    deltalake itself would take hours for them. The entries are copies of its own; no reader opens the files they name.
    The newest checkpoint is one that deltalake made of a table that got everything at once.
    """
    write_deltalake(table, small_batch())
    write_deltalake(table, small_batch(), mode="append")
    log = table / _LOG
    lines = [json.loads(line) for line in (log / _entry(1)).read_text(encoding="utf-8").splitlines()]
    (add,) = (line["add"] for line in lines if "add" in line)
    others = [line for line in lines if "add" not in line]
    path = add["path"]
    adds = [json.dumps({"add": {**add, "path": f"{version:020}-{path}"}}) for version in range(2, count + 1)]
    head = "\n".join(map(json.dumps, others))
    for version, line in enumerate(adds, 2):
        (log / _entry(version)).write_text(f"{head}\n{line}", encoding="utf-8")
    _checkpoint(log, scratch, [head, *adds[: count - count % _CHECKPOINT_EVERY - 1]])


def _checkpoint(log: Path, scratch: Path, lines: list[str]) -> None:
    """A checkpoint of the table's first two entries and a number of lines more, an entry each."""
    copy = scratch / _LOG
    copy.mkdir(parents=True)
    for version in (0, 1):
        shutil.copy(log / _entry(version), copy)
    (copy / _entry(2)).write_text("\n".join(lines), encoding="utf-8")
    DeltaTable(scratch).create_checkpoint()
    newest = len(lines)
    (made,) = copy.glob("*.checkpoint.parquet")
    shutil.move(made, log / f"{newest:020}.checkpoint.parquet")
    told = json.loads((copy / "_last_checkpoint").read_text(encoding="utf-8"))
    (log / "_last_checkpoint").write_text(json.dumps({**told, "version": newest}), encoding="utf-8")


def _entry(version: int) -> str:
    return f"{version:020}.json"


def _loaded_ms(table: Path) -> float:
    began = time.perf_counter()
    DeltaTable(table).version()
    return (time.perf_counter() - began) * 1e3
