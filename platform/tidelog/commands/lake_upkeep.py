"""Maintenance of a lake with all that is in it: topics, groups, transactions, and the tables of brokers and access."""

from collections.abc import Collection
from typing import Any

from tidelog.access.access_log import AccessLog
from tidelog.cluster.cluster_log import ClusterLog
from tidelog.groups.store.adapters import GroupsAndTransactions, LoggedOffsets
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.lake import Lake
from tidelog.retention.maintenance import PARTS, maintain
from tidelog.retention.report import MaintenanceReport
from tidelog.transactions.upkeep import TransactionUpkeep


class LakeUpkeep:
    """Maintains a lake, as often as it is asked to."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        groups = GroupLog(lake)
        self._transactions = TransactionUpkeep(lake, LoggedOffsets(groups))
        cluster, access = ClusterLog(lake), AccessLog(lake)
        self._groups = GroupsAndTransactions(groups, self._transactions, lambda: [*cluster.tables(), *access.tables()])

    def run(self, *, only: Collection[str] = PARTS, **asked: Any) -> MaintenanceReport:
        """One run; `asked` and what it raises: as `maintain` has them."""
        needed = self._transactions.needed_files
        return maintain(self._lake, only=only, groups=self._groups, needed=needed, **asked)
