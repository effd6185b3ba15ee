"""The source in a real query through 50 random steps, beside a model of its topics."""

import json
from pathlib import Path
from random import Random

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery
from support.source_world import Log, World, read
from support.spark_queries import Collected, await_that, fails_with, logged_offsets, stream

from tidelog.log.lake import Lake
from tidelog.sources.offset_json import Offsets, TopicPartition, from_json_offsets

STEPS = 50


class Walk:
    """A query over a pattern, what it should have delivered by now, and where it should be."""

    def __init__(self, rows: DataFrame, world: World, checkpoint: str) -> None:
        self._rows, self._world, self._checkpoint = rows, world, checkpoint
        self._collected = Collected()
        self._query: StreamingQuery | None = None
        self._at: Offsets | None = None
        self._expected: list[str] = []

    def mutate(self, random: Random) -> None:
        """Something happens to the topics."""
        print(self._world.mutate(random))
        if self._query is not None:
            self._settle(self._query)

    def start(self) -> None:
        """The query runs, and goes on."""
        self.stop()
        self._query = self._collected.start(self._rows, self._checkpoint)
        self._settle(self._query)

    def run_available(self) -> None:
        """The query runs to what is there now."""
        self.stop()
        self._collected.run(self._rows, self._checkpoint)
        self._expect_batch(self._ends())
        self._check()

    def break_off(self, random: Random) -> None:
        """A batch is logged and fails; something happens; the query that starts again runs that batch first."""

        def fail(batch: DataFrame, batch_id: int) -> None:
            raise RuntimeError("the sink fails")

        self.stop()
        end = self._ends()
        if not end or end == self._at:
            return
        with fails_with("the sink fails"):
            self._rows.writeStream.foreachBatch(fail).option(
                "checkpointLocation", self._checkpoint
            ).start().awaitTermination()
        print("broken off;", self._world.mutate(random))
        if self._at is None:  # a first batch that is repeated begins where its partitions begin now
            logs = self._logs()
            self._at = {tp: logs[tp].start for tp in end.keys() & logs.keys()}
        self._expect_batch(end)
        self.start()

    def stop(self) -> None:
        """The query stops; nothing happens while a batch runs, as the topics stand still."""
        if self._query is not None:
            self._query.stop()
            self._query = None

    def _settle(self, query: StreamingQuery) -> None:
        self._expect_batch(self._ends())
        await_that(lambda: self._offset() == self._at and len(self._collected.values) >= len(self._expected), query)
        self._check()

    def _expect_batch(self, end: Offsets) -> None:
        if end and end != self._at:
            logs = self._logs()
            start = {tp: log.start for tp, log in logs.items()} if self._at is None else self._at
            self._expected += read(logs, start, end).values
            self._at = end

    def _check(self) -> None:
        assert self._collected.values == sorted(self._expected)
        assert self._offset() == self._at

    def _logs(self) -> dict[TopicPartition, Log]:
        return self._world.logs(lambda tp: tp.topic.startswith("in."))

    def _ends(self) -> dict[TopicPartition, int]:
        return {tp: log.end for tp, log in self._logs().items()}

    def _offset(self) -> Offsets | None:
        """Where the newest committed batch ends."""
        committed = [int(path.name) for path in Path(self._checkpoint, "commits").glob("[0-9]*")]
        return from_json_offsets(json.loads(logged_offsets(self._checkpoint, max(committed)))) if committed else None


def test_a_query_delivers_what_its_model_says(spark: SparkSession, lake: Lake, checkpoint: str) -> None:
    random, world = Random(14), World(lake)
    rows = stream(spark, lake, subscribePattern=r"^in\.", startingOffsets="earliest", failOnDataLoss="false")
    walk = Walk(rows, world, checkpoint)
    for _ in range(6):
        walk.mutate(random)
    walk.break_off(random)
    for _ in range(STEPS):
        (kind,) = random.choices(["world", "stop", "start", "now", "break off"], [10, 1, 2, 1, 1])
        print(kind)
        match kind:
            case "world":
                walk.mutate(random)
            case "stop":
                walk.stop()
            case "start":
                walk.start()
            case "now":
                walk.run_available()
            case _:
                walk.break_off(random)
    walk.run_available()
