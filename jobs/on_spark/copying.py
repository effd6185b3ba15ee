"""Files of a mirror copied by Spark's tasks, straight from one store to the other."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from pyspark.sql import SparkSession

from tidelog.commands.failures import JobFailedError
from tidelog.jobs.on_spark.executor import (
    SPARK_ERRORS,
    Batches,
    LakeAddress,
    collected,
    numbered,
    parallelism,
    pickled,
    unpickled,
)
from tidelog.jobs.transfer.spark_errors import first_line
from tidelog.log.base.clock import SystemClock
from tidelog.log.base.errors import MissingSegmentError, TidelogError
from tidelog.log.base.rate import Rate
from tidelog.log.door.commit_objects import require_stored
from tidelog.log.lake import Lake
from tidelog.mirror.copying import Copier

# What is copied sooner here than a Spark job begins.
_FEW_BYTES: Final = 64 * 1024 * 1024
_FEW_FILES: Final = 64
# Tasks of a job for each that the cluster runs at once, so that a slow one holds up few.
_TASKS_EACH: Final = 4


@dataclass(frozen=True, slots=True)
class CopyTask:
    """Files that one task copies, by path with their bytes. `again`: some may have been copied before."""

    sizes: Mapping[str, int]
    again: bool


@dataclass(frozen=True, slots=True)
class CopyResult:
    """What became of it: files that are not at the source, bytes that were copied, "" or what failed."""

    missing: Sequence[str]
    copied_bytes: int
    failure: str = ""


class SparkCopier(Copier):
    """As `Copier`, but that many files are copied by Spark's tasks. `few_bytes`: up to that they are not many."""

    def __init__(self, spark: SparkSession, source: Lake, follower: Lake, *, few_bytes: int = _FEW_BYTES) -> None:
        super().__init__(source.storage, follower.storage, Rate(SystemClock(), None))
        self._spark = spark
        self._from = LakeAddress(source.uri, source.options)
        self._to = LakeAddress(follower.uri, follower.options)
        self._few_bytes = few_bytes

    def copy(self, sizes: Mapping[str, int], *, again: bool = False) -> list[str]:
        """Copy files, so that they survive a power loss; those that are not at the source.

        Raises as `Copier.copy`, and `JobFailedError` when Spark gives up.
        """
        if sum(sizes.values()) <= self._few_bytes and len(sizes) <= _FEW_FILES:
            return super().copy(sizes, again=again)
        tasks = [CopyTask(part, again) for part in shares(sizes, _TASKS_EACH * parallelism(self._spark))]
        frame = numbered(self._spark, tasks).mapInArrow(partial(_run, self._from, self._to), "done binary")
        try:
            results: list[CopyResult] = list(collected(frame))
        except SPARK_ERRORS as e:
            raise JobFailedError(
                f"Spark gave the copy up: {first_line(str(e))} Submit the job again: what is there stays, and the log's"
                " entries come last."
            ) from e
        failed = [result.failure for result in results if result.failure]
        if failed:
            raise MissingSegmentError(failed[0])
        self.copied_bytes += sum(result.copied_bytes for result in results)
        missing = sorted(path for result in results for path in result.missing)
        # A task's machine may see another place under the follower's address.
        require_stored(self.follower, {path: size for path, size in sizes.items() if path not in set(missing)})
        return missing


def shares(sizes: Mapping[str, int], count: int) -> list[dict[str, int]]:
    """Files in at most `count` shares of about as many bytes: the largest first, each to the share that has least.

    >>> shares({"a": 5, "b": 4, "c": 1}, 2)
    [{'a': 5}, {'b': 4, 'c': 1}]
    """
    parts: list[dict[str, int]] = [{} for _ in range(max(1, min(count, len(sizes))))]
    filled = [0] * len(parts)
    for path, size in sorted(sizes.items(), key=lambda one: (-one[1], one[0])):
        least = min(range(len(parts)), key=filled.__getitem__)
        parts[least][path] = size
        filled[least] += size + 1
    return [share for share in parts if share]


def _run(source: LakeAddress, follower: LakeAddress, batches: Batches) -> Batches:
    for result in _results(source, follower, unpickled(batches)):
        yield pickled(result)


def _results(source: LakeAddress, follower: LakeAddress, tasks: Iterable[CopyTask]) -> Iterator[CopyResult]:
    copier = Copier(source.open(), follower.open(), Rate(SystemClock(), None))
    try:
        for task in tasks:
            before = copier.copied_bytes
            try:
                missing = copier.copy(task.sizes, again=task.again)
            except TidelogError as e:
                if e.retriable and not isinstance(e, MissingSegmentError):  # Spark runs the task again
                    raise
                yield CopyResult((), 0, str(e))
            else:
                yield CopyResult(missing, copier.copied_bytes - before)
    finally:
        copier.close()
