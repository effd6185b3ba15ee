"""What others need of consumer groups: the port that `tidelog.groups` implements and the outermost layer wires."""

from collections.abc import Mapping
from typing import Protocol


class GroupPositions(Protocol):
    """Offsets that groups have committed. Methods may be called from many threads."""

    def publish(self, group: str, offsets: Mapping[str, Mapping[int, int]]) -> None:
        """Commit {topic: {partition: next offset to read}} for a group without members; durable on return.

        Raises `tidelog.log.errors.UnknownMemberError` while the group has members: its offsets are theirs.
        """
        ...

    def positions(self) -> Mapping[str, Mapping[tuple[str, int], int]]:
        """{group: {(topic, partition): next offset to read}} of every group, as of now."""
        ...
