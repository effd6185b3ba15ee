"""Judges the branches of a chaos run in a process of its own: `chaos_judge.py FOLDER`.

A line of JSON on stdin is a branch (`MadeBranch`), a line on stdout what was wrong with it (`Judged`). One with which
nothing was wrong is discarded.
"""

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from branch_journals import BranchJournals
from branch_judge import BranchJudge, Rows
from chaos_plan import COPIERS, COPIES, COPIES_BY_QUERY, READERS, TOPICS, Place
from checkers import SHOWN
from history import Copy, History
from history import Place as LogPlace

from tidelog.check.lake import Severity, check_lake
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.base.errors import TidelogError
from tidelog.log.lake import Lake
from tidelog.log.storage import open_storage
from tidelog.mirror.branch.discarding import discard_branch

_COLUMNS = ("offset", "key", "value")


@dataclass(frozen=True)
class MadeBranch:
    """A branch: its number, when it was begun and when it was there, and its lake's bounds just before (each topic,
    partition, start, end)."""

    number: int
    began_s: float
    made_s: float
    bounds: list[tuple[str, int, int, int]]

    def folder(self, place: Place) -> Path:
        return place.folder / "branches" / str(self.number)


@dataclass
class Judged:
    """What is wrong with a branch. `records` are those in it, `took_s` is what the verdict took."""

    number: int
    problems: list[str] = field(default_factory=list)
    records: int = 0
    took_s: float = 0.0
    parts_s: dict[str, float] = field(default_factory=dict)


class Judge:
    """Judges one branch after another, in the order of their making."""

    def __init__(self, place: Place) -> None:
        self._place = place
        by_query = [Copy(copy.sources, copy.targets, goes_on=True) for copy in COPIES_BY_QUERY]
        history = History(rules={name: topic.rule for name, topic in TOPICS.items()}, copies=[*COPIES, *by_query])
        self._journals = BranchJournals(history)
        self._judge = BranchJudge(history, watched=(COPIERS, READERS))

    def judge(self, made: MadeBranch) -> Judged:
        """Judge one, and discard it when nothing is wrong."""
        judged, began = Judged(made.number), time.monotonic()
        try:
            with Lake(str(made.folder(self._place)), False) as branch:
                for problem in self._problems(branch, made, judged):
                    judged.problems.append(f"branch {made.number}: {problem}")
            if not judged.problems:
                with Lake(str(made.folder(self._place)), False, may_change_follower=True) as branch:
                    discard_branch(branch, open_storage)
        except TidelogError as e:
            judged.problems.append(f"branch {made.number}: {type(e).__name__}: {e}")
        judged.took_s = round(time.monotonic() - began, 2)
        return judged

    def _problems(self, branch: Lake, made: MadeBranch, judged: Judged) -> Iterator[str]:
        began = time.monotonic()

        def lap(part: str) -> None:
            nonlocal began
            judged.parts_s[part], began = round(time.monotonic() - began, 2), time.monotonic()

        report = check_lake(branch, deep=True)
        yield from [f"check: {one}" for one in report.findings if one.severity is Severity.ERROR][:SHOWN]
        lap("check")
        self._journals.take(self._place.journals_of(), made.began_s, made.made_s)
        lap("journals")
        log = {(name, p): _rows(branch, name, p, *at) for name in TOPICS for p, at in branch.offsets(name).items()}
        judged.records = sum(rows.table.num_rows for rows in log.values())
        lap("read")
        committed: dict[tuple[str, LogPlace], int] = {}
        for group, view in GroupLog(branch).views().items():
            committed |= {(group, place): one.offset for place, one in view.offsets.items() if place in log}
            if view.group is not None and view.group.members:
                yield f"{group} has members"
        bounds = {(topic, partition): (start, end) for topic, partition, start, end in made.bounds}
        yield from self._judge.judge(log, committed, bounds)
        lap("judge")


def _rows(branch: Lake, name: str, partition: int, start: int, end: int) -> Rows:
    batches = [batch.select(_COLUMNS) for batch in branch.topic(name).read(partition, start, end)]
    if not batches:
        return Rows(start, end, pa.table({"offset": pa.array([], pa.int64()), "key": [], "value": []}))
    return Rows(start, end, pa.Table.from_batches(batches).combine_chunks())


def main(folder: str) -> int:
    """Judge until stdin ends."""
    judge = Judge(Place(Path(folder)))
    for line in sys.stdin:
        given: dict[str, Any] = json.loads(line)
        sys.stdout.write(json.dumps(asdict(judge.judge(MadeBranch(**given)))) + "\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
