"""Short words for tests that run Spark queries over topics."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming import StreamingQuery
from support.waiting import eventually

from tidelog.log.lake import Lake

# Longer than any condition takes on a busy machine; a test that waits this long has failed.
PATIENCE_S = 240.0

# What makes queries over a few records quick: no code is generated for them, and their checkpoints' files are renamed
# without a process that looks at each.
FEW_RECORDS = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}
AVAILABLE_NOW: dict[str, Any] = {"availableNow": True}


def source(spark: SparkSession, lake: Lake, **options: Any) -> DataFrame:
    """A batch DataFrame of topics."""
    return spark.read.format("tidelog").options(lake=lake.uri, **options).load()


def stream(spark: SparkSession, lake: Lake, **options: Any) -> DataFrame:
    """A streaming DataFrame of topics."""
    return spark.readStream.format("tidelog").options(lake=lake.uri, **options).load()


def write(rows: DataFrame, lake: Lake, topic: str | None = None, **options: Any) -> None:
    """A batch write."""
    named = {} if topic is None else {"topic": topic}
    rows.write.format("tidelog").options(lake=lake.uri, **named, **options).mode("append").save()


def start(
    rows: DataFrame,
    lake: Lake,
    topic: str | None,
    checkpoint: str,
    trigger: dict[str, Any] | None = None,
    **options: Any,
) -> StreamingQuery:
    """A streaming write, started."""
    named = {} if topic is None else {"topic": topic}
    writer = rows.writeStream.format("tidelog").options(
        lake=lake.uri, checkpointLocation=checkpoint, **named, **options
    )
    return (writer.trigger(**trigger) if trigger else writer).start()


def run(rows: DataFrame, lake: Lake, topic: str | None, checkpoint: str, **options: Any) -> StreamingQuery:
    """A streaming write of what is there now, to its end."""
    query = start(rows, lake, topic, checkpoint, AVAILABLE_NOW, **options)
    query.awaitTermination()
    return query


class Collected:
    """What a streaming query delivered: {batch id: rows}, kept over restarts."""

    def __init__(self) -> None:
        self.batches: dict[int, list[Row]] = {}

    def start(self, rows: DataFrame, checkpoint: str, trigger: dict[str, Any] | None = None) -> StreamingQuery:
        """Start a query that delivers here."""

        def take(batch: DataFrame, batch_id: int) -> None:
            self.batches[batch_id] = batch.collect()

        writer = rows.writeStream.foreachBatch(take).option("checkpointLocation", checkpoint)
        return (writer.trigger(**trigger) if trigger else writer).start()

    def run(self, rows: DataFrame, checkpoint: str, trigger: dict[str, Any] | None = None) -> StreamingQuery:
        """Deliver what is there now."""
        query = self.start(rows, checkpoint, trigger or AVAILABLE_NOW)
        query.awaitTermination()
        return query

    @property
    def rows(self) -> list[Row]:
        """All rows, batch by batch."""
        return [row for batch_id in sorted(self.batches) for row in self.batches[batch_id]]

    @property
    def values(self) -> list[str]:
        """The rows' values as text, sorted."""
        return sorted(row.value.decode() for row in self.rows)

    @property
    def sizes(self) -> list[int]:
        """How many rows each batch had, without empty batches."""
        return [len(rows) for _, rows in sorted(self.batches.items()) if rows]


def append(lake: Lake, topic: str, *values: str, **columns: Any) -> None:
    """Append records with these values; more columns as lists."""
    lake.topic(topic).append(pa.table({"value": list(values), **{k: pa.array(v) for k, v in columns.items()}}))


def fill(lake: Lake, topic: str, partition: int, *values: str) -> None:
    """Append records to one partition."""
    append(lake, topic, *values, partition=[partition] * len(values))


def texts(rows: DataFrame) -> list[str]:
    """The values of a batch DataFrame as text, sorted."""
    return sorted(row.value.decode() for row in rows.select("value").collect())


def numbered(prefix: str, count: int, first: int = 0) -> list[str]:
    """`a000`, `a001` ..."""
    return [f"{prefix}{number:03d}" for number in range(first, first + count)]


def in_topic(lake: Lake, topic: str) -> list[str]:
    """The values in a topic as text, sorted, read without Spark."""
    handle = lake.topic(topic)
    return sorted(
        value.decode()
        for partition in handle.offsets()
        for batch in handle.read(partition)
        for value in batch.column("value").to_pylist()
    )


def data_files(lake: Lake, topic: str) -> list[Path]:
    """The data files in a topic's folder, committed or not, temporary ones too."""
    folder = Path(lake.uri.removeprefix("file://")) / topic
    return sorted(path for path in folder.glob("partition=*/*") if path.is_file() and not path.name.endswith(".crc"))


def logged_offsets(checkpoint: str, batch_id: int) -> str:
    """The text of the only source's offset in a checkpoint."""
    return (Path(checkpoint) / "offsets" / str(batch_id)).read_text().splitlines()[-1]


def ends(query: StreamingQuery) -> list[Any]:
    """The end offsets of the query's batches, from its progress."""
    return [json.loads(p["sources"][0]["endOffset"]) for p in query.recentProgress if p["sources"][0]["endOffset"]]


def forget_commit(checkpoint: str) -> int:
    """Take the newest batch's commit out of a checkpoint, as if Spark died before it; returns the batch's id."""
    commits = Path(checkpoint) / "commits"
    newest = max(int(path.name) for path in commits.iterdir() if path.name.isdigit())
    (commits / str(newest)).unlink()
    (commits / f".{newest}.crc").unlink(missing_ok=True)
    return newest


@contextmanager
def fails_with(*words: str) -> Iterator[None]:
    """The block fails in Spark, and Spark's message holds all of `words`."""
    with pytest.raises(PySparkException) as caught:
        yield
    message = str(caught.value)
    missing = [word for word in words if word not in message]
    assert not missing, f"{missing} not in: {message}"


def await_that(condition: Callable[[], Any], query: StreamingQuery | None = None) -> None:
    """Wait until the condition holds; a query that fails meanwhile fails the test with its own error."""

    def holds() -> Any:
        found = condition()
        if not found and query is not None and (error := query.exception()) is not None:
            raise error
        return found

    eventually(holds, "the condition of a running query", PATIENCE_S)
