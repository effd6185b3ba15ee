"""Kafka Streams' words: `KStream`, `KTable`, and records in groups, as steps of a topology."""

from collections.abc import Callable
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own custom

from tidelog.log.base.errors import InvalidOptionError
from tidelog.spark.streams.aggregations import PythonFold, Windows, aggregated, closes, fold_of
from tidelog.spark.streams.functions import Expression, PythonFunction
from tidelog.spark.streams.graph import TopologyNode
from tidelog.spark.streams.joins import stream_and_table, streams_joined, tables_joined
from tidelog.spark.streams.regrouping import regrouped
from tidelog.spark.streams.serdes import Serde
from tidelog.spark.streams.steps import Naming, evaluated, first_of, is_true
from tidelog.spark.streams.windows import JoinWindows, SessionWindows, TimeWindows


class KStream:
    """A stream of records, each a fact of its own: `key`, `value`, `timestamp`, `headers`.

    Functions are SQL ("upper(value)"), Spark's columns, functions of columns (`lambda value: F.upper(value)`), or
    `streams.python(...)`. One of a single parameter takes the value, one of two the key and the value.
    """

    def __init__(self, naming: Naming, node: TopologyNode) -> None:
        self._naming = naming
        self._node = node

    # --- one record at a time ------------------------------------------------------------------------------

    def map_values(self, mapper: Expression) -> "KStream":
        """Another value for each record."""
        return self._then("MAPVALUES", lambda rows: rows.withColumn("value", evaluated(rows, mapper)))

    def map(self, key: Expression, value: Expression) -> "KStream":
        """Another key and another value for each record."""
        return self._then(
            "MAP", lambda rows: rows.withColumns({"key": evaluated(rows, key), "value": evaluated(rows, value)})
        )

    def select_key(self, mapper: Expression) -> "KStream":
        """Another key for each record."""
        return self._then("KEY-SELECT", lambda rows: rows.withColumn("key", evaluated(rows, mapper)))

    def filter(self, predicate: Expression) -> "KStream":
        """The records that a predicate is true of."""
        return self._then("FILTER", lambda rows: rows.where(is_true(rows, predicate)))

    def filter_not(self, predicate: Expression) -> "KStream":
        """The records that a predicate is not true of."""
        return self._then("FILTER", lambda rows: rows.where(~is_true(rows, predicate)))

    def flat_map_values(self, mapper: Expression) -> "KStream":
        """A record for each element of the array that the mapper gives, under the same key."""
        return self._then("FLATMAPVALUES", lambda rows: rows.withColumn("value", F.explode(evaluated(rows, mapper))))

    def flat_map(self, mapper: Expression) -> "KStream":
        """A record for each element of the array of structs with `key` and `value` that the mapper gives."""

        def build(rows: DataFrame) -> DataFrame:
            made = rows.withColumn("value", F.explode(evaluated(rows, mapper)))
            return made.withColumn("key", F.col("value.key")).withColumn("value", F.col("value.value"))

        return self._then("FLATMAP", build)

    def peek(self, action: Callable[[Any, Any], object]) -> "KStream":
        """The same records, each shown to a Python function of key and value, in Spark's workers.

        A batch that is run again after a failure shows its records again.
        """

        def seen(key: Any, value: Any) -> bool:
            action(key, value)
            return True

        shown = PythonFunction(seen, "boolean")
        return self._then("PEEK", lambda rows: rows.where(evaluated(rows, shown)))

    # --- several streams -----------------------------------------------------------------------------------

    def branch(self, *predicates: Expression) -> list["KStream"]:
        """A stream for each predicate: a record goes to the first that is true of it, and to none when none is."""
        branches: list[KStream] = []
        for number in range(len(predicates)):

            def build(rows: DataFrame, number: int = number) -> DataFrame:
                return rows.where(first_of(rows, predicates, number))

            branches.append(self._then("BRANCH", build))
        return branches

    def split(self) -> "BranchedKStream":
        """Streams by name: `split().branch(predicate, "cheap").default_branch("rest")` is a dict of them."""
        return BranchedKStream(self)

    def merge(self, other: "KStream") -> "KStream":
        """The records of both streams, whose keys and values have the same types."""
        return KStream(
            self._naming,
            self._naming.node(
                "KSTREAM", "MERGE", [self._node, other._node], lambda left, right: left.unionByName(right)
            ),
        )

    # --- topics --------------------------------------------------------------------------------------------

    def to(self, topic: str, *, key: Serde | None = None, value: Serde | None = None) -> None:
        """Write the records to a topic, each once. Without a serde a type has its own; see `serdes.serde_of`."""
        facts = {"topic": topic, "key_serde": key, "value_serde": value}
        self._naming.node("KSTREAM", "SINK", [self._node], _unchanged, **facts)

    def through(self, topic: str, *, key: Serde | None = None, value: Serde | None = None) -> "KStream":
        """Write the records to a topic, and read them from it."""
        self.to(topic, key=key, value=value)
        facts = {"topic": topic, "key_serde": key, "value_serde": value}
        return KStream(self._naming, self._naming.node("KSTREAM", "SOURCE", [], _unchanged, **facts))

    def repartition(
        self, name: str, partitions: int | None = None, *, key: Serde | None = None, value: Serde | None = None
    ) -> "KStream":
        """The records by way of a topic of the application's, `<application.id>-<name>-repartition`.

        What several steps read is so computed once.
        """
        facts: dict[str, Any] = {"store": name, "cut": "repartition", "partitions": partitions}
        return self._then("REPARTITION", _unchanged, key_serde=key, value_serde=value, **facts)

    # --- groups, tables, joins -----------------------------------------------------------------------------

    def group_by_key(self) -> "KGroupedStream":
        """The records by their keys; those without a key or a value are left out of what is made of a group."""
        return KGroupedStream(self._naming, self._node, None)

    def group_by(self, mapper: Expression) -> "KGroupedStream":
        """The records by another key."""
        return self.select_key(mapper).group_by_key()

    def to_table(self, name: str, *, key: Serde | None = None, value: Serde | None = None) -> "KTable":
        """The newest value of each key, kept as `<application.id>-<name>-changelog`; a null value deletes its key."""
        return KTable(
            self._naming, self._then("TOTABLE", _unchanged, store=name, key_serde=key, value_serde=value)._node
        )

    def join(self, other: "KStream | KTable", joiner: Expression, windows: JoinWindows | None = None) -> "KStream":
        """Pairs of records with one key: of two streams within `windows`, or with a table's value by then.

        The joiner takes `left_value` and `right_value`, or `key` and these.
        """
        return self._joined(other, joiner, windows, "inner")

    def left_join(self, other: "KStream | KTable", joiner: Expression, windows: JoinWindows | None = None) -> "KStream":
        """As `join`, with the records that have no partner: `right_value` is null.

        Of two streams such a record is sent on when its window has closed.
        """
        return self._joined(other, joiner, windows, "left")

    def _joined(
        self, other: "KStream | KTable", joiner: Expression, windows: JoinWindows | None, how: str
    ) -> "KStream":
        if isinstance(other, KTable):
            if windows is not None:
                raise InvalidOptionError("A join with a table has no window: it takes the value that the table has.")

            def build(left: DataFrame, right: DataFrame) -> DataFrame:
                return stream_and_table(left, right, joiner, how)

            detail, update_mode = how, True
        elif windows is None:
            raise InvalidOptionError("A join of two streams needs a window: give JoinWindows.")
        else:
            within = windows

            def build(left: DataFrame, right: DataFrame) -> DataFrame:
                return streams_joined(left, right, joiner, within, how)

            detail, update_mode = f"{how} {windows}", False
        parents = [self._node, other._node]
        facts: dict[str, Any] = {"stateful": True, "appends": True, "update_mode": update_mode, "detail": detail}
        return KStream(self._naming, self._naming.node("KSTREAM", "JOIN", parents, build, **facts))

    def _then(self, kind: str, build: Callable[[DataFrame], DataFrame], **facts: Any) -> "KStream":
        return KStream(self._naming, self._naming.node("KSTREAM", kind, [self._node], build, **facts))


