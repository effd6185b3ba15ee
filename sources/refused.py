"""A streaming query whose options are refused: the refusal reaches the user as it is.

Spark's runner of Python sources stops the reader even when making it failed, and what a user reads last is then that
failure of its own ("cannot access local variable 'reader'"). So there is a reader, and whatever it is asked first
tells the reason.
"""

from collections.abc import Iterator
from typing import Any, NoReturn

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow

from tidelog.log.base.errors import InvalidOptionError
from tidelog.log.base.shallow_errors import shallow
from tidelog.sources.offset_json import JsonOffsets


class RefusedReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Answers every question with the error that it was made with."""

    def __init__(self, why: InvalidOptionError) -> None:
        self._why = why

    def _refuse(self) -> NoReturn:
        raise self._why

    @shallow
    def initialOffset(self) -> JsonOffsets:  # noqa: N802 - Spark's name
        """Refuse."""
        self._refuse()

    @shallow
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> JsonOffsets:  # noqa: ARG002, N802
        """Refuse."""
        self._refuse()

    @shallow
    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Refuse."""
        self._refuse()

    @shallow
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Refuse."""
        self._refuse()

    @shallow
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:  # noqa: ARG002
        """Refuse."""
        self._refuse()

    @shallow
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:  # noqa: ARG002
        """Refuse."""
        self._refuse()
