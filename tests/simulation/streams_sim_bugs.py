"""Bugs to plant in streams groups: each changes one rule of the product's code while a run lasts."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from sim_running import Planted

from tidelog.groups.rules import offsets
from tidelog.groups.rules.streams import reconciliation
from tidelog.groups.store import streams_rows
from tidelog.groups.topology import Tasks


@contextmanager
def hands_out_tasks_that_another_still_runs() -> Iterator[None]:
    """A member gets its target at once."""
    with patch.object(reconciliation, "_free", lambda group, member, missing, kept: missing):
        yield


@contextmanager
def takes_tasks_back_unasked() -> Iterator[None]:
    """What a member is to give up counts as given up, whatever it says."""
    with patch.object(reconciliation, "_has", lambda owned, tasks: False):
        yield


@contextmanager
def opens_a_state_twice_in_a_process() -> Iterator[None]:
    """Only what others run is waited for, and not what threads of the same process keep copies of."""
    free = reconciliation._free

    def alone(group: Any, member: Any, missing: Any, kept: Any) -> Any:
        return free(group, replace(member, process_id=f"{member.process_id}-{member.member_id}"), missing, Tasks())

    with patch.object(reconciliation, "_free", alone):
        yield


@contextmanager
def takes_commits_of_any_epoch() -> Iterator[None]:
    """A member that was evicted, and is back or not, commits for what it ran."""

    def any_epoch(group: Any, member_id: str, epoch: int, instance_id: Any = None) -> None:
        return

    with patch.object(offsets, "check_member_epoch", any_epoch):
        yield


@contextmanager
def takes_late_commits_for_what_was_given_up() -> Iterator[None]:
    """A member commits in the epoch before its own for any task, also for those that others have got meanwhile."""
    with patch.object(offsets, "_runs", lambda *_: True):
        yield


@contextmanager
def forgets_what_is_to_be_given_up() -> Iterator[None]:
    """A member's row lacks what it has to give up: the next coordinator gives that to others."""
    row_of = streams_rows._member_row

    def without(group_id: str, member: Any) -> Any:
        return {**row_of(group_id, member), "revoking_tasks": []}

    with patch.object(streams_rows, "_member_row", without):
        yield


BUGS: dict[str, Planted] = {
    planted.__name__: planted
    for planted in (
        hands_out_tasks_that_another_still_runs,
        takes_tasks_back_unasked,
        opens_a_state_twice_in_a_process,
        takes_commits_of_any_epoch,
        takes_late_commits_for_what_was_given_up,
        forgets_what_is_to_be_given_up,
    )
}
