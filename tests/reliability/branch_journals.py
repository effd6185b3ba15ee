"""Requests that clients had made, and answers that they had got, when a branch was made: journals read as they grow."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from history import History
from journals import HistoryReader, JournalTail

# What clients read in the source, and what groups committed for that, says nothing of a branch.
_ASKED = ("send", "begin", "committing")
_TOLD = ("acked", "committed", "aborted")
# Journals' times are rounded to a millisecond.
_ROUNDED_S = 0.001


class BranchJournals:
    """Puts into a history what counts for one branch after another: requests made before it was there, answers got
    before it was begun. An answer that came meanwhile is kept for the next one."""

    def __init__(self, history: History) -> None:
        self._reader = HistoryReader(history)
        self._tails: dict[str, JournalTail] = {}
        self._kept: list[tuple[str, dict[str, Any]]] = []

    def take(self, journals: Iterable[tuple[str, Path]], began_s: float, made_s: float) -> None:
        """Go on to a branch that was begun and made at these times. `journals`: (life, its journal), all there are."""
        kept, self._kept = self._kept, []
        for life, event in kept:
            self._take(life, event, began_s)
        for life, path in journals:
            tail = self._tails.setdefault(life, JournalTail(path, (*_ASKED, *_TOLD)))
            for event in tail.take(made_s + _ROUNDED_S):
                self._take(life, event, began_s)

    def _take(self, life: str, event: dict[str, Any], began_s: float) -> None:
        if event["e"] in _TOLD and event["s"] >= began_s - _ROUNDED_S:
            self._kept.append((life, event))
        else:
            self._reader.take(life, [event])
