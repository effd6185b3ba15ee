"""What differs between two lakes, of which one may be a branch of the other, as a DataFrame."""

from contextlib import ExitStack
from os import PathLike

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr

from tidelog.log.base.errors import UnknownTopicError
from tidelog.log.base.shallow_errors import shallow
from tidelog.log.lake import Lake
from tidelog.operations.lake_diff.ranges import Side, unshared
from tidelog.spark.native import read_part, read_topic

_RECORD = "struct(key, value, headers, timestamp, timestampType)"


@shallow
def diff(
    spark: SparkSession,
    a: str | PathLike[str] | Lake,
    b: str | PathLike[str] | Lake,
    *,
    topic: str,
    by_key: bool = False,
) -> DataFrame:
    """The records of a topic that differ between two lakes: partition, offset, and the records `a` and `b`.

    One of the two is null where a lake has no record at the offset. A record has key, value, headers, timestamp and
    timestampType. Files that both lakes have are not read. `by_key`: partition, key, and the newest records `a` and `b`
    of keys that differ, with value and headers; a tombstone is none, and all files are read. Empty where the lakes hold
    the same. Raises `UnknownTopicError` where one of them has no such topic.
    """
    with ExitStack() as stack:
        lakes = [lake if isinstance(lake, Lake) else stack.enter_context(Lake(lake, create=False)) for lake in (a, b)]
        if by_key:
            ours, theirs = (_newest(read_topic(spark, lake, topic)) for lake in lakes)
            return _joined(ours, theirs, ["partition", "key"])
        condition = _condition(lakes[0], lakes[1], topic)
        ours, theirs = (
            read_part(spark, lake, topic, condition).selectExpr("partition", "offset", f"{_RECORD} AS record")
            for lake in lakes
        )
        return _joined(ours, theirs, ["partition", "offset"])


def _joined(ours: DataFrame, theirs: DataFrame, by: list[str]) -> DataFrame:
    a, b = ours.withColumnRenamed("record", "a"), theirs.withColumnRenamed("record", "b")
    return a.join(b, by, "full_outer").where(expr("NOT (a <=> b)"))


def _newest(records: DataFrame) -> DataFrame:
    rows = records.where("key IS NOT NULL").groupBy("partition", "key")
    newest = rows.agg(expr("max_by(struct(value, headers), offset)").alias("record"))
    return newest.where("record.value IS NOT NULL")


def _condition(a: Lake, b: Lake, topic: str) -> str:
    """What is not in one file at both lakes, over the columns of a topic's table."""
    states = [lake.peek(topic) for lake in (a, b)]
    missing = [lake.uri for lake, state in zip((a, b), states, strict=True) if state is None]
    if missing:
        raise UnknownTopicError(f"Topic '{topic}' is not in {missing[0]}, so that no records can be compared.")
    parts = []
    for partition in range(max(state.partitions for state in states if state is not None)):
        sides = [Side.of(state, partition) for state in states]
        for start, end in unshared(*sides):
            bases = [s.base_offset for side in sides for s in side.segments if s.end > start and s.base_offset < end]
            parts.append(
                f"(partition = {partition} AND base_offset >= {min(bases, default=start)} AND base_offset < {end}"
                f" AND base_offset + position >= {start} AND base_offset + position < {end})"
            )
    return " OR ".join(parts) or "false"
