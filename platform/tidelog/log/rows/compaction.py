"""Compaction of a table of rows: many small files become one, without the rows that newer ones replaced. Pure.

Rows keep their place in the log, so that the order never changes, and the log goes on meanwhile.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tidelog.log.delta.actions import NO_PARTITION, Add, Remove
from tidelog.log.rows.rules import row_stats_json
from tidelog.log.rows.schema import Row
from tidelog.log.rows.state import Fold, RowKind, RowState
from tidelog.log.rules.topics import Outcome
from tidelog.log.state.topic_state import Segment

F = TypeVar("F", bound=Fold)

# Fewer files than this are left alone, and so are fewer rows that newer ones replaced.
FEWEST_FILES = 16
FEWEST_REPLACED = 1_000


@dataclass(frozen=True, slots=True)
class RowCompactionPlan:
    """The files to make one of: the newest ones, in log order. `whole`: they are all there are."""

    files: tuple[Segment, ...]
    whole: bool


def plan_row_compaction(
    files: Sequence[Segment], live_rows: int, fewest: int = FEWEST_FILES
) -> RowCompactionPlan | None:
    """Which files to compact, None when it isn't worth it. `live_rows`: the number of rows that the fold needs.

    Fewer than `fewest` files are not worth it.

    All, when most of their rows are replaced. Else the newest ones, back to the first one that is larger than all
    after it, so that a row is written again only when its neighbours have doubled.
    """
    sizes = [_rows(file) for file in files]
    if sum(sizes) > 2 * live_rows + FEWEST_REPLACED and len(files) > 1:
        return RowCompactionPlan(tuple(files), True)
    if len(files) < fewest:
        return None
    first, rows = len(files) - 1, sizes[-1]
    while first > 0 and sizes[first - 1] <= rows:
        first -= 1
        rows += sizes[first]
    if len(files) - first < fewest:
        return None
    return RowCompactionPlan(tuple(files[first:]), first == 0)


def _rows(file: Segment) -> int:
    return file.end - file.base_offset if file.stats.records is None else file.stats.records


def compact_rows(kind: RowKind[F], plan: RowCompactionPlan, rows: Sequence[tuple[int, Row]]) -> list[tuple[int, Row]]:
    """The plan's (place in the log, row)s that stay.

    A tombstone goes when no older row is left for it to hide. The newest row stays whatever it is: it covers what
    went before it.
    """
    newest: dict[Hashable, tuple[int, Row]] = {}
    for order, row in rows:
        newest[kind.key(row)] = (order, row)
    last = rows[-1][0]
    return sorted(
        (kept for kept in newest.values() if not (plan.whole and kind.is_tombstone(kept[1])) or kept[0] == last),
        key=lambda kept: kept[0],
    )


def decide_row_compaction(
    state: RowState[F],
    plan: RowCompactionPlan,
    kept: Sequence[tuple[int, Row]],
    path: str,
    data: bytes,
    now_ms: int,
    parameters: Mapping[str, str] | None = None,
) -> Outcome[bool]:
    """Put one file, `data` at `path`, with the rows `kept` in place of the plan's files.

    Nothing, and False, when another process has replaced one of them.
    """
    live = {file.path for file in state.files}
    if any(file.path not in live for file in plan.files):
        return Outcome((), False)
    first, last = plan.files[0], plan.files[-1]
    add = Add(
        path,
        NO_PARTITION,
        first.base_offset,
        len(data),
        min(file.modification_ms for file in plan.files),
        False,
        row_stats_json(len(kept), kept[0][0] - first.base_offset, kept[-1][0] - first.base_offset),
        last.end,
    )
    removes = (Remove(f.path, NO_PARTITION, f.base_offset, f.size, now_ms, False) for f in plan.files)
    return Outcome((*removes, add), True, "OPTIMIZE", parameters=parameters, files={path: data})
