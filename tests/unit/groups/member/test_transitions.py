"""The table of a member's life: which stage follows which, what each change does, and what can't happen."""

from dataclasses import replace
from typing import Any

import pytest

from tidelog.groups.member.events import Assigned, Failed, Lost, Revoke
from tidelog.groups.member.transitions import (
    TRANSITIONS,
    Happening,
    IllegalTransitionError,
    MemberStage,
    MemberState,
    Request,
    advance,
)
from tidelog.log.base.errors import FencedInstanceError, TidelogError

ERROR, FENCED = TidelogError("why"), FencedInstanceError("another")
T0, T1, U0 = ("t", 0), ("t", 1), ("u", 0)
# With each happening, what comes with it.
HAPPENINGS: dict[str, tuple[Any, ...]] = {
    "subscribed": (Happening.SUBSCRIBED, frozenset({"t"})),
    "polled": (Happening.POLLED,),
    "overdue": (Happening.POLL_OVERDUE, ERROR),
    "accepted": (Happening.JOIN_ACCEPTED, frozenset({"t"})),
    "refused": (Happening.JOIN_REFUSED, ERROR),
    "rejoin": (Happening.REJOIN_DUE,),
    "share": (Happening.SHARE_GIVEN, frozenset({T0})),
    "missed": (Happening.GENERATION_MISSED, ERROR),
    "evicted": (Happening.EVICTED, ERROR),
    "fenced": (Happening.INSTANCE_FENCED, FENCED),
    "revoked": (Happening.REVOKED,),
    "left": (Happening.LEFT,),
}

# The next stage of a member that owns nothing; `.` stays, `-` can't happen.
NEXT_STAGES = """
            | subscribed polled  overdue accepted refused rejoin  share missed  evicted fenced revoked     left
IDLE        | JOINING    .       -       -        -       -       -     -       -       -      .           .
PAUSED      | .          JOINING -       -        -       -       -     -       -       -      .           IDLE
JOINING     | .          .       PAUSED  WAITING  REFUSED -       -     -       .       FENCED .           IDLE
REFUSED     | .          .       PAUSED  WAITING  .       -       -     -       JOINING FENCED .           IDLE
WAITING     | .          .       PAUSED  -        -       JOINING READY JOINING JOINING FENCED .           IDLE
YIELDING    | .          .       PAUSED  -        -       -       -     JOINING JOINING FENCED JOINS_AGAIN IDLE
READY       | .          .       PAUSED  -        -       JOINING -     JOINING JOINING FENCED .           IDLE
JOINS_AGAIN | .          .       PAUSED  -        -       JOINING -     JOINING JOINING FENCED .           IDLE
REVOKING    | .          .       PAUSED  -        -       -       -     JOINING JOINING FENCED JOINING     IDLE
FENCED      | .          .       -       -        -       -       -     -       -       -      .           .
"""


def rows() -> list[tuple[MemberStage, str, str]]:
    head, *lines = NEXT_STAGES.strip().splitlines()
    names = head.split("|")[1].split()
    assert names == list(HAPPENINGS)
    cells = {line.split("|")[0].strip(): line.split("|")[1].split() for line in lines}
    assert list(cells) == [stage.name for stage in MemberStage]
    return [
        (MemberStage[stage], name, cell) for stage, row in cells.items() for name, cell in zip(names, row, strict=True)
    ]


@pytest.mark.parametrize(("stage", "name", "cell"), rows())
def test_the_next_stage(stage: MemberStage, name: str, cell: str) -> None:
    state = MemberState(cooperative=False, stage=stage, topics=frozenset({"t"}))
    if cell == "-":
        with pytest.raises(IllegalTransitionError, match=stage.name):
            advance(state, *HAPPENINGS[name])
        return
    after, _ = advance(state, *HAPPENINGS[name])
    assert after.stage is (stage if cell == "." else MemberStage[cell])


