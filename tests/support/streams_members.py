"""Members of streams groups over the pure rule, and topologies for them."""

from dataclasses import dataclass, field, replace
from typing import Any

from tidelog.groups.model import GroupView, StreamsGroup, StreamsMember
from tidelog.groups.rules.modern.topics import AssignableTopic
from tidelog.groups.rules.streams.heartbeat import StreamsAnswer, StreamsHeartbeat, streams_heartbeat
from tidelog.groups.topology import InnerTopic, StreamsTopology, Subtopology, Tasks

# Words are read, written by their key, counted with a state.
WORDS = StreamsTopology(
    0,
    (
        Subtopology("0", sources=("lines",), repartition_sinks=("by-word",)),
        Subtopology("1", repartition_sources=(InnerTopic("by-word"),), changelogs=(InnerTopic("counts-changelog"),)),
    ),
)


def topics(**partitions: int | None) -> dict[str, AssignableTopic | None]:
    """Topics by name, `_` for `-`; None for one that is not there."""
    return {
        name.replace("_", "-"): None if count is None else AssignableTopic(f"id-{name}", count)
        for name, count in partitions.items()
    }


THERE = topics(lines=2, by_word=2, counts_changelog=2)


@dataclass
class Streams:
    """A streams group and its members, each as far as it has heard."""

    view: GroupView = field(default_factory=GroupView)
    topics: dict[str, AssignableTopic | None] = field(default_factory=lambda: dict(THERE))
    standbys: int = 0
    waits: bool = False
    epochs: dict[str, int] = field(default_factory=dict)
    owned: dict[str, Tasks] = field(default_factory=dict)
    entries: int = 0

    @property
    def group(self) -> StreamsGroup:
        """The group."""
        assert isinstance(self.view.group, StreamsGroup)
        return self.view.group

    def member(self, name: str) -> StreamsMember:
        """A member as the group knows it."""
        return self.group.members[name]

    def ask(self, name: str, epoch: int, **said: Any) -> StreamsAnswer:
        """A heartbeat as it is given; the group goes on by what is decided."""
        request = StreamsHeartbeat(group_id="g", member_id=name, epoch=epoch, **{"waits": self.waits} | said)
        decision = streams_heartbeat(self.view, self.topics, request, now_ms=7, standbys=self.standbys)
        if decision.group is not None:
            self.entries += 1
            self.view = replace(self.view, group=decision.group)
        return decision.response

    def join(
        self, name: str, topology: StreamsTopology = WORDS, process: str | None = None, **said: Any
    ) -> StreamsAnswer:
        """A member joins, with a process of its own unless one is given."""
        said = {"process_id": process or f"p-{name}", "owned": Tasks(), "rebalance_timeout_ms": 1_000} | said
        return self.heard(name, self.ask(name, 0, topology=topology, refresh=True, **said))

    def beat(self, name: str, **said: Any) -> StreamsAnswer:
        """A member says what it owns."""
        return self.heard(name, self.ask(name, self.epochs[name], owned=self.owned[name], **said))

    def heard(self, name: str, answer: StreamsAnswer) -> StreamsAnswer:
        """A member goes by an answer."""
        self.epochs[name] = answer.epoch
        if answer.assigned is not None:
            self.owned[name] = answer.assigned
        return answer

    def leave(self, name: str) -> None:
        """A member leaves."""
        self.ask(name, -1)
        self.epochs.pop(name)
        self.owned.pop(name)

    def settle(self, rounds: int = 20) -> None:
        """All members send heartbeats until all have what they are to have."""
        for _ in range(rounds):
            for name in sorted(self.epochs):
                self.beat(name)
            if all(map(self.group.is_reconciled, self.group.members.values())):
                return
        raise AssertionError(f"the group does not settle: {self.group}")
