"""Where the queries of an application read and write: topics of its lake, by Spark's workers or in this process."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from types import MappingProxyType

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import StructType

from pyspark_tidelog import DefaultSource
from tidelog.log.base.errors import TidelogError
from tidelog.log.lake import Lake
from tidelog.sinks.writer import BatchWriter
from tidelog.spark.streams.packing import dumped, loaded

_QUERY_ID = "sql.streaming.queryId"

Batch = Callable[[DataFrame, int], None]


class UnknownQueryError(TidelogError):
    """Spark did not say which query a batch belongs to."""


class Endpoints:
    """By Spark's workers, as everywhere. `settings`: what they ask of the application's session."""

    settings: Mapping[str, str] = MappingProxyType({})

    def source(self, spark: SparkSession, options: Mapping[str, str]) -> DataFrame:
        """The records of topics as they come, with the columns that the data source gives them."""
        return spark.readStream.format("tidelog").options(**options).load()

    def sink(self, records: DataFrame, options: Mapping[str, str], *, final: bool) -> DataStreamWriter:
        """What writes records to a topic, each batch once. `final`: no row replaces another one."""
        return records.writeStream.foreachBatch(self._write(options)).outputMode("append" if final else "update")

    def _write(self, options: Mapping[str, str]) -> Batch:
        """The workers stage a batch's records, and this process commits them.

        As a sink of Spark's, which for Python has no update mode, each batch would go to four more processes.
        """

        def write(batch: DataFrame, number: int) -> None:
            writer = _writer(batch, number, options)

            def stage(records: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
                yield pa.record_batch([pa.array([dumped(writer.write(records))])], ["staged"])

            staged = batch.mapInArrow(stage, "staged binary").collect()
            writer.commit([loaded(row["staged"]) for row in staged])

        return write

    def hand_over(self) -> None:
        """Let the queries have all records that the topics have by now: they look by themselves."""


@dataclass
class InProcess(Endpoints):
    """In this process, for a test's few records: the data source's reader and writer without Spark's workers.

    A worker costs a query that a test starts more than all else. Records come to Spark as files of `folder`, which
    `hand_over` writes.
    """

    lake: Lake
    folder: Path
    settings: Mapping[str, str] = field(default_factory=dict)
    feeds: list["_Feed"] = field(default_factory=list)

    def source(self, spark: SparkSession, options: Mapping[str, str]) -> DataFrame:
        """Records as files that `hand_over` writes."""
        found = _Feed(self.lake, self.folder / f"{len(self.feeds)}", dict(options))
        self.feeds.append(found)
        return spark.readStream.schema(found.schema).parquet(str(found.folder))

    def _write(self, options: Mapping[str, str]) -> Batch:
        def write(batch: DataFrame, number: int) -> None:
            records = batch.toArrow()
            if records.num_rows:
                writer = _writer(batch, number, options)
                writer.commit([writer.write(iter(records.to_batches()))])

        return write

    def hand_over(self) -> None:
        """Give the queries the records that the topics have by now."""
        for feed in self.feeds:
            feed.hand_over()


class _Feed:
    """Records of topics on their way to a query, as files of a folder."""

    def __init__(self, lake: Lake, folder: Path, options: dict[str, str]) -> None:
        folder.mkdir(parents=True)
        self.folder = folder
        self._lake = lake
        self._options = {key: value for key, value in options.items() if key != "startingOffsets"}
        self.schema: StructType = DefaultSource(self._options).schema()
        self._topics: Sequence[str] = options["subscribe"].split(",")
        self._begun: dict[str, dict[str, int]] = {}
        self._numbers = count()

    def hand_over(self) -> None:
        """Write what has come since the last call as one more file."""
        ends = {
            topic: {str(partition): end for partition, (_, end) in self._lake.offsets(topic).items()}
            for topic in self._topics
            if self._lake.peek(topic) is not None
        }
        if ends == self._begun:
            return
        starts = {topic: {at: self._begun.get(topic, {}).get(at, 0) for at in places} for topic, places in ends.items()}
        limits = {"startingOffsets": orjson.dumps(starts).decode(), "endingOffsets": orjson.dumps(ends).decode()}
        source = DefaultSource({**self._options, **limits})
        reader = source.reader(source.schema())
        batches = [batch for task in reader.partitions() for batch in reader.read(task)]
        self._begun = ends
        if batches:
            name = f"{next(self._numbers):06d}.parquet"
            with pq.ParquetWriter(self.folder / f"_{name}", batches[0].schema) as file:
                for batch in batches:
                    file.write_batch(batch)
            os.replace(self.folder / f"_{name}", self.folder / name)


def _writer(batch: DataFrame, number: int, options: Mapping[str, str]) -> BatchWriter:
    """What writes a batch, once: the topic's entry holds the query's id and the batch's number."""
    query = batch.sparkSession.sparkContext.getLocalProperty(_QUERY_ID)
    if not query:
        raise UnknownQueryError(
            f"Spark did not say which query a batch belongs to (local property {_QUERY_ID}), and without that it"
            " can't count once. Leave spark.python's PYSPARK_PIN_THREAD at its default."
        )
    once = {"txnAppId": f"tidelog-streams-{query}", "txnVersion": str(number)}
    return DefaultSource({**options, **once}).writer(batch.schema, overwrite=False)
