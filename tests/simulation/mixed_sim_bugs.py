"""Bugs to plant in groups with members of both protocols: each changes one rule of the product while a run lasts."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from sim_running import Planted
from support.turning_bugs import (
    never_turns_a_group_back,
    takes_a_join_for_a_revocation,
    turns_a_group_without_what_its_members_own,
)

from tidelog.groups.member import failure_detector
from tidelog.groups.rules import offsets
from tidelog.groups.rules.modern import drafts, reconciliation


@contextmanager
def takes_commits_of_any_epoch() -> Iterator[None]:
    """A member that was evicted, or is in an earlier epoch, may commit."""
    with patch.object(offsets, "check_member_epoch", lambda *_: None):
        yield


@contextmanager
def gives_what_others_still_hold() -> Iterator[None]:
    """A member gets what another one has to give up, before that says that it did."""
    with patch.object(reconciliation.Holders, "free", lambda _self, _name, partitions: partitions):
        yield


@contextmanager
def watches_over_no_one() -> Iterator[None]:
    """Where no member leads, no member notices that one is dead."""
    real = failure_detector.FailureDetector._watched

    def watched(self: Any, group: Any) -> Any:
        return [] if group.type == "consumer" else real(self, group)

    with patch.object(failure_detector.FailureDetector, "_watched", watched):
        yield


@contextmanager
def forgets_what_is_to_be_revoked() -> Iterator[None]:
    """What a member has to give up is free at once."""
    real, real_losing = drafts.reconcile, drafts.losing

    def forgetful(group: Any, member: Any, owned: Any, holders: Any) -> Any:
        after = real(group, member, owned, holders)
        return after if after is member else replace(after, revoking=frozenset())

    def losing(member: Any, target: Any) -> Any:
        return replace(real_losing(member, target), revoking=frozenset())

    with patch.object(drafts, "reconcile", forgetful), patch.object(drafts, "losing", losing):
        yield


BUGS: dict[str, Planted] = {
    planted.__name__: planted
    for planted in (
        takes_commits_of_any_epoch,
        turns_a_group_without_what_its_members_own,
        never_turns_a_group_back,
        gives_what_others_still_hold,
        takes_a_join_for_a_revocation,
        watches_over_no_one,
        forgets_what_is_to_be_revoked,
    )
}
