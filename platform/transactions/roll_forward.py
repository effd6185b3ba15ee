"""Rolling an intent forward: what is decided in the log of transactions comes into each topic and group.

Anybody may, any number of times and at once: each topic takes an intent once. It is never refused.
"""

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Protocol

from tidelog.log.delta import layout
from tidelog.log.delta.actions import Action, Txn
from tidelog.log.delta.schema import LOG_APPEND_TIME
from tidelog.log.lake import Lake
from tidelog.log.rules.appends import LogAppendTimeError, Ranges, check_append_times, segment_actions
from tidelog.log.rules.topics import Outcome
from tidelog.log.segments.restage import restage
from tidelog.log.segments.writer import Staged
from tidelog.log.state.topic_state import TopicState
from tidelog.transactions.model import Intent, Part, Transactional, TransactionKey, marker, marker_version
from tidelog.transactions.ports import GroupOffsets
from tidelog.transactions.rules import Done


class Noting(Protocol):
    """Where it is noted that an intent is everywhere: the log of transactions."""

    def done(self, key: TransactionKey) -> None:
        """Note it. A repeat changes nothing."""
        ...


@dataclass(frozen=True, slots=True)
class _Mark:
    """How a topic remembers an intent."""

    app_id: str
    version: int
    sequence: int

    def is_there(self, state: TopicState) -> bool:
        """Whether the topic holds the intent."""
        held = state.txn(self.app_id)
        floor = state.txn(layout.TRANSACTION_FLOOR)
        return (held is not None and held >= self.version) or (floor is not None and floor >= self.sequence)


def decide_roll_forward(
    state: TopicState,
    part: Part,
    mark: _Mark,
    segments: Sequence[Staged],
    *,
    now_ms: int,
    log_append_time: bool,
) -> Outcome[Ranges]:
    """Append an intent's segments to a topic; the response is {partition: (first offset, end offset)}.

    Nothing, {}, when they are there, or the topic is gone or another one by now. `segments` are the part's, or their
    records written again with later times: raises `LogAppendTimeError` when that is due.
    """
    if not state.exists or state.topic_id != part.topic_id or mark.is_there(state):
        return Outcome((), {}, "WRITE")
    if log_append_time:
        check_append_times(state, part.topic, segments)
    # Never refused: what somebody committed by itself before is there, and the rest comes.
    new = [s for s in segments if state.find(s.partition, s.path) is None]
    actions, ranges = segment_actions(state, part.topic, new, now_ms)
    synced = segments is part.segments  # before the intent was decided
    return Outcome((*actions, Txn(mark.app_id, mark.version)), ranges, "WRITE", blind_append=True, synced=synced)


def roll_forward(
    lake: Lake, groups: GroupOffsets, key: TransactionKey, intent: Intent, helpers: Executor | None = None
) -> dict[str, Ranges]:
    """Bring an intent into all its topics and groups, durably; what it appended just now, by topic.

    After that it may be noted as done. `helpers` append to several topics at once. Raises `StorageError`,
    `OutcomeUnknownError`: repeat it.
    """
    mark = _Mark(marker(key.transactional_id), marker_version(intent.epoch, intent.number), intent.sequence)
    if helpers is None or len(intent.parts) == 1:
        appended = [_append(lake, part, mark) for part in intent.parts]
    else:
        appended = list(helpers.map(lambda part: _append(lake, part, mark), intent.parts))
    for group in intent.groups:
        groups.settle(group, key, committed=True)
    return {part.topic: ranges for part, ranges in zip(intent.parts, appended, strict=True)}


def finish(lake: Lake, log: Noting, groups: GroupOffsets, one: Transactional) -> bool:
    """Roll forward what an id has committed and nobody has noted as done, and note it; whether there was anything."""
    if one.intent is None:
        return False
    key = one.key_of(one.intent)
    roll_forward(lake, groups, key, one.intent)
    log.done(key)
    return True


def _append(lake: Lake, part: Part, mark: _Mark) -> Ranges:
    segments: Sequence[Staged] = part.segments
    while True:
        try:
            return _try(lake, part, mark, segments)
        except LogAppendTimeError as e:
            # Another append is later by now: the records get its time, as they would from a broker.
            state = lake.topic(part.topic).known
            segments = restage(
                lake.storage,
                part.topic,
                segments,
                version=state.version,
                codec=lake.topic(part.topic).config().codec(),
                ids=lake.ids,
                timestamp_ms=max(lake.time.now_ms(), e.at_least_ms),
            )


def _try(lake: Lake, part: Part, mark: _Mark, segments: Sequence[Staged]) -> Ranges:
    by_committer = lake.topic(part.topic).config().timestamp_type == LOG_APPEND_TIME
    lake.time.keep(lake.storage, part.topic)
    now_ms = lake.time.now_ms()

    def decide(state: TopicState) -> Outcome[Ranges]:
        return decide_roll_forward(state, part, mark, segments, now_ms=now_ms, log_append_time=by_committer)

    return lake.commit(part.topic, decide).response


# --- markers that nobody needs any more --------------------------------------------------------------------


def decide_retire(state: TopicState, done: Done, now_ms: int, most: int = 1_000) -> Outcome[int]:
    """Let markers of intents that are everywhere expire: they get a time, and the floor stands for them.

    `done`: what the log of transactions said at some time before. The response is how many markers expire from now on,
    at most `most` at once.
    """
    retired: list[Action] = []
    for app_id, txn in sorted(state.txns.items()):
        if not app_id.startswith(layout.TRANSACTION_PREFIX) or txn.last_updated_ms is not None or txn.version < 0:
            continue
        if txn.version <= done.up_to(app_id.removeprefix(layout.TRANSACTION_PREFIX)) and len(retired) < most:
            retired.append(Txn(app_id, txn.version, max(now_ms, state.updated_ms)))
    if not (retired and state.exists):
        return Outcome((), 0)
    floor = Txn(layout.TRANSACTION_FLOOR, max(done.sequence, state.txn(layout.TRANSACTION_FLOOR) or 0))
    return Outcome((floor, *retired), len(retired), "RETIRE TRANSACTIONS")
