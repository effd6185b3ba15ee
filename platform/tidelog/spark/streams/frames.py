"""The rows of a topology's nodes as streaming DataFrames."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from pyspark.sql.types import DataType

from tidelog.spark.streams.graph import QueryPlan, Topology, TopologyNode, internal_topic
from tidelog.spark.streams.serdes import STRING, TYPED, Serde, serde_of

# What a row has, whatever its key and value are.
RECORD = ("key", "value", "timestamp", "headers", "partition", "offset")


@dataclass
class Frames:
    """Builds the rows of the queries of one application."""

    spark: SparkSession
    topology: Topology
    application: str
    # The raw records of a source with options.
    source: Callable[[SparkSession, Mapping[str, str]], DataFrame]
    # The types of keys and values in the application's own topics.
    types: dict[TopologyNode, tuple[DataType, DataType]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._cuts = self.topology.cuts()
        self._topics = {plan.node: plan.topic for plan in self.topology.plans() if plan.internal}

    def rows(self, plan: QueryPlan) -> DataFrame:
        """The rows of a query's node, typed. Plans are asked for in the topology's order."""
        rows = self._built(plan.node, plan.node)
        if plan.internal:
            self.types[plan.node] = (rows.schema["key"].dataType, rows.schema["value"].dataType)
        return rows

    def records(self, plan: QueryPlan, rows: DataFrame) -> DataFrame:
        """The rows as records for the sink."""
        topic = self.topic(plan)
        for column, given in (("key", plan.node.key_serde), ("value", plan.node.value_serde)):
            rows = (given or serde_of(rows.schema[column].dataType)).encode(rows, column, topic)
        kept = [name for name in ("key", "value", "columns", "timestamp", "headers") if name in rows.columns]
        return rows.select(*kept)

    def topic(self, plan: QueryPlan) -> str:
        """The topic that a query writes to."""
        return internal_topic(self.application, plan.topic) if plan.internal else plan.topic

    def _built(self, node: TopologyNode, target: TopologyNode) -> DataFrame:
        if node.kind == "SOURCE":
            return node.build(self._read(node.topic, node.key_serde or STRING, node.value_serde or STRING))
        if node is not target and node in self._cuts:
            topic = internal_topic(self.application, self._topics[node])
            key, value = self.types[node]
            return self._read(topic, node.key_serde or serde_of(key), node.value_serde or serde_of(value))
        return node.build(*(self._built(parent, target) for parent in node.parents))

    def _read(self, topics: str, key: Serde, value: Serde) -> DataFrame:
        options = {"subscribe": topics, "includeHeaders": "true"}
        if value == TYPED:
            options["columns"] = "true"
        rows = self.source(self.spark, options)
        rows = value.decode(key.decode(rows, "key"), "value")
        return rows.select(*(F.col(name) for name in RECORD))
