"""What heartbeats of the protocols of KIP-848 and KIP-1071 have in common at a coordinator."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from tidelog.broker.groups.acknowledgements import Answer, Request
from tidelog.broker.groups.coordinated_group import CoordinatedGroup
from tidelog.groups.model import AnyGroup, Decision, GroupView
from tidelog.groups.rules.modern.heartbeat import JOINS
from tidelog.log.base.clock import Clock
from tidelog.log.base.errors import TidelogError

R = TypeVar("R")

# Between looks at the topics that a group subscribes to, and at those that a member's expression matches.
REFRESH_S: Final = 1.0
# The shortest interval between heartbeats, what a member more adds to it, and how many entries' times it lasts, or how
# many times as long as the broker's loop was late: clients give a heartbeat no longer than its interval for an answer,
# which may need an entry and some turns of the loop.
_SHORTEST_MS: Final = 500
_MEMBER_MS: Final = 2
_ENTRIES: Final = 10
_ENTRIES_OF_WAITING: Final = 5
_TURNS: Final = 8
# In which half of a lateness is forgotten, and what the pause of a machine counts as, however long it was.
_HALF_S: Final = 10.0
_MOST_LATE_S: Final = 1.0


@dataclass(slots=True)
class AnswerTimes:
    """What makes a coordinator's answers last, of late: seconds until an entry is written, and its loop's lateness."""

    entry_s: float = 0.0
    late_s: float = 0.0

    def wrote(self, took_s: float) -> None:
        """An entry took so long: the mean moves towards it."""
        self.entry_s += (took_s - self.entry_s) / 8

    def ticked(self, after_s: float, due_s: float) -> None:
        """A tick came `after_s` after the one before, where `due_s` was meant: the worst of the last few counts."""
        self.late_s = max(min(after_s - due_s, _MOST_LATE_S), self.late_s * 0.5 ** (after_s / _HALF_S))


async def decided(
    group: CoordinatedGroup,
    request: Request,
    becomes: type[AnyGroup],
    clock: Clock,
    by_memory: Callable[[Request], Answer | None],
    over_the_log: Callable[[Request], Awaitable[Answer]],
) -> Answer:
    """A heartbeat's answer: by the group as it was last seen, or over the log. Then a session begins again.

    A member that joins changes the group nearly always: that is decided over the log at once, as the assignment for
    all members would be computed twice. `becomes`: the group's type then. Raises `GroupFullError`, and as
    `over_the_log`.
    """
    heard = group.acknowledgements.heard(request, group.state)
    if request.epoch == JOINS:
        with group.room_for(request.member_id, becomes):
            answer = await over_the_log(heard)
    else:
        answer = by_memory(heard) or await over_the_log(heard)
    if request.epoch >= JOINS:
        group.heard(request.member_id, clock.elapsed_s())
    return group.acknowledgements.answered(request, answer, believed=heard is request)


def unchanged(group: CoordinatedGroup, rule: Callable[[GroupView], Decision[tuple[R, AnyGroup | None]]]) -> R | None:
    """The answer by the group as it was last seen; None where that changes something, or refuses."""
    try:
        decision = rule(GroupView(group.state, config=group.config))
    except TidelogError:
        return None
    return decision.response[0] if decision.group is None else None


def interval_ms(members: int, times: AnswerTimes, longest_ms: int, *, waits: bool = False) -> int:
    """How long a member waits with its next heartbeat: the less a heartbeat costs, the shorter a rebalance is.

    `waits`: for what others have to give up first.
    """
    entries = _ENTRIES_OF_WAITING if waits else _ENTRIES
    needed_s = max(entries * times.entry_s, _TURNS * times.late_s)
    return min(max(_SHORTEST_MS, _MEMBER_MS * members, round(needed_s * 1000)), longest_ms)
