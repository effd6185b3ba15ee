"""Upkeep of a table of rows besides checkpoints and trimming: compaction, and deleting the files that it replaced."""

from collections.abc import Callable
from typing import Generic, TypeVar
from urllib.parse import unquote

from tidelog.log import layout
from tidelog.log.checkpoints import removed_files, whole_checkpoints
from tidelog.log.clock import Clock, Ids
from tidelog.log.decisions import Outcome
from tidelog.log.door import Door
from tidelog.log.row_compaction import FEWEST_FILES, compact, decide_compaction, plan_compaction
from tidelog.log.row_state import Fold, RowKind, RowState

F = TypeVar("F", bound=Fold)


class RowUpkeep(Generic[F]):
    """The chores of one table. Safe when several processes do them at once, and to kill anywhere.

    `delete_delay_ms`: how long a replaced file stays at least.
    """

    def __init__(
        self,
        door: Door[RowState[F]],
        kind: RowKind[F],
        clock: Clock,
        ids: Ids,
        delete_delay_ms: Callable[[], int],
    ) -> None:
        self._door = door
        self._kind = kind
        self._clock = clock
        self._ids = ids
        self._delete_delay_ms = delete_delay_ms
        self._purged = -1

    def compact(self, fewest: int = FEWEST_FILES) -> bool:
        """Compact the table if it is worth it, `fewest` files or more at once; whether it was done."""
        with self._door.lock:
            state = self._door.state
            plan = plan_compaction(state.files, len(state.fold), fewest)
            version = state.version
        if plan is None:
            return False
        rows = [row for file in plan.files for row in state.rows(file)]
        kept = compact(self._kind, plan, rows)
        base = plan.files[0].base_offset
        data = self._kind.schema.to_file([(order - base, row) for order, row in kept])
        path = layout.rows_path(version, self._ids.new())

        def decide(state: RowState[F]) -> Outcome[bool]:
            return decide_compaction(state, plan, kept, path, data, self._clock.now_ms())

        return self._door.commit(decide).response

    def purge(self) -> int:
        """Delete files that compaction replaced before all that is kept of the log; how many.

        The entries that the newest floor passed are older than `log.min.age.ms`, and whoever opens the table starts
        past it. The checkpoint there still names what was removed up to it.
        """
        storage, folder = self._door.storage, self._door.folder
        floor = self._door.oldest_version() - 1
        if floor <= self._purged:
            return 0
        listed = whole_checkpoints(storage.list_after(self._door.path(layout.LOG_FOLDER)))
        checkpoint = next((c for c in listed if c.version == floor + 1), None)
        if checkpoint is None:
            return 0
        before_ms = self._clock.now_ms() - self._delete_delay_ms()
        old = [p for p, removed_ms in removed_files(storage, folder, checkpoint) if removed_ms <= before_ms]
        for path in old:
            storage.delete(self._door.path(unquote(path)))
        self._purged = floor
        return len(old)
