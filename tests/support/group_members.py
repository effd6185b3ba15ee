"""A group whose members run in one thread, by one clock that a test sets, over a log in memory."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from support.logs import CountingIds, FakeClock

from tidelog.groups.member.events import Assigned, Event, Failed, Lost, MemberConfig, ModernConfig, Revoke
from tidelog.groups.member.heartbeats import Leases
from tidelog.groups.member.membership import Membership
from tidelog.groups.member.modern import ModernMembership
from tidelog.groups.model import Decision, Group, GroupView
from tidelog.groups.rules.modern.topics import AssignableTopic
from tidelog.log.storage.memory import MemoryStorage

GROUP = "g"


@dataclass
class FakeGroupLog:
    """Groups in memory; `before` is called before every call, and may raise, `grown` after every change."""

    views: dict[str, GroupView] = field(default_factory=dict)
    history: list[Group] = field(default_factory=list)
    before: Callable[[], None] = lambda: None
    grown: Callable[[], None] = lambda: None

    def group(self, group_id: str) -> Group | None:
        return self.written(group_id).group

    def written(self, group_id: str) -> GroupView:
        self.before()
        return self.views.get(group_id, GroupView())

    def decide(self, group_id: str, rule: Callable[[GroupView], Decision[Any]]) -> Any:
        self.before()
        view = self.views.get(group_id, GroupView())
        decision = rule(view)
        offsets = {**view.offsets, **decision.offsets}
        self.views[group_id] = GroupView(
            decision.group or view.group,
            {place: one for place, one in offsets.items() if one is not None},
            config=view.config if decision.config is None else decision.config,
        )
        if decision.group is not None:
            self.history.append(decision.group)
        self.grown()
        return decision.response


@dataclass
class FakeMember:
    """A member of the group: its membership and the events that its application got.

    `answers`: it revokes at once when it is asked to; `polls`: its application calls poll; `frozen`: it does nothing.
    """

    membership: Membership | ModernMembership
    got: list[Event] = field(default_factory=list)
    answers: bool = True
    polls: bool = True
    frozen: bool = False

    @property
    def owned(self) -> list[str]:
        return sorted(f"{topic}{number}" for topic, number in self.membership.owned)

    def step(self) -> None:
        if self.frozen:
            return
        if self.polls:
            self.membership.polled()
        while self.membership.due_s() == 0:
            found = self.membership.step()
            self.got += found
            if self.answers and any(isinstance(event, Revoke) for event in found):
                self.membership.revoked()

    def events(self) -> list[str]:
        """The events since the last call, in words."""
        words = [_in_words(event) for event in self.got]
        self.got.clear()
        return words


class FakeGroup:
    """Group `g` and its members, each stepped when it is due. `counts`: the partitions of the topics.

    `watched`: members are woken when the log has grown, and look seldom.
    """

    watched = False

    def __init__(self, counts: Mapping[str, int] | None = None) -> None:
        self.clock = FakeClock()
        self.ids = CountingIds()
        self.log = FakeGroupLog()
        self.storage = MemoryStorage("group")
        self.leases = Leases(self.storage)
        self.counts = dict(counts or {"t": 4})
        self.members: dict[str, FakeMember] = {}
        self.log.grown = self._wake

    def _wake(self) -> None:
        for member in self.members.values():
            if self.watched:
                member.membership.wake()

    def join(self, name: str, topics: Iterable[str] = ("t",), **config: Any) -> FakeMember:
        """A new member subscribes."""
        defaults = {"session_timeout_ms": 10_000, "heartbeat_interval_ms": 1_000, "strategies": ("range",)}
        membership = Membership(
            self.log, self.leases, self._partition_counts,
            MemberConfig(**{"group_id": GROUP, "client_id": name, **defaults, **config}),
            clock=self.clock, ids=self.ids, assignable=self._assignable,
        )  # fmt: skip
        membership.watched = self.watched
        membership.subscribe(topics)
        self.members[name] = FakeMember(membership)
        return self.members[name]

    def join_modern(self, name: str, topics: Iterable[str] = ("t",), **config: Any) -> FakeMember:
        """A new member of the consumer protocol subscribes."""
        membership = ModernMembership(
            self.log, self.leases, self._assignable,
            ModernConfig(**{"group_id": GROUP, "client_id": name, **config}),
            clock=self.clock, ids=self.ids,
        )  # fmt: skip
        membership.watched = self.watched
        membership.subscribe(topics)
        self.members[name] = FakeMember(membership)
        return self.members[name]

    def _assignable(self, topics: Iterable[str]) -> Mapping[str, AssignableTopic | None]:
        return {
            topic: AssignableTopic(f"id-{topic}", self.counts[topic]) if topic in self.counts else None
            for topic in topics
        }

    def _partition_counts(self, topics: Iterable[str]) -> Mapping[str, int]:
        return {topic: self.counts[topic] for topic in topics if topic in self.counts}

    def run(self, seconds: float) -> None:
        """Let time pass."""
        until = self.clock.seconds + seconds
        while self.clock.seconds < until:
            for member in self.members.values():
                member.step()
            self.clock.pass_s(0.05)

    def run_until(self, there: Callable[[], bool], seconds: float) -> float:
        """Let time pass until a condition holds; returns the seconds that took. Fails after `seconds`."""
        began = self.clock.seconds
        while not there():
            assert self.clock.seconds - began < seconds, f"not within {seconds} s: {self.state}"
            self.run(0.05)
        return self.clock.seconds - began

    @property
    def state(self) -> Group:
        found = self.log.views[GROUP].group
        assert found is not None
        return found

    def shares(self) -> dict[str, list[str]]:
        """The partitions of each member, as `t0`."""
        return {name: member.owned for name, member in self.members.items()}

    def kill(self, name: str) -> None:
        del self.members[name]

    def forget_events(self) -> None:
        """Forget the events so far."""
        for member in self.members.values():
            member.events()


def _in_words(event: Event) -> str:
    def listed(partitions: Iterable[tuple[str, int]]) -> str:
        return ",".join(sorted(f"{topic}{number}" for topic, number in partitions))

    match event:
        case Assigned(partitions):
            return f"assigned {listed(partitions)}".strip()
        case Revoke(partitions):
            return f"revoke {listed(partitions)}"
        case Lost(partitions, error):
            return f"lost {listed(partitions)} {type(error).__name__}"
        case Failed(error, fatal):
            return f"failed {type(error).__name__}{' for good' if fatal else ''}"
