"""A topology as its nodes, and which queries run it: pure, without Spark."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tidelog.log.base.errors import InvalidOptionError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, eq=False)
class TopologyNode:
    """A step of a topology.

    `build`: the rows that it gives, of the rows of its parents. `detail`: what of it the state depends on. `store`: the
    name of the table that it is kept as, "" for none; `topic`: the topic that a source reads. `cut`: its rows go
    through a topic of the application's, "changelog" or "repartition". `appends`: each row is final, and no later one
    replaces it. `update_mode`: Spark gives the rows in that mode alone.
    """

    name: str
    kind: str
    parents: tuple["TopologyNode", ...]
    build: Callable[..., "DataFrame"]
    detail: str = ""
    topic: str = ""
    store: str = ""
    cut: str = ""
    stateful: bool = False
    appends: bool = True
    update_mode: bool = False
    key_serde: Any = None
    value_serde: Any = None
    partitions: int | None = None


@dataclass(frozen=True)
class QueryPlan:
    """A query: the rows of `node` go into a topic. `internal`: the application makes the topic, by `suffix`."""

    name: str
    node: TopologyNode
    topic: str
    sources: tuple[TopologyNode, ...]
    state: TopologyNode | None
    internal: bool

    @property
    def signature(self) -> dict[str, Any]:
        """What a query that goes on from a checkpoint must have in common with the one that made it."""
        return {
            "sources": [one.topic or one.name for one in self.sources],
            "state": f"{self.state.kind} {self.state.detail}".strip() if self.state else "",
            "topic": self.topic if not self.internal else "",
        }


@dataclass
class Topology:
    """What a `StreamsBuilder` has built. `str()` of it describes it in Kafka's form."""

    nodes: list[TopologyNode] = field(default_factory=list)

    @property
    def sinks(self) -> list[TopologyNode]:
        """The nodes that write to topics of the user's."""
        return [node for node in self.nodes if node.kind == "SINK"]

    def children(self, node: TopologyNode) -> list[TopologyNode]:
        """The nodes that take a node's rows."""
        return [one for one in self.nodes if node in one.parents]

    def cuts(self) -> dict[TopologyNode, str]:
        """The nodes whose rows go through a topic of the application's, and that topic's kind.

        A query has at most one step with state, and a table that several steps read is computed once.
        """
        kinds: dict[TopologyNode, str] = {}
        for node in self.nodes:
            if node.cut or node.store:
                kinds[node] = node.cut or "changelog"
            elif node.stateful and not self._ends_in_one_topic(node):
                kinds[node] = "changelog" if not node.appends else "repartition"
        return kinds

    def _ends_in_one_topic(self, node: TopologyNode) -> bool:
        while node.kind != "SINK":
            children = self.children(node)
            if len(children) != 1 or children[0].stateful or len(children[0].parents) > 1:
                return not children
            node = children[0]
            if node.cut or node.store:
                return True
        return True

    def plans(self) -> list[QueryPlan]:
        """The queries, each after those whose topics it reads."""
        cuts = self.cuts()
        plans: list[QueryPlan] = []
        names: set[str] = set()
        for node in self.nodes:
            if node in cuts and node.kind != "SOURCE":
                name = node.store or node.name.lower()
                sources, states = self._upstream(node, cuts)
                plans.append(
                    QueryPlan(_free(name, names), node, f"{name}-{cuts[node]}", sources, states, internal=True)
                )
            elif node.kind == "SINK":
                sources, states = self._upstream(node, cuts)
                plans.append(
                    QueryPlan(_free(f"to-{node.topic}", names), node, node.topic, sources, states, internal=False)
                )
        if not plans:
            raise InvalidOptionError("The topology writes nothing: end a stream with to(), or name a table's store.")
        return plans

    def _upstream(
        self, node: TopologyNode, cuts: dict[TopologyNode, str]
    ) -> tuple[tuple[TopologyNode, ...], TopologyNode | None]:
        """The topics that a query reads, and its step with state."""
        sources: dict[TopologyNode, None] = {}
        states: dict[TopologyNode, None] = {}

        def visit(member: TopologyNode) -> None:
            if member is not node and (member in cuts or member.kind == "SOURCE"):
                sources[member] = None
                return
            if member.kind == "SOURCE":
                sources[member] = None
            if member.stateful:
                states[member] = None
            for parent in member.parents:
                visit(parent)

        visit(node)
        return tuple(sources), next(iter(states), None)

    def describe(self) -> str:
        """The topology as text: each query as a sub-topology, with its sources, processors and sink."""
        cuts = self.cuts()
        lines = ["Topologies:"]
        for number, plan in enumerate(self.plans()):
            lines.append(f"   Sub-topology: {number} {plan.name}")
            for node in self._members(plan, cuts):
                lines.extend(self._described(node, plan, cuts))
        return "\n".join(lines)

    __str__ = describe

    def _members(self, plan: QueryPlan, cuts: dict[TopologyNode, str]) -> list[TopologyNode]:
        inside: dict[TopologyNode, None] = {}

        def visit(member: TopologyNode) -> None:
            inside[member] = None
            if member is plan.node or member not in cuts:
                for parent in member.parents:
                    visit(parent)

        visit(plan.node)
        return [node for node in self.nodes if node in inside]

    def _described(self, node: TopologyNode, plan: QueryPlan, cuts: dict[TopologyNode, str]) -> Iterator[str]:
        topics = {one.node: one.topic for one in self.plans() if one.internal}
        if node in cuts and node is not plan.node:
            yield f"    Source: {node.name} (topics: [{topics.get(node, node.topic)}])"
            return
        if node.kind == "SOURCE":
            yield f"    Source: {node.name} (topics: [{node.topic}])"
        elif node.kind == "SINK":
            yield f"    Sink: {node.name} (topic: {node.topic})"
        else:
            stores = [node.store or node.name] if node.stateful or node.store else []
            yield f"    Processor: {node.name} (stores: [{', '.join(stores)}])"
        if node is plan.node and plan.internal:
            yield f"    Sink: {node.name}-sink (topic: {plan.topic})"
        for label, others in (("-->", self.children(node)), ("<--", list(node.parents))):
            if others and not (label == "-->" and node is plan.node):
                yield f"      {label} {', '.join(one.name for one in others)}"


def internal_topic(application: str, plan_topic: str) -> str:
    """The full name of an application's own topic."""
    return f"{application}-{plan_topic}"


def _free(name: str, taken: set[str]) -> str:
    number, free_name = 1, name
    while free_name in taken:
        number += 1
        free_name = f"{name}-{number}"
    taken.add(free_name)
    return free_name


def differences(before: Sequence[dict[str, Any]], now: Sequence[QueryPlan]) -> list[str]:
    """Why the queries that ran before can't go on as those of now; [] when they can. New queries are no reason."""
    reasons: list[str] = []
    plans = {plan.name: plan for plan in now}
    for old in before:
        plan = plans.get(old["name"])
        if plan is None:
            reasons.append(f"'{old['name']}' is gone")
            continue
        for part, what in plan.signature.items():
            if old["signature"][part] != what:
                reasons.append(f"'{plan.name}' had {part} {old['signature'][part] or 'none'}, and now {what or 'none'}")
    return reasons
