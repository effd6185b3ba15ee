"""A table's rows by another key: each change of a row as what leaves a group and what joins one."""

from collections.abc import Iterator
from typing import Any

import pandas as pd  # type: ignore[import-untyped]
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from pyspark.sql.streaming.state import GroupState

from tidelog.spark.streams.functions import Expression
from tidelog.spark.streams.packing import as_bytes, packed, unpacked, with_state
from tidelog.spark.streams.steps import as_records, evaluated

_KNOWN = "group_bytes binary, row_bytes binary"
_CHANGES = f"{_KNOWN}, change int, micros bigint"


def regrouped(rows: DataFrame, key: Expression, value: Expression) -> DataFrame:
    """Records of the group's key and {change: 1 or -1, row}: as Kafka Streams repartitions a table's changes."""
    group, row = evaluated(rows, key), evaluated(rows, value)
    is_there = F.col("value").isNotNull()
    made = rows.withColumns({"group": F.when(is_there, group), "row": F.when(is_there, row)})
    group_type, row_type = made.schema["group"].dataType, made.schema["row"].dataType
    changes = made.where("key IS NOT NULL").select(
        "key",
        packed(F.col("group"), group_type).alias("group_bytes"),
        packed(F.col("row"), row_type).alias("row_bytes"),
        F.unix_micros("timestamp").alias("micros"),
        F.coalesce("partition", F.lit(0)).alias("partition"),
        F.coalesce("offset", F.lit(0)).alias("offset"),
    )
    changes = with_state(changes.groupBy("key"), _changes, _CHANGES, _KNOWN)
    records = changes.select(
        unpacked(F.col("group_bytes"), group_type).alias("key"),
        F.struct("change", unpacked(F.col("row_bytes"), row_type).alias("row")).alias("value"),
        F.timestamp_micros("micros").alias("timestamp"),
    )
    return as_records(records)


def _changes(_: tuple[Any, ...], frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    """The newest row of a key takes the place of the one that was known."""
    newest = pd.concat(list(frames)).sort_values(["partition", "offset"], kind="stable").iloc[-1]
    old_row = tuple(state.get) if state.exists else None
    changes = [] if old_row is None else [(*old_row, -1, newest["micros"])]
    if newest["group_bytes"] is not None:
        changes.append((newest["group_bytes"], newest["row_bytes"], 1, newest["micros"]))
        state.update((bytes(newest["group_bytes"]), as_bytes(newest["row_bytes"])))
    elif old_row is not None:
        state.remove()
    if changes:
        yield pd.DataFrame(changes, columns=["group_bytes", "row_bytes", "change", "micros"], dtype=object)
