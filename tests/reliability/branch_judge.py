"""Judging branches of one lake, one after another: what one has beyond those before it, and that all else is as it was.

What was found right once needs no second look as long as it is the same, which is compared, every record of it. Where
it is not, the whole branch is checked. No product code: the checkers must not share its mistakes.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice

import pyarrow as pa
from checkers import (
    Fault,
    acknowledged_records_are_there,
    bounds_never_fall,
    commits_are_not_past_the_end,
    copies_are_made_once,
    offsets_are_dense,
    records_are_there_once,
    senders_order_is_kept,
    summary,
    transactions_are_whole,
)
from history import Acked, Copy, History, Look, Partition, Place, Policy, Transaction, source_of

# Offset, key, value, as the checkers have records.
Record = tuple[int, str | None, str]
Bounds = Mapping[Place, tuple[int, int]]
Committed = Mapping[tuple[str, Place], int]


@dataclass(frozen=True)
class Rows:
    """A partition of a branch: its bounds, and a table of offset (int64), key and value (binary) in the order read."""

    start: int
    end: int
    table: pa.Table

    @property
    def offsets(self) -> list[int]:
        """Of all records."""
        offsets: list[int] = self.table["offset"].to_pylist()
        return offsets

    def records(self, first: int = 0, count: int | None = None) -> list[Record]:
        """From the `first`th record on."""
        columns = self.table.slice(first, count)
        rows = zip(*(columns[name].to_pylist() for name in ("offset", "key", "value")), strict=True)
        return [(offset, None if key is None else key.decode(), value.decode()) for offset, key, value in rows]

    def first(self, count: int, end: int) -> "Rows":
        """The first records, with that end."""
        return Rows(self.start, end, self.table.slice(0, count))


@dataclass
class _Copied:
    """How far the copies of one kind are known: the target record of each source, all of them below `upto`."""

    copy: Copy
    by_source: dict[tuple[Place, int], tuple[Place, int]] = field(default_factory=dict)
    upto: dict[Place, int] = field(default_factory=dict)


class BranchJudge:
    """Judges branches in the order of their making. What clients did by then is in the history, which grows.

    `bounds` of a branch are its lake's, seen just before it was begun: all below them is in it, and will be in those
    that follow. What is past them may be elsewhere there, where the branch itself has ended a transaction.
    `watched`: groups whose offsets never fall.
    """

    def __init__(self, history: History, watched: Iterable[str] = ()) -> None:
        self._history = history
        self._watched = frozenset(watched)
        self._before = Look("branches", {})
        self._settled: dict[Place, Rows] = {}
        self._where: dict[str, tuple[Place, int]] = {}  # the values of settled records of topics that keep them
        self._last: dict[tuple[Place, str], int] = {}  # the newest settled offset of a sender
        self._told: dict[tuple[Place, int], Acked] = {}
        self._acks = 0
        self._open_acks: list[Acked] = []
        self._transactions = 0
        self._open: dict[str, Transaction] = {}
        self._transaction_of: dict[str, str] = {}  # by value
        self._copies = [_Copied(copy) for copy in history.copies]
        self.checked_whole = 0

    def judge(self, log: Mapping[Place, Rows], committed: Committed, bounds: Bounds) -> list[str]:
        """What is wrong with a branch, in words. One with which nothing is wrong is what the next is compared with."""
        self._take_news()
        found = [f"{place[0]}[{place[1]}] {what}" for place, what in self._changes(log)]
        found += [
            f"{place[0]}[{place[1]}] ends at {log[place].end if place in log else 0}, and had {end} before it began"
            for place, (_, end) in bounds.items()
            if place not in log or log[place].end < end
        ]
        if found:
            self.checked_whole += 1
            return [*summary(list(self._whole(log, committed))), *found]
        faults = [*self._dense(log), *self._since(log, committed), *self._copied(log, committed)]
        if not faults:
            self._settle(log, committed, bounds)
        return summary(faults)

    def _keeps(self, place: Place) -> bool:
        return self._history.rule(place[0]).policy is Policy.KEEP

    def _take_news(self) -> None:
        """What clients have said since."""
        new = self._history.acked[self._acks :]
        self._acks += len(new)
        self._open_acks += new
        for one in islice(self._history.transactions.values(), self._transactions, None):
            self._open[one.name] = one
        self._transactions = len(self._history.transactions)
        for one in self._open.values():
            self._transaction_of |= dict.fromkeys(one.values, one.name)

    # --- what was there before -----------------------------------------------------------------------------

    def _changes(self, log: Mapping[Place, Rows]) -> Iterator[tuple[Place, str]]:
        """What is not as it was in the branch before."""
        nothing = Rows(0, 0, pa.table({"offset": [], "key": [], "value": []}))
        compare: dict[Policy, Callable[[Rows, Rows], str]] = {
            Policy.KEEP: _changed_though_kept,
            Policy.EXPIRE: _changed_though_only_expired,
            Policy.COMPACT: _changed_though_only_compacted,
        }
        for place, old in self._settled.items():
            changed = compare[self._history.rule(place[0]).policy](old, log.get(place, nothing))
            if changed:
                yield place, changed

    def _whole(self, log: Mapping[Place, Rows], committed: Committed) -> Iterator[Fault]:
        """Everything that is wrong with a branch, whatever was known of those before."""
        records = {place: Partition(rows.start, rows.end, rows.records()) for place, rows in log.items()}
        history = replace(self._history, log=records, committed=dict(committed))
        yield from self._nothing_fell(history)
        for checker in (*_OF_ANY_PART, offsets_are_dense, copies_are_made_once):
            yield from checker(history)

    def _nothing_fell(self, history: History) -> Iterator[Fault]:
        return bounds_never_fall(replace(history, looks=[self._before]))

    # --- what has come since -------------------------------------------------------------------------------

    def _new(self, place: Place, rows: Rows) -> list[Record]:
        """The records past the settled ones; all of a topic from which some go."""
        return rows.records(self._kept(place))

    def _kept(self, place: Place) -> int:
        """How many records of a partition need no second look."""
        return self._settled[place].table.num_rows if place in self._settled and self._keeps(place) else 0

    def _kept_end(self, place: Place) -> int:
        """The offset behind those."""
        return self._settled[place].end if self._kept(place) else 0

    def _dense(self, log: Mapping[Place, Rows]) -> Iterator[Fault]:
        parts = {
            place: Partition(self._kept_end(place) or rows.start, rows.end, self._new(place, rows))
            for place, rows in log.items()
        }
        return offsets_are_dense(replace(self._history, log=parts))

    def _since(self, log: Mapping[Place, Rows], committed: Committed) -> Iterator[Fault]:
        """The new records, with those of the settled ones that say something of them."""
        new = {place: self._new(place, rows) for place, rows in log.items()}
        values = [value for records in new.values() for _, _, value in records]
        names = {self._transaction_of[value] for value in values if value in self._transaction_of} | self._open.keys()
        transactions = {name: self._history.transactions[name] for name in names}
        acked = [self._told[at] for one in self._open_acks if (at := (one.place, one.offset)) in self._told]
        acked += self._open_acks
        beside = {self._where[value] for value in values if value in self._where}
        beside |= {self._where[v] for one in transactions.values() for v in one.values if v in self._where}
        beside |= {(one.place, one.offset) for one in acked}
        for place, records in new.items():
            senders = {self._history.sent[value].sender for _, _, value in records if value in self._history.sent}
            beside |= {(place, self._last[place, s]) for s in senders if (place, s) in self._last}
        parts = self._parts(log, new, beside)
        history = replace(
            self._history,
            log=parts,
            committed=dict(committed),
            acked=acked,
            transactions=transactions,
        )
        yield from self._nothing_fell(history)
        for checker in _OF_ANY_PART:
            yield from checker(history)

    def _copied(self, log: Mapping[Place, Rows], committed: Committed) -> Iterator[Fault]:
        """The sources that are not known to be copied, and the copies of them and of what is copied again."""
        for copied in self._copies:
            copy = copied.copy
            new = {place: self._new(place, log[place]) for place in log if place[0] in (*copy.sources, *copy.targets)}
            beside: set[tuple[Place, int]] = set()
            copied_again: set[tuple[Place, int]] = set()
            for place, records in new.items():
                if place[0] in copy.sources:
                    beside |= {(place, offset) for offset in range(copied.upto.get(place, 0), self._kept_end(place))}
                    # A copy may be settled before its source: the ends of topics are seen one after another.
                    copied_again |= {(place, offset) for offset, _, _ in records}
                else:
                    copied_again |= {s for _, _, value in records if (s := source_of(value)) is not None}
            beside |= {copied.by_source[s] for s in beside | copied_again if s in copied.by_source}
            parts = self._parts({place: log[place] for place in new}, new, beside)
            yield from copies_are_made_once(replace(self._history, log=parts, committed=dict(committed), copies=[copy]))

    def _parts(
        self, log: Mapping[Place, Rows], new: Mapping[Place, list[Record]], beside: set[tuple[Place, int]]
    ) -> dict[Place, Partition]:
        """The new records of partitions and, with their true bounds, settled ones at some offsets beside them."""
        old: dict[Place, list[Record]] = {place: [] for place in log}
        for place, offset in sorted(beside):
            if place in log and self._kept(place) and offset < self._settled[place].end:
                old[place] += self._settled[place].records(offset - self._settled[place].start, 1)
        return {place: Partition(rows.start, rows.end, old[place] + new[place]) for place, rows in log.items()}

    # --- what needs no second look -------------------------------------------------------------------------

    def _settle(self, log: Mapping[Place, Rows], committed: Committed, bounds: Bounds) -> None:
        """Remember a branch with which nothing is wrong, up to where its lake was before it began."""
        watched = {who: offset for who, offset in committed.items() if who[0] in self._watched}
        self._before = Look("branches", bounds, watched)
        for place, (_, end) in bounds.items():
            rows = log[place]
            count = sum(offset < end for offset in rows.offsets) if not self._keeps(place) else end - rows.start
            first = self._kept(place)
            self._settled[place] = rows.first(count, end)
            if self._keeps(place):
                self._note_records(place, rows.records(first, count - first))
        self._told |= {(one.place, one.offset): one for one in self._open_acks}
        settled = {place: _Obligations.of(rows) for place, rows in self._settled.items() if not self._keeps(place)}
        self._open_acks = [one for one in self._open_acks if not self._is_settled(one, settled)]
        self._open = {name: one for name, one in self._open.items() if not self._is_over(one)}
        for copied in self._copies:
            for place, rows in self._settled.items():
                if place[0] in copied.copy.sources:
                    upto = copied.upto.get(place, rows.start)
                    while (place, upto) in copied.by_source:
                        upto += 1
                    copied.upto[place] = upto

    def _note_records(self, place: Place, records: Iterable[Record]) -> None:
        of_these = [copied for copied in self._copies if place[0] in copied.copy.targets]
        for offset, _, value in records:
            self._where.setdefault(value, (place, offset))
            sent = self._history.sent.get(value)
            if sent is not None:
                self._last[place, sent.sender] = offset
            source = source_of(value) if of_these else None
            for copied in of_these if source is not None else ():
                copied.by_source[source] = (place, offset)  # type: ignore[index]

    def _is_settled(self, one: Acked, obligations: Mapping[Place, "_Obligations"]) -> bool:
        """Whether an acknowledged record is among the settled ones, or is gone as its topic's rule lets it go."""
        if one.place not in self._settled:
            return False
        if self._history.rule(one.place[0]).policy is not Policy.COMPACT:
            return one.offset < self._settled[one.place].end
        kept = obligations[one.place]
        return one.offset in kept.offsets or kept.newest.get(one.key, -1) > one.offset

    def _is_over(self, one: Transaction) -> bool:
        """Whether nothing is left to be seen of a transaction but what the log's sameness says."""
        return one.told == "aborted" or (one.told == "committed" and all(value in self._where for value in one.values))


