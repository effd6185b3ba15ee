"""A Spark query as a worker: it copies the input to two topics, exactly once, through all restarts."""

from chaos_life import GivesUpError, Life
from chaos_plan import EVEN, INPUT, ODD
from pyspark.errors import PySparkException

from tidelog.spark.session import session

_LOOK_S = (0.3, 0.8)
# Many batches, so that faults come in the midst of some.
_MOST_RECORDS = 5_000


def query(life: Life) -> None:
    """Run the query until the role is stopped, and then to the end of what is there."""
    spark = session("chaos", "local[1]", {"spark.default.parallelism": "1", "spark.driver.memory": "512m"})
    lake = {"lake": life.place.address, **life.place.store.get("options", {})}
    source = spark.readStream.format("tidelog").options(**lake, subscribe=INPUT, startingOffsets="earliest")
    records = source.option("maxOffsetsPerTrigger", _MOST_RECORDS).load()
    copies = records.selectExpr(
        "concat('query<', topic, '/', partition, '/', offset) AS value",
        f"if(offset % 2 = 0, '{EVEN}', '{ODD}') AS topic",
    )
    try:
        checkpoint = str(life.place.folder / "checkpoint")
        running = copies.writeStream.format("tidelog").options(**lake, checkpointLocation=checkpoint).start()
        life.journal.note("took over")
        while not life.stopped:
            life.pause(*_LOOK_S)
            if not running.isActive:
                raise GivesUpError(f"the query has ended: {running.exception()}")
        running.processAllAvailable()
        running.stop()
    except PySparkException as e:
        raise GivesUpError(f"{type(e).__name__}: {e}") from e
