"""Runs of Kafka's Connect over brokers: its worker is killed amid its input and started again."""

import re
from collections import Counter
from itertools import groupby, pairwise
from pathlib import Path

from support.kafka_connect import ConnectWorker
from support.streams_runs import create, reading
from support.waiting import eventually

_LIMIT_S = 240.0
_FILE = "org.apache.kafka.connect.file.FileStream{}Connector"
# Connect's source reads 1 KiB at once, and what it has read beyond a full batch waits until the file grows again: with
# longer lines it never has more than one.
_PADDING = 1100 * "."


def files(address: str, folder: Path, lines: int, kills: int) -> None:
    """A file into a topic, exactly once, and the topic into a file; the worker is killed `kills` times meanwhile.

    Offsets are resumed: each line is in the topic once and in order. The sink, which Connect runs at least once, goes
    on at its group's offsets: nothing is missing or out of order, and what it repeats is what came last before a kill.
    """
    given, taken = folder / "given", folder / "taken"
    folder.mkdir(parents=True, exist_ok=True)
    given.touch()
    create(address, "lines", partitions=1)
    source = {"connector.class": _FILE.format("Source"), "file": given, "topic": "lines", "batch.size": 50}
    sink = {"connector.class": _FILE.format("Sink"), "file": taken, "topics": "lines"}
    settings = {"exactly.once.source.support": "enabled", "consumer.auto.offset.reset": "earliest"}
    worker = [ConnectWorker(address, folder, settings).ready()]
    try:
        worker[0].configure("source", source)
        worker[0].configure("sink", sink)
        worker[0].await_running("source", "sink")
        for part in range(kills + 1):
            first, after = lines * part // (kills + 1), lines * (part + 1) // (kills + 1)
            with open(given, "a", encoding="utf-8") as file:
                file.writelines(f"line {number};{_PADDING}\n" for number in range(first, after))
            # A kill comes when some of this part is out, and not all of it.
            wanted = after if part == kills else first + (after - first) // 4

            def sunk(wanted: int = wanted) -> bool:
                worker[0].require_sound("source", "sink")
                return len(set(_lines(taken))) >= wanted

            eventually(sunk, f"{wanted} of {lines} lines in the sink's file", _LIMIT_S)
            if part < kills:
                worker[0].kill()
                worker[0].__exit__()
                worker[0] = ConnectWorker(address, folder, settings).ready()
                worker[0].await_running("source", "sink")
        (place,) = worker[0].call("GET", "/connectors/source/offsets")["offsets"]
        assert place["offset"] == {"position": given.stat().st_size}, place

        def committed() -> bool:
            groups = worker[0].call("GET", "/connectors/sink/offsets")["offsets"]
            return [group["offset"] for group in groups] == [{"kafka_offset": lines}]

        eventually(committed, "the sink's offsets are those of all lines", _LIMIT_S)
        assert worker[0].end() in (0, 143), worker[0].said()[-3000:]
    finally:
        worker[0].__exit__()
    everything = [f"line {number};" for number in range(lines)]
    with reading(address, "lines") as consumer:
        found = [one.value().decode().removesuffix(_PADDING) for one in consumer.consume(lines + 1, 5.0)]
    assert found == everything, _differing(found, everything)
    # Each run of the sink is in order, and begins no later than behind the end of the one before.
    runs = _runs([int(line[5:-1]) for line in _lines(taken)])
    assert len(runs) <= kills + 1, f"the sink began {len(runs)} times: {runs}"
    assert runs[0][0] == 0
    assert all(later[0] <= earlier[1] + 1 for earlier, later in pairwise(runs)), runs
    assert runs[-1][1] == lines - 1


def _lines(path: Path) -> list[str]:
    """The sink's lines. It writes a line and its end one after the other, so a kill may leave out an end."""
    return re.findall(r"line \d+;", path.read_text(encoding="utf-8")) if path.exists() else []


def _runs(numbers: list[int]) -> list[tuple[int, int]]:
    """(first, last) of each run of numbers that follow one another."""
    runs = [list(run) for _, run in groupby(enumerate(numbers), lambda one: one[1] - one[0])]
    return [(run[0][1], run[-1][1]) for run in runs]


def _differing(found: list[str], wanted: list[str]) -> str:
    missing, more = Counter(wanted) - Counter(found), Counter(found) - Counter(wanted)
    return (
        f"{len(found)} lines; {len(missing)} are missing: {list(missing)[:5]}; {len(more)} too many: {list(more)[:5]}"
    )
