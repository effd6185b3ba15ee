"""The rules of cuts. All pure: over the entries of tables, and over what the log of transactions said at one version.

A cut is made at a version t of that log. Of a topic it has the entries up to the last one before the first that applies
a transaction decided after t; of a table of groups those up to the last one before the first that settles such a one.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from tidelog.cuts.model import Cut, CutLostError, CutTable, InvalidCutNameError, Place, cut_exists, no_such_cut
from tidelog.cuts.rows import CutsFold, cut_row, gone_row
from tidelog.log.delta import layout
from tidelog.log.delta.actions import Action, Entry, Metadata, Txn
from tidelog.log.rows.rules import RowOutcome
from tidelog.log.rows.schema import Row
from tidelog.log.state.topic_state import DELETED, PARTITIONS, TOPIC_ID, TopicState
from tidelog.transactions.model import TransactionKey, Verdict
from tidelog.transactions.rows import TRANSACTION, TransactionsFold

_NAME: Final = re.compile(r"[a-zA-Z0-9._-]{1,100}")


def check_name(name: str) -> None:
    """Raise `InvalidCutNameError` unless a cut can have the name."""
    if not _NAME.fullmatch(name):
        raise InvalidCutNameError(
            f"A cut can't have the name {name[:120]!r}: a name has 1 to 100 ASCII letters, digits, '.', '_' and '-'."
        )


# --- transactions in entries -------------------------------------------------------------------------------


def markers(actions: Iterable[Action]) -> dict[str, int]:
    """The transactions that an entry applies: {transactional id: epoch · 2^32 + number}."""
    prefix = layout.TRANSACTION_PREFIX
    return {a.app_id.removeprefix(prefix): a.version for a in actions if isinstance(a, Txn) if _applies(a)}


def _applies(txn: Txn) -> bool:
    # One with a time is a marker that is retired (it expires from now on), one of -1 is none.
    return txn.app_id.startswith(layout.TRANSACTION_PREFIX) and txn.version >= 0 and txn.last_updated_ms is None


def decisions(entry: Entry) -> dict[str, int]:
    """{transactional id: epoch · 2^32 + number} of the newest decision that an entry's rows tell."""
    return {
        row["id"]: layout.pack_epoch(row["epoch"], row["number"])
        for row in entry.info.rows
        if row.get("kind") == TRANSACTION and not row.get("deleted")
    }


def decided_by(fold: TransactionsFold) -> dict[str, int]:
    """The same of all transactional ids, as the log of transactions says at one version."""
    return {one.transactional_id: layout.pack_epoch(one.epoch, one.number) for one in fold.all()}


def known_up_to(entries: Sequence[tuple[int, Mapping[str, int]]], decided: Mapping[str, int], to: int) -> int:
    """How far a topic's entries rest on transactions that are decided, up to `to`.

    `entries`: (version, markers) in order. `decided`: the newest decision of each transactional id.

    >>> known_up_to([(5, {}), (6, {"t": 7}), (7, {})], {"t": 6}, 7), known_up_to([(5, {}), (6, {"t": 7})], {"t": 7}, 6)
    (5, 6)
    """
    for version, applied in entries:
        if _goes_beyond(applied, decided):
            return version - 1
    return to


def _goes_beyond(applied: Mapping[str, int], decided: Mapping[str, int]) -> bool:
    return any(number > decided.get(name, -1) for name, number in applied.items())


def is_torn(entries: Sequence[tuple[int, Mapping[str, int]]], decided: Mapping[str, int], at: int) -> bool:
    """Whether a cut of a topic at version `at` has lost a part of a transaction that is decided: look again.

    It was applied after one that is not part of the cut.

    >>> is_torn([(5, {"late": 9}), (6, {"t": 7})], {"t": 7}, 4), is_torn([(5, {"late": 9})], {"t": 7}, 4)
    (True, False)
    """
    return any(number <= decided.get(name, -1) for v, applied in entries if v > at for name, number in applied.items())


def settles(rows: Iterable[Row], verdict: Callable[[TransactionKey], Verdict]) -> bool:
    """Whether an entry of a table of groups ends the wait for a transaction that is open by the cut's `verdict`."""
    return any(
        verdict(TransactionKey(row["transactional_id"], row["producer_id"], row["producer_epoch"], row["transaction"]))
        is Verdict.OPEN
        for row in rows
        if row.get("kind") == "pending" and row.get("deleted")
    )


