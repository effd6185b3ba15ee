"""Branches of a lake that suffers: one is made again and again meanwhile, and each is judged before it is discarded."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from chaos_plan import COPIES, COPIES_BY_QUERY, PARTITIONS, TOPICS, Place
from checkers import SHOWN, check, copies_are_made_once, summary
from history import History, Partition
from journals import HistoryReader, events

from tidelog.check.lake import Severity, check_lake
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.base.errors import TidelogError
from tidelog.log.lake import Lake
from tidelog.mirror.branch.discarding import discard_branch
from tidelog.mirror.branch.making import make_branch

Read = Callable[[Lake, str, int, int, int], Partition]
# What a journal says that counts for a branch only where it was said before the branch was begun.
_ANSWERS = ("acked", "committed", "aborted")
# What clients read in the source, and what groups committed for that, says nothing of a branch.
_SENT = ("send", "begin", "committing")
_TRIES = 10


class Branches:
    """Makes a branch every `every_s` seconds, in a thread. `problems`: what is wrong with them; `made`: how many."""

    def __init__(self, place: Place, every_s: float, read: Read) -> None:
        self._place = place
        self._every_s = every_s
        self._read = read
        self._ends = threading.Event()
        # A branch is a program, and a power cut ends all of them: one is not made amid it.
        self._power = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="branches")
        self.made = 0
        self.problems: list[str] = []

    def __enter__(self) -> "Branches":
        if self._every_s:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        if self._every_s:
            self._thread.join()

    @contextmanager
    def none_amid(self) -> Iterator[None]:
        """Meanwhile no branch is made."""
        with self._power:
            yield

    def _run(self) -> None:
        while not self._ends.wait(self._every_s):
            with self._power:
                try:
                    self._one()
                except TidelogError as e:
                    self.problems.append(f"branch {self.made}: {type(e).__name__}: {e}")

    def _one(self) -> None:
        began_s = time.time()
        target = self._place.folder / "branches" / str(self.made)
        with self._place.seen() as lake, Lake(str(target), None, may_change_follower=True) as branch:
            self._make(lake, branch)
        with Lake(str(target), False) as branch:
            self.problems += [f"branch {self.made}: {what}" for what in self._judged(branch, began_s)][:SHOWN]
        if not self.problems:
            with Lake(str(target), False, may_change_follower=True) as branch:
                discard_branch(branch)
        self.made += 1

    def _make(self, lake: Lake, branch: Lake) -> None:
        """What failed and may be tried again is, by the same call."""
        for left in reversed(range(_TRIES)):
            try:
                make_branch(lake, branch)
                return
            except TidelogError as e:
                if not (e.retriable and left):
                    raise
                self._ends.wait(0.2)

    def _judged(self, branch: Lake, began_s: float) -> list[str]:
        report = check_lake(branch, deep=True)
        found = [f"check: {finding}" for finding in report.findings if finding.severity is Severity.ERROR]
        by_query = [replace(copy, goes_on=True) for copy in COPIES_BY_QUERY]
        history = History(rules={name: topic.rule for name, topic in TOPICS.items()}, copies=by_query)
        by_group = replace(
            history, copies=COPIES
        )  # the same log, and how far its groups are: what they read is not known
        by_group.committed = {}
        reader = HistoryReader(history)
        for life, path in self._place.journals_of():
            reader.take(life, (event for event in events(path) if _counts(event, began_s)))
        for name in TOPICS:
            for partition, (start, end) in branch.offsets(name).items():
                history.log[name, partition] = self._read(branch, name, partition, start, end)
        for group, view in GroupLog(branch).views().items():
            for (topic, partition), one in view.offsets.items():
                by_group.committed[group, (topic, partition)] = one.offset
                if partition < PARTITIONS and one.offset > branch.offsets(topic)[partition][1]:
                    found.append(f"{group} is at {one.offset} of {topic} [{partition}], past its end")
            if view.group is not None and view.group.members:
                found.append(f"{group} has members")
        return [*found, *summary([*check(history), *copies_are_made_once(by_group)])]


def _counts(event: dict[str, Any], began_s: float) -> bool:
    return event["e"] in _SENT or (event["e"] in _ANSWERS and event["s"] < began_s)
