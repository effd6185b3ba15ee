"""Groups of a lake that begins as a branch of another one: it has no members, and no position past its end. Pure."""

from collections.abc import Collection
from dataclasses import replace

from tidelog.groups.model import AnyGroup, CommittedOffset, Decision, EpochGroup, GroupView, TopicPartition
from tidelog.groups.rules import departures, rounds
from tidelog.transactions.model import TransactionKey

# Of each partition the topic's id and the log end offset.
Ends = dict[TopicPartition, tuple[str, int]]


def begin_anew(view: GroupView, *, ends: Ends, left_open: Collection[TransactionKey], now_ms: int) -> Decision[None]:
    """The group without its members, which are at the other lake, and with its offsets, at most the partitions' ends.

    A commit that came after its record in the source may have been looked at before the record. `left_open`:
    transactions that none ends here. What waits for them goes: one of an epoch that began after the log of transactions
    was cut would wait for ever, or for the branch's own transaction of the same epoch and number.
    """
    offsets: dict[TopicPartition, CommittedOffset | None] = {}
    for place, committed in view.offsets.items():
        topic_id, end = ends.get(place, ("", committed.offset))
        if committed.offset > end and committed.topic_id in ("", topic_id):
            offsets[place] = replace(committed, offset=end)
    gone = [waiting for waiting in view.pending if waiting[0] in left_open]
    group = _without_members(view.group, now_ms)
    return Decision(response=None, group=group, offsets=offsets, pending=dict.fromkeys(gone))


def _without_members(group: AnyGroup | None, now_ms: int) -> AnyGroup | None:
    """The group once all have left; None where nothing changes."""
    if group is None or not group.members:
        return None
    if isinstance(group, EpochGroup):
        return departures.without(group, group.members, now_ms)
    return rounds.complete(rounds.begin(rounds.without(group, group.members)), now_ms)
