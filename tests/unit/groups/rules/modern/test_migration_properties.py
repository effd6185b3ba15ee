"""Random runs of groups with members of both protocols: turned to and fro, no partition has two owners that commit."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import settings
from support.migrating import MixedGroup
from support.turning_bugs import (
    never_turns_a_group_back,
    takes_a_join_for_a_revocation,
    turns_a_group_without_what_its_members_own,
)

from tidelog.groups.rules import departures, migration
from tidelog.groups.rules.modern import joining, reconciliation, turning


def test_groups_turn_to_and_fro_and_no_partition_has_two_owners_that_can_commit() -> None:
    ups = downs = 0
    for seed in range(4 * settings().max_examples):
        group = MixedGroup(seed, joint=seed % 2 == 1)
        group.run()
        ups, downs = ups + group.ups, downs + group.downs
    assert ups > settings().max_examples
    assert downs > settings().max_examples // 2


# --- mistakes that such runs must find ------------------------------------------------------------------------


@contextmanager
def takes_members_that_share_out_for_owners_of_nothing() -> Iterator[None]:
    with patch.object(turning, "newest_claims", lambda claims: dict.fromkeys(claims, ())):
        yield


@contextmanager
def turns_back_members_of_earlier_epochs() -> Iterator[None]:
    real = migration.turned_back

    def turned_back(group: Any, policy: Any, members: Any) -> Any:
        level = {name: replace(one, epoch=group.epoch) for name, one in members.items()}
        return real(group, policy, level)

    with patch.object(departures, "turned_back", turned_back), patch.object(joining, "turned_back", turned_back):
        yield


@contextmanager
def never_has_classic_members_join_again() -> Iterator[None]:
    with patch.object(migration, "must_rejoin", lambda *_: False):
        yield


@contextmanager
def gives_what_classic_members_still_hold() -> Iterator[None]:
    def free(holders: Any, member_id: str, partitions: Any) -> Any:
        others = (one.held for name, one in holders._members.items() if name != member_id and not one.is_classic)
        return partitions.difference(*others)

    with patch.object(reconciliation.Holders, "free", free):
        yield


@pytest.mark.parametrize(
    "planted",
    [
        turns_a_group_without_what_its_members_own,
        takes_members_that_share_out_for_owners_of_nothing,
        turns_back_members_of_earlier_epochs,
        never_turns_a_group_back,
        never_has_classic_members_join_again,
        takes_a_join_for_a_revocation,
        gives_what_classic_members_still_hold,
    ],
    ids=lambda planted: planted.__name__,
)
def test_a_planted_mistake_is_found(planted: Callable[[], AbstractContextManager[None]]) -> None:
    with planted():
        for seed in range(300):
            try:
                MixedGroup(seed).run()
            except AssertionError:
                return
    pytest.fail("no run found it")
