"""Bugs to plant in branches: each changes one rule of the product's code while a run lasts."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from sim_running import Planted

from tidelog.log.config.branch_facts import Branch
from tidelog.log.delta import layout
from tidelog.log.lake import Lake
from tidelog.mirror.branch import making, tables
from tidelog.operations.cuts import take_cut


@contextmanager
def lets_writers_into_a_branch_that_is_being_made() -> Iterator[None]:
    """Writers take no notice of what the branch's file says (Z1)."""
    with patch.object(Branch, "require_whole", lambda *_: None):
        yield


@contextmanager
def goes_on_with_another_cut() -> Iterator[None]:
    """A call that goes on takes tables as they are by now (Z2)."""
    real = making._take

    def later(source: Any, target: Any, tables: Any, *, again: bool) -> Any:
        if again:
            now = take_cut(source).tables
            taken = set(target.storage.list_folders(""))
            tables = {name: version if name in taken else now[name].version for name, version in tables.items()}
        return real(source, target, tables, again=again)

    with patch.object(making, "_take", later):
        yield


@contextmanager
def takes_tables_at_their_heads() -> Iterator[None]:
    """Each table is taken as it is when its turn comes (Z2)."""
    real = making.read_table

    def newest(storage: Any, table: str, version: int) -> Any:
        entries = (layout.entry_version(o.path) for o in storage.list_after(f"{table}/{layout.LOG_FOLDER}"))
        return real(storage, table, max(version, *(v for v in entries if v is not None)))

    with patch.object(making, "read_table", newest):
        yield


@contextmanager
def holds_nothing() -> Iterator[None]:
    """The source's maintenance does not know of the branch (Z3)."""
    with patch.object(making, "_hold", lambda *_: None):
        yield


@contextmanager
def takes_what_is_live_alone() -> Iterator[None]:
    """Files that left since the checkpoint are not taken (Z4)."""
    real = tables.files_at

    def live_alone(base: Any, entries: Any) -> Any:
        files, live = real(base, entries)
        return {path: size for path, size in files.items() if path in live}, live

    with patch.object(tables, "files_at", live_alone):
        yield


@contextmanager
def begins_with_what_is_not_synced() -> Iterator[None]:
    """Checkpoints are linked, and left as durable as their writer has made them (Z4)."""

    def take_log(taker: Any, paths: list[str]) -> None:
        for path in taker._link(paths).unlinked:
            taker.target.put(path, taker.source.get(path))

    with patch.object(tables.FileTaker, "take_log", take_log):
        yield


@contextmanager
def takes_what_is_the_sources_own() -> Iterator[None]:
    """Cuts of the source are in the branch, whose logs have other versions (Z5)."""
    real = making.take_cut

    def all_tables(lake: Any) -> Any:
        cut = real(lake)
        [any_table] = [one for name, one in cut.tables.items() if name == layout.TRANSACTIONS_TABLE][:1] or [None]
        if any_table is None:
            return cut
        return replace(cut, tables={**cut.tables, layout.CUTS_TABLE: replace(any_table, version=0)})

    with patch.object(making, "take_cut", all_tables):
        yield


@contextmanager
def lets_producers_go_on() -> Iterator[None]:
    """No new epoch begins (Z6)."""
    with patch.object(making, "end_transactions", lambda *_: (0, 0)):
        yield


@contextmanager
def lets_positions_be_past_the_end() -> Iterator[None]:
    """Groups are where they are, wherever their topics end (Z7)."""
    with patch.object(making, "_ends", lambda *_: {}):
        yield


@contextmanager
def takes_members_along() -> Iterator[None]:
    """Members of groups seem to be there (Z7)."""
    with patch("tidelog.groups.rules.branches._without_members", lambda *_: None):
        yield


@contextmanager
def discards_without_a_word() -> Iterator[None]:
    """A branch that goes says that it is as it was, until its last file is gone (Z8)."""
    real = Lake.note_branch

    def silent(self: Any, branch: Branch) -> None:
        if not branch.discarding:
            real(self, branch)

    with patch.object(Lake, "note_branch", silent):
        yield


BUGS: dict[str, Planted] = {
    planted.__name__: planted
    for planted in (
        lets_writers_into_a_branch_that_is_being_made,
        goes_on_with_another_cut,
        takes_tables_at_their_heads,
        takes_what_is_live_alone,
        begins_with_what_is_not_synced,
        takes_what_is_the_sources_own,
        lets_producers_go_on,
        takes_members_along,
        discards_without_a_word,
    )
}
# Those that show only where something happens at one moment of the making (moments_sim_run.py).
AT_A_MOMENT: dict[str, Planted] = {
    planted.__name__: planted for planted in (holds_nothing, lets_positions_be_past_the_end)
}
