"""The heads of a source's tables, read in an order that makes them the heads of one time."""

import re
from collections.abc import Callable, Collection, Iterable
from typing import Final

from tidelog.log.delta import layout
from tidelog.log.storage.port import Distant, Storage
from tidelog.mirror.copying import Copier
from tidelog.mirror.source_log import SourceLog
from tidelog.mirror.tables import Rank, rank

# A look at all heads counts when no transaction was decided meanwhile; it is made again at most this often.
MOST_LOOKS: Final = 20


class SourceTables:
    """The tables of a source that are shipped, each with its log. For one thread.

    `opened` is called for a table that is new there; it gives the table's log. `wanted` as in `rank`.
    """

    def __init__(
        self,
        storage: Storage,
        copier: Copier,
        wanted: re.Pattern[str] | None,
        opened: Callable[[str, Rank], SourceLog],
    ) -> None:
        self._storage = storage
        self._copier = copier
        self._wanted = wanted
        self._opened = opened
        self._others: set[str] = set()
        self.logs: dict[str, SourceLog] = {}
        self.ranks: dict[str, Rank] = {}

    def ships(self, path: str) -> bool:
        """Whether a file, by its path below the lake's root, is of a table that is shipped."""
        return rank(path.partition("/")[0], self._wanted) is not None

    def look(self, spared: Collection[str]) -> bool:
        """Read the heads of all tables but the `spared` ones; whether no transaction was decided meanwhile.

        Transactions come first, then groups, then the others: what an entry of the former rests on is in the latter
        by then. Where a transaction was decided meanwhile, its records may be among what was read and its decision not.
        """
        self._look_at(Rank.TRANSACTIONS, spared)
        for _ in range(MOST_LOOKS):
            self._look_at(Rank.GROUPS, spared)
            found = self._find()
            for other in (Rank.ACCESS, Rank.TOPICS, Rank.SCHEMAS):
                self._look_at(other, spared)
            decided = self._look_at(Rank.TRANSACTIONS, spared)
            if not decided and not found & {Rank.GROUPS, Rank.TRANSACTIONS}:
                return True
        return False

    def _look_at(self, which: Rank, spared: Collection[str]) -> bool:
        logs = [log for name, log in self.logs.items() if self.ranks[name] is which and name not in spared]
        if len(logs) > 1 and isinstance(self._storage, Distant):
            return _any(self._copier.run(SourceLog.look, logs))
        return _any(log.look() for log in logs)

    def _find(self) -> set[Rank]:
        """Open the tables that are new; their ranks."""
        ranks = set()
        for name in self._storage.list_folders(""):
            if name in self.logs or name in self._others:
                continue
            found = rank(name, self._wanted)
            if found is None:
                self._others.add(name)
            elif layout.LOG_FOLDER in self._storage.list_folders(name):
                self.ranks[name] = found
                self.logs[name] = self._opened(name, found)
                ranks.add(found)
        return ranks


def _any(answers: Iterable[bool]) -> bool:
    """Whether one of them is true; all of them are asked."""
    return any(list(answers))