class BranchedKStream:
    """The branches of a stream that `KStream.split` begins."""

    def __init__(self, stream: KStream) -> None:
        self._stream = stream
        self._named: list[tuple[str, Expression]] = []

    def branch(self, predicate: Expression, name: str) -> "BranchedKStream":
        """A branch of the records that no branch before takes and that the predicate is true of."""
        if name in (one for one, _ in self._named):
            raise InvalidOptionError(f"Two branches are named '{name}': a branch's name is its own in a split.")
        self._named.append((name, predicate))
        return self

    def default_branch(self, name: str = "default") -> dict[str, KStream]:
        """The branches by their names, with one for all other records."""
        self.branch("true", name)
        return self.no_default_branch()

    def no_default_branch(self) -> dict[str, KStream]:
        """The branches by their names; other records go nowhere."""
        streams = self._stream.branch(*(predicate for _, predicate in self._named))
        return {name: stream for (name, _), stream in zip(self._named, streams, strict=True)}


class KTable:
    """The newest value of each key. A null value is a tombstone: the key is not in the table any more.

    Functions are those of `KStream`.
    """

    def __init__(self, naming: Naming, node: TopologyNode) -> None:
        self._naming = naming
        self._node = node

    def filter(self, predicate: Expression) -> "KTable":
        """The keys whose value a predicate is true of; the others get a tombstone."""

        def build(rows: DataFrame) -> DataFrame:
            kept = F.when(F.col("value").isNotNull() & is_true(rows, predicate), F.col("value"))
            return rows.withColumn("value", kept)

        return self._then("FILTER", build)

    def map_values(self, mapper: Expression) -> "KTable":
        """Another value for each key."""

        def build(rows: DataFrame) -> DataFrame:
            return rows.withColumn("value", F.when(F.col("value").isNotNull(), evaluated(rows, mapper)))

        return self._then("MAPVALUES", build)

    def to_stream(self) -> KStream:
        """Each new value, and a null value for each key that goes."""
        return KStream(self._naming, self._naming.node("KTABLE", "TOSTREAM", [self._node], _unchanged))

    def join(self, other: "KTable", joiner: Expression) -> "KTable":
        """The keys that both tables have. The joiner takes `left_value` and `right_value`, or `key` and these."""
        return self._joined(other, joiner, "inner")

    def left_join(self, other: "KTable", joiner: Expression) -> "KTable":
        """The keys of this table; `right_value` is null where the other lacks one."""
        return self._joined(other, joiner, "left")

    def outer_join(self, other: "KTable", joiner: Expression) -> "KTable":
        """The keys that either table has; the value of one that lacks it is null."""
        return self._joined(other, joiner, "outer")

    def group_by(self, key: Expression, value: Expression = "value") -> "KGroupedTable":
        """The table's rows by another key; a row that changes or goes leaves its group."""
        node = self._naming.node(
            "KTABLE",
            "GROUPBY",
            [self._node],
            lambda rows: regrouped(rows, key, value),
            stateful=True,
            appends=True,
            update_mode=True,
            cut="repartition",
        )
        return KGroupedTable(self._naming, node)

    def _joined(self, other: "KTable", joiner: Expression, how: str) -> "KTable":
        def build(left: DataFrame, right: DataFrame) -> DataFrame:
            return tables_joined(left, right, joiner, how)

        parents = [self._node, other._node]
        facts: dict[str, Any] = {"stateful": True, "appends": False, "detail": how}
        return KTable(self._naming, self._naming.node("KTABLE", "JOIN", parents, build, **facts))

    def _then(self, kind: str, build: Callable[[DataFrame], DataFrame]) -> "KTable":
        return KTable(self._naming, self._naming.node("KTABLE", kind, [self._node], build))


