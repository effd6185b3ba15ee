"""Groups' offsets for transactions: the adapter of `tidelog.transactions.ports.GroupOffsets`."""

from collections.abc import Mapping

from tidelog.groups.model import CommittedOffset, TopicPartition
from tidelog.groups.rules.offsets import decide_pending, settle
from tidelog.groups.store.group_log import GroupLog
from tidelog.groups.store.offset_checks import check_values
from tidelog.transactions.model import TransactionKey
from tidelog.transactions.ports import GroupIdentity, OffsetToCommit


class LoggedOffsets:
    """`GroupOffsets` over a lake's log of groups."""

    def __init__(self, log: GroupLog) -> None:
        self._log = log

    def add_pending(
        self, group: GroupIdentity, offsets: Mapping[TopicPartition, OffsetToCommit], key: TransactionKey
    ) -> None:
        """Let offsets wait for the end of a transaction. Raises as `GroupLog.commit_offsets`."""
        given = {place: CommittedOffset(one.offset, one.metadata, one.leader_epoch) for place, one in offsets.items()}
        check_values(given)
        wanted = self._log.placed(given)
        self._log.decide(
            group.group_id,
            lambda view: decide_pending(
                view,
                group.group_id,
                wanted,
                key,
                member_id=group.member_id,
                generation=group.generation,
                instance_id=group.instance_id,
            ),
        )

    def settle(self, group_id: str, key: TransactionKey, *, committed: bool) -> None:
        """Make the offsets that wait for a transaction the group's, or drop them. A repeat changes nothing."""
        self._log.decide(group_id, lambda view: settle(view, key, committed=committed))
