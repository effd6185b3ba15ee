"""Real processes and threads that commit at once, on a local disk: each commit counts, or is refused."""

import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
from support.forked_processes import forking

from tidelog.check.lake import check_lake
from tidelog.groups.model import CommittedOffset, Decision, Group, GroupPhase, GroupView
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.lake import Lake

THREADS = 10
COMMITS = 20
RECORDS = 1_000


def commit_many(uri: str, who: int, ready: Any, go: Any, answers: Any) -> None:
    """`THREADS` groups of this process's own commit 1, 2, 3 ..., and all processes count one group's generation up."""
    with Lake(uri) as lake:
        log = GroupLog(lake)
        log.offsets("shared")
        ready.release()
        go.wait(60)
        seen: list[int] = []

        def count(view: GroupView) -> Decision[int]:
            generation = 0 if view.group is None else view.group.generation
            return Decision(response=generation + 1, group=Group("shared", GroupPhase.EMPTY, generation + 1))

        def run(thread: int) -> None:
            for i in range(1, COMMITS + 1):
                log.commit_offsets(
                    f"group-{who}-{thread}", {("t", 0): CommittedOffset(i), ("t", 1): CommittedOffset(i)}
                )
            seen.append(log.decide("shared", count))

        threads = [threading.Thread(target=run, args=(i,)) for i in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        answers.put((who, seen))


def test_fifty_groups_in_five_processes_lose_nothing(tmp_path: Path) -> None:
    uri, processes = str(tmp_path / "lake"), 5
    lake = Lake(uri)
    lake.alter_config({"log.checkpoint.interval": "50", "log.min.age.ms": "10000"})
    lake.create_topic("t", 2)
    lake.topic("t").append(
        pa.table({"value": [b"x"] * 2 * RECORDS, "partition": pa.array([0, 1] * RECORDS, pa.int32())})
    )
    context = forking()
    ready, go, answers = context.Semaphore(0), context.Event(), context.Queue()
    started = [context.Process(target=commit_many, args=(uri, i, ready, go, answers)) for i in range(processes)]
    for process in started:
        process.start()
    assert all(ready.acquire(timeout=120) for _ in started)
    go.set()
    answered = dict(answers.get(timeout=120) for _ in started)
    for process in started:
        process.join(60)
    assert [p.exitcode for p in started] == [0] * processes

    log = GroupLog(Lake(uri))
    names = {f"group-{who}-{thread}" for who in range(processes) for thread in range(THREADS)}
    positions = {name: view.offsets for name, view in log.views().items() if view.offsets}
    assert positions.keys() == names
    assert {c.offset for offsets in positions.values() for c in offsets.values()} == {COMMITS}
    counted = sorted(generation for seen in answered.values() for generation in seen)
    assert counted == list(range(1, processes * THREADS + 1))  # every decision saw the one before
    group = log.group("shared")
    assert group is not None
    assert group.generation == processes * THREADS


def commit_until_killed(uri: str, group: str, answers: Any) -> None:
    """Commit 1, 2, 3 ... and report each once it is acknowledged."""
    log = GroupLog(Lake(uri))
    for offset in range(1, RECORDS):
        log.commit_offsets(group, {("t", 0): CommittedOffset(offset)})
        answers.send(offset)


def test_what_was_acknowledged_outlives_a_killed_process(tmp_path: Path) -> None:
    uri = str(tmp_path / "lake")
    lake = Lake(uri)
    lake.topic("t").append(pa.table({"value": [b"x"] * RECORDS}))
    log = GroupLog(lake)
    context = forking()
    for victim in range(3):
        heard, told = context.Pipe(duplex=False)
        process = context.Process(target=commit_until_killed, args=(uri, f"g{victim}", told))
        process.start()
        told.close()
        for _ in range(20 * (victim + 1)):
            assert heard.poll(60)
            acknowledged = heard.recv()
        process.kill()
        process.join(30)
        while heard.poll():
            try:
                acknowledged = heard.recv()
            except EOFError:
                break
        # the one under way may have come too, and the next process goes on
        assert log.offsets(f"g{victim}")["t", 0].offset in (acknowledged, acknowledged + 1)
        log.commit_offsets(f"g{victim}", {("t", 0): CommittedOffset(0)})
        assert log.offsets(f"g{victim}")["t", 0].offset == 0
    assert check_lake(lake, deep=True).green
