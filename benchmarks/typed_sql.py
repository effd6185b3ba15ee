"""SQL over two of the 19 fields of flights: a typed topic's columns, against values in JSON parsed by from_json."""

from functools import partial

import orjson
import pyarrow as pa
from figures import Row
from flights import SUBJECT, flights, schema_of, values
from jvms import Arms, answer, compared
from plan import Plan
from sparks import seconds, session

import tidelog
from tidelog.log.lake import Lake
from tidelog.schema_registry import Schema, SchemaRegistryClient

_PARTITIONS = 2
_APPENDED = 50_000
_TYPED = "SELECT columns.carrier AS carrier, avg(columns.dep_delay) AS delay FROM typed GROUP BY 1"
_PARSED = """
SELECT f.carrier, avg(f.dep_delay) AS delay
FROM (SELECT from_json(string(value), 'carrier string, dep_delay bigint') AS f FROM parsed) GROUP BY 1
"""


def run(plan: Plan) -> list[Row]:
    """Each round averages one field by another in both topics."""
    what = (
        f"SQL over 2 of 19 columns of a typed topic, {plan.flights / 1e6:g} M flights, against from_json of JSON values"
    )
    row = partial(compared, __file__, plan, what, 8.0, arm="typed", against="from_json")
    return [row(processes=plan.jvms, records=plan.flights)]


def _arms(plan: Plan, arm: str, against: str) -> Arms:
    lake = _topics(plan)
    spark = session()
    for name, columns in (("typed", True), ("parsed", False)):
        tidelog.spark.create_view(spark, lake, name, columns=columns)
    found = [sorted(map(tuple, spark.sql(text).collect())) for text in (_TYPED, _PARSED)]
    if found[0] != found[1]:
        raise RuntimeError("the two topics give other averages")
    return {
        arm: partial(seconds, lambda: spark.sql(_TYPED).collect()),
        against: partial(seconds, lambda: spark.sql(_PARSED).collect()),
    }


def _topics(plan: Plan) -> str:
    """The address of a lake with the flights in both forms."""
    uri = str(plan.work / "typed-lake")
    with Lake(uri) as lake, SchemaRegistryClient({"lake": lake}) as client:
        if "parsed" in lake.topics():
            return uri
        table = flights(plan)
        schema = schema_of(table)
        number = client.register_schema(SUBJECT, Schema(schema))
        keys = {"value.columns": "avro", "value.schema.subject": SUBJECT, "value.bytes": "derive"}
        lake.create_topic("typed", partitions=_PARTITIONS, config=keys)
        lake.create_topic("parsed", partitions=_PARTITIONS)
        for at, first in enumerate(range(0, table.num_rows, _APPENDED)):
            part = table.slice(first, _APPENDED)
            place = [at % _PARTITIONS] * part.num_rows
            texts = [orjson.dumps(row) for row in part.to_pylist()]
            for topic, made in (("typed", values(part, schema, number)), ("parsed", pa.array(texts, pa.binary()))):
                lake.topic(topic).append(pa.table({"value": made, "partition": place}))
    return uri


if __name__ == "__main__":
    answer(_arms)
