"""Scripts of a group's life: one request a line, and what the group, or the answer, is after it.

    join a range,sticky t,u     a newcomer (or a known member: `rejoin`), its assignors, its topics
    join a2 instance=i          static id i
    sync a 2 a=1 b=2            member, generation; the leader's shares
    commit a 2 | leave a | silent a@1,b@2 | late 1 | heartbeat a 2

What follows `->` is the group as `phase generation leader members`, members as `name`, `name+` (joined), `name=share`;
or `: answer`; or the name of an error.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tidelog.groups.consumer_protocol import Subscription, encode_subscription
from tidelog.groups.model import CommittedOffset, Decision, Group, GroupPhase, GroupView, Member
from tidelog.groups.rules.members import (
    check_generation,
    check_member,
    current,
    evict_late,
    evict_silent,
    join,
    leave,
    sync,
)
from tidelog.groups.rules.offsets import decide_commit
from tidelog.log.base.errors import InconsistentProtocolError, RebalanceInProgressError, TidelogError
from tidelog.transactions.ports import GroupIdentity

GROUP = "g"
NOW_MS = 1_000


def member(member_id: str, assignors: str = "range", topics: str = "t", instance: str | None = None) -> Member:
    """A member that subscribes to comma-separated topics, with comma-separated assignors."""
    data = encode_subscription(Subscription(tuple(topics.split(","))))
    return Member(
        member_id, "client", "host", 10_000, 60_000, tuple((name, data) for name in assignors.split(",")), instance
    )


def shown(group: Group | None) -> str:
    """A group in one line."""
    if group is None:
        return "none"
    people = [
        f"{name}{'+' if one.joined else ''}{f'={one.assignment.decode()}' if one.assignment else ''}"
        for name, one in sorted(group.members.items())
    ]
    return " ".join([group.phase.value.removesuffix("Rebalance"), str(group.generation), group.leader or "-", *people])


@dataclass
class Script:
    """Carries requests out, one after another."""

    view: GroupView = field(default_factory=GroupView)

    def run(self, line: str) -> str:
        """Carry one request out; returns what the group is then, `: answer`, or the error's name."""
        name, *words = line.split()
        before = self.view
        try:
            found = getattr(self, f"_{name}")(*words)
        except TidelogError as e:
            assert self.view is before
            return type(e).__name__.removesuffix("Error")
        return shown(self.view.group) if found is None else f": {found}"

    def _decide(self, decision: Decision[Any]) -> Any:
        offsets = {**self.view.offsets, **decision.offsets}
        kept = {place: offset for place, offset in offsets.items() if offset is not None}
        self.view = GroupView(decision.group or self.view.group, kept)
        return decision.response

    def _join(self, who: str, *rest: str, known: bool = False) -> None:
        instance = next((word.removeprefix("instance=") for word in rest if word.startswith("instance=")), None)
        given = [word for word in rest if not word.startswith("instance=")]
        assignors, topics = [*given, *["range", "t"][len(given) :]]
        answer = self._decide(
            join(self.view, GROUP, member(who, assignors, topics, instance), rejoins=known, now_ms=NOW_MS)
        )
        assert answer == self.view.group

    def _rejoin(self, who: str, *rest: str) -> None:
        self._join(who, *rest, known=True)

    def _sync(self, who: str, generation: str, *shares: str) -> str | None:
        instance, given = self._instance(shares)
        protocol = next((word.removeprefix("protocol=") for word in given if word.startswith("protocol=")), None)
        pairs = [word.split("=") for word in given if not word.startswith("protocol=")]
        assignments = {name: share.encode() for name, share in pairs} or None
        decision = sync(self.view, GROUP, who, int(generation), assignments=assignments, instance_id=instance)
        if protocol not in (None, current(self.view, GROUP).protocol):
            raise InconsistentProtocolError(f"{protocol} was not elected")
        answer = self._decide(decision)
        return None if assignments else ("wait" if answer is None else f"share {answer.decode()}".rstrip())

    def _heartbeat(self, who: str, generation: str, *rest: str) -> str:
        """What a member finds that looks at its group between joining and leaving."""
        group = current(self.view, GROUP)
        check_member(group, who, self._instance(rest)[0])
        check_generation(group, int(generation))
        if group.phase is GroupPhase.PREPARING:
            raise RebalanceInProgressError("join again")
        return "fine"

    def _commit(self, who: str = "", generation: str = "-1", *rest: str) -> str:
        member_id, instance_id = "" if who == "nobody" else who, self._instance(rest)[0]
        committer = GroupIdentity(GROUP, member_id, int(generation), instance_id)
        self._decide(decide_commit(self.view, committer, {("t", 0): CommittedOffset(7)}))
        return f"committed by generation {self.view.offsets['t', 0].generation}"

    def _leave(self, who: str, *rest: str) -> None:
        """`leave nobody instance=i`: the member with the static id i goes."""
        group, instance = current(self.view, GROUP), self._instance(rest)[0]
        if who == "nobody":
            who = next((name for name, one in group.members.items() if one.instance_id == instance), "")
        check_member(group, who, instance)
        self._decide(leave(self.view, GROUP, who, now_ms=NOW_MS))

    def _silent(self, watched: str) -> None:
        turns = {name: int(turn) for name, turn in (one.split("@") for one in watched.split(","))}
        self._decide(evict_silent(self.view, GROUP, turns, now_ms=NOW_MS))

    def _late(self, generation: str) -> None:
        self._decide(evict_late(self.view, GROUP, int(generation), now_ms=NOW_MS))

    @staticmethod
    def _instance(words: tuple[str, ...]) -> tuple[str | None, list[str]]:
        found = next((word.removeprefix("instance=") for word in words if word.startswith("instance=")), None)
        return found, [word for word in words if not word.startswith("instance=")]


def play(text: str) -> None:
    """Run a script and compare each line."""
    script = Script()
    run: Callable[[str], str] = script.run
    for line in filter(None, (line.split("#")[0].strip() for line in text.splitlines())):
        request, _, expected = line.partition("->")
        found = run(request.strip())
        assert found == expected.strip(), f"{request.strip()!r} came to {found!r}, not {expected.strip()!r}"
