"""What maintenance does for transactions: completes those of dead producers, expires ids, names files in use."""

from collections.abc import Collection
from dataclasses import dataclass

from tidelog.log.base.errors import CorruptLogError, InvalidConfigError, TidelogError, UnsupportedFormatError
from tidelog.log.lake import Lake
from tidelog.log.rows.row_log import RowLog
from tidelog.log.rules import names
from tidelog.transactions.ports import GroupOffsets
from tidelog.transactions.roll_forward import complete, decide_retire
from tidelog.transactions.rows import TransactionsFold
from tidelog.transactions.transaction_log import TransactionLog


@dataclass(frozen=True, slots=True)
class UpkeepReport:
    """What a run did: ids whose transaction was completed, ids that expired, markers that expire from now on."""

    completed: tuple[str, ...] = ()
    expired: tuple[str, ...] = ()
    retired: int = 0


class TransactionUpkeep:
    """Upkeep of a lake's transactions. Safe to run twice at once, and to stop anywhere."""

    def __init__(self, lake: Lake, groups: GroupOffsets) -> None:
        self._lake = lake
        self._groups = groups
        self._log = TransactionLog(lake)

    def run(self) -> UpkeepReport:
        """Complete transactions, expire ids, retire markers.

        A topic that can't be opened holds up its own transactions and nothing else: the first such error is raised when
        all the rest is done. Raises `StorageError`, `OutcomeUnknownError`, and for such a topic
        `CorruptLogError`, `UnsupportedFormatError`, `InvalidConfigError`.
        """
        done: list[str] = []
        held_up: list[TidelogError] = []
        for transactional in self._log.incomplete():
            try:
                if complete(self._lake, self._log, self._groups, transactional):
                    done.append(transactional.transactional_id)
            except (CorruptLogError, UnsupportedFormatError, InvalidConfigError) as e:
                held_up.append(e)
        expired = self._log.expire()
        self._log.drop_floors()
        retired = self._retire_markers()
        for error in held_up:
            raise error
        return UpkeepReport(tuple(done), tuple(expired), retired)

    def tables(self) -> list[RowLog[TransactionsFold]]:
        """The table that holds the transactions; none before the first."""
        return self._log.tables()

    def _retire_markers(self) -> int:
        completed, now_ms = self._log.completed(), self._lake.clock.now_ms()
        retired = 0
        for topic in self._lake.topics():
            try:
                retired += self._lake.commit(topic, lambda state: decide_retire(state, completed, now_ms)).response
            except TidelogError as e:
                if e.retriable:
                    raise
                # Its markers wait until it can be opened.
        return retired

    def complete_for(self, topic: str) -> None:
        """Complete every transaction that names a topic.

        Raises as `run`.
        """
        state = self._lake.peek(topic)
        for one in self._log.incomplete(state.topic_id) if state is not None else ():
            complete(self._lake, self._log, self._groups, one)

    def needed_files(self, topic: str, floor: int) -> Collection[str]:
        """What a purge must leave of files that no entry of the topic names: paths below the topic's folder.

        From the answer on nothing new names a segment of the topic that was opened at a version below `floor`: no
        intent of a producer's own, and no part that a broker notes. What is committed is rolled forward first, so that
        as a rule only the parts of open transactions are left. Raises as `run`.
        """
        state = None if names.is_internal(topic) else self._lake.peek(topic)
        if state is None:
            return ()
        naming = set(self._log.publish_floor(topic, state.topic_id, floor))
        for one in self._log.incomplete(state.topic_id):
            if one.transactional_id in naming:
                complete(self._lake, self._log, self._groups, one)
        # Open ones first: what they commit meanwhile is an intent by then.
        noted = {
            segment.path
            for transaction in self._log.all_open()
            for part in transaction.parts
            if part.topic_id == state.topic_id
            for segment in part.segments
        }
        return noted | {
            segment.path
            for one in self._log.incomplete(state.topic_id)
            if one.intent is not None
            for part in one.intent.parts
            if part.topic_id == state.topic_id
            for segment in part.segments
        }
