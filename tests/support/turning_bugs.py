"""Bugs to plant in groups that turn: random runs over the pure rules must find them, and so must a simulation."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from tidelog.groups.rules import departures
from tidelog.groups.rules.modern import drafts, joining, turning


@contextmanager
def turns_a_group_without_what_its_members_own() -> Iterator[None]:
    """The first member of the consumer protocol takes the others for owners of nothing."""
    with patch.object(turning, "_assigned", lambda *_: frozenset()):
        yield


@contextmanager
def never_turns_a_group_back() -> Iterator[None]:
    """A group whose last member of the consumer protocol has gone stays one of the type consumer."""

    def never(*_: Any) -> None:
        return None

    with patch.object(departures, "turned_back", never), patch.object(joining, "turned_back", never):
        yield


@contextmanager
def takes_a_join_for_a_revocation() -> Iterator[None]:
    """What a cooperative member says that it owns when it joins does not count."""
    real = drafts.reconcile

    def reconcile(group: Any, member: Any, owned: Any, holders: Any) -> Any:
        return real(group, member, frozenset() if member.is_classic else owned, holders)

    with patch.object(drafts, "reconcile", reconcile):
        yield
