"""A member's stages as one table: (stage, what happened) -> (stage, what is to be done). Pure.

`Membership` observes the group and the clock, hands in what happened, and executes the effects.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Any, TypeAlias

from tidelog.groups.member.events import Assigned, Event, Failed, Lost, Revoke
from tidelog.groups.model import TopicPartition
from tidelog.log.base.errors import FencedInstanceError, TidelogError

Partitions: TypeAlias = frozenset[TopicPartition]


class MemberStage(Enum):
    """Where a member is between its subscription and its share of the partitions."""

    IDLE = auto()  # has no subscription
    PAUSED = auto()  # left because the application did not poll; waits for it
    JOINING = auto()  # is to join at the next step
    REFUSED = auto()  # as JOINING, after the group refused it, which the application knows
    WAITING = auto()  # has joined; waits for its share
    YIELDING = auto()  # waits for the application to give up what is not in its share
    READY = auto()  # has its share
    JOINS_AGAIN = auto()  # has its share, and joins again soon: what it gave up can be handed out
    REVOKING = auto()  # waits for the application to give partitions up, then joins
    FENCED = auto()  # another consumer has its static id, for good


AT_REST = frozenset({MemberStage.IDLE, MemberStage.PAUSED, MemberStage.FENCED})


class Happening(Enum):
    """What happens to a member. With it comes, where it is named: an error, topics, or partitions."""

    SUBSCRIBED = auto()  # topics: the application reads these from now on
    POLLED = auto()  # the application polled
    POLL_OVERDUE = auto()  # error: the application did not poll in time
    JOIN_ACCEPTED = auto()  # topics: the group took the member, with this subscription
    JOIN_REFUSED = auto()  # error: the group can't take the member, for now
    REJOIN_DUE = auto()  # a new round is under way or needed: other members, partitions or topics
    SHARE_GIVEN = auto()  # partitions: the leader gave these, of topics that are still subscribed to
    GENERATION_MISSED = auto()  # error: the group went on to a generation without the member, and keeps its place
    EVICTED = auto()  # error: the group has removed the member
    INSTANCE_FENCED = auto()  # error: another consumer has joined with the member's static id
    REVOKED = auto()  # the application has answered a `Revoke`, perhaps one that a loss has made void
    LEFT = auto()  # the application leaves the group


# --- what is to be done ----------------------------------------------------------------------------------------


class Request(Enum):
    """What the shell does in the group; events it hands to the application."""

    LEAVE = auto()  # leave the group and forget the place in it
    FORGET = auto()  # forget the place in the group, which the group has forgotten
    LEAVE_GENERATION = auto()  # take part in no generation; the place stays


Effect: TypeAlias = Event | Request


class IllegalTransitionError(Exception):
    """A happening that can't come in this stage: a bug of the caller, never of the application."""


@dataclass(frozen=True, slots=True)
class MemberState:
    """What a member knows of its own part.

    `joined_topics`: the subscription it joined with. `owned`: its partitions to read. `revoking`: those the application
    is giving up. `share`: what it takes when it has (YIELDING).
    """

    cooperative: bool
    stage: MemberStage = MemberStage.IDLE
    topics: frozenset[str] = frozenset()
    joined_topics: frozenset[str] = frozenset()
    owned: Partitions = frozenset()
    revoking: Partitions = frozenset()
    share: Partitions = frozenset()
    fenced: FencedInstanceError | None = field(default=None, compare=False)

    @property
    def resubscribed(self) -> bool:
        """Whether the subscription is another than the group knows."""
        return self.topics != self.joined_topics


Outcome: TypeAlias = tuple[MemberState, list[Effect]]


def advance(state: MemberState, happening: Happening, given: Any = None) -> Outcome:
    """The state after something happened, and what is to be done, in order. Raises IllegalTransitionError."""
    rule = TRANSITIONS.get((state.stage, happening))
    if rule is None:
        raise IllegalTransitionError(f"{happening.name} can't happen to a member that is {state.stage.name}.")
    return rule(state, given)


# --- rules -----------------------------------------------------------------------------------------------------

Rule: TypeAlias = Callable[[MemberState, Any], Outcome]


def _stay(state: MemberState, _: object) -> Outcome:
    return state, []


def _to(stage: MemberStage) -> Rule:
    return lambda state, _: (replace(state, stage=stage), [])


def _resubscribe(state: MemberState, topics: frozenset[str]) -> Outcome:
    stage = MemberStage.JOINING if state.stage is MemberStage.IDLE else state.stage
    return replace(state, topics=topics, stage=stage), []


def _await_share(state: MemberState, topics: frozenset[str]) -> Outcome:
    return replace(state, stage=MemberStage.WAITING, joined_topics=topics), []


