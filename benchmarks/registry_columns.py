"""`from_registry`: values in Avro as columns, against fastavro in a Python UDF over the same values."""

import io
import json
from functools import partial
from typing import Any

import fastavro
from figures import Row
from flights import SUBJECT, registered
from jvms import Arms, answer, compared
from plan import Plan
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from sparks import consume, seconds, session

import tidelog


def run(plan: Plan) -> list[Row]:
    """Each round decodes the same values by both."""
    what = f"`from_registry`, {plan.flights / 1e6:g} M flights of 19 fields in Avro, against fastavro in a Python UDF"
    return [compared(__file__, plan, what, 10.0, arm="tidelog", against="fastavro", processes=1, records=plan.flights)]


def _arms(plan: Plan, arm: str, against: str) -> Arms:
    lake, folder, schema = registered(plan)
    spark = session()
    records = spark.read.parquet(str(folder))
    ours = tidelog.spark.from_registry(records, registry=lake, subject=SUBJECT)

    @F.udf(ours.schema["value"].dataType)
    def decode(value: bytes) -> Any:
        return fastavro.schemaless_reader(io.BytesIO(value[5:]), parsed)

    parsed = fastavro.parse_schema(json.loads(schema))
    theirs = records.select(decode("value").alias("value"))
    return {arm: partial(seconds, lambda: consume(ours)), against: partial(seconds, lambda: consume(theirs))}


if __name__ == "__main__":
    answer(_arms)
