"""Where a log is opened: the newest checkpoint that no floor has passed, or the first entry."""

from collections.abc import Callable, Iterable
from functools import cache
from typing import TypeVar

from tidelog.log.base.errors import CorruptLogError, CorruptSegmentError, ObjectNotFoundError, TidelogError
from tidelog.log.checkpoints.reading import checkpoints_from, read_checkpoint
from tidelog.log.delta import layout
from tidelog.log.door.contract import LogState, Machine
from tidelog.log.storage.port import ObjectInfo, Storage

S = TypeVar("S", bound=LogState)


def newest_state(
    storage: Storage, folder: str, machine: Machine[S], look_at_floors: Callable[[], int]
) -> tuple[S, int]:
    """The state to read entries on from, and its checkpoint's version; without any an empty state and -1.

    `look_at_floors` returns the newest floor: every entry up to it may be gone.
    Raises `CorruptLogError` when there is a floor, and no checkpoint past it that can be read, or when there are
    entries and neither the first one nor a checkpoint.
    """
    while True:
        floor = look_at_floors()
        listing = cache(lambda: list(storage.list_after(f"{folder}/{layout.LOG_FOLDER}")))
        torn: TidelogError | None = None
        for checkpoint in checkpoints_from(storage, folder, floor + 1, listing):
            state = machine.empty()
            try:
                state.restore(checkpoint.version, read_checkpoint(storage, folder, checkpoint))
            except ObjectNotFoundError:  # named by a stale `_last_checkpoint`, or trimmed by now
                continue
            except (CorruptLogError, CorruptSegmentError) as e:
                torn = torn or e  # by a power loss just after it was written: nothing rests on it
                continue
            machine.verify_checkpoint(state, checkpoint.version)
            return state, checkpoint.version
        if floor < 0 and _begins(storage, folder, listing()):
            return machine.empty(), -1
        if look_at_floors() == floor:
            if floor < 0:
                raise torn or CorruptLogError(
                    f"The log in {folder} has lost its first entry, and no checkpoint replaces it: a tool other than"
                    " tidelog removed them. Restore the log folder from a copy; 'tidelog check' says what is left."
                )
            if torn is not None:
                raise torn
            raise CorruptLogError(
                f"The log in {folder} has a floor {floor} but no checkpoint past it: a tool other than tidelog removed"
                " the checkpoint. Restore it from a copy; 'tidelog check' says what is left."
            )


def _begins(storage: Storage, folder: str, listing: Iterable[ObjectInfo]) -> bool:
    """Whether the log's first entry is there, or none: one that was listed can't have come before the first."""
    first = f"{folder}/{layout.entry_path(0)}"
    names = [found.path for found in listing]
    entries = (n for n in names if (v := layout.version_of(n)) is not None and n == f"{folder}/{layout.entry_path(v)}")
    if first in names or next(entries, None) is None:
        return True
    try:
        storage.get(first)  # a listing of a local folder is no snapshot
    except ObjectNotFoundError:
        return False
    return True
