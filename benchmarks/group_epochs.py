"""Groups of native members of the consumer protocol: one joins a hundred others, until all are at their targets.

All members are driven by one thread of one process, as many processes would measure the machine's scheduler.
"""

import time
from collections.abc import Iterable

from figures import Row, summary
from plan import Plan

import tidelog
from tidelog.groups.member.events import ModernConfig, Revoke
from tidelog.groups.member.heartbeats import Leases
from tidelog.groups.member.modern import ModernMembership
from tidelog.groups.model import ConsumerGroup
from tidelog.groups.rules.modern.topics import AssignableTopic, assignable
from tidelog.groups.store.group_log import GroupLog

_MEMBERS = 100
_PARTITIONS = 1_000
_TOPIC = "shared"
_PATIENCE_S = 120.0


def run(plan: Plan) -> list[Row]:
    """How long a join takes, and how many entries."""
    rounds = 3 if plan.quick else 10
    with tidelog.Lake(str(plan.work / "group-epochs")) as lake:
        lake.create_topic(_TOPIC, partitions=_PARTITIONS)
        group = _Group(lake)
        for _ in range(_MEMBERS):
            group.add()
        group.settled()
        joins, entries = [], []
        for _ in range(rounds):
            version, began = group.log.version("g"), time.monotonic()
            group.add()
            group.settled()
            joins.append(time.monotonic() - began)
            entries.append(float(group.log.version("g") - version))
            group.drop()
            group.settled()
    told = f"slowest {max(joins) * 1000:,.0f} ms, {max(entries):.0f} entries"
    what = f"a native member joins {_MEMBERS} others by KIP-848, {_PARTITIONS:,} partitions, until all read theirs"
    return [Row(what, "≤ 150 ms", told, max(joins) <= 0.15, {"seconds": summary(joins), "entries": summary(entries)})]


class _Group:
    """Members, stepped in turn; after each entry all are woken, as those are that follow a log in a local folder."""

    def __init__(self, lake: tidelog.Lake) -> None:
        self._lake = lake
        self.log = GroupLog(lake)
        self.members: list[ModernMembership] = []

    def add(self) -> None:
        """One more member subscribes."""
        member = ModernMembership(
            self.log, Leases(self._lake.storage), self._assignable, ModernConfig(group_id="g"),
            clock=self._lake.clock, ids=self._lake.ids,
        )  # fmt: skip
        member.watched = True
        member.subscribe([_TOPIC])
        self.members.append(member)

    def drop(self) -> None:
        """The newest member leaves."""
        self.members.pop().leave()
        self._wake()

    def settled(self) -> None:
        """Step members until each reads what it is to read."""
        until = time.monotonic() + _PATIENCE_S
        while time.monotonic() < until:
            for member in self.members:
                version = self.log.version("g")
                member.polled()
                if member.due_s() > 0:
                    continue
                for event in member.step():
                    if isinstance(event, Revoke):
                        member.revoked()
                        member.step()
                if self.log.version("g") != version:
                    self._wake()
            if self._is_settled():
                return
        raise RuntimeError(f"{len(self.members)} members did not settle in {_PATIENCE_S:g} s")

    def _wake(self) -> None:
        for member in self.members:
            member.wake()

    def _is_settled(self) -> bool:
        group = self.log.group("g")
        if not isinstance(group, ConsumerGroup) or len(group.members) != len(self.members):
            return False
        return group.phase == "Stable" and sum(len(member.owned) for member in self.members) == _PARTITIONS

    def _assignable(self, topics: Iterable[str]) -> dict[str, AssignableTopic | None]:
        return assignable({topic: self._lake.peek(topic) for topic in topics})
