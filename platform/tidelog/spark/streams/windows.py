"""Windows in Kafka Streams' words: of time, of sessions, and of joins."""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Self

from tidelog.log.base.errors import InvalidOptionError

_MICROSECOND = timedelta(microseconds=1)
_NONE = timedelta(0)


def micros(length: timedelta) -> int:
    """The length in microseconds."""
    return length // _MICROSECOND


def interval(length: timedelta) -> str:
    """The length as Spark's SQL writes it."""
    return f"{micros(length)} microseconds"


@dataclass(frozen=True)
class TimeWindows:
    """Windows of one size that begin every `advance`, from the epoch on: tumbling, or hopping when they overlap.

    `grace`: how long after its end a window takes late records; it is the query's watermark. `on_close`: a window's
    result is sent once, when the watermark has passed its end (Kafka's EmitStrategy.onWindowClose, KIP-825), in place
    of each new result.
    """

    size: timedelta
    advance: timedelta
    grace: timedelta = _NONE
    on_close: bool = False

    def __post_init__(self) -> None:
        _require(self.size > _NONE, f"a window's size is {self.size}: give more than 0.")
        _require(_NONE < self.advance <= self.size, f"advance is {self.advance}: give more than 0, up to the size.")
        _require(self.grace >= _NONE, f"grace is {self.grace}: give 0 or more.")

    @classmethod
    def of_size_with_no_grace(cls, size: timedelta) -> Self:
        """Tumbling windows, which take no record that is older than the watermark says."""
        return cls(size, size)

    @classmethod
    def of_size_and_grace(cls, size: timedelta, grace: timedelta) -> Self:
        """Tumbling windows that take records up to `grace` after their end."""
        return cls(size, size, grace)

    def advance_by(self, advance: timedelta) -> Self:
        """Hopping windows: a new one begins every `advance`, and a record is in each that spans its timestamp."""
        return replace(self, advance=advance)

    def emit_on_close(self) -> Self:
        """The same windows, of which each has one result, its last."""
        return replace(self, on_close=True)

    def __str__(self) -> str:
        emits = ", one result each" if self.on_close else ""
        return f"windows of {self.size} every {self.advance}, grace {self.grace}{emits}"


@dataclass(frozen=True)
class SessionWindows:
    """Windows of activity: records of a key are in one session while no more than `gap` lies between them.

    A session has one result, when the watermark has passed its last record by the gap: `grace` later than its end.
    """

    gap: timedelta
    grace: timedelta = _NONE

    def __post_init__(self) -> None:
        _require(self.gap > _NONE, f"the inactivity gap is {self.gap}: give more than 0.")
        _require(self.grace >= _NONE, f"grace is {self.grace}: give 0 or more.")

    @classmethod
    def of_inactivity_gap_with_no_grace(cls, gap: timedelta) -> Self:
        """Sessions that take no record that is older than the watermark says."""
        return cls(gap)

    @classmethod
    def of_inactivity_gap_and_grace(cls, gap: timedelta, grace: timedelta) -> Self:
        """Sessions that take records up to `grace` after their end."""
        return cls(gap, grace)

    def __str__(self) -> str:
        return f"sessions with a gap of {self.gap}, grace {self.grace}"


@dataclass(frozen=True)
class JoinWindows:
    """How far apart in time two records may be that a join pairs.

    A record of the right stream pairs with one of the left when its timestamp is at most `before` earlier and at most
    `after` later. `grace`: how late a record of either stream may come.
    """

    before_by: timedelta
    after_by: timedelta
    grace: timedelta = _NONE

    def __post_init__(self) -> None:
        _require(self.before_by + self.after_by >= _NONE, "the window ends before it begins: give a later end.")
        _require(self.grace >= _NONE, f"grace is {self.grace}: give 0 or more.")

    @classmethod
    def of_time_difference_with_no_grace(cls, difference: timedelta) -> Self:
        """Records at most `difference` apart, in both directions."""
        return cls(difference, difference)

    @classmethod
    def of_time_difference_and_grace(cls, difference: timedelta, grace: timedelta) -> Self:
        """Records at most `difference` apart, up to `grace` late."""
        return cls(difference, difference, grace)

    def before(self, length: timedelta) -> Self:
        """The same, with another limit for earlier records of the right stream."""
        return replace(self, before_by=length)

    def after(self, length: timedelta) -> Self:
        """The same, with another limit for later records of the right stream."""
        return replace(self, after_by=length)

    def __str__(self) -> str:
        return f"within {self.before_by} before and {self.after_by} after, grace {self.grace}"


def _require(holds: bool, why: str) -> None:
    if not holds:
        raise InvalidOptionError(f"These windows can't be: {why}")
