"""What maintenance looks after besides topics: groups' offsets, and the transactions that they may wait for."""

from collections.abc import Mapping, Sequence
from typing import Any

from tidelog.groups.model import TopicPartition
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.base.errors import TidelogError
from tidelog.log.rows.row_log import RowLog
from tidelog.transactions.upkeep import TransactionUpkeep


class GroupsAndTransactions:
    """`tidelog.log.group_ports.GroupUpkeep` over a lake's groups and its transactions."""

    def __init__(self, groups: GroupLog, transactions: TransactionUpkeep) -> None:
        self._groups = groups
        self._transactions = transactions

    def expire_offsets(self, now_ms: int, *, dry_run: bool = False) -> Mapping[str, Sequence[TopicPartition]]:
        """Finish and forget transactions, then expire offsets: {group: (topic, partition) whose offset went}.

        What holds a transaction up holds no offset up: they expire before it is raised.
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
        """The tables that hold groups and transactions, as far as there are any."""
        return [*self._groups.tables(), *self._transactions.tables()]
