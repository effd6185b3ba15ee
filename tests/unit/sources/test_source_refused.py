"""A streaming query with options that are refused has a reader, which tells the reason."""

import pickle
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import BinaryType, StructField, StructType

from pyspark_tidelog import DefaultSource
from tidelog.log.base.errors import InvalidOptionError
from tidelog.sources.batch import BatchReader
from tidelog.sources.columns import RECORDS
from tidelog.sources.stream import StreamReader

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


@pytest.mark.parametrize("schema", [StructType([StructField("value", BinaryType())]), RECORDS], ids=["one", "ours"])
def test_a_schema_of_ones_own_is_refused(schema: StructType) -> None:
    """Where the caller gives one, Spark does not ask for ours."""
    reader = DefaultSource(OPTIONS).streamReader(schema)
    with pytest.raises(InvalidOptionError, match="tidelog: the source has a fixed schema"):
        reader.initialOffset()
    with pytest.raises(InvalidOptionError, match="tidelog: the source has a fixed schema"):
        DefaultSource(OPTIONS).reader(schema)


def test_our_own_schema_is_known_where_spark_needs_a_reader() -> None:
    """That is another process than the one that was asked for the schema."""
    asked = DefaultSource(OPTIONS)
    schema = asked.schema()
    there = pickle.loads(pickle.dumps(asked))
    assert isinstance(there.reader(schema), BatchReader)
    assert isinstance(there.streamReader(schema), StreamReader)
