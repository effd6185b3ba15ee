"""What other packages need of consumer groups: ports that `tidelog.groups` implements, wired by the outermost layer."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from tidelog.log.rows.row_log import RowLog


class GroupPositions(Protocol):
    """Offsets that groups have committed. Methods may be called from many threads."""

    def publish(self, group: str, offsets: Mapping[str, Mapping[int, int]]) -> None:
        """Commit {topic: {partition: next offset to read}} for a group without members; durable on return.

        Raises `tidelog.log.base.errors.UnknownMemberError` while the group has members: its offsets are theirs.
        """


class GroupUpkeep(Protocol):
    """What maintenance does to groups."""

    def expire_offsets(self, now_ms: int, *, dry_run: bool = False) -> Mapping[str, Sequence[tuple[str, int]]]:
        """Delete what `offsets.retention.minutes` has passed for at `now_ms`, and groups of which nothing is left.

        {group: (topic, partition) whose offset went}. `dry_run`: they stay, and it only says which would go.
        """

    def tables(self) -> Sequence[RowLog[Any]]:
        """The tables that hold groups; none before the first group."""
