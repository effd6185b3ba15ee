"""Upkeep of a table of rows besides checkpoints and trimming: compaction, and deleting the files that it replaced."""

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar
from urllib.parse import unquote

from tidelog.log.base.clock import Clock, Ids
from tidelog.log.delta import layout
from tidelog.log.door.commit_loop import Door
from tidelog.log.rows.compaction import (
    FEWEST_FILES,
    RowCompactionPlan,
    compact_rows,
    decide_row_compaction,
    plan_row_compaction,
)
from tidelog.log.rows.state import Fold, RowKind, RowState
from tidelog.log.rules.topics import Outcome
from tidelog.log.upkeep.replaced_files import over, read_gone

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

    def plan(self, fewest: int = FEWEST_FILES) -> RowCompactionPlan | None:
        """What `compact` would compact, as of the last look at the log; None when it isn't worth it."""
        with self._door.lock:
            state = self._door.state
            return plan_row_compaction(state.files, len(state.fold), fewest)

    def compact(self, fewest: int = FEWEST_FILES, parameters: Mapping[str, str] | None = None) -> bool:
        """Compact the table if it is worth it, `fewest` files or more at once; whether it was done.

        `parameters` go into the table's history.
        """
        with self._door.lock:
            state, plan = self._door.state, self.plan(fewest)
            version = state.version
        if plan is None:
            return False
        rows = [row for file in plan.files for row in state.rows(file)]
        kept = compact_rows(self._kind, plan, rows)
        base = plan.files[0].base_offset
        data = self._kind.schema.to_file([(order - base, row) for order, row in kept])
        path = layout.rows_path(version, self._ids.new())
        now_ms = self._clock.now_ms()

        def decide(state: RowState[F]) -> Outcome[bool]:
            if version < (state.txn(layout.PURGE_TXN) or 0):  # a repeat finds the file taken for an orphan
                return Outcome((), False)
            return decide_row_compaction(state, plan, kept, path, data, now_ms, parameters)

        return self._door.commit(decide).response

    def purge(self) -> int:
        """Delete files that compaction replaced before all that is kept of the log; how many.

        What committers do beside their work; maintenance (`tidelog.retention.purge.run`) also looks for orphans.
        """
        storage, folder = self._door.storage, self._door.folder
        floor = self._door.oldest_version() - 1
        if floor <= self._purged:
            return 0
        listing = list(storage.list_after(self._door.path(layout.LOG_FOLDER)))
        gone = read_gone(storage, folder, floor, listing)
        if not gone:
            return 0
        files = storage.list_after(self._door.path(layout.ROWS_FOLDER))
        made_ms = {o.path.removeprefix(f"{folder}/"): o.modified_ms for o in files}
        live = {unquote(file.path) for file in self._door.state.files}
        store_now_ms = max(o.modified_ms for o in listing)
        old = over(gone, made_ms, live, store_now_ms, self._delete_delay_ms())
        for path in old:
            storage.delete(self._door.path(path))
        self._purged = floor
        return len(old)
