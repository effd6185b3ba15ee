"""Records of a key, or of a key and a window, as one value: by Spark's aggregates or by Python with state."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd  # type: ignore[import-untyped]
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout
from pyspark.sql.types import DataType

from tidelog.log.base.errors import InvalidOptionError
from tidelog.spark.streams.functions import PythonFunction, parameters, plain
from tidelog.spark.streams.packing import Run, dumper, loader, packed, unpacked, with_state
from tidelog.spark.streams.steps import as_records, type_of
from tidelog.spark.streams.windows import SessionWindows, TimeWindows, interval

Windows = TimeWindows | SessionWindows | None
_STATE = "aggregate binary, micros bigint"
_OUTPUT = "key_bytes binary, aggregate binary, micros bigint, window_start bigint, window_end bigint"


@dataclass(frozen=True)
class PythonFold:
    """How Python makes one value of many: `step(key, value, aggregate)`, from `initial` on.

    `reduces`: the first value is the first aggregate, and `step` takes two values.
    """

    step: Callable[..., Any]
    returns: str | DataType | None
    initial: Any = None
    reduces: bool = False

    def __call__(self, key: Any, value: Any, aggregate: Any, *, first: bool) -> Any:
        """The aggregate with one more value."""
        if self.reduces:
            return value if first else self.step(aggregate, value)
        begun = (self.initial() if callable(self.initial) else self.initial) if first else aggregate
        return self.step(key, value, begun)

    def type_over(self, values: DataType) -> DataType:
        """The type of what it makes of values of a type."""
        return values if self.returns is None else type_of(self.returns)


def fold_of(given: PythonFunction, initial: Any, *, reduces: bool) -> PythonFold:
    """The fold of a Python function: a reducer of two values, or an aggregator of key, value and aggregate."""
    wanted = 2 if reduces else 3
    if parameters(given.work) != wanted:
        takes = "(aggregate, value)" if reduces else "(key, value, aggregate)"
        raise InvalidOptionError(f"The function takes {parameters(given.work)} arguments: give one of {takes}.")
    return PythonFold(given.work, None if reduces else given.returns, initial, reduces)


def aggregated(rows: DataFrame, how: Column | PythonFold, windows: Windows) -> DataFrame:
    """A record for each key (and window) that has new ones; records without a key or a value don't count."""
    rows = rows.where("key IS NOT NULL AND value IS NOT NULL")
    if windows is not None:
        rows = rows.withWatermark("timestamp", interval(windows.grace))
    if isinstance(how, Column):
        return as_records(_by_spark(rows, how, windows))
    if isinstance(windows, SessionWindows) or closes(windows):
        listed = F.collect_list(F.struct("partition", "offset", "value"))
        kind = how.type_over(rows.schema["value"].dataType)
        made = _by_spark(rows, listed, windows)
        key = F.col("key.key")
        return as_records(made.withColumn("value", _folded(how, kind)(key, F.col("value"))))
    return as_records(_by_python(rows, how, windows))


def closes(windows: Windows) -> bool:
    """Whether each window has one result, when it is over."""
    return isinstance(windows, SessionWindows) or (windows is not None and windows.on_close)


def _by_spark(rows: DataFrame, value: Column, windows: Windows) -> DataFrame:
    newest = F.max("timestamp").alias("timestamp")
    if windows is None:
        return rows.groupBy("key").agg(value.alias("value"), newest)
    if isinstance(windows, TimeWindows):
        window = F.window("timestamp", interval(windows.size), interval(windows.advance))
        start, end = F.col("window.start"), F.col("window.end")
    else:
        # Spark's session ends by its gap after the last record, Kafka's with it.
        window = F.session_window("timestamp", interval(windows.gap))
        start, end = F.col("window.start"), F.col("window.end") - F.expr(f"INTERVAL '{interval(windows.gap)}'")
    made = rows.groupBy("key", window.alias("window")).agg(value.alias("value"), newest)
    key = F.struct("key", F.struct(start.alias("start"), end.alias("end")).alias("window"))
    return made.select(key.alias("key"), "value", "timestamp")