def _report_refusal(state: MemberState, error: TidelogError) -> Outcome:
    return replace(state, stage=MemberStage.REFUSED), [Failed(error, fatal=False)]


def _give_up_and_join(state: MemberState, _: object) -> Outcome:
    """Give up what must be given up before joining: all of it, or only topics no longer subscribed to."""
    kept = state.topics if state.cooperative else frozenset()
    gone = frozenset(partition for partition in state.owned if partition[0] not in kept)
    if gone:
        return replace(state, stage=MemberStage.REVOKING, revoking=gone), [Revoke(gone)]
    return replace(state, stage=MemberStage.JOINING), []


def _take_share(state: MemberState, share: Partitions) -> Outcome:
    """Take the share, after giving up what is not in it any more."""
    gone = state.owned - share
    if gone:
        return replace(state, stage=MemberStage.YIELDING, revoking=gone, share=share), [Revoke(gone)]
    return _with_share(state, MemberStage.READY, share)


def _with_share(state: MemberState, stage: MemberStage, share: Partitions) -> Outcome:
    taken = replace(state, stage=stage, owned=share, revoking=frozenset(), share=frozenset())
    return taken, [Assigned(share - state.owned, share)]


def _join_without(state: MemberState, _: object) -> Outcome:
    return replace(state, stage=MemberStage.JOINING, owned=state.owned - state.revoking, revoking=frozenset()), []


def _take_rest(state: MemberState, _: object) -> Outcome:
    return _with_share(replace(state, owned=state.owned - state.revoking), MemberStage.JOINS_AGAIN, state.share)


def _without_partitions(state: MemberState, stage: MemberStage) -> MemberState:
    return replace(state, stage=stage, owned=frozenset(), revoking=frozenset(), share=frozenset())


def _losses(state: MemberState, error: TidelogError) -> list[Effect]:
    return [Lost(state.owned, error)] if state.owned else []


def _lose(request: Request) -> Rule:
    """Lose all partitions, and join again."""
    return lambda state, error: (
        _without_partitions(state, MemberStage.JOINING),
        [*_losses(state, error), request],
    )


def _end(state: MemberState, error: FencedInstanceError) -> Outcome:
    effects = [*_losses(state, error), Failed(error, fatal=True), Request.FORGET]
    return replace(_without_partitions(state, MemberStage.FENCED), fenced=error), effects


def _pause(state: MemberState, error: TidelogError) -> Outcome:
    return _without_partitions(state, MemberStage.PAUSED), [Lost(state.owned, error), Request.LEAVE]


def _leave(state: MemberState, _: object) -> Outcome:
    return _without_partitions(state, MemberStage.IDLE), [Request.LEAVE]


_IN_GROUP = tuple(stage for stage in MemberStage if stage not in AT_REST)
_HAS_JOINED = tuple(stage for stage in _IN_GROUP if stage not in (MemberStage.JOINING, MemberStage.REFUSED))

TRANSITIONS: dict[tuple[MemberStage, Happening], Rule] = {
    **{(stage, Happening.SUBSCRIBED): _resubscribe for stage in MemberStage},
    **{(stage, Happening.POLLED): _stay for stage in MemberStage},
    (MemberStage.PAUSED, Happening.POLLED): _to(MemberStage.JOINING),
    (MemberStage.JOINING, Happening.JOIN_ACCEPTED): _await_share,
    (MemberStage.REFUSED, Happening.JOIN_ACCEPTED): _await_share,
    (MemberStage.JOINING, Happening.JOIN_REFUSED): _report_refusal,
    (MemberStage.REFUSED, Happening.JOIN_REFUSED): _stay,
    (MemberStage.WAITING, Happening.REJOIN_DUE): _give_up_and_join,
    (MemberStage.READY, Happening.REJOIN_DUE): _give_up_and_join,
    (MemberStage.JOINS_AGAIN, Happening.REJOIN_DUE): _give_up_and_join,
    (MemberStage.WAITING, Happening.SHARE_GIVEN): _take_share,
    **{(stage, Happening.REVOKED): _stay for stage in MemberStage},
    (MemberStage.REVOKING, Happening.REVOKED): _join_without,
    (MemberStage.YIELDING, Happening.REVOKED): _take_rest,
    **{(stage, Happening.GENERATION_MISSED): _lose(Request.LEAVE_GENERATION) for stage in _HAS_JOINED},
    **{(stage, Happening.EVICTED): _lose(Request.FORGET) for stage in _IN_GROUP},
    **{(stage, Happening.INSTANCE_FENCED): _end for stage in _IN_GROUP},
    **{(stage, Happening.POLL_OVERDUE): _pause for stage in _IN_GROUP},
    **{(stage, Happening.LEFT): _leave for stage in MemberStage},
    (MemberStage.FENCED, Happening.LEFT): _stay,
}
