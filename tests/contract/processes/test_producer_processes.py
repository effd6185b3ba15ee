"""Producer processes that are stopped and killed: what was acknowledged is there, once and in order."""

import os
import signal
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa
from support.forked_processes import forking

from tidelog.check.lake import check_lake
from tidelog.clients.producer.producer import Producer
from tidelog.log.lake import Lake
from tidelog.log.rules.sequences import known_producers

PARTITIONS = 4
ROUNDS = 3
ACKNOWLEDGED_EACH = 35_000


def produce_for_ever(uri: str, who: int, told: Any) -> None:
    """Produce `<who>-<number>` without end; report every record that is acknowledged: (partition, offset, value)."""
    acknowledged: list[tuple[int, int, bytes]] = []

    def note(error: Any, message: Any) -> None:
        assert error is None, error
        acknowledged.append((message.partition(), message.offset(), message.value()))

    producer = Producer({"lake": uri, "linger.ms": 1, "on_delivery": note, "queue.buffering.max.messages": 20_000})
    number = 0
    while True:
        try:
            producer.produce("t", f"{who}-{number}", key=f"{number % 97}")
            number += 1
        except BufferError:
            producer.poll(1)
        if len(acknowledged) >= 1_000:
            told.send(acknowledged.copy())
            acknowledged.clear()


def test_what_was_acknowledged_outlives_the_producers(tmp_path: Path) -> None:
    uri = str(tmp_path / "lake")
    lake = Lake(uri)
    lake.create_topic("t", PARTITIONS, {"log.checkpoint.interval": "10"})
    context = forking()
    acknowledged: list[tuple[int, int, bytes]] = []
    for who in range(ROUNDS):
        here, there = context.Pipe(duplex=False)
        process = context.Process(target=produce_for_ever, args=(uri, who, there))
        process.start()
        there.close()
        stopped = False
        wanted = (who + 1) * ACKNOWLEDGED_EACH
        while len(acknowledged) < wanted:
            assert here.poll(60), "the producer says nothing"
            acknowledged += here.recv()
            if not stopped and len(acknowledged) > wanted - ACKNOWLEDGED_EACH // 2:
                stopped = True
                assert process.pid
                os.kill(process.pid, signal.SIGSTOP)
                lake.topic("t").append(pa.table({"value": [b"other"], "partition": [who]}))
                time.sleep(0.3)  # frozen in the middle of whatever it did
                os.kill(process.pid, signal.SIGCONT)
        process.kill()
        process.join(30)
        while here.poll():  # what it reported before it died
            try:
                acknowledged += here.recv()
            except (EOFError, OSError):  # killed before it reported the next, or while it did
                break
    assert len(acknowledged) >= ROUNDS * ACKNOWLEDGED_EACH

    found = {p: [v for b in lake.topic("t").read(p) for v in b.column("value").to_pylist()] for p in range(PARTITIONS)}
    lost = [(p, offset, value) for p, offset, value in acknowledged if found[p][offset : offset + 1] != [value]]
    assert lost == []
    for partition, values in found.items():
        numbers = defaultdict(list)
        for value in values:
            who, _, number = value.decode().partition("-")
            numbers[who].append(int(number or 0))
        numbers.pop("other", None)
        for who, own in numbers.items():
            assert own == sorted(set(own)), f"partition {partition}: records of {who} twice or out of order"
    assert check_lake(lake, deep=True).green
    lake.close()


def test_two_processes_and_a_checkpoint_between_know_the_same_producers(tmp_path: Path) -> None:
    """A state that begins from a checkpoint knows the sequences, as the one that saw every entry does."""
    uri = str(tmp_path / "lake")
    with Lake(uri) as lake:
        lake.create_topic("t", PARTITIONS, {"log.checkpoint.interval": "10"})
        with Producer({"lake": lake}) as producer:
            for number in range(40):
                producer.produce("t", str(number), key=str(number))
                producer.flush()
        live = known_producers(lake.topic("t").state())
    with Lake(uri) as fresh:
        restored = known_producers(fresh.topic("t").state())
        checkpoints = list((tmp_path / "lake" / "t" / "_delta_log").glob("*.checkpoint.parquet"))
    assert checkpoints
    assert len(live) == PARTITIONS
    assert restored == live
    assert sum(one.last_sequence + 1 for one in live) == 40
    assert all(one.updated_ms for one in live)
