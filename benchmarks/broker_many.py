"""A thousand producers of one record a second each, over the partitions of one topic, for a minute.

All are connections of one asyncio process, whose processor time is counted apart from the broker's.
"""

import asyncio
import json
import resource
import struct
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import cast

import brokers
import kafka_frames
from figures import Row, percentile, summary
from plan import Plan

import tidelog

_PRODUCERS, _PARTITIONS = 1_000, 8
_TOPIC = "many"
# The first seconds are left out: a broker may write the files that it saved up while it was idle, 2,000 of them.
_WARMUP_S = 20.0
_MOST_FILES, _MOST_P99_MS = 200, 100.0


def run(plan: Plan) -> list[Row]:
    """The producers begin at different moments of a second, and each waits for no other."""
    lake_folder = plan.work / "broker-many"
    seconds = 10.0 if plan.quick else 60.0
    with tidelog.Lake(str(lake_folder)) as lake:
        lake.create_topic(_TOPIC, partitions=_PARTITIONS)
        folder = lake_folder / lake.topic(_TOPIC).folder
    with brokers.running(lake_folder) as (broker,):
        command = [sys.executable, __file__, broker.address, str(seconds)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as generator:
            assert generator.stdout is not None
            generator.stdout.readline()  # all are connected, and the first seconds are over
            files, began_s, began = _files(folder), broker.processor_s, time.monotonic()
            told = json.loads(generator.stdout.readline())
            wall_s = time.monotonic() - began
            files, used_s = _files(folder) - files, broker.processor_s - began_s
    if generator.returncode:
        raise RuntimeError("the producers failed")
    return _rows(told, files / wall_s, used_s / wall_s)


def _rows(told: dict[str, float], files_per_s: float, cores: float) -> list[Row]:
    what = f"{_PRODUCERS:,} producers of one record a second, {_PARTITIONS} partitions, for {told['seconds']:.0f} s"
    return [
        Row(f"{what}: files", "≤ 200/s", f"{files_per_s:.0f}/s", round(files_per_s) <= _MOST_FILES, told),
        Row(
            "the same: p99 of acks",
            "≤ 100 ms",
            f"{told['p99']:.0f} ms (p50 {told['p50']:.0f}; {told['acks'] / told['seconds']:.0f} acks/s)",
            told["p99"] <= _MOST_P99_MS and told["acks"] >= 0.95 * _PRODUCERS * told["seconds"],
        ),
        Row(
            "the same: the broker's processor time",
            "≤ 1 core",
            f"{cores:.2f} cores (the producers' own {told['cores']:.2f})",
            cores <= 1,
        ),
    ]


def _files(folder: Path) -> int:
    return sum(1 for _ in folder.rglob("*.parquet"))


class _Producer(asyncio.Protocol):
    """One connection that sends its record every second, and takes its answers. `acks_ms`: of all of them."""

    def __init__(self, partition: int, acks_ms: list[float]) -> None:
        self._frame = frame(_TOPIC, partition)
        self._acks_ms = acks_ms
        self._sent: list[float] = []
        self._got = bytearray()
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.WriteTransport | None = None
        self.lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep it: `begin` says when to send."""
        self._transport = cast(asyncio.WriteTransport, transport)

    def begin(self, after_s: float) -> None:
        """Send, from then on every second."""
        due_s = time.monotonic() + after_s
        self._loop.call_later(after_s, self._send, due_s)

    def _send(self, due_s: float) -> None:
        if self._transport is None or self.lost:
            return
        # From when it was due: a producer that is held up has its record wait.
        self._sent.append(due_s)
        self._transport.write(self._frame)
        self._loop.call_later(due_s + 1 - time.monotonic(), self._send, due_s + 1)

    def data_received(self, data: bytes) -> None:
        """Answers, each after its length."""
        self._got += data
        while len(self._got) >= 4:
            (size,) = struct.unpack_from(">i", self._got)
            if len(self._got) < 4 + size:
                return
            if not kafka_frames.taken(memoryview(bytes(self._got[4 : 4 + size])), _TOPIC):
                raise RuntimeError("a record was refused: another broker leads its partition")
            del self._got[: 4 + size]
            self._acks_ms.append((time.monotonic() - self._sent.pop(0)) * 1e3)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the case fails, whatever it was
        """No connection may end before the last ack."""
        self.lost = True


def frame(topic: str, partition: int) -> bytes:
    """A Produce request of one record of 100 B, acks=all, as its connection has it."""
    return kafka_frames.produce(topic, {partition: kafka_frames.batch(1, seed=partition)})


async def _generate(address: str, seconds: float) -> dict[str, float]:
    host, _, port = address.rpartition(":")
    acks_ms: list[float] = []
    loop = asyncio.get_running_loop()
    producers = []
    for number in range(_PRODUCERS):
        _, one = await loop.create_connection(partial(_Producer, number % _PARTITIONS, acks_ms), host, int(port))
        producers.append(one)
    for number, one in enumerate(producers):
        one.begin(number / _PRODUCERS)
    await asyncio.sleep(_WARMUP_S)
    acks_ms.clear()
    print("begun", flush=True)
    usage, began = resource.getrusage(resource.RUSAGE_SELF), time.monotonic()
    await asyncio.sleep(seconds)
    took, used = time.monotonic() - began, resource.getrusage(resource.RUSAGE_SELF)
    if any(one.lost for one in producers) or not acks_ms:
        raise RuntimeError("the broker closed a connection, or answered none")
    cores = (used.ru_utime + used.ru_stime - usage.ru_utime - usage.ru_stime) / took
    found = summary(acks_ms, 1)
    p90 = round(percentile(acks_ms, 90), 1)
    return {**found, "p90": p90, "acks": len(acks_ms), "seconds": round(took, 2), "cores": round(cores, 3)}


if __name__ == "__main__":
    import uvloop

    print(json.dumps(uvloop.run(_generate(sys.argv[1], float(sys.argv[2])))), flush=True)
