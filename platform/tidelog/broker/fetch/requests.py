"""What a Fetch request asks for, the same for every version."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from uuid import UUID

from tidelog.broker.base.calls import Call

# A topic's name, from version 13 on its id; and a partition.
Key = tuple[str | UUID, int]

TOPIC_IDS_SINCE: Final = 13
# Session epochs of KIP-227: a request with one of these asks for all that it names.
INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1


class Asked(NamedTuple):
    """What is asked of a partition. `leader_epoch`: the one that the client knows, -1 for none."""

    offset: int
    max_bytes: int
    leader_epoch: int = -1


@dataclass(frozen=True, slots=True)
class FetchRequest:
    """A request; `rack`: where the client is, "" where it does not say.

    `is_throttled`: its client is over its quota, and gets an answer at once, without records (KIP-219).
    """

    version: int
    asked: Mapping[Key, Asked]
    forgotten: Sequence[Key] = ()
    session_id: int = 0
    epoch: int = FINAL_EPOCH
    max_wait_s: float = 0.0
    min_bytes: int = 0
    max_bytes: int = 2**31 - 1
    read_committed: bool = False
    rack: str = ""
    is_throttled: bool = False

    @property
    def by_ids(self) -> bool:
        """Whether topics are named by their ids."""
        return self.version >= TOPIC_IDS_SINCE


def size_of(body: Any) -> int:
    """How many topics and partitions a request names, those that it forgets included."""
    topics = (*body.topics, *getattr(body, "forgotten_topics_data", ()))
    return len(topics) + sum(len(topic.partitions) for topic in topics)


def request_of(call: Call) -> FetchRequest:
    """The request of a call."""
    body, version = call.body, call.version
    by_ids, has_epochs = version >= TOPIC_IDS_SINCE, version >= 9
    asked: dict[Key, Asked] = {}
    for topic in body.topics:
        name = _topic(topic, by_ids=by_ids)
        for p in topic.partitions:
            epoch = p.current_leader_epoch if has_epochs else -1
            asked[name, p.partition] = Asked(p.fetch_offset, p.partition_max_bytes, epoch)
    wait_s = body.max_wait.total_seconds()
    allowed = call.allowance.most_bytes
    max_bytes, min_bytes = min(body.max_bytes, allowed), min(body.min_bytes, allowed)
    read_committed = body.isolation_level == 1
    if version < 7:
        return FetchRequest(
            version,
            asked,
            max_wait_s=wait_s,
            min_bytes=min_bytes,
            max_bytes=max_bytes,
            read_committed=read_committed,
            is_throttled=not allowed,
        )
    forgotten = [
        (_topic(topic, by_ids=by_ids), partition)
        for topic in body.forgotten_topics_data
        for partition in topic.partitions
    ]
    rack = body.rack_id if version >= 11 else ""
    return FetchRequest(
        version,
        asked,
        forgotten,
        body.session_id,
        body.session_epoch,
        wait_s,
        min_bytes,
        max_bytes,
        read_committed,
        rack,
        is_throttled=not allowed,
    )


def _topic(topic: Any, *, by_ids: bool) -> str | UUID:
    return (topic.topic_id or UUID(int=0)) if by_ids else topic.topic
