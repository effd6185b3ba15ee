"""What the words of the DSL share: nodes with names, and functions of a record."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom
from pyspark.sql.types import DataType

from tidelog.log.base.errors import InvalidOptionError
from tidelog.spark.streams.functions import Expression, column_of
from tidelog.spark.streams.graph import Topology, TopologyNode

_OF_A_RECORD: Final = (("value",), ("key", "value"))
_HEADERS: Final = "array<struct<key: string, value: binary>>"


class Naming:
    """Hands out names as Kafka Streams does, and keeps the nodes."""

    def __init__(self) -> None:
        self.topology = Topology()

    def node(
        self, prefix: str, kind: str, parents: Sequence[TopologyNode], build: Callable[..., DataFrame], **facts: Any
    ) -> TopologyNode:
        """A new node, after all others."""
        name = f"{prefix}-{kind}-{len(self.topology.nodes):010d}"
        store = facts.get("store", "")
        if store and any(one.store == store for one in self.topology.nodes):
            raise InvalidOptionError(f"Two tables are named '{store}': a table's name is its own in a topology.")
        # What is read from a topic is final, whatever query wrote it.
        facts.setdefault("appends", all(one.appends or one.cut or one.store for one in parents))
        # Python functions with state give their rows in update mode, and whatever comes after them with it.
        facts.setdefault("update_mode", any(one.update_mode and not (one.cut or one.store) for one in parents))
        made = TopologyNode(name, kind, tuple(parents), build, **facts)
        self.topology.nodes.append(made)
        return made


def evaluated(rows: DataFrame, given: Expression, taken: Sequence[Sequence[str]] = _OF_A_RECORD) -> Column:
    """What a function gives for each row: by default one of a record's value, or of its key and value."""
    return column_of(given, {name: F.col(name) for name in rows.columns}, taken=taken)


def is_true(rows: DataFrame, predicate: Expression) -> Column:
    """Whether a predicate is true; what is unknown is not."""
    return F.coalesce(evaluated(rows, predicate), F.lit(False))


def first_of(rows: DataFrame, predicates: Sequence[Expression], number: int) -> Column:
    """Whether a predicate is the first that is true."""
    holds = is_true(rows, predicates[number])
    for earlier in predicates[:number]:
        holds = ~is_true(rows, earlier) & holds
    return holds


def as_records(rows: DataFrame) -> DataFrame:
    """Rows of key, value and timestamp with the columns that every record has."""
    return rows.select(
        "key",
        "value",
        "timestamp",
        F.lit(None).cast(_HEADERS).alias("headers"),
        F.lit(None).cast("int").alias("partition"),
        F.lit(None).cast("bigint").alias("offset"),
    )


def type_of(given: str | DataType) -> DataType:
    """A type of Spark's DDL."""
    return given if isinstance(given, DataType) else DataType.fromDDL(given)
