"""Groups' offsets of Kafka in a lake: read there, committed here once the records before them are here."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tidelog.groups.store.group_log import GroupLog
from tidelog.log.base.errors import TidelogError
from tidelog.log.lake import Lake
from tidelog.mirror.kafka.rules import plan_offsets
from tidelog.mirror.kafka.source import KafkaSource, KafkaSourceError, Place, SourceOffset

logger = logging.getLogger("tidelog.mirror.kafka")

# In place of a group's id.
_ALL: Final = "*"


@dataclass
class KafkaGroups:
    """The groups of a source. `problems`: why a group's offsets are not here. `committed` counts offsets.

    For one thread.
    """

    source: KafkaSource
    lake: Lake
    committed: int = 0
    problems: dict[str, str] = field(default_factory=dict)
    _seen: Mapping[str, Mapping[Place, SourceOffset]] = field(default_factory=dict)
    _refused: Mapping[str, str] = field(default_factory=dict)
    _waiting: dict[str, Mapping[Place, SourceOffset]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._log = GroupLog(self.lake)

    def look(self) -> None:
        """Read what the groups committed. Where that is refused, records are copied all the same."""
        try:
            found = self.source.groups()
        except KafkaSourceError as e:
            if str(e) != self.problems.get(_ALL):
                logger.warning("Groups' offsets are not copied. %s", e)
            self.problems[_ALL] = str(e)
            return
        self.problems.pop(_ALL, None)
        for group, offsets in found.offsets.items():
            if offsets != self._seen.get(group):
                self._waiting[group] = offsets
        for group in self._refused.keys() - found.refused.keys():
            self.problems.pop(group, None)
        for group, why in found.refused.items():
            if why != self._refused.get(group):
                logger.warning("Offsets of group '%s' are not copied. %s", group, why)
            self.problems[group] = why
        self._seen, self._refused = found.offsets, found.refused

    def commit(self, ends: Mapping[Place, int]) -> int:
        """Commit what is due; how many offsets wait for records that are not copied yet.

        `ends`: how far each partition is copied. Raises `StorageError` while the store is away.
        """
        for group, offsets in list(self._waiting.items()):
            try:
                plan = plan_offsets(offsets, self._log.view(group), ends)
                if plan.commit:
                    self._log.commit_offsets(group, plan.commit)
                self.problems.pop(group, None)
            except TidelogError as e:
                if e.retriable:
                    raise
                logger.warning("Offsets of group '%s' are not copied. %s", group, e)
                self.problems[group] = str(e)
                del self._waiting[group]
                continue
            self.committed += len(plan.commit)
            if plan.wait:
                self._waiting[group] = plan.wait
            else:
                del self._waiting[group]
        return sum(map(len, self._waiting.values()))