@dataclass(frozen=True)
class _Obligations:
    """Of a partition from which records go: the offsets that are there, and the newest of each key."""

    offsets: frozenset[int]
    newest: Mapping[str | None, int]

    @classmethod
    def of(cls, rows: Rows) -> "_Obligations":
        records = rows.records()
        return cls(frozenset(offset for offset, _, _ in records), {key: offset for offset, key, _ in records})


# What holds for any part of a log with its true bounds. What readers saw is not known of a branch.
_OF_ANY_PART: tuple[Callable[[History], Iterator[Fault]], ...] = (
    acknowledged_records_are_there,
    records_are_there_once,
    senders_order_is_kept,
    commits_are_not_past_the_end,
    transactions_are_whole,
)


def _changed_though_kept(old: Rows, new: Rows) -> str:
    there = new.table.slice(0, old.table.num_rows)
    if new.start == old.start and there.equals(old.table):
        return ""
    return _difference(old.records(), (there.num_rows and Rows(new.start, new.end, there).records()) or [])


def _changed_though_only_expired(old: Rows, new: Rows) -> str:
    if new.start < old.start:
        return f"begins at {new.start}, and began at {old.start}"
    before = [record for record in old.records() if record[0] >= new.start]
    return _difference(before, [record for record in new.records() if record[0] < old.end])


def _changed_though_only_compacted(old: Rows, new: Rows) -> str:
    records = new.records()
    newest = {key: offset for offset, key, _ in records}
    there = {record[0] for record in records}
    before = [one for one in old.records() if one[0] in there or newest.get(one[1], -1) <= one[0]]
    return _difference(before, [record for record in records if record[0] < old.end])


def _difference(before: list[Record], now: list[Record]) -> str:
    """The first of the records that differ, "" where none does."""
    if before == now:
        return ""
    for at, record in enumerate(before):
        if at >= len(now) or now[at] != record:
            instead = _in_words(now[at]) if at < len(now) else "nothing"
            return f"had {_in_words(record)} in the branch before, and has {instead}"
    return f"has {_in_words(now[len(before)])}, which the branch before had not"


def _in_words(record: Record) -> str:
    return f"{record[2]} at {record[0]}" + ("" if record[1] is None else f" of {record[1]}")
