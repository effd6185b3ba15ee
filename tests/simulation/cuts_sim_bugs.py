"""Bugs to plant in cuts and rewinds: each changes one rule of the product's code while a run lasts."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from sim_running import Planted

from tidelog.cuts import rules
from tidelog.cuts.cut_log import CutLog
from tidelog.cuts.rows import cut_row
from tidelog.cuts.rules import TableAt
from tidelog.log.rows.rules import RowOutcome
from tidelog.operations import cuts
from tidelog.operations import rewinds as operations_rewinds
from tidelog.retention import rewinds


@contextmanager
def cuts_topics_at_their_heads() -> Iterator[None]:
    """A cut has what transactions applied that were decided after it (V1)."""
    with (
        patch.object(cuts, "known_up_to", lambda _entries, _decided, to: to),
        patch.object(cuts, "is_torn", lambda *_: False),
    ):
        yield


@contextmanager
def minds_no_torn_transaction() -> Iterator[None]:
    """A cut is not made again where a part of it was applied after one of a later transaction (V1)."""
    with patch.object(cuts, "is_torn", lambda *_: False):
        yield


@contextmanager
def applies_nothing_for_a_cut() -> Iterator[None]:
    """What is decided and not applied yet is left for others (V1)."""
    with patch.object(cuts, "roll_forward", lambda *_: None):
        yield


@contextmanager
def cuts_groups_at_their_heads() -> Iterator[None]:
    """A cut has offsets that were settled for transactions after it (V2)."""
    with patch.object(cuts, "settles", lambda *_: False):
        yield


@contextmanager
def lets_positions_be_anywhere() -> Iterator[None]:
    """A position may be past its partition's end (V3)."""
    real = rules.positions_within

    def unbounded(offsets: Any, tables: Any) -> Any:
        endless = {
            name: replace(table, ranges=tuple((start, 2**62) for start, _ in table.ranges))
            for name, table in tables.items()
        }
        return real(offsets, endless)

    with patch.object(cuts, "positions_within", unbounded):
        yield


@contextmanager
def takes_offsets_of_another_topic() -> Iterator[None]:
    """A position is of whatever topic has the name by now (V3)."""
    real = rules.positions_within

    def of_any(offsets: Any, tables: Any) -> Any:
        nameless = {group: {place: (offset, "") for place, (offset, _) in of.items()} for group, of in offsets.items()}
        return real(nameless, tables)

    with patch.object(cuts, "positions_within", of_any):
        yield


@contextmanager
def cuts_what_it_remembers() -> Iterator[None]:
    """A cut is made of topics as this process knows them (V4)."""

    def remembered(self: Any, topic: str) -> TableAt:
        door = self._lake.log(topic).door
        return TableAt.of(door.state if door.state.version >= 0 else door.refresh())

    with patch.object(cuts._Making, "_topic_at", remembered):
        yield


@contextmanager
def gives_a_name_again() -> Iterator[None]:
    """A name that is taken gets another cut (V5)."""

    class Careless(CutLog):
        def all(self) -> dict[str, Any]:
            return {}

    create = patch.object(rules, "decide_create", lambda _fold, cut: RowOutcome((cut_row(cut),), cut))
    with create, patch.object(cuts, "CutLog", Careless):
        yield


@contextmanager
def keeps_without_a_hold() -> Iterator[None]:
    """A cut says that it is kept, and nothing holds its versions (V6)."""
    with patch.object(cuts, "keep_version", lambda *_: None):
        yield


@contextmanager
def rewinds_what_was_there_before() -> Iterator[None]:
    """A rewind takes the last record of the cut out, too (E36)."""
    real = operations_rewinds.rewind_topic

    def earlier(lake: Any, topic: str, firsts: Any, **options: Any) -> Any:
        return real(lake, topic, {p: max(0, first - 1) for p, first in firsts.items()}, **options)

    with patch.object(operations_rewinds, "rewind_topic", earlier):
        yield


@contextmanager
def rewinds_what_comes_meanwhile() -> Iterator[None]:
    """A rewind looks at the ends again, and takes what was appended since it began (E36)."""

    real = rewinds.run_passes

    def again(*args: Any, ends: Any, **options: Any) -> Any:
        return real(*args, ends=dict.fromkeys(ends, 2**62), **options)

    with patch.object(rewinds, "run_passes", again):
        yield


BUGS: dict[str, Planted] = {
    planted.__name__: planted
    for planted in (
        cuts_topics_at_their_heads,
        applies_nothing_for_a_cut,
        cuts_groups_at_their_heads,
        cuts_what_it_remembers,
        keeps_without_a_hold,
        rewinds_what_was_there_before,
        rewinds_what_comes_meanwhile,
    )
}
# Those that show only where something happens at one moment of a cut (moments_sim_run.py).
AT_A_MOMENT: dict[str, Planted] = {
    planted.__name__: planted
    for planted in (
        minds_no_torn_transaction,
        lets_positions_be_anywhere,
        takes_offsets_of_another_topic,
        gives_a_name_again,
    )
}
