"""A streaming query with options that are refused has a reader, which tells the reason."""

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import BinaryType, StructField, StructType

from pyspark_tidelog import DefaultSource
from tidelog.log.errors import InvalidOptionError

OPTIONS = {"lake": "/unused", "subscribe": "t"}


@pytest.mark.parametrize(
    "ask",
    [
        lambda reader: reader.prepareForTriggerAvailableNow(),
        lambda reader: reader.getDefaultReadLimit(),
        lambda reader: reader.initialOffset(),
        lambda reader: reader.latestOffset({}, ReadAllAvailable()),
        lambda reader: reader.partitions({}, {}),
        lambda reader: reader.read(None),
    ],
)
def test_whatever_spark_asks_first_it_learns_the_reason(ask: Callable[[Any], object]) -> None:
    source = DefaultSource({**OPTIONS, "endingOffsets": "latest"})
    reader = source.streamReader(source.schema())
    with pytest.raises(InvalidOptionError, match="ending offset not valid in streaming queries"):
        ask(reader)
    reader.stop()


def test_a_schema_of_ones_own_is_refused_the_same_way() -> None:
    reader = DefaultSource(OPTIONS).streamReader(StructType([StructField("value", BinaryType())]))
    with pytest.raises(InvalidOptionError, match="Kafka source has a fixed schema"):
        reader.initialOffset()