class KGroupedStream:
    """Records by their keys, and by windows where `windowed` was called.

    What is made of a window's records has the key {key, window: {start, end}}. `store` names the table: it is kept
    as `<application.id>-<store>-changelog`, and can be asked by `streams.create_view`.
    """

    def __init__(self, naming: Naming, node: TopologyNode, windows: Windows) -> None:
        self._naming = naming
        self._node = node
        self._windows = windows

    def windowed(self, windows: TimeWindows | SessionWindows) -> "KGroupedStream":
        """The records of each key by windows of their timestamps."""
        return KGroupedStream(self._naming, self._node, windows)

    def count(self, store: str = "", *, key: Serde | None = None, value: Serde | None = None) -> KTable:
        """How many records each group has."""
        return self._table("COUNT", lambda _: F.count(F.lit(1)), store, key, value)

    def reduce(
        self,
        reducer: str | Column | PythonFunction,
        store: str = "",
        *,
        key: Serde | None = None,
        value: Serde | None = None,
    ) -> KTable:
        """One value of each group's type: an aggregate ("max(value)"), or `streams.python` of two values."""
        if isinstance(reducer, PythonFunction):
            fold = fold_of(reducer, None, reduces=True)
            return self._table("REDUCE", lambda _: fold, store, key, value, "by Python")
        return self._table("REDUCE", lambda rows: evaluated(rows, reducer), store, key, value)

    def aggregate(
        self,
        aggregator: str | Column | PythonFunction,
        store: str = "",
        *,
        initializer: Any = None,
        key: Serde | None = None,
        value: Serde | None = None,
    ) -> KTable:
        """One value of each group: an aggregate ("avg(value.delay)"), or `streams.python` with an `initializer`.

        The latter is called with key, value and aggregate; `initializer` is the first aggregate, or makes it.
        """
        if isinstance(aggregator, PythonFunction):
            fold = fold_of(aggregator, initializer, reduces=False)
            return self._table("AGGREGATE", lambda _: fold, store, key, value, f"by Python to {aggregator.returns}")
        return self._table("AGGREGATE", lambda rows: evaluated(rows, aggregator), store, key, value)

    def _table(
        self,
        kind: str,
        how: Callable[[DataFrame], Column | PythonFold],
        store: str,
        key: Serde | None,
        value: Serde | None,
        detail: str = "",
    ) -> KTable:
        windows = self._windows
        facts: dict[str, Any] = {
            "stateful": True,
            "appends": closes(windows),
            "detail": ", ".join(filter(None, (detail, str(windows or "")))),
            "store": store,
            "key_serde": key,
            "value_serde": value,
        }
        build = lambda rows: aggregated(rows, how(rows), windows)  # noqa: E731
        return KTable(self._naming, self._naming.node("KSTREAM", kind, [self._node], build, **facts))


