"""What the leader of a group does: share the partitions out among the members, and notice when they change."""

from collections.abc import Collection, Mapping

from tidelog.groups.assignors.assign import assign
from tidelog.groups.consumer_protocol import (
    Assignment,
    Subscription,
    decode_assignment,
    decode_sticky_user_data,
    decode_subscription,
    encode_assignment,
    newest_claims,
    subscribed_topics,
)
from tidelog.groups.model import Group, TopicPartition


def topics_of(group: Group) -> frozenset[str]:
    """All topics that members of the group subscribe to."""
    return frozenset().union(*(subscribed_topics(data) for data in _metadata(group).values()))


def share_out(group: Group, partition_counts: Mapping[str, int]) -> dict[str, bytes]:
    """Assignments by member id, as the elected assignor makes them of what the members said when they joined."""
    strategy = group.protocol or ""
    said = {name: decode_subscription(data) for name, data in _metadata(group).items()}
    shares = assign(
        strategy,
        {name: subscription.topics for name, subscription in said.items()},
        partition_counts,
        owned=newest_claims({name: _claim(strategy, subscription) for name, subscription in said.items()}),
        static_ids={name: member.instance_id for name, member in group.members.items()},
    )
    return {name: encode_assignment(Assignment(tuple(partitions))) for name, partitions in shares.items()}


def is_shared_out(group: Group, partition_counts: Mapping[str, int]) -> bool:
    """Whether the members' assignments hold just the partitions that there are."""
    shared = {place for member in group.members.values() for place in decode_assignment(member.assignment).partitions}
    return shared == {(topic, number) for topic, count in partition_counts.items() for number in range(count)}


def _claim(strategy: str, subscription: Subscription) -> tuple[Collection[TopicPartition], int]:
    """Eager members own nothing when they join; `sticky` remembers what they had."""
    if strategy == "sticky":
        return decode_sticky_user_data(subscription.user_data)
    return subscription.owned, subscription.generation


def _metadata(group: Group) -> dict[str, bytes]:
    """What each member says for the elected protocol."""
    return {name: dict(member.protocols)[group.protocol or ""] for name, member in group.members.items()}
