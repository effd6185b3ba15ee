"""The demo's work as a user of tidelog writes it: a Spark batch, a streaming query, SQL.

The streaming query is also a job: `spark-submit jobs/flight_delays.py --lake demo-lake --checkpoint delays-checkpoint`
brings topic `delays` up to date with topic `flights` and ends. Safe to run again: it goes on where it was.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from pyspark.sql.streaming.query import StreamingQuery

from tidelog.spark import session

# Partitions are read side by side, so an airline's flights may come days after another's of the same hour.
LATENESS = timedelta(days=7)
ROWS_A_BATCH = 170_000
# Three airports: a task per group of hours is enough, and Spark's 200 would mostly start and end.
SHUFFLE_PARTITIONS = 2

_FLIGHT = "origin string, carrier string, time_hour timestamp, dep_delay double"

WORST_HOURS = """
WITH delay AS (
  SELECT from_json(string(value), 'origin string, hour timestamp, departed long, average_delay double') AS d
  FROM delays
), worst AS (
  SELECT d.*, row_number() OVER (PARTITION BY d.origin ORDER BY d.average_delay DESC) AS place
  FROM delay WHERE d.departed >= 10
), flight AS (
  SELECT /*+ BROADCAST(worst) */ worst.*, name, from_json(string(value), 'origin string, dep_delay double') AS f
  FROM worst JOIN flights ON flights.timestamp = hour JOIN airlines ON airlines.carrier = string(flights.key)
  WHERE place <= 3
)
SELECT origin, date_format(from_utc_timestamp(hour, 'America/New_York'), 'EEE d MMM, HH:00') AS departure,
       departed, average_delay,
       max(f.dep_delay) FILTER (WHERE f.origin = origin) AS longest,
       max_by(name, f.dep_delay) FILTER (WHERE f.origin = origin) AS carrier
FROM flight GROUP BY ALL ORDER BY origin, average_delay DESC
"""


TYPED = "typed_flights"
LATEST_AIRLINES = """
SELECT columns.carrier AS carrier, count(*) AS flights, avg(columns.dep_delay) AS delay
FROM typed_flights GROUP BY 1 ORDER BY delay DESC
"""

_AVRO = {
    pa.string(): "string",
    pa.int64(): "long",
    pa.timestamp("s", "UTC"): {"type": "long", "logicalType": "timestamp-millis"},
}


@dataclass(frozen=True)
class MicroBatch:
    """One micro-batch: records read, records written, and rows that came too late for their window."""

    read: int
    written: int
    too_late: int
    watermark: str


def flights_frame(spark: SparkSession, flights: pa.Table) -> DataFrame:
    """Flights as records: JSON, keyed by carrier, at the hour of departure."""
    return spark.createDataFrame(flights).select(
        F.col("carrier").alias("key"), F.to_json(F.struct("*")).alias("value"), F.col("time_hour").alias("timestamp")
    )


def produce(records: DataFrame, lake: str) -> None:
    """The batch: append records to topic `flights`."""
    (
        records.write.format("tidelog")
        .mode("append")
        .option("lake", lake)
        .option("topic", "flights")
        .option("includeTimestamp", "true")
        .save()
    )


def typed_config(flights: pa.Table) -> dict[str, str]:
    """The configuration of a topic whose values are these flights, in Avro: stored as columns, and as no bytes."""
    fields = [{"name": field.name, "type": ["null", _AVRO[field.type]]} for field in flights.schema]
    schema = json.dumps({"type": "record", "name": "Flight", "fields": fields})
    return {"value.columns": "avro", "value.schema": schema, "value.bytes": "derive"}


def produce_typed(spark: SparkSession, flights: pa.Table, lake: str) -> None:
    """Append flights to topic `typed_flights` as columns; readers of bytes get Avro."""
    (
        spark.createDataFrame(flights)
        .select(F.col("carrier").alias("key"), F.struct("*").alias("columns"), F.col("time_hour").alias("timestamp"))
        .write.format("tidelog")
        .mode("append")
        .option("lake", lake)
        .option("topic", TYPED)
        .option("includeTimestamp", "true")
        .save()
    )


def start_averaging(spark: SparkSession, lake: str, checkpoint: Path | str, *, goes_on: bool = False) -> StreamingQuery:
    """The streaming query: average departure delay by origin and hour, from topic `flights` to topic `delays`.

    It reads what is there and ends, or `goes_on` until it is stopped; started again it goes on where it was. An hour
    is written when it is closed: when flights `LATENESS` later have been seen.
    """
    records = (
        spark.readStream.format("tidelog")
        .option("lake", lake)
        .option("subscribe", "flights")
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", ROWS_A_BATCH)
        .load()
    )
    flights = records.select(F.from_json(F.col("value").cast("string"), _FLIGHT).alias("f")).select("f.*")
    delays = (
        flights.withWatermark("time_hour", f"{LATENESS.days} days")
        .groupBy("origin", F.window("time_hour", "1 hour").alias("window"))
        .agg(
            F.count("*").alias("flights"),
            F.count("dep_delay").alias("departed"),
            F.avg("dep_delay").alias("average_delay"),
        )
        .withColumn("hour", F.col("window.start"))
    )
    averages = delays.select(
        F.col("origin").alias("key"),
        F.to_json(F.struct("origin", "hour", "flights", "departed", "average_delay")).alias("value"),
        F.col("hour").alias("timestamp"),
    )
    return (
        averages.writeStream.format("tidelog")
        .option("lake", lake)
        .option("topic", "delays")
        .option("includeTimestamp", "true")
        .option("checkpointLocation", str(checkpoint))
        .outputMode("append")
        .trigger(**({"processingTime": "0 seconds"} if goes_on else {"availableNow": True}))
        .queryName("delays")
        .start()
    )


def batches_of(query: StreamingQuery) -> list[MicroBatch]:
    """The micro-batches that a query has run since it was started."""
    return [
        MicroBatch(
            progress.numInputRows,
            max(0, progress.sink.numOutputRows),
            sum(operator.numRowsDroppedByWatermark for operator in progress.stateOperators),
            progress.eventTime.get("watermark", ""),
        )
        for progress in query.recentProgress
    ]


def worst_hours(spark: SparkSession, airlines: dict[str, str]) -> pa.Table:
    """The three worst hours of each airport and the airline that was latest in each: SQL over both topics' views."""
    spark.createDataFrame(list(airlines.items()), "carrier string, name string").createOrReplaceTempView("airlines")
    return spark.sql(WORST_HOURS).toArrow()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the streaming query once, as spark-submit does; a failure is Spark's, and ends with its exit code."""
    parser = argparse.ArgumentParser(description="Average departure delays by origin and hour, from flights to delays.")
    parser.add_argument("--lake", required=True, help="the lake's address")
    parser.add_argument("--checkpoint", required=True, help="the folder of the query's checkpoint, one of its own")
    given = parser.parse_args(arguments)
    spark = session("flight-delays", config={"spark.sql.shuffle.partitions": str(SHUFFLE_PARTITIONS)}, delta=False)
    start_averaging(spark, given.lake, given.checkpoint).awaitTermination()
    return 0


if __name__ == "__main__":
    sys.exit(main())
