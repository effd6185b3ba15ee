"""An append between its staging and its commit: the log may change meanwhile, and then the records are staged again."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tidelog.log.base.errors import (
    MissingSegmentError,
    OutcomeUnknownError,
    OutOfOrderSequenceError,
    ProducerFencedError,
    SegmentTooOldError,
    TidelogError,
    UnknownPartitionError,
)
from tidelog.log.delta.actions import Metadata
from tidelog.log.rules.appends import ConfigurationChangedError, LogAppendTimeError
from tidelog.log.segments.staging import Stager
from tidelog.log.segments.writer import Staged
from tidelog.log.state.topic_state import TopicState

R = TypeVar("R")

# The log is not what it was when the records were staged: they are looked at again and staged again. Each comes from a
# decision over a newer state than the one before, in which the same can't be found again.
STAGE_AGAIN = (
    LogAppendTimeError,
    ConfigurationChangedError,
    SegmentTooOldError,
    OutOfOrderSequenceError,
    ProducerFencedError,
    UnknownPartitionError,
)


@dataclass(slots=True)
class StagedAppend:
    """Records of one topic, checked against its configuration and staged, until an entry names their segments.

    `metadata`: the topic's when the records were checked, None where the caller didn't check them. `stager` is None for
    segments that others wrote. `in_doubt`: an entry that names the segments may be in the log.
    """

    metadata: Metadata | None
    stager: Stager | None
    segments: Sequence[Staged] = ()
    in_doubt: bool = False

    def is_current(self, state: TopicState) -> bool:
        """Whether the topic's configuration is still the one that the records were checked against."""
        return self.metadata is None or self.metadata == state.metadata

    def discard(self) -> None:
        """Delete the segments, unless others wrote them: no entry names them."""
        if self.stager is not None:
            self.stager.abort()


def append_staged(stage: Callable[[int], StagedAppend], commit: Callable[[StagedAppend], R]) -> R:
    """Commit what `stage` has staged, and stage it again as often as the log has changed before the commit.

    `stage` takes the earliest LogAppendTime (ms since the epoch) that the log will accept, 0 for any; its errors are
    the caller's. `commit` raises what `decide_append` refuses staged records for. Staged segments are deleted unless an
    entry names them, or may: after `OutcomeUnknownError`, and after an exception that is no `TidelogError` (Ctrl-C).
    """
    at_least_ms = 0
    while True:
        staged = stage(at_least_ms)
        try:
            return commit(staged)
        except STAGE_AGAIN as e:
            if isinstance(e, LogAppendTimeError):
                at_least_ms = e.at_least_ms
        except OutcomeUnknownError:
            staged.in_doubt = True
            raise
        except TidelogError as e:
            # A missing segment proves that no entry names it: another attempt writes it again.
            staged.in_doubt = staged.in_doubt and not isinstance(e, MissingSegmentError)
            if not staged.in_doubt:
                staged.discard()
            raise
        staged.in_doubt = False  # the commit was decided over the newest state, so no entry names the segments
        staged.discard()
