"""Groups' offsets for those who don't know groups: the adapter of `tidelog.log.group_ports.GroupPositions`."""

from collections.abc import Mapping

from tidelog.groups.model import CommittedOffset, TopicPartition
from tidelog.groups.store.group_log import GroupLog


class LoggedPositions:
    """`GroupPositions` over a lake's log of groups."""

    def __init__(self, log: GroupLog) -> None:
        self._log = log

    def publish(self, group: str, offsets: Mapping[str, Mapping[int, int]]) -> None:
        """Commit {topic: {partition: next offset to read}} for a group without members. Raises as `commit_offsets`."""
        wanted = {(topic, p): CommittedOffset(offset) for topic, by in offsets.items() for p, offset in by.items()}
        self._log.commit_offsets(group, wanted)

    def positions(self) -> dict[str, dict[TopicPartition, int]]:
        """{group: {(topic, partition): next offset to read}} of every group that has offsets."""
        return {
            group: {place: committed.offset for place, committed in offsets.items()}
            for group, offsets in self._log.positions().items()
        }
