"""Bugs to plant in registries: each changes one rule of the product's code while a run lasts."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from sim_running import Planted

from tidelog.log.folds import compacted
from tidelog.log.folds.compacted import CompactedFold
from tidelog.log.rules import joint_appends
from tidelog.operations.schemas import deleting


@contextmanager
def appends_wherever_the_topic_ends() -> Iterator[None]:
    """A registry that was overtaken appends what it decided before."""
    with patch.object(joint_appends, "_check_head", lambda *_: None):
        yield


@contextmanager
def answers_looks_by_what_it_knew() -> Iterator[None]:
    """A look does not read what other registries have appended."""

    def look(self: CompactedFold[Any, Any], at: Callable[[Any], Any]) -> Any:
        if self._topic is None:
            with self._lock:
                self._read_on()
        return at(self._state)

    with patch.object(CompactedFold, "look", look):
        yield


@contextmanager
def frees_ids_with_their_schemas() -> Iterator[None]:
    """A permanent delete does not note which ids were given."""
    with patch.object(deleting, "_highest", lambda _: ()):
        yield


@contextmanager
def goes_on_after_a_long_sleep() -> Iterator[None]:
    """A registry that has not read for longer than tombstones stay reads on where it was."""
    with patch.object(CompactedFold, "_is_late", lambda *_: False):
        yield


@contextmanager
def misses_tombstones() -> Iterator[None]:
    """A registry takes what is written, and passes over what takes it away."""
    records = compacted.records_of
    with patch.object(compacted, "records_of", lambda batch: (one for one in records(batch) if one[1] is not None)):
        yield


BUGS: dict[str, Planted] = {
    planted.__name__: planted
    for planted in (
        appends_wherever_the_topic_ends,
        answers_looks_by_what_it_knew,
        frees_ids_with_their_schemas,
        goes_on_after_a_long_sleep,
        misses_tombstones,
    )
}
