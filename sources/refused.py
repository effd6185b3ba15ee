"""A streaming query whose options are refused: the refusal reaches the user as it is.

Spark's runner of Python sources stops the reader even when making it failed, and what a user reads last is then that
failure of its own ("cannot access local variable 'reader'"). So there is a reader, and whatever it is asked first
tells the reason.
"""

from typing import Any, NoReturn

from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow

from tidelog.log.base.errors import InvalidOptionError
from tidelog.log.base.shallow_errors import shallow


class RefusedReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Answers every question with the error that it was made with."""

    def __init__(self, why: InvalidOptionError) -> None:
        self._why = why

    @shallow
    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise self._why

    initialOffset = latestOffset = getDefaultReadLimit = prepareForTriggerAvailableNow = _refuse  # noqa: N815
    partitions = read = _refuse
