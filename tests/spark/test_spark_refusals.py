"""What Spark shows above a refusal's message: one frame of tidelog's, whatever is refused and where."""

import re
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from support.logs import values

import pyspark_tidelog
import tidelog
from tidelog.log.base.errors import TidelogError
from tidelog.log.lake import Lake

# A clone's folder may have the name of the package, and then all that is installed in it is below that.
OWN_FOLDERS = "|".join(re.escape(str(Path(package.__file__).parent)) for package in (tidelog, pyspark_tidelog))
OWN_FRAME = re.compile(f'File "(?:{OWN_FOLDERS})/[^"]*"')
Act = Callable[[SparkSession, Lake, Path], object]


def read(**options: str) -> Act:
    return lambda spark, lake, folder: (
        spark.read.format("tidelog").options(lake=lake.uri).options(**options).load().count()
    )


def write(rows: str, **options: str) -> Act:
    return lambda spark, lake, folder: (
        spark.sql(rows).write.format("tidelog").options(lake=lake.uri).options(**options).mode("append").save()
    )


def stream(**options: str) -> Act:
    def act(spark: SparkSession, lake: Lake, folder: Path) -> None:
        rows = spark.readStream.format("tidelog").options(lake=lake.uri).options(**options).load()
        into = rows.writeStream.format("noop").option("checkpointLocation", str(folder / "checkpoint"))
        into.trigger(availableNow=True).start().awaitTermination()

    return act


def stream_into(*columns: str, **options: str) -> Act:
    def act(spark: SparkSession, lake: Lake, folder: Path) -> None:
        given = spark.readStream.format("tidelog").options(lake=lake.uri, subscribe="t", startingOffsets="earliest")
        into = given.load().selectExpr(*columns).writeStream.format("tidelog").options(lake=lake.uri).options(**options)
        into = into.option("checkpointLocation", str(folder / "checkpoint"))
        into.trigger(availableNow=True).start().awaitTermination()

    return act


VALUE = "SELECT 'v' AS value"
ACTS: dict[str, tuple[Act, str]] = {
    "batch read, an option": (read(subscribe="t", startingOffsets="x"), "Expected e.g."),
    "batch read, the plan": (read(subscribe="nix"), "Topic 'nix' does not exist"),
    "batch write, an option": (write(VALUE, topic="t", acks="9"), "Invalid value 9 for configuration acks"),
    "batch write, the topic": (write(VALUE, topic="t/!"), "Topic name is invalid"),
    "batch write, a task": (write("SELECT 'v' AS value, 99 AS partition", topic="t"), "Partition 99 in row 0"),
    "stream, an option": (stream(subscribe="t", startingOffsets="x"), "Expected e.g."),
    "stream, the plan": (stream(subscribe="nix"), "Topic 'nix' does not exist"),
    "stream into a topic, an option": (stream_into("value", topic="t", acks="9"), "Invalid value 9 for configuration"),
    "stream into a topic, a task": (stream_into("value", "99 AS partition", topic="t"), "Partition 99 in row 0"),
    "read_topic": (lambda spark, lake, folder: tidelog.spark.read_topic(spark, lake, "nix"), "Topic 'nix'"),
    "stream_topic": (lambda spark, lake, folder: tidelog.spark.stream_topic(spark, lake, "nix"), "Topic 'nix'"),
    "create_view": (lambda spark, lake, folder: tidelog.spark.create_view(spark, lake.uri, "nix"), "Topic 'nix'"),
}


@pytest.mark.parametrize("name", ACTS)
def test_a_refusal_stands_below_one_frame_of_tidelogs(
    name: str, spark: SparkSession, lake: Lake, tmp_path: Path
) -> None:
    act, words = ACTS[name]
    lake.create_topic("t")
    lake.topic("t").append(values("a"))
    with pytest.raises(Exception, match=re.escape(words)) as raised:
        act(spark, lake, tmp_path)
    if isinstance(raised.value, TidelogError):
        said = "".join(traceback.format_exception(raised.value))
    else:
        said = str(raised.value)
    above = said[: said.rindex(words)]
    assert len(OWN_FRAME.findall(above)) == 1, above
    if not isinstance(raised.value, TidelogError):
        # Spark's runner of streaming sources shows two frames of its own; a worker may know the source of its frame.
        assert above.count("\n") <= (8 if name.startswith("stream, ") else 7), above