class KGroupedTable:
    """The rows of a table by another key."""

    def __init__(self, naming: Naming, node: TopologyNode) -> None:
        self._naming = naming
        self._node = node

    def count(self, store: str = "", *, key: Serde | None = None, value: Serde | None = None) -> KTable:
        """How many rows each group has."""
        facts: dict[str, Any] = {"stateful": True, "appends": False, "store": store}
        facts |= {"key_serde": key, "value_serde": value}

        def build(rows: DataFrame) -> DataFrame:
            return aggregated(rows, F.sum("value.change"), None)

        return KTable(self._naming, self._naming.node("KTABLE", "COUNT", [self._node], build, **facts))

    def aggregate(
        self,
        adder: Callable[[Any, Any, Any], Any],
        subtractor: Callable[[Any, Any, Any], Any],
        store: str = "",
        *,
        initializer: Any,
        returns: str,
        key: Serde | None = None,
        value: Serde | None = None,
    ) -> KTable:
        """One value of each group: Python functions of key, value and aggregate add a row and take one out."""

        def step(group: Any, change: dict[str, Any], aggregate: Any) -> Any:
            return (adder if change["change"] > 0 else subtractor)(group, change["row"], aggregate)

        fold = PythonFold(step, returns, initializer)
        facts: dict[str, Any] = {"stateful": True, "appends": False, "store": store, "detail": f"to {returns}"}
        facts |= {"key_serde": key, "value_serde": value}
        build = lambda rows: aggregated(rows, fold, None)  # noqa: E731
        return KTable(self._naming, self._naming.node("KTABLE", "AGGREGATE", [self._node], build, **facts))


def _unchanged(rows: DataFrame) -> DataFrame:
    return rows
