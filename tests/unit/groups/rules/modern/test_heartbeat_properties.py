"""Random runs of groups of the type consumer: no partition has two owners that can commit, and all come to rest."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from unittest.mock import patch

import pytest
from hypothesis import settings
from support.heartbeating import JOINS, RandomGroup

from tidelog.broker.groups.acknowledgements import Acknowledgements
from tidelog.groups.rules import offsets
from tidelog.groups.rules.modern import drafts, heartbeat, reconciliation


@pytest.mark.parametrize("static", [False, True])
def test_no_partition_has_two_owners_that_can_commit(static: bool) -> None:
    for seed in range(2 * settings().max_examples):
        RandomGroup(seed, static, joint=seed % 2 == 1).run()


# --- mistakes that such runs must find ------------------------------------------------------------------------


@contextmanager
def gives_what_others_still_hold() -> Iterator[None]:
    with patch.object(reconciliation.Holders, "free", lambda _self, _name, partitions: partitions):
        yield


@contextmanager
def takes_silence_for_a_revocation() -> Iterator[None]:
    def owns(owned: reconciliation.Owned, partitions: object) -> bool:
        return False

    with patch.object(reconciliation, "_owns", owns):
        yield


@contextmanager
def takes_any_epoch() -> Iterator[None]:
    with patch.object(heartbeat, "_check_epoch", lambda *_: None):
        yield


@contextmanager
def takes_commits_of_any_epoch() -> Iterator[None]:
    with patch.object(offsets, "check_member_epoch", lambda *_: None):
        yield


@contextmanager
def never_looks_at_topics_again() -> Iterator[None]:
    real = drafts.refreshed

    def blind(group, topics, *, resubscribed, look):
        return real(group, topics, resubscribed=resubscribed, look=False)

    with patch.object(drafts, "refreshed", blind):
        yield


@contextmanager
def forgets_what_is_to_be_revoked() -> Iterator[None]:
    real, real_losing = drafts.reconcile, drafts.losing

    def forgetful(group, member, owned, holders):
        after = real(group, member, owned, holders)
        return after if after is member else replace(after, revoking=frozenset())

    with (
        patch.object(drafts, "reconcile", forgetful),
        patch.object(drafts, "losing", lambda *its: replace(real_losing(*its), revoking=frozenset())),
    ):
        yield


@contextmanager
def takes_another_share_in_the_same_epoch() -> Iterator[None]:
    real = drafts.reconcile

    def still(group, member, owned, holders):
        after = real(group, member, owned, holders)
        return replace(after, epoch=member.epoch) if member.epoch > JOINS else after

    with patch.object(drafts, "reconcile", still):
        yield


@contextmanager
def tells_each_member_once() -> Iterator[None]:
    with patch.object(Acknowledgements, "_due", lambda _self, _name, _member, assigned: assigned):
        yield


@contextmanager
def takes_back_what_was_not_taken_yet() -> Iterator[None]:
    real = Acknowledgements._due

    def due(self, name, member, assigned):
        self._given.pop(name, None)
        return real(self, name, member, assigned)

    with patch.object(Acknowledgements, "_due", due):
        yield


@pytest.mark.parametrize(
    "planted",
    [
        gives_what_others_still_hold,
        takes_silence_for_a_revocation,
        takes_any_epoch,
        takes_commits_of_any_epoch,
        never_looks_at_topics_again,
        forgets_what_is_to_be_revoked,
        takes_another_share_in_the_same_epoch,
        tells_each_member_once,
        takes_back_what_was_not_taken_yet,
    ],
    ids=lambda planted: planted.__name__,
)
def test_a_planted_mistake_is_found(planted: Callable[[], AbstractContextManager[None]]) -> None:
    with planted():
        for seed in range(300):
            try:
                RandomGroup(seed, joint=seed % 2 == 1).run()
            except AssertionError:
                return
    pytest.fail("no run found it")
