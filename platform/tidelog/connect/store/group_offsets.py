"""A sink's offsets: those of its consumer group."""

from collections.abc import Collection, Mapping

from tidelog.connect.data.records import Partition
from tidelog.groups.model import CommittedOffset
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.lake import Lake
from tidelog.operations import groups


def committed_offsets(lake: Lake, group: str) -> dict[Partition, int]:
    """{partition: offset} of a group, {} for one that is not there."""
    return {partition: committed.offset for partition, committed in sorted(GroupLog(lake).offsets(group).items())}


def set_offsets(lake: Lake, group: str, wanted: Mapping[Partition, int], gone: Collection[Partition] = ()) -> None:
    """Set some offsets of a group without members, and take out others. Raises as `GroupLog.commit_offsets` does."""
    log = GroupLog(lake)
    if wanted:
        offsets = {partition: CommittedOffset(offset) for partition, offset in wanted.items()}
        groups.set_offsets(lake, log, group, offsets)
    if gone:
        groups.delete_offsets(lake, log, group, gone)