def _folded(fold: PythonFold, kind: DataType) -> Callable[..., Column]:
    def run(key: Any, records: Any) -> Any:
        aggregate, first = None, True
        for record in sorted((plain(one) for one in records), key=_in_order):
            aggregate, first = fold(plain(key), record["value"], aggregate, first=first), False
        return aggregate

    return F.udf(run, kind, useArrow=True)


def _in_order(record: dict[str, Any]) -> tuple[int, int]:
    return record["partition"] or 0, record["offset"] or 0


def _by_python(rows: DataFrame, fold: PythonFold, windows: TimeWindows | None) -> DataFrame:
    key_type, value_type = rows.schema["key"].dataType, rows.schema["value"].dataType
    types = (key_type, value_type, fold.type_over(value_type))
    made = rows.select(
        "key",
        packed(F.col("key"), key_type).alias("key_bytes"),
        packed(F.col("value"), value_type).alias("value_bytes"),
        "timestamp",
        F.unix_micros("timestamp").alias("micros"),
        F.coalesce("partition", F.lit(0)).alias("partition"),
        F.coalesce("offset", F.lit(0)).alias("offset"),
    )
    groups = ["key"]
    timeout = GroupStateTimeout.NoTimeout
    if windows is not None:
        window = F.window("timestamp", interval(windows.size), interval(windows.advance))
        made = made.withColumn("window", window)
        made = made.withColumns(
            {
                "window_start": F.unix_micros("window.start"),
                "window_end": F.unix_micros("window.end"),
                # What Spark compares with the watermark: a record is too late when its window has closed.
                "window_time": F.window_time("window"),
            }
        ).drop("window")
        groups += ["window_start", "window_end"]
        timeout = GroupStateTimeout.EventTimeTimeout
    made = made.drop("timestamp")
    run = _folding(fold, types, windowed=windows is not None)
    folded = with_state(made.groupBy(*groups), run, _OUTPUT, _STATE, timeout)
    key = unpacked(F.col("key_bytes"), key_type)
    if windows is not None:
        bounds = F.struct(
            F.timestamp_micros("window_start").alias("start"), F.timestamp_micros("window_end").alias("end")
        )
        key = F.struct(key.alias("key"), bounds.alias("window"))
    return folded.select(
        key.alias("key"),
        unpacked(F.col("aggregate"), types[-1]).alias("value"),
        F.timestamp_micros("micros").alias("timestamp"),
    )


def _folding(fold: PythonFold, types: tuple[DataType, DataType, DataType], *, windowed: bool) -> Run:
    """What Spark's workers run for each key (and window) of a batch. `types`: of keys, values and aggregates."""
    key_of, value_of, aggregate_of = map(loader, types)
    bytes_of = dumper(types[-1])

    def run(group: tuple[Any, ...], frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        if state.hasTimedOut:
            state.remove()
            return
        start, end = (int(group[1]), int(group[2])) if windowed else (0, 0)
        if windowed and end // 1000 <= state.getCurrentWatermarkMs():
            return
        rows = pd.concat(list(frames)).sort_values(["partition", "offset"], kind="stable")
        first, aggregate, micros = True, None, 0
        if state.exists:
            data, micros = state.get
            first, aggregate = False, aggregate_of(data)
        key_bytes = bytes(rows["key_bytes"].iloc[0])
        key = key_of(key_bytes)
        for value, at in zip(rows["value_bytes"], rows["micros"], strict=True):
            aggregate, first, micros = fold(key, value_of(value), aggregate, first=first), False, max(micros, int(at))
        aggregate_bytes = bytes_of(aggregate)
        state.update((aggregate_bytes, micros))
        if windowed:
            state.setTimeoutTimestamp(end // 1000)
        yield pd.DataFrame(
            {
                "key_bytes": [key_bytes],
                "aggregate": [aggregate_bytes],
                "micros": [micros],
                "window_start": [start],
                "window_end": [end],
            }
        )

    return run