OWNER = MemberState(False, MemberStage.READY, frozenset({"t"}), frozenset({"t"}), owned=frozenset({T0, T1}))
COOPERATIVE = replace(OWNER, cooperative=True)
WAITING = replace(COOPERATIVE, stage=MemberStage.WAITING)
YIELDING = replace(COOPERATIVE, stage=MemberStage.YIELDING, revoking=frozenset({T1}), share=frozenset({T0}))


@pytest.mark.parametrize(
    ("state", "name", "stage", "owned", "effects"),
    [
        # an eager member gives all up before it joins, a cooperative one what it no longer wants
        (OWNER, "rejoin", MemberStage.REVOKING, {T0, T1}, [Revoke(OWNER.owned)]),
        (COOPERATIVE, "rejoin", MemberStage.JOINING, {T0, T1}, []),
        (replace(COOPERATIVE, topics=frozenset("u")), "rejoin", MemberStage.REVOKING, {T0, T1}, [Revoke(OWNER.owned)]),
        (replace(OWNER, stage=MemberStage.REVOKING, revoking=OWNER.owned), "revoked", MemberStage.JOINING, set(), []),
        # a share is taken when what is not in it is given up
        (WAITING, "share", MemberStage.YIELDING, {T0, T1}, [Revoke(frozenset({T1}))]),
        (YIELDING, "revoked", MemberStage.JOINS_AGAIN, {T0}, [Assigned(frozenset(), frozenset({T0}))]),
        (replace(WAITING, owned=frozenset()), "share", MemberStage.READY, {T0}, [Assigned(*2 * [frozenset({T0})])]),
        # what is lost is reported once, with what is asked of the group
        (YIELDING, "missed", MemberStage.JOINING, set(), [Lost(OWNER.owned, ERROR), Request.LEAVE_GENERATION]),
        (OWNER, "evicted", MemberStage.JOINING, set(), [Lost(OWNER.owned, ERROR), Request.FORGET]),
        (replace(OWNER, owned=frozenset()), "evicted", MemberStage.JOINING, set(), [Request.FORGET]),
        (OWNER, "overdue", MemberStage.PAUSED, set(), [Lost(OWNER.owned, ERROR), Request.LEAVE]),
        (OWNER, "fenced", MemberStage.FENCED, set(), [Lost(OWNER.owned, FENCED), Failed(FENCED, True), Request.FORGET]),
        (OWNER, "left", MemberStage.IDLE, set(), [Request.LEAVE]),
        # a refusal is reported once
        (replace(WAITING, stage=MemberStage.JOINING), "refused", MemberStage.REFUSED, {T0, T1}, [Failed(ERROR, False)]),
        (replace(WAITING, stage=MemberStage.REFUSED), "refused", MemberStage.REFUSED, {T0, T1}, []),
    ],
)
def test_what_a_change_does(
    state: MemberState, name: str, stage: MemberStage, owned: set[object], effects: list[object]
) -> None:
    after, found = advance(state, *HAPPENINGS[name])
    assert (after.stage, after.owned, found) == (stage, owned, effects)


@pytest.mark.parametrize("cooperative", [False, True])
@pytest.mark.parametrize("key", TRANSITIONS, ids=lambda key: f"{key[0].name} {key[1].name}")
def test_no_partition_goes_without_a_word(key: tuple[MemberStage, Happening], cooperative: bool) -> None:
    """What a member owned before and not after was in a `Revoke` or a `Lost`, or its application left."""
    stage, kind = key
    happening = next(one for one in HAPPENINGS.values() if one[0] is kind)
    owned = frozenset({T0, T1, U0})
    revoking = frozenset({T1}) if stage in (MemberStage.REVOKING, MemberStage.YIELDING) else frozenset()
    topics = frozenset({"t"}), frozenset({"t", "u"})
    after, effects = advance(MemberState(cooperative, stage, *topics, owned, revoking, owned - revoking), *happening)
    lost = {place for one in effects if isinstance(one, Lost) for place in one.partitions}
    assert kind is Happening.LEFT or owned - after.owned <= lost | revoking
