"""Discarding a branch: everything below its root goes, its own file last. Its source keeps what is its own."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

from tidelog.log.base.errors import TidelogError
from tidelog.log.delta.layout import LAKE_FILE
from tidelog.log.lake import Lake
from tidelog.log.storage.port import Distant, HoldsFolders, LeavesUnfinished, Storage
from tidelog.mirror.branch.plan import require_discardable
from tidelog.operations.branches import note_path

# Writers that had the branch open may leave files behind for a moment.
_MOST_SWEEPS: Final = 10


@dataclass(frozen=True, slots=True)
class DiscardReport:
    """What a discard took away: the branch's address, the lake that it was a branch of, how many objects."""

    lake: str
    of: str
    objects: int

    def to_json(self) -> dict[str, Any]:
        """The figures, for a report."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def discard_branch(branch: Lake, source: Callable[[str], Storage] | None = None) -> DiscardReport:
    """Delete a branch, whole or not, with all that was written there. Safe to stop anywhere and to call again.

    `source` opens the store of the lake that it is a branch of, whose note of it goes, too, where that answers.
    Raises `NotABranchError` for a lake that is none, `StorageError`.
    """
    branch.reload_config()
    facts = require_discardable(branch.uri, branch.branch_facts())
    if not facts.discarding:
        branch.note_branch(replace(facts, discarding=True))
    storage = branch.storage
    deleted = 0
    for _ in range(_MOST_SWEEPS):
        swept = _sweep(storage)
        deleted += swept
        if not swept:
            break
    storage.delete(LAKE_FILE)
    if isinstance(storage, HoldsFolders):
        storage.remove_folders()
    if source is not None and facts.note:
        with suppress(TidelogError):  # it is away, or gone: the note says that the branch is gone
            source(facts.of).delete(note_path(facts.note))
    return DiscardReport(branch.uri, facts.of, deleted + 1)


def _sweep(storage: Storage) -> int:
    """Delete what is below the root but for the lake's file; how many objects."""
    run: Callable[..., Any] = storage.helpers().map if isinstance(storage, Distant) else map
    paths = [path for path in _below(storage, "") if path != LAKE_FILE]
    return len(list(run(storage.delete, paths)))


def _below(storage: Storage, folder: str) -> Iterator[str]:
    if isinstance(storage, LeavesUnfinished):
        for info in storage.unfinished(folder):
            storage.discard_unfinished(info.path)
    yield from (info.path for info in storage.list_after(folder))
    for name in storage.list_folders(folder):
        yield from _below(storage, f"{folder}/{name}" if folder else name)
