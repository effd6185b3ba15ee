"""A streaming source and a sink in Python that do nothing: what Spark itself takes for a micro-batch of such two.

The source's offset is the length of a file, a byte a record. Each record is its own number, and the sink writes the
largest that it got to another file.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit
from pyspark.sql.types import StructType


class EmptyPython(DataSource):
    """`format("empty_python")`; option `path` names the file."""

    @classmethod
    def name(cls) -> str:
        """The name for `format(...)`."""
        return "empty_python"

    def schema(self) -> str:
        """What a log's record has at least."""
        return "key binary, value binary"

    def streamReader(self, schema: StructType) -> "_Reader":  # noqa: ARG002, N802 - Spark's signature
        """The source."""
        return _Reader(self.options["path"])

    def streamWriter(self, schema: StructType, overwrite: bool) -> "_Writer":  # noqa: ARG002, N802 - Spark's signature
        """The sink."""
        return _Writer(self.options["path"])


class _Reader(DataSourceStreamReader):
    def __init__(self, path: str) -> None:
        self._path = path

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        return {"bytes": 0}

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, int]:  # noqa: ARG002, N802
        return {"bytes": os.stat(self._path).st_size}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        return ReadAllAvailable()

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return [InputPartition((start["bytes"], end["bytes"]))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        values = [b"%0100d" % number for number in range(*partition.value)]
        yield pa.record_batch({"key": pa.array([b"k"] * len(values)), "value": pa.array(values)})


@dataclass
class _Written(WriterCommitMessage):
    last: bytes


class _Writer(DataSourceStreamArrowWriter):
    def __init__(self, path: str) -> None:
        self._path = path

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return _Written(max((pc.max(batch.column("value")).as_py() for batch in iterator), default=b""))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803
        with open(self._path, "r+b") as file:
            file.write(max(one.last for one in messages if isinstance(one, _Written)))

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        pass