# --- tables ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TableAt:
    """What a cut needs of a table at a version of its log. `exists`: there is a topic, or a table of rows."""

    version: int = -1
    topic_id: str = ""
    exists: bool = False
    starts: Mapping[int, int] | None = None
    ends: Mapping[int, int] | None = None
    partitions: int = 0

    @classmethod
    def of(cls, state: TopicState) -> "TableAt":
        """A state's, which stays as it is when the state goes on."""
        if not state.exists:
            return cls(state.version)
        numbers = range(state.partitions)
        starts, ends = {p: state.start(p) for p in numbers}, {p: state.end(p) for p in numbers}
        return cls(state.version, state.topic_id, True, starts, ends, state.partitions)

    def after(self, entry: Entry) -> "TableAt":
        """The same one entry later."""
        starts, ends = dict(self.starts or {}), dict(self.ends or {})
        table = self
        for action in entry.actions:
            if isinstance(action, Metadata):
                said = action.configuration
                table = replace(
                    table,
                    topic_id=said.get(TOPIC_ID, ""),
                    exists=said.get(DELETED) != "true",
                    partitions=int(said.get(PARTITIONS, "0")),
                )
            elif isinstance(action, Txn):
                for prefix, offsets in ((layout.START_PREFIX, starts), (layout.END_PREFIX, ends)):
                    number = layout.number(action.app_id.removeprefix(prefix))
                    if action.app_id.startswith(prefix) and number is not None:
                        offsets[number] = action.version
        return replace(table, version=entry.version, starts=starts, ends=ends)

    def in_cut(self, *, is_rows: bool = False) -> CutTable:
        """The table as a cut names it."""
        starts, ends = self.starts or {}, self.ends or {}
        ranges = tuple((starts.get(p, 0), ends.get(p, 0)) for p in range(self.partitions))
        return CutTable(self.version, self.topic_id, ranges, is_rows)


def positions_within(
    offsets: Mapping[str, Mapping[Place, tuple[int, str]]], tables: Mapping[str, CutTable]
) -> dict[str, dict[Place, int]]:
    """Groups' positions in a cut, by group and place. `offsets`: {group: {place: (offset, topic id)}}.

    One above its partition's end counts as that end. One of a topic that the cut has not, or has in another life, is
    none. An offset without a topic id is of whatever topic has the name.
    """
    positions: dict[str, dict[Place, int]] = {}
    for group, committed in offsets.items():
        for (topic, partition), (offset, topic_id) in committed.items():
            table = tables.get(topic)
            if table is None or table.is_rows or partition >= len(table.ranges):
                continue
            if topic_id in ("", table.topic_id):
                positions.setdefault(group, {})[topic, partition] = min(offset, table.ranges[partition][1])
    return positions


def ends_of(cut: Cut, topic: str, topic_id: str) -> dict[int, int]:
    """{partition: end} of a topic in a cut. Raises `CutLostError` where the cut does not know the topic of that id."""
    table = cut.topic(topic)
    if table is None:
        raise CutLostError(
            f"Cut {cut.name!r} has no topic '{topic}': it was made later. 'tidelog cut describe' shows what it has."
        )
    if table.topic_id != topic_id:
        raise CutLostError(
            f"Topic '{topic}' was deleted and created again since cut {cut.name!r}, so that its offsets mean other"
            " records by now. Name offsets or times instead."
        )
    return table.ends


# --- the table of cuts -------------------------------------------------------------------------------------


def decide_create(fold: CutsFold, cut: Cut) -> RowOutcome[Cut]:
    """Give a cut its name. The same cut again changes nothing. Raises `CutExistsError`."""
    there = fold.get(cut.name)
    if there is not None and there.id == cut.id:
        return RowOutcome((), there)
    if there is not None:
        raise cut_exists(cut.name)
    return RowOutcome((cut_row(cut),), cut)


def decide_delete(fold: CutsFold, name: str) -> RowOutcome[Cut]:
    """Take a cut's name away; the response is the cut. Raises `UnknownCutError`."""
    there = fold.get(name)
    if there is None:
        raise no_such_cut(name)
    return RowOutcome((gone_row(name),), there)
