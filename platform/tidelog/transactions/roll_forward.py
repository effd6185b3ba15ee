"""Rolling an intent forward: what the log of transactions has decided is applied to each topic and group.

Any process may do it, any number of times and at once: each topic takes an intent once. It is never refused.
"""

import logging
from collections.abc import Sequence
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass

from tidelog.log.base.errors import TidelogError
from tidelog.log.delta import layout
from tidelog.log.delta.actions import Action, Txn
from tidelog.log.delta.schema import LOG_APPEND_TIME
from tidelog.log.lake import Lake
from tidelog.log.rules.appends import LogAppendTimeError, Ranges, check_append_times, segment_actions
from tidelog.log.rules.topics import Outcome
from tidelog.log.segments.writer import Staged
from tidelog.log.state.topic_state import TopicState
from tidelog.transactions.model import Intent, IntentPart, Transactional, TransactionKey, marker, marker_version
from tidelog.transactions.ports import GroupOffsets
from tidelog.transactions.rules import Completed
from tidelog.transactions.transaction_log import TransactionLog

logger = logging.getLogger("tidelog.transactions")

# How often a busy producer writes a completion marker, an entry of its own, at most.
_MARK_EVERY_S = 1.0


@dataclass(frozen=True, slots=True)
class IntentMarker:
    """How a topic remembers an intent: as a transaction id's version."""

    app_id: str
    version: int
    sequence: int

    @classmethod
    def of(cls, transactional_id: str, intent: Intent) -> "IntentMarker":
        """The marker of an id's intent."""
        return cls(marker(transactional_id), marker_version(intent.epoch, intent.number), intent.sequence)

    def is_missing(self, state: TopicState, part: IntentPart) -> bool:
        """Whether a part of the intent is still to be appended to its topic (docs/format.md, rule Y3)."""
        return state.exists and state.topic_id == part.topic_id and not self.is_there(state)

    def is_there(self, state: TopicState) -> bool:
        """Whether the topic holds the intent."""
        held = state.txn(self.app_id)
        floor = state.txn(layout.TRANSACTION_FLOOR)
        return (held is not None and held >= self.version) or (floor is not None and floor >= self.sequence)


def decide_roll_forward(
    state: TopicState,
    part: IntentPart,
    mark: IntentMarker,
    segments: Sequence[Staged],
    *,
    now_ms: int,
    log_append_time: bool,
) -> Outcome[Ranges]:
    """Append an intent's segments to a topic; the response is {partition: (first offset, end offset)}.

    Nothing, {}, when they are there, or the topic is gone or another one by now. `segments` are the part's, or their
    records written again with later times: raises `LogAppendTimeError` when that is due.
    """
    if not mark.is_missing(state, part):
        return Outcome((), {}, "WRITE")
    if log_append_time:
        check_append_times(state, part.topic, segments)
    # Never refused: a segment that was committed on its own before is there, and the rest is appended.
    new = [s for s in segments if state.find(s.partition, s.path) is None]
    actions, ranges = segment_actions(state, part.topic, new, now_ms)
    synced = segments is part.segments  # before the intent was decided
    return Outcome((*actions, Txn(mark.app_id, mark.version)), ranges, "WRITE", blind_append=True, synced=synced)


def roll_forward(
    lake: Lake, groups: GroupOffsets, key: TransactionKey, intent: Intent, helpers: Executor | None = None
) -> dict[str, Ranges]:
    """Apply an intent to all its topics and groups, durably; what it appended just now, by topic.

    After that it may be marked complete. `helpers` append to several topics at once. Raises `StorageError`,
    `OutcomeUnknownError`: repeat it.
    """
    mark = IntentMarker.of(key.transactional_id, intent)
    if helpers is None or len(intent.parts) == 1:
        appended = [_append(lake, part, mark) for part in intent.parts]
    else:
        appended = list(helpers.map(lambda part: _append(lake, part, mark), intent.parts))
    for group in intent.groups:
        groups.settle(group, key, committed=True)
    return {part.topic: ranges for part, ranges in zip(intent.parts, appended, strict=True)}


def complete(lake: Lake, log: TransactionLog, groups: GroupOffsets, transactional: Transactional) -> bool:
    """Roll an id's incomplete intent forward, and mark it complete; whether it has one."""
    if transactional.intent is None:
        return False
    key = transactional.key_of(transactional.intent)
    roll_forward(lake, groups, key, transactional.intent)
    log.mark_complete(key)
    return True


class CompletionMarkers:
    """Says in the log which intents of one producer are complete, with few entries of their own.

    A busy producer's next intent says it of the one before, so that it writes a marker at most once a second.
    """

    def __init__(self, lake: Lake, log: TransactionLog) -> None:
        self._lake = lake
        self._log = log
        self._marked_s = float("-inf")
        self.completed: TransactionKey | None = None

    def applied(self, key: TransactionKey) -> None:
        """The transaction is in all its topics and groups; the marker is written in the background."""
        self.completed = key
        now_s = self._lake.clock.elapsed_s()
        if now_s - self._marked_s >= _MARK_EVERY_S:
            self._marked_s = now_s
            with suppress(RuntimeError):  # the program ends: the next reader of the intent writes it
                self._lake.background.submit(self._write, key)

    def close(self) -> None:
        """Write the last one's marker."""
        if self.completed is not None:
            self._write(self.completed)

    def _write(self, key: TransactionKey) -> None:
        try:
            self._log.mark_complete(key)
        except TidelogError as e:
            logger.info("No completion marker of %s was written (%s): its next reader writes one.", key, e)


def _append(lake: Lake, part: IntentPart, mark: IntentMarker) -> Ranges:
    segments: Sequence[Staged] = part.segments
    while True:
        try:
            return _try(lake, part, mark, segments)
        except LogAppendTimeError as e:
            # Another append is later by now: the records get its time, as they would from a broker.
            segments = lake.topic(part.topic).restage(segments, max(lake.time.now_ms(), e.at_least_ms))


def _try(lake: Lake, part: IntentPart, mark: IntentMarker, segments: Sequence[Staged]) -> Ranges:
    by_committer = lake.topic(part.topic).config().timestamp_type == LOG_APPEND_TIME
    lake.time.keep(lake.storage, part.topic)
    now_ms = lake.time.now_ms()

    def decide(state: TopicState) -> Outcome[Ranges]:
        return decide_roll_forward(state, part, mark, segments, now_ms=now_ms, log_append_time=by_committer)

    return lake.commit(part.topic, decide).response


# --- markers of complete intents ---------------------------------------------------------------------------


def decide_retire(state: TopicState, completed: Completed, now_ms: int, most: int = 1_000) -> Outcome[int]:
    """Let markers of complete intents expire: they get a time, and the floor replaces them.

    `completed`: what the log of transactions said at some time before. The response is how many markers expire from
    now on, at most `most` at once.
    """
    retired: list[Action] = []
    for app_id, txn in sorted(state.txns.items()):
        if not app_id.startswith(layout.TRANSACTION_PREFIX) or txn.last_updated_ms is not None or txn.version < 0:
            continue
        if txn.version <= completed.up_to(app_id.removeprefix(layout.TRANSACTION_PREFIX)) and len(retired) < most:
            retired.append(Txn(app_id, txn.version, max(now_ms, state.updated_ms)))
    if not (retired and state.exists):
        return Outcome((), 0)
    floor = Txn(layout.TRANSACTION_FLOOR, max(completed.sequence, state.txn(layout.TRANSACTION_FLOOR) or 0))
    return Outcome((floor, *retired), len(retired), "RETIRE TRANSACTIONS")
