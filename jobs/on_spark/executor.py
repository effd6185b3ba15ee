"""Units of maintenance as Spark tasks: each unit is one task, and what it staged comes back as a value.

A task opens the lake's storage again, from its address and options: nothing else of the driver's is sent along. The
driver itself opens no segment, but looks up those that the tasks have staged.
"""

import pickle
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Final

import pyarrow as pa
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tidelog.jobs.transfer.spark_errors import first_line
from tidelog.log.base.clock import SystemIds
from tidelog.log.base.errors import TidelogError
from tidelog.log.door.commit_objects import require_stored
from tidelog.log.storage import Storage, open_storage
from tidelog.retention.rewrites.executors import Task
from tidelog.retention.rewrites.units import Rewritten

# Units of one Spark job, as a multiple of what the cluster runs at once: what has ended is committed between two jobs.
_WAVES_A_JOB: Final = 4
# What a cluster is taken to run at once where the session doesn't tell (Spark Connect).
_UNTOLD_PARALLELISM: Final = 8

Batches = Iterator[pa.RecordBatch]
SPARK_ERRORS: Final = (PySparkException, Py4JJavaError)


@dataclass(frozen=True, slots=True)
class LakeAddress:
    """Where a lake is, for a process that opens its storage again. Picklable."""

    uri: str
    options: Mapping[str, str] | None = None

    def open(self) -> Storage:
        """The lake's storage."""
        return open_storage(self.uri, self.options)


class SparkExecutor:
    """Runs tasks on a Spark cluster. An error of a segment fails its unit, not the job."""

    def __init__(self, spark: SparkSession, lake: str, options: Mapping[str, str] | None = None) -> None:
        self._spark = spark
        self._address = LakeAddress(lake, options)

    def run(self, tasks: Iterable[Task]) -> Iterator[Rewritten]:
        """What became of each task, after each Spark job. A job that Spark gives up fails all of its units."""
        storage = self._address.open()
        waiting = iter(tasks)
        at_once = _WAVES_A_JOB * parallelism(self._spark)
        while wave := list(islice(waiting, at_once)):
            frame = numbered(self._spark, wave).mapInArrow(partial(_run, self._address), "done binary")
            try:
                yield from (looked_up(storage, done) for done in collected(frame))
            except SPARK_ERRORS as e:
                yield from (Rewritten(task.unit, failure=job_failure(e)) for task in wave)


def job_failure(error: Exception) -> str:
    """Why units were not executed, when it was Spark that failed."""
    return (
        f"Spark gave the job up: {first_line(str(error))} What it had written is in no entry and is purged later; run"
        " the job again, with more memory for the executors if they died of it."
    )


def parallelism(spark: SparkSession) -> int:
    """How many tasks the cluster runs at once."""
    context = getattr(spark, "sparkContext", None)
    return _UNTOLD_PARALLELISM if context is None else int(context.defaultParallelism)


def numbered(spark: SparkSession, values: Sequence[Any]) -> DataFrame:
    """One row for each value in a partition of its own: `number` (int) and `value`, pickled."""
    rows = [(number, pickle.dumps(value)) for number, value in enumerate(values)]
    return spark.createDataFrame(rows, "number int, value binary").repartitionById(len(rows), "number")


def collected(frame: DataFrame) -> Iterator[Any]:
    """The pickled values of a frame's only column."""
    return iter([pickle.loads(row[0]) for row in frame.collect()])  # noqa: S301 - our own tasks wrote them


def pickled(value: Any) -> pa.RecordBatch:
    """A row of column `done` for `collected`."""
    return pa.record_batch([pa.array([pickle.dumps(value)], pa.binary())], names=["done"])


def unpickled(batches: Iterable[pa.RecordBatch], column: str = "value") -> Iterator[Any]:
    """The values of a column that `numbered` made."""
    for batch in batches:
        yield from (pickle.loads(value) for value in batch.column(column).to_pylist())  # noqa: S301 - the driver's


def looked_up(storage: Storage, rewritten: Rewritten) -> Rewritten:
    """The same once the driver has found its segments: the task's machine may see another place under the address."""
    try:
        require_stored(storage, {f"{rewritten.unit.topic}/{o.path}": o.size for o in rewritten.outputs})
    except TidelogError as e:
        return Rewritten(rewritten.unit, failure=str(e))
    return rewritten


def _run(address: LakeAddress, batches: Batches) -> Batches:
    storage = address.open()
    for task in unpickled(batches):
        yield pickled(task.run(storage, SystemIds()))
