"""Which committed offsets have expired: a pure rule (Kafka's `OffsetExpirationCondition`, KIP-211)."""

from collections.abc import Callable

from tidelog.groups.model import AnyGroup, CommittedOffset, Decision, Group, GroupPhase, GroupView, TopicPartition
from tidelog.groups.rules.members import topics_of_members


def expire(view: GroupView, now_ms: int, retention_ms: int) -> Decision[list[TopicPartition]]:
    """Forget the offsets whose time is over, and the group with its last one; the response is what goes, sorted.

    An offset is kept for `retention_ms` after
    - the group became empty, when it had members;
    - its commit, when the group never had any, or when its members don't subscribe to the topic any more.

    Source: `GroupMetadata.removeExpiredOffsets`, `ClassicGroup.offsetExpirationCondition` (kafka 4.0).
    """
    since = _counts_from(view.group)
    expired = sorted(
        place
        for place, committed in view.offsets.items()
        if (from_ms := since(place, committed)) is not None and now_ms - from_ms >= retention_ms
    )
    group = view.group
    gone = (
        group is not None and group.phase is GroupPhase.EMPTY and len(expired) == len(view.offsets) and not view.pending
    )
    if group is None or not gone or not (expired or _is_old(group, now_ms, retention_ms)):
        return Decision(response=expired, offsets=dict.fromkeys(expired))
    return Decision(
        response=expired, group=Group(group.group_id, phase=GroupPhase.DEAD), offsets=dict.fromkeys(expired)
    )


def _is_old(group: AnyGroup, now_ms: int, retention_ms: int) -> bool:
    return group.empty_since_ms is not None and now_ms - group.empty_since_ms >= retention_ms


def _counts_from(group: AnyGroup | None) -> Callable[[TopicPartition, CommittedOffset], int | None]:
    """From when on an offset's time runs, ms since the epoch; None while it does not."""
    if group is None or not group.protocol_type:
        return lambda _, committed: committed.commit_ms
    if group.phase is GroupPhase.EMPTY:
        return lambda _, committed: committed.commit_ms if group.empty_since_ms is None else group.empty_since_ms
    topics = topics_of_members(group)
    in_a_round = isinstance(group, Group) and group.phase is not GroupPhase.STABLE
    if in_a_round or topics is None:
        return lambda _, __: None
    return lambda place, committed: None if place[0] in topics else committed.commit_ms
