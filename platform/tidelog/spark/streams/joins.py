"""Joins: of two streams by Spark's own, of streams and tables by a state of the table's newest values."""

from collections.abc import Iterator
from typing import Any

import pandas as pd  # type: ignore[import-untyped]
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from pyspark.sql.streaming.state import GroupState

from tidelog.spark.streams.functions import Expression
from tidelog.spark.streams.packing import Run, as_bytes, packed, unpacked, with_state
from tidelog.spark.streams.steps import as_records, evaluated
from tidelog.spark.streams.windows import JoinWindows, interval, micros

# What a joiner is called with; SQL names these columns.
_JOINED = (("left_value", "right_value"), ("key", "left_value", "right_value"))
_PAIRS = "key_bytes binary, micros bigint, left_bytes binary, right_bytes binary, is_there boolean"
_LEFT, _RIGHT = 0, 1


def streams_joined(left: DataFrame, right: DataFrame, joiner: Expression, windows: JoinWindows, how: str) -> DataFrame:
    """Pairs of records of two streams with one key, as far apart in time as the windows say."""
    # What is later than the watermark is in no pair: the watermark waits for the window, too.
    delay = interval(windows.grace + max(windows.before_by, windows.after_by))

    def side(rows: DataFrame, name: str) -> DataFrame:
        rows = rows.where("key IS NOT NULL AND value IS NOT NULL").withWatermark("timestamp", delay)
        return rows.select(
            F.col("key").alias(f"{name}_key"),
            F.col("value").alias(f"{name}_value"),
            F.col("timestamp").alias(f"{name}_time"),
        )

    on = F.expr(
        "left_key = right_key"
        f" AND right_time >= left_time - INTERVAL '{micros(windows.before_by)}' MICROSECOND"
        f" AND right_time <= left_time + INTERVAL '{micros(windows.after_by)}' MICROSECOND"
    )
    pairs = side(left, "left").join(side(right, "right"), on, how)
    pairs = pairs.withColumns({"key": F.col("left_key"), "timestamp": F.greatest("left_time", "right_time")})
    return as_records(pairs.withColumn("value", evaluated(pairs, joiner, _JOINED)))


def stream_and_table(left: DataFrame, right: DataFrame, joiner: Expression, how: str) -> DataFrame:
    """Each record of a stream with the value that the table has for its key by then."""
    rows = _both(left.where("value IS NOT NULL"), right)
    run = _looking_up(also_without=how == "left")
    found = with_state(rows.groupBy("key"), run, _PAIRS, "right_bytes binary")
    return _joined(found, left, right, joiner)


def tables_joined(left: DataFrame, right: DataFrame, joiner: Expression, how: str) -> DataFrame:
    """The newest pair of each key of two tables; a tombstone where there is none any more."""
    known = "left_bytes binary, right_bytes binary, micros bigint"
    found = with_state(_both(left, right).groupBy("key"), _pairing(how), _PAIRS, known)
    return _joined(found, left, right, joiner)


def _both(left: DataFrame, right: DataFrame) -> DataFrame:
    def side(rows: DataFrame, number: int) -> DataFrame:
        return rows.where("key IS NOT NULL").select(
            "key",
            packed(F.col("key"), rows.schema["key"].dataType).alias("key_bytes"),
            packed(F.col("value"), rows.schema["value"].dataType).alias("value_bytes"),
            F.unix_micros("timestamp").alias("micros"),
            F.coalesce("partition", F.lit(0)).alias("partition"),
            F.coalesce("offset", F.lit(0)).alias("offset"),
            F.lit(number).alias("side"),
        )

    return side(left, _LEFT).unionByName(side(right, _RIGHT))


def _joined(found: DataFrame, left: DataFrame, right: DataFrame, joiner: Expression) -> DataFrame:
    pairs = found.select(
        unpacked(F.col("key_bytes"), left.schema["key"].dataType).alias("key"),
        unpacked(F.col("left_bytes"), left.schema["value"].dataType).alias("left_value"),
        unpacked(F.col("right_bytes"), right.schema["value"].dataType).alias("right_value"),
        F.timestamp_micros("micros").alias("timestamp"),
        "is_there",
    )
    value: Column = F.when(F.col("is_there"), evaluated(pairs, joiner, _JOINED))
    return as_records(pairs.withColumn("value", value))


def in_turn(frames: Iterator[pd.DataFrame]) -> list[Any]:
    """Records of two sides as Kafka Streams takes them: each side in its order, the earlier of two heads first.

    Of two heads with one timestamp the right side's is first.
    """
    rows = pd.concat(list(frames)).sort_values(["partition", "offset"], kind="stable")
    left, right = (list(rows[rows["side"] == side].itertuples()) for side in (_LEFT, _RIGHT))
    ordered: list[Any] = []
    at_left = at_right = 0
    while at_left < len(left) or at_right < len(right):
        takes_right = at_right < len(right) and (at_left == len(left) or right[at_right].micros <= left[at_left].micros)
        ordered.append(right[at_right] if takes_right else left[at_left])
        at_right += takes_right
        at_left += not takes_right
    return ordered


def _looking_up(*, also_without: bool) -> Run:
    def run(_: tuple[Any, ...], frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        table_value = state.get[0] if state.exists else None
        joined = []
        for row in in_turn(frames):
            if row.side == _RIGHT:
                table_value = row.value_bytes
            elif table_value is not None or also_without:
                joined.append((row.key_bytes, row.micros, row.value_bytes, table_value, True))
        if table_value is not None:
            state.update((bytes(table_value),))
        elif state.exists:
            state.remove()
        if joined:
            yield _frame(joined)

    return run


def _pairing(how: str) -> Run:
    def is_there(left: Any, right: Any) -> bool:
        if how == "inner":
            return left is not None and right is not None
        return left is not None or (how == "outer" and right is not None)

    def run(_: tuple[Any, ...], frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        left, right, micros_known = state.get if state.exists else (None, None, 0)
        was_there = is_there(left, right)
        rows = in_turn(frames)
        for row in rows:
            left, right = (row.value_bytes, right) if row.side == _LEFT else (left, row.value_bytes)
            micros_known = max(micros_known, int(row.micros))
        if left is not None or right is not None:
            state.update((as_bytes(left), as_bytes(right), micros_known))
        elif state.exists:
            state.remove()
        there = is_there(left, right)
        if there or was_there:
            yield _frame([(rows[0].key_bytes, micros_known, left, right, there)])

    return run


def _frame(rows: list[tuple[Any, ...]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["key_bytes", "micros", "left_bytes", "right_bytes", "is_there"], dtype=object)
