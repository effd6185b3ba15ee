"""Appends of what appends now and then: each batch lands once, and errors that may pass are waited out for a while."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from tidelog.log.appends.joint import JointAppend
from tidelog.log.appends.staged import StagedAppend
from tidelog.log.appends.topic_handle import TopicHandle
from tidelog.log.base.backoff import BackoffRule
from tidelog.log.base.clock import Clock, Ids
from tidelog.log.base.errors import TidelogError, TopicChangedError, UnknownTopicError
from tidelog.log.records.frames import as_table
from tidelog.log.records.partitioners import Partitioner
from tidelog.log.rules.appends import Ranges, parse_acks

# How often a call tries again, and after which pauses.
RETRIES: Final = 3
_BACKOFF: Final = BackoffRule(0.1, 1.0, least=0.5, spread=0.5)


class Appender:
    """Appends to one topic what comes now and then: dead letters, lines of an audit, the records of a command.

    `open_topic` gives a handle of the topic, made where that is allowed; it is called again when the topic was deleted.
    `retries`: how often a call tries again. Any number of threads may begin batches.
    """

    def __init__(
        self, topic: str, open_topic: Callable[[], TopicHandle], clock: Clock, ids: Ids, retries: int = RETRIES
    ) -> None:
        self.topic = topic
        self._open_topic = open_topic
        self._clock = clock
        self._ids = ids
        self._retries = retries
        self._turn = int(ids.fraction() * 2**31)
        self._joint: JointAppend | None = None

    def append(self, table: Any, **terms: Any) -> Ranges:
        """Append records; takes what `begin` takes, and returns and raises as `AppendBatch.run`."""
        return self.begin(table, **terms).run()

    def begin(
        self,
        table: Any,
        *,
        acks: int | str = "all",
        partitioner: str | Partitioner = "murmur2",
        compression: str | None = None,
    ) -> "AppendBatch":
        """A batch that is yet to be appended. `table` as of `Topic.append`; `acks`: 1 or "all"."""
        self._turn += 1
        stage = partial(
            StagedAppend,
            table=as_table(table, self.topic),
            acks=parse_acks(acks),
            partitioner=partitioner,
            compression=compression,
            turn=self._turn,
        )
        return AppendBatch(self, stage)

    def opened(self) -> JointAppend:
        """What commits to the topic, opened once. Raises what `open_topic` raises."""
        joint = self._joint
        if joint is None:
            joint = self._joint = JointAppend(self._open_topic(), self._clock)
        return joint

    def has_another(self, than: JointAppend) -> bool:
        """Open the topic again, for that one was deleted; whether it is another one now. Raises as `opened`."""
        if self._joint is than:
            self._joint = None
        return self.opened().topic.id != than.topic.id

    def pause(self, failed: int) -> bool:
        """Wait for the next try after `failed` ones; False where there is none."""
        if failed > self._retries:
            return False
        self._clock.sleep(_BACKOFF.pause_s(failed, self._ids.fraction()))
        return True


class AppendBatch:
    """Records until they are in the log, once, however often `run` is called. For one thread at a time."""

    def __init__(self, appender: Appender, stage: Callable[[JointAppend], StagedAppend]) -> None:
        self._appender = appender
        self._stage = stage
        self._joint: JointAppend | None = None
        self._append: StagedAppend | None = None
        self._ranges: Ranges | None = None

    def run(self) -> Ranges:
        """Append the records, or go on with that: {partition: (first offset, end offset)}, the same ones ever after.

        Where the topic was deleted and made again, they are for the new one. Raises as `Topic.append` once the retries
        are used up: after `OutcomeUnknownError` the records may be there, and after `RequestForgottenError`, which no
        other try can mend; after other errors not.
        """
        failed = 0
        while self._ranges is None:
            try:
                if self._append is None:
                    self._joint = self._appender.opened()
                    self._append = self._stage(self._joint)
                self._ranges = self._append.attempt()
            except TidelogError as error:
                failed += 1
                if self._is_for_another_topic(error):
                    self._append = None
                elif not error.retriable or not self._appender.pause(failed):
                    raise
        return self._ranges

    def _is_for_another_topic(self, error: TidelogError) -> bool:
        if self._append is None or self._joint is None or not isinstance(error, TopicChangedError | UnknownTopicError):
            return False
        return self._appender.has_another(self._joint)
