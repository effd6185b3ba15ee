"""Bugs to plant in groups: each changes one rule of the product's code while a run lasts."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from sim_running import Planted

from tidelog.groups.assignors import assign, sticky
from tidelog.groups.member import failure_detector
from tidelog.groups.member.transitions import (
    TRANSITIONS,
    Happening,
    MemberStage,
    MemberState,
    Outcome,
    Request,
    Rule,
)
from tidelog.groups.rules import members, offsets, rounds
from tidelog.log.storage.leases import SilenceTimers


@contextmanager
def takes_commits_of_any_generation() -> Iterator[None]:
    """A former member may commit."""
    with (
        patch.object(offsets, "check_member", lambda *_: None),
        patch.object(offsets, "check_generation", lambda *_: None),
    ):
        yield


@contextmanager
def counts_the_time_that_the_observer_slept() -> Iterator[None]:
    """An observer that wakes up evicts all members."""
    look = SilenceTimers.look

    def all_counts(self: Any, name: str, sign: object, silence_s: float, now_s: float) -> bool:
        seen = self._watched.get(name)
        if seen is None or seen.sign != sign:
            return look(self, name, sign, silence_s, now_s)
        seen.silent_s += now_s - seen.looked_s
        seen.looked_s = now_s
        return seen.silent_s >= silence_s

    with patch.object(SilenceTimers, "look", all_counts):
        yield


@contextmanager
def reads_on_while_others_join() -> Iterator[None]:
    """An eager member joins without giving up what it owns."""
    with _rules(
        {
            (stage, Happening.REJOIN_DUE): lambda state, _: (replace(state, stage=MemberStage.JOINING), [])
            for stage in MemberStage
        }
    ):
        yield


@contextmanager
def hands_out_what_another_still_owns() -> Iterator[None]:
    """The cooperative assignor withholds nothing."""
    with patch.dict(assign._RULES, {"cooperative-sticky": sticky.sticky}):
        yield


@contextmanager
def goes_on_before_all_have_joined() -> Iterator[None]:
    """A round ends with the first member that joins."""
    complete = rounds.complete

    def early(group: Any, now_ms: int, *, late: bool = False) -> Any:
        return complete(group, now_ms, late=True)

    with patch.object(members, "complete", early):
        yield


@contextmanager
def starts_generations_again_when_a_group_is_empty() -> Iterator[None]:
    """An empty group forgets its generation."""
    complete = rounds.complete

    def forgetful(group: Any, now_ms: int, *, late: bool = False) -> Any:
        after = complete(group, now_ms, late=late)
        return replace(after, generation=0) if not after.members else after

    with patch.object(members, "complete", forgetful):
        yield


@contextmanager
def watches_nobody_but_followers() -> Iterator[None]:
    """No member notices that the leader died."""
    watched = failure_detector.FailureDetector._watched

    def followers(self: Any, group: Any) -> Any:
        return [member for member in watched(self, group) if member.member_id != group.leader]

    with patch.object(failure_detector.FailureDetector, "_watched", followers):
        yield


@contextmanager
def lets_a_fenced_static_member_come_back() -> Iterator[None]:
    """Two consumers with one static id throw each other out for ever."""
    with _rules(
        {(stage, Happening.INSTANCE_FENCED): TRANSITIONS[MemberStage.READY, Happening.EVICTED] for stage in MemberStage}
    ):
        yield


@contextmanager
def keeps_what_it_owned_after_an_eviction() -> Iterator[None]:
    """A member that finds itself evicted joins again as if nothing had happened."""

    def join_again(state: MemberState, _: Any) -> Outcome:
        return replace(state, stage=MemberStage.JOINING), [Request.FORGET]

    with _rules(
        {
            (stage, happening): join_again
            for stage in MemberStage
            for happening in (Happening.EVICTED, Happening.INSTANCE_FENCED)
        }
    ):
        yield


@contextmanager
def _rules(changed: dict[Any, Rule]) -> Iterator[None]:
    """Other rules for some rows of the table of transitions."""
    with patch.dict(TRANSITIONS, {key: rule for key, rule in changed.items() if key in TRANSITIONS}):
        yield


BUGS: dict[str, Planted] = {
    planted.__name__: planted
    for planted in (
        takes_commits_of_any_generation,
        counts_the_time_that_the_observer_slept,
        reads_on_while_others_join,
        hands_out_what_another_still_owns,
        goes_on_before_all_have_joined,
        starts_generations_again_when_a_group_is_empty,
        watches_nobody_but_followers,
        lets_a_fenced_static_member_come_back,
        keeps_what_it_owned_after_an_eviction,
    )
}
