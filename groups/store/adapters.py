"""Groups' offsets and upkeep for folders that don't know groups: the adapters of their ports over a `GroupLog`."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tidelog.groups.model import CommittedOffset, TopicPartition
from tidelog.groups.rules.offsets import decide_pending, settle
from tidelog.groups.store.group_log import GroupLog
from tidelog.groups.store.offset_checks import check_values
from tidelog.log.base.errors import TidelogError
from tidelog.log.rows.row_log import RowLog
from tidelog.transactions.model import TransactionKey
from tidelog.transactions.ports import GroupIdentity, OffsetToCommit
from tidelog.transactions.upkeep import TransactionUpkeep


class LoggedPositions:
    """`tidelog.log.group_ports.GroupPositions` over a lake's log of groups."""

    def __init__(self, log: GroupLog) -> None:
        self._log = log

    def publish(self, group: str, offsets: Mapping[str, Mapping[int, int]]) -> None:
        """Commit {topic: {partition: next offset to read}} for a group without members. Raises as `commit_offsets`."""
        wanted = {(topic, p): CommittedOffset(offset) for topic, by in offsets.items() for p, offset in by.items()}
        self._log.commit_offsets(group, wanted)


class LoggedOffsets:
    """`tidelog.transactions.ports.GroupOffsets` over a lake's log of groups."""

    def __init__(self, log: GroupLog) -> None:
        self._log = log

    def add_pending(
        self, group: GroupIdentity, offsets: Mapping[TopicPartition, OffsetToCommit], key: TransactionKey
    ) -> None:
        """Let offsets wait for the end of a transaction. Raises as `GroupLog.commit_offsets`."""
        given = {place: CommittedOffset(one.offset, one.metadata, one.leader_epoch) for place, one in offsets.items()}
        check_values(given)
        wanted = self._log.placed(given)
        self._log.decide(group.group_id, lambda view: decide_pending(view, group, wanted, key))

    def settle(self, group_id: str, key: TransactionKey, *, committed: bool) -> None:
        """Make the offsets that wait for a transaction the group's, or drop them. A repeat changes nothing."""
        self._log.decide(group_id, lambda view: settle(view, key, committed=committed))


class GroupsAndTransactions:
    """`tidelog.log.group_ports.GroupUpkeep` over a lake's groups and its transactions.

    `further`: the other tables of rows that maintenance looks after.
    """

    def __init__(
        self,
        groups: GroupLog,
        transactions: TransactionUpkeep,
        further: Callable[[], Sequence[RowLog[Any]]] = tuple,
    ) -> None:
        self._groups = groups
        self._transactions = transactions
        self._further = further

    def expire_offsets(self, now_ms: int, *, dry_run: bool = False) -> Mapping[str, Sequence[TopicPartition]]:
        """Finish and forget transactions, then expire offsets: {group: (topic, partition) whose offset went}.

        An error of transactions is raised after the offsets have expired.
        """
        if dry_run:
            return self._groups.expire_offsets(now_ms, dry_run=True)
        try:
            self._transactions.run()
        except TidelogError:
            self._groups.expire_offsets(now_ms)
            raise
        return self._groups.expire_offsets(now_ms)

    def tables(self) -> Sequence[RowLog[Any]]:
        """The tables that hold groups and transactions, and further ones, as far as there are any."""
        return [*self._groups.tables(), *self._transactions.tables(), *self._further()]
