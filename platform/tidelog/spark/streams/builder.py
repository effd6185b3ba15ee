"""Where a topology begins: `StreamsBuilder`."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tidelog.spark.streams.dsl import KStream, KTable
from tidelog.spark.streams.graph import Topology, TopologyNode
from tidelog.spark.streams.serdes import Serde
from tidelog.spark.streams.steps import Naming


class StreamsBuilder:
    """Builds a topology: `builder.stream("topic")` and `builder.table("topic")`, and `builder.build()` at the end."""

    def __init__(self) -> None:
        self._naming = Naming()

    def stream(self, topics: str | Sequence[str], *, key: Serde | None = None, value: Serde | None = None) -> KStream:
        """The records of topics. Keys and values are text where no serde is given."""
        return KStream(self._naming, self._source("KSTREAM", topics, key, value))

    def table(self, topic: str, *, key: Serde | None = None, value: Serde | None = None) -> KTable:
        """The newest value of each key of a topic, which is best a compacted one. A null value deletes its key."""
        return KTable(self._naming, self._source("KTABLE", topic, key, value))

    def build(self) -> Topology:
        """The topology as it is by now. Raises `InvalidOptionError` where it writes nothing."""
        made = replace(self._naming.topology, nodes=list(self._naming.topology.nodes))
        made.plans()
        return made

    def _source(self, prefix: str, topics: str | Sequence[str], key: Serde | None, value: Serde | None) -> TopologyNode:
        listed = topics if isinstance(topics, str) else ",".join(topics)
        facts: dict[str, Any] = {"topic": listed, "key_serde": key, "value_serde": value}
        return self._naming.node(prefix, "SOURCE", [], lambda rows: rows, **facts)
