"""A stream reader driven as Spark's `MicroBatchExecution` drives it, step by step, beside the model of its topics.

What Spark keeps in a checkpoint is kept here: each batch's end, logged before the batch is planned, and which batch is
committed. A run that ends, whatever for, leaves the rest to the next one.
"""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable
from support.logs import FakeClock
from support.source_world import Log, Reading, World, read

from tidelog.log.base.errors import (
    DataLossError,
    InvalidOptionError,
    TidelogError,
    TopicChangedError,
    UnknownTopicError,
)
from tidelog.sources.offset_json import TopicPartition, dumps, from_json_offsets
from tidelog.sources.options import parse_stream
from tidelog.sources.stream import StreamReader

Offsets = dict[TopicPartition, int]

# How often each kind of step is taken.
_WEIGHTS = {
    "world": 10,
    "batch": 5,
    "batch that fails": 2,
    "batch while the world moves": 2,
    "restart": 1,
    "new query": 1,
}


@dataclass(frozen=True)
class Strategy:
    """An option that says what a query reads, the rule behind it, and the topics that must be there at its start."""

    options: dict[str, str]
    reads: Callable[[TopicPartition], bool]
    named: tuple[str, ...] = ()


PATTERN = Strategy({"subscribePattern": r"^in\."}, lambda tp: tp.topic.startswith("in."))
SUBSCRIBE = Strategy({"subscribe": "in.a,in.b"}, lambda tp: tp.topic in ("in.a", "in.b"), ("in.a", "in.b"))
ASSIGN = Strategy(
    {"assign": '{"in.a":[0,2],"in.b":[1]}'}, lambda tp: tp in (("in.a", 0), ("in.a", 2), ("in.b", 1)), ("in.a", "in.b")
)


@dataclass
class Query:
    """A query over its restarts: where it is to start, its checkpoint, and what it delivered."""

    strategy: Strategy
    starting: str
    named_start: Offsets
    logged: list[Offsets] = field(default_factory=list)
    committed: int = 0
    first: Offsets = field(default_factory=dict)
    delivered: list[str] = field(default_factory=list)
    lost: set[TopicPartition] = field(default_factory=set)
    seen: dict[TopicPartition, Log] = field(default_factory=dict)

    def commit(self, begun: Offsets, expected: Reading, logs: dict[TopicPartition, Log]) -> None:
        """The newest batch is done. A topic that was made again is known by its offsets alone, as in Kafka's source."""
        if self.committed == 0:
            self.first = begun
        self.committed = len(self.logged)
        self.delivered += expected.values
        made_again = {
            tp for tp in logs.keys() & self.logged[-1].keys() if self.seen.setdefault(tp, logs[tp]) is not logs[tp]
        }
        self.lost |= expected.lost | made_again


class Ended(Exception):  # noqa: N818 - as expected
    """The run is over."""


