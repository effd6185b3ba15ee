"""Where a log is opened: the newest checkpoint that no floor has passed, or the first entry."""

from collections.abc import Callable
from typing import TypeVar

from tidelog.log.checkpoints import checkpoints_from, read_checkpoint
from tidelog.log.errors import CorruptLogError, CorruptSegmentError, ObjectNotFoundError, TidelogError
from tidelog.log.machine import LogState, Machine
from tidelog.log.storage.port import Storage

S = TypeVar("S", bound=LogState)


def newest_state(
    storage: Storage, folder: str, machine: Machine[S], look_at_floors: Callable[[], int]
) -> tuple[S, int]:
    """The state to read entries on from, and its checkpoint's version; without any an empty state and -1.

    `look_at_floors` returns the newest floor: every entry up to it may be gone.
    Raises `CorruptLogError` when there is a floor, and no checkpoint past it that can be read.
    """
    while True:
        floor = look_at_floors()
        torn: TidelogError | None = None
        for checkpoint in checkpoints_from(storage, folder, floor + 1):
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
        if floor < 0:
            return machine.empty(), -1
        if look_at_floors() == floor:
            if torn is not None:
                raise torn
            raise CorruptLogError(
                f"The log in {folder} has a floor {floor} but no checkpoint past it: the checkpoint was"
                " removed by somebody else's tool. Restore it from a copy; 'tidelog check' says what is left."
            )
