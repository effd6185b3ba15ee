"""Appends of 100 records with acks=all, beside a bare loop that writes and syncs the same bytes."""

import os
import time
from itertools import count
from pathlib import Path

from figures import Row, interleaved, percentile, summary
from lakes import small_batch
from plan import Plan

import tidelog

_WARMUPS = 100


def run(plan: Plan) -> list[Row]:
    """Append to a topic of one partition, and write and sync the files of such an append one after another, in turn."""
    with tidelog.Lake(str(plan.work / "four_syncs")) as lake:
        lake.create_topic("t", partitions=1)
        topic, batch = lake.topic("t"), small_batch()
        topic.append(batch, acks="all")
        log = plan.work / "four_syncs/t/_delta_log"
        segment, entry = newest(log.parent / "partition=0", ".parquet"), newest(log, ".json")
        bare = FourSyncs(plan.work / "bare", segment.read_bytes(), entry.read_bytes())

        def append() -> float:
            began = time.perf_counter()
            topic.append(batch, acks="all")
            return time.perf_counter() - began

        samples = interleaved({"append": append, "bare": bare.once}, plan.appends, _WARMUPS)
    append_ms, bare_ms = ([s * 1e3 for s in samples[arm]] for arm in ("append", "bare"))
    append_p50, bare_p50 = percentile(append_ms, 50), percentile(bare_ms, 50)
    return [
        Row(
            "append of 100 records, acks=all, p50, against a bare loop of its four syncs one after another",
            "≤ 1.6x",
            f"{append_p50 / bare_p50:.2f}x ({append_p50:.2f} ms against {bare_p50:.2f})",
            append_p50 <= 1.6 * bare_p50,
            {
                "append_ms": summary(append_ms),
                "bare_ms": summary(bare_ms),
                "bytes": [len(bare.segment), len(bare.entry)],
            },
        )
    ]


def newest(folder: Path, suffix: str) -> Path:
    """The file of this suffix that was written last."""
    return max((path for path in folder.iterdir() if path.suffix == suffix), key=lambda path: path.stat().st_mtime_ns)


class FourSyncs:
    """The files of an append, a segment and an entry, each made durable with its folder by one sync after another."""

    def __init__(self, root: Path, segment: bytes, entry: bytes) -> None:
        self._segments, self._log = root / "partition=0", root / "_delta_log"
        self._segments.mkdir(parents=True)
        self._log.mkdir()
        self.segment = segment
        self.entry = entry
        self._count = count()

    def once(self) -> float:
        """One append's; the seconds that it took."""
        number = next(self._count)
        began = time.perf_counter()
        temporary = self._segments / f".{number}.tmp"
        os.close(_written(temporary, self.segment))
        segment = self._segments / f"{number}.parquet"
        os.rename(temporary, segment)
        _sync(segment)
        _sync(self._segments)
        temporary = self._log / f".{number}.tmp"
        fd = _written(temporary, self.entry)
        os.fsync(fd)
        os.close(fd)
        os.link(temporary, self._log / f"{number:020d}.json")
        os.unlink(temporary)
        _sync(self._log)
        return time.perf_counter() - began


def _written(path: Path, data: bytes) -> int:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    os.write(fd, data)
    return fd


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)