class Run:
    """A query's reader, from its start to its end."""

    def __init__(self, query: Query, world: World, options: dict[str, str], *, available_now: bool) -> None:
        self._query, self._world = query, world
        self._fails = options.get("failOnDataLoss", "true") == "true"
        self._limit = int(options["maxOffsetsPerTrigger"]) if "maxOffsetsPerTrigger" in options else None
        given = {"lake": world.lake.uri, "startingOffsets": query.starting, **query.strategy.options, **options}
        self._reader = StreamReader(parse_stream(given, None))
        self._target: Offsets | None = None
        self._begun = False
        self.available_now = available_now

    # --- the model -----------------------------------------------------------------------------------------

    def _ends(self) -> Offsets:
        return {partition: log.end for partition, log in self._logs().items()}

    def _logs(self) -> dict[TopicPartition, Log]:
        return self._world.logs(self._query.strategy.reads)

    def _start(self) -> Offsets:
        """Where the query starts if it does so now."""
        if self._query.starting == "earliest":
            return {partition: log.start for partition, log in self._logs().items()}
        return self._ends() if self._query.starting == "latest" else self._query.named_start

    def _named_are_missing(self) -> bool:
        return any(topic not in self._world.topics for topic in self._query.strategy.named)

    # --- Spark's steps -------------------------------------------------------------------------------------

    def batch(self, meanwhile: Callable[[], object] = lambda: None, *, breaks: bool = False) -> bool:
        """One batch; False where there was nothing to do. `meanwhile`: what happens before it is planned.

        `breaks`: the sink fails, so that the batch is not committed. Raises `Ended`.
        """
        self._begin()
        query = self._query
        is_repeated = len(query.logged) > query.committed
        before = query.logged[: query.committed]
        start = json.loads(dumps(before[-1])) if before else self._asked_start()
        if not is_repeated:
            end = self._next(start, is_new=not before)
            if before and end == before[-1]:
                return False
            query.logged.append(end)
        meanwhile()
        end = query.logged[-1]
        begun = from_json_offsets(start) if before or not is_repeated else self._start_again(end)
        expected = read(self._logs(), begun, end)
        self._check_rows(self._plan(start, end, expected, is_repeated=is_repeated), expected)
        if breaks:
            raise Ended
        query.commit(begun, expected, self._logs())
        return True

    def _begin(self) -> None:
        if not self._begun and self.available_now:
            self._expect(UnknownTopicError if self._named_are_missing() else None, self._prepare)
            self._target = self._ends()
        self._begun = True

    def _prepare(self) -> None:
        self._reader.prepareForTriggerAvailableNow()

    def _asked_start(self) -> dict[str, Any]:
        """The start that the reader names, as JSON."""
        missing = self._named_are_missing()
        asked: dict[str, Any] = self._expect(UnknownTopicError if missing else None, self._reader.initialOffset)
        if self._start().keys() == self._logs().keys():
            assert from_json_offsets(asked) == self._start()
        if self._target is not None:
            self._target = self._ends()
        return asked

    def _next(self, start: dict[str, Any], *, is_new: bool) -> Offsets:
        """Where the next batch ends."""
        begun, latest = from_json_offsets(start), self._target if self._target is not None else self._ends()
        refused = is_new and self._start().keys() != self._logs().keys()
        lost = not latest and self._fails and bool(self._query.strategy.named) and bool(begun)
        error = InvalidOptionError if refused else DataLossError if lost else None
        limit = ReadAllAvailable() if self._limit is None else self._reader.getDefaultReadLimit()
        end = from_json_offsets(self._expect(error, lambda: self._reader.latestOffset(start, limit)))
        if not latest or (is_new and self._query.starting == "latest"):
            assert end == begun
        elif self._limit is None:
            assert end == latest
        else:
            self._check_limited(begun, end, latest)
        return end

    def _check_limited(self, begun: Offsets, end: Offsets, latest: Offsets) -> None:
        assert end.keys() == latest.keys()
        taken = 0
        for partition, stop in latest.items():
            log = self._logs().get(partition)
            begin = begun.get(partition, 0 if log is None else log.start)
            assert min(begin + 1, stop) <= end[partition] <= stop
            taken += max(end[partition] - begin, 0)
        assert taken <= (self._limit or 0) + len(latest)

    def _start_again(self, end: Offsets) -> Offsets:
        """Where a first batch starts that is repeated: its partitions are those of its end."""
        if self._query.starting == "latest":
            return end
        there = self._logs().keys() & end.keys()
        return {partition: offset for partition, offset in self._start().items() if partition in there}

    def _plan(self, start: dict[str, Any], end: Offsets, expected: Reading, *, is_repeated: bool) -> list[Any]:
        """The batch's tasks."""
        error: type[TidelogError] | None = DataLossError if expected.lost and self._fails else None
        if self._target is not None and not is_repeated:
            ends = self._ends()
            if any(partition not in ends or stop > ends[partition] for partition, stop in end.items()):
                error = TopicChangedError
        tasks: list[Any] = self._expect(error, lambda: self._reader.partitions(start, json.loads(dumps(end))))
        return tasks

    def _check_rows(self, tasks: list[Any], expected: Reading) -> None:
        found = [batch for task in tasks for batch in self._reader.read(task)]
        rows = [value.decode() for batch in found for value in batch.column("value").to_pylist()]
        assert sorted(rows) == sorted(expected.values)

    def _expect(self, error: type[TidelogError] | None, call: Callable[[], Any]) -> Any:
        if error is None:
            return call()
        with pytest.raises(error):
            call()
        raise Ended


class Walk:
    """Random steps, all from one seed."""

    def __init__(self, world: World, clock: FakeClock, strategy: Strategy, random: Random) -> None:
        self._world, self._clock, self._strategy, self._random = world, clock, strategy, random
        self._query = self._new_query()
        self._run: Run | None = None
        self.counts = Counter[str]()
        self.trace: list[str] = []

    def step(self) -> None:
        """One thing that happens to the topics, or one that the query does."""
        (kind,) = self._random.choices(list(_WEIGHTS), list(_WEIGHTS.values()))
        self.counts[kind] += 1
        self.trace.append(kind)
        if kind == "world":
            self._mutate()
        elif kind == "new query":
            self.finish()
            self._query = self._new_query()
        elif kind == "restart":
            self._run = None
        else:
            self._batch(breaks=kind == "batch that fails", moves=kind == "batch while the world moves")

    def finish(self) -> None:
        """Run the query to its end: nothing came twice, and nothing is missing but what was reported lost."""
        query, run = self._query, Run(self._query, self._world, {"failOnDataLoss": "false"}, available_now=False)
        self._run = None
        try:
            self._clock.pass_s(1)
            while run.batch():
                pass
        except Ended:
            return
        delivered = set(query.delivered)
        assert len(delivered) == len(query.delivered)
        for partition, log in self._world.logs(query.strategy.reads).items():
            if partition not in query.lost:
                assert delivered.issuperset(log.records[max(query.first.get(partition, 0), log.start) :])

    def _mutate(self) -> None:
        self.trace.append(self._world.mutate(self._random))

    def _batch(self, *, breaks: bool, moves: bool) -> None:
        self._clock.pass_s(1)  # a pattern looks for topics once a second
        if self._run is None:
            self._run = self._new_run()
        try:
            went_on = self._run.batch(self._mutate if moves else lambda: None, breaks=breaks)
            self.counts["batches" if went_on else "idle"] += 1
            if self._run.available_now and not went_on:
                self._run = None
        except Ended:
            self.counts["ended"] += 1
            self._run = None

    def _new_run(self) -> Run:
        chosen = self._random.choice
        options = {**chosen([{}, {"maxOffsetsPerTrigger": "3"}]), **chosen([{}, {"failOnDataLoss": "false"}])}
        return Run(self._query, self._world, options, available_now=chosen([True, False]))

    def _new_query(self) -> Query:
        logs = self._world.logs(self._strategy.reads)
        start = {partition: self._random.randint(log.start, log.end) for partition, log in logs.items()}
        starting = self._random.choice(["earliest", "latest", dumps(start)])
        return Query(self._strategy, starting, start)
