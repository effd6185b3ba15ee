"""A group of the type consumer while heartbeats change it: all that say something at once get one assignment. Pure.

Source: `GroupMetadataManager.consumerGroupHeartbeat`, `updateTargetAssignment` (kafka 4.0).
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import mmh3

from tidelog.groups.assignors.server_side import SERVER_ASSIGNORS, Subscriber
from tidelog.groups.model import AssignedPartition, ConsumerGroup, ConsumerMember
from tidelog.groups.rules.modern.reconciliation import Holders, Owned, losing, reconcile
from tidelog.groups.rules.modern.topics import AssignableTopic, MissingTopicsError, Topics


class GroupDraft:
    """A group that is changed: members say what they have to say, all get another assignment, each goes a step on."""

    def __init__(self, group: ConsumerGroup) -> None:
        self._members = dict(group.members)
        self._targets = dict(group.targets)
        self._holders = Holders(self._members)
        self._resubscribed = False
        self.group = replace(group, members=self._members, targets=self._targets, empty_since_ms=None)

    def takes(self, before: ConsumerMember, member: ConsumerMember) -> None:
        """What a member says of itself, `before` and now."""
        if before.member_id != member.member_id:
            # A static member that came back follows in the place of its former self.
            self._members.pop(before.member_id, None)
            if before.member_id in self._targets:
                self._targets[member.member_id] = self._targets.pop(before.member_id)
        self._members[member.member_id] = member
        self._resubscribed = self._resubscribed or _is_resubscribed(before, member)

    def assign(self, topics: Topics, default_assignor: str, *, look: bool) -> None:
        """Begin an epoch where there is something new, and give it its assignment. Raises `MissingTopicsError`.

        `look`: whether the topics may have changed.
        """
        self.group = refreshed(self.group, topics, resubscribed=self._resubscribed, look=look)
        if self.group.epoch > self.group.assignment_epoch:
            self.group = assigned(self.group, topics, default_assignor)
            for name, member in self._members.items():
                self._members[name] = losing(member, self.group.target(name))

    def advance(self, member_id: str, owned: Owned) -> ConsumerMember:
        """A member goes one step towards its target; the member as it is then."""
        before = self._members[member_id]
        after = reconcile(self.group, before, owned, self._holders)
        if after is not before:
            self._members[member_id] = after
            self._holders.replaced(before, after)
        return after


def _is_resubscribed(before: ConsumerMember, now: ConsumerMember) -> bool:
    return (before.topics, before.regex, before.matched) != (now.topics, now.regex, now.matched)


def refreshed(group: ConsumerGroup, topics: Topics, *, resubscribed: bool, look: bool) -> ConsumerGroup:
    """The group in a new epoch, when a subscription or the topics subscribed to have changed, or it has none yet."""
    due = resubscribed or not group.epoch
    if not due and not look:
        return group
    facts = _facts(group, topics)
    text = "\n".join(f"{name} {one.topic_id} {one.partitions}" for name, one in sorted(facts.items()))
    metadata_hash = mmh3.hash64(text.encode(errors="surrogatepass"))[0] if facts else 0
    if not due and metadata_hash == group.metadata_hash:
        return group
    return replace(group, epoch=group.epoch + 1, metadata_hash=metadata_hash)


def _facts(group: ConsumerGroup, topics: Topics) -> dict[str, AssignableTopic]:
    """The topics that members subscribe to, as far as they are there. Raises `MissingTopicsError`."""
    names = frozenset().union(*(member.subscription for member in group.members.values()))
    unknown = names - topics.keys()
    if unknown:
        raise MissingTopicsError(names)
    return {name: facts for name in names if (facts := topics[name]) is not None}


def assigned(group: ConsumerGroup, topics: Topics, default_assignor: str) -> ConsumerGroup:
    """The group with an assignment of its newest epoch, by the assignor that most members ask for."""
    facts = _facts(group, topics)
    names = {one.topic_id: name for name, one in facts.items()}
    assignor = _elected(group.members.values(), default_assignor)
    subscribers = [
        Subscriber(
            member.member_id,
            frozenset(facts[name].topic_id for name in member.subscription if name in facts),
            frozenset((one.topic_id, one.partition) for one in group.target(member.member_id)),
            member.instance_id,
        )
        for member in group.members.values()
    ]
    shares = SERVER_ASSIGNORS[assignor](subscribers, {one.topic_id: one.partitions for one in facts.values()})
    targets = {
        name: frozenset(AssignedPartition(topic_id, names[topic_id], partition) for topic_id, partition in share)
        for name, share in shares.items()
    }
    return replace(group, assignment_epoch=group.epoch, assignor=assignor, targets=targets)


def _elected(members: Iterable[ConsumerMember], default: str) -> str:
    """The assignor that most members ask for; of two with as many votes the first by name."""
    votes = Counter(member.assignor for member in members if member.assignor)
    return min(votes, key=lambda name: (-votes[name], name)) if votes else default
