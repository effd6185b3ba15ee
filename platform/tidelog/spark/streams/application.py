"""An application: the queries that run a topology, from topic to topic, each record once."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import orjson
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

import tidelog.spark
from tidelog.log.base.errors import (
    ObjectNotFoundError,
    TidelogError,
    TopicExistsError,
    UnknownTopicError,
)
from tidelog.log.lake import Lake
from tidelog.spark.s3a import hadoop_address
from tidelog.spark.streams.config import StreamsConfig
from tidelog.spark.streams.endpoints import Endpoints
from tidelog.spark.streams.frames import Frames
from tidelog.spark.streams.graph import QueryPlan, Topology, differences
from tidelog.spark.streams.views import TABLES_FILE, described

_NO_WORKER = "Python worker failed to connect back"
_ATTEMPTS = 6
_RECORD_FILE = "topology.json"


class TopologyChangedError(TidelogError):
    """An application's topology has changed so that it can't go on from its state."""


class StreamsStateError(TidelogError):
    """An application was asked for something that it can't do in the state that it is in."""


class Streams:
    """Runs a topology: `Streams(builder.build(), {"application.id": "counts", "lake": "/tmp/lake"}).start()`.

    Every query goes on where it was when an application with this id ran last. `spark`: a session to run in; else
    the one that runs, or one that `tidelog.spark.session` makes. One application of an id may run at a time.
    """

    def __init__(
        self,
        topology: Topology,
        config: Mapping[str, Any],
        spark: SparkSession | None = None,
        endpoints: Endpoints | None = None,
    ) -> None:
        self._topology = topology
        self._config = StreamsConfig.of(config)
        self._given = spark
        self._endpoints = endpoints or Endpoints()
        self._queries: dict[str, StreamingQuery] = {}
        self._starts: dict[str, Callable[[], StreamingQuery]] = {}
        self._state = "CREATED"
        self._plans = topology.plans()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.stop()

    @property
    def state(self) -> str:
        """Kafka Streams' word for it: CREATED, RUNNING, ERROR, NOT_RUNNING."""
        if self._state == "RUNNING" and any(query.exception() for query in self._queries.values()):
            return "ERROR"
        return self._state

    @property
    def queries(self) -> Mapping[str, StreamingQuery]:
        """Spark's queries by their names, each after those whose topics it reads."""
        return dict(self._queries)

    def start(self, *, in_turn: bool = False) -> Self:
        """Start, or go on where the application was. `in_turn`: each query has processed what there is by then first.

        Raises `UnknownTopicError` where a topic that it reads is missing, `TopologyChangedError`, and
        `StreamsStateError` when it was started before.
        """
        if self._state != "CREATED":
            raise StreamsStateError(f"The application is {self._state}: make another Streams to start it again.")
        spark = self._session()
        with Lake(self._config.lake, create=False, options=self._config.store) as lake:
            self._require_topics(lake)
            frames = Frames(spark, self._topology, self._config.application_id, self._source)
            self._remember(lake)
            address = hadoop_address(f"{lake.uri}/{self._config.folder}")
            try:
                for plan in self._plans:
                    self._make_topic(lake, plan, frames.topic(plan))
                    self._start_one(plan, frames, f"{address}/{plan.name}", in_turn)
                self._publish_tables(lake, frames)
            except BaseException:
                self.stop()
                raise
        self._state = "RUNNING"
        return self

    def stop(self) -> None:
        """Stop all queries; the next application of this id goes on where they are."""
        for query in self._queries.values():
            query.stop()
        self._state = "NOT_RUNNING"

    def await_termination(self, timeout_s: float | None = None) -> bool:
        """Wait until a query ends; True when one has. Raises what it failed with."""
        spark = self._session()
        ended = spark.streams.awaitAnyTermination() if timeout_s is None else self._ended(timeout_s)
        return ended is not False

    def process_all_available(self) -> None:
        """Return when all records that the topics had at the call are processed. Raises what a query failed with."""
        for name in self._queries:
            self._process(name)

    def _ended(self, timeout_s: float) -> bool:
        return bool(self._session().streams.awaitAnyTermination(max(1, round(timeout_s))))

    def _session(self) -> SparkSession:
        """A session of the application's own, so that its settings change no other."""
        if not hasattr(self, "_own"):
            given = self._given or tidelog.spark.session(self._config.application_id, delta=False)
            self._own = given.newSession()
            cores, old_settings = given.sparkContext.defaultParallelism, self._own.conf.getAll
            settings = self._config.session_settings(given.conf.getAll, cores)
            for key, value in {**settings, **self._endpoints.settings}.items():
                if old_settings.get(key) != value:
                    self._own.conf.set(key, value)
        return self._own

    def _require_topics(self, lake: Lake) -> None:
        written = {plan.topic for plan in self._plans}
        for node in self._topology.nodes:
            for topic in node.topic.split(",") if node.kind == "SOURCE" else ():
                if topic in written:
                    lake.ensure_topic(topic)
                elif lake.peek(topic) is None:
                    raise UnknownTopicError(
                        f"There is no topic '{topic}', which the application reads: create it before it starts."
                    )

    def _make_topic(self, lake: Lake, plan: QueryPlan, topic: str) -> None:
        if not plan.internal:
            lake.ensure_topic(topic)
        elif lake.peek(topic) is None:
            compacted = {"cleanup.policy": "compact"} if topic.endswith("-changelog") else {}
            with suppress(TopicExistsError):
                lake.create_topic(topic, plan.node.partitions, compacted)

    def _source(self, spark: SparkSession, options: Mapping[str, str]) -> DataFrame:
        return self._endpoints.source(spark, {**self._config.source_options, **options})

    def _remember(self, lake: Lake) -> None:
        """Write down what the state depends on, after a comparison with what was written down."""
        path = f"{self._config.folder}/{_RECORD_FILE}"
        try:
            record = orjson.loads(lake.storage.get(path))
        except ObjectNotFoundError:
            record = {"queries": []}
        why = differences(record["queries"], self._plans)
        if why:
            raise TopologyChangedError(
                f"The topology of application '{self._config.application_id}' has changed, and its state does not fit:"
                f" {'; '.join(why)}. Take another application.id, by which it begins from the start, or undo the"
                " change."
            )
        queries = [{"name": plan.name, "signature": plan.signature} for plan in self._plans]
        if queries != record["queries"]:
            self._write(lake, path, {"queries": queries})

    def _publish_tables(self, lake: Lake, frames: Frames) -> None:
        """Write down the tables, for views of them."""
        tables = {
            plan.node.store: described(frames.topic(plan), *frames.types[plan.node])
            for plan in self._plans
            if plan.node.store and plan.internal
        }
        if tables:
            self._write(lake, f"{self._config.folder}/{TABLES_FILE}", tables)

    def _write(self, lake: Lake, path: str, what: Mapping[str, Any]) -> None:
        lake.storage.put(path, orjson.dumps(what, option=orjson.OPT_INDENT_2))
        lake.storage.sync([path])

    def _start_one(self, plan: QueryPlan, frames: Frames, checkpoint: str, in_turn: bool) -> None:
        writer = self._writer(plan, frames).option("checkpointLocation", checkpoint)
        self._starts[plan.name] = writer.start
        self._queries[plan.name] = writer.start()
        if in_turn:
            self._process(plan.name)

    def _process(self, name: str) -> None:
        """Let a query process what there is, started again where Spark gave up a worker, which has 10 s to start."""
        for left in reversed(range(_ATTEMPTS)):
            try:
                self._endpoints.hand_over()
                self._queries[name].processAllAvailable()
            except StreamingQueryException as error:
                if not left or _NO_WORKER not in str(error):
                    raise
                self._queries[name] = self._starts[name]()
            else:
                return

    def _writer(self, plan: QueryPlan, frames: Frames) -> DataStreamWriter:
        records = frames.records(plan, frames.rows(plan))
        options = {**self._config.sink_options, "topic": frames.topic(plan)}
        final = plan.node.appends and not plan.node.update_mode
        writer = self._endpoints.sink(records, options, final=final)
        interval = f"{self._config.commit_interval_ms} milliseconds"
        return writer.queryName(f"{self._config.application_id}: {plan.name}").trigger(processingTime=interval)
