"""Groups with members for tests of what is done to groups from outside: no consumers, only what the log would say."""

from collections.abc import Iterable

from tidelog.groups.consumer_protocol import Assignment, Subscription, encode_assignment, encode_subscription
from tidelog.groups.member.heartbeats import Leases
from tidelog.groups.model import Decision, Group, GroupPhase, Member
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.lake import Lake

SESSION_MS = 2_000


def stable_group(lake: Lake, group_id: str, members: dict[str, Iterable[tuple[str, int]]]) -> GroupLog:
    """Write a stable group of the consumer protocol: {member id: what it reads}. Each has a lease that says 1."""
    log = GroupLog(lake)
    joined = {
        name: Member(
            name,
            client_id=f"client-of-{name}",
            host="here",
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=60_000,
            protocols=(("range", encode_subscription(Subscription(tuple({topic for topic, _ in places})))),),
            assignment=encode_assignment(Assignment(tuple(places))),
        )
        for name, places in members.items()
    }
    group = Group(group_id, GroupPhase.STABLE, 1, "consumer", "range", next(iter(joined)), joined)
    log.decide(group_id, lambda view: Decision(response=None, group=group))
    for name in joined:
        Leases(lake.storage).of_member(group_id, name).renew()
    return log
