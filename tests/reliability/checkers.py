"""Independent checkers: what must hold between what clients saw and the final log, whatever went wrong meanwhile.

They read a `History` and nothing else.
"""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from history import Acked, Copy, History, Look, Place, Policy, Transaction, source_of

SHOWN = 5


class Kind(StrEnum):
    """What can be wrong."""

    LOST = "an acknowledged record is not in the log"
    MOVED = "an acknowledged record's offset has another record"
    OFFSET_TWICE = "two records were acknowledged at one offset"
    DUPLICATED = "a record is in the log twice"
    INVENTED = "the log has a record that nobody sent there"
    REORDERED = "a producer's records are not in the order of sending"
    HOLE = "an offset has no record"
    DISORDER = "offsets do not rise"
    OUTSIDE = "a record lies outside of the log's bounds"
    SKIPPED = "a reader skipped a record"
    WENT_BACK = "a reader went back"
    CHANGED = "a reader saw another record than the log has"
    UNASSIGNED = "a reader read what it was not assigned"
    UNREAD = "a group committed past a record that no member read"
    ABORTED_SEEN = "a record of an aborted transaction is seen"
    UNFINISHED_SEEN = "a record of a transaction is seen whose commit nobody asked for"
    TORN = "a transaction is there in part"
    TRANSACTION_LOST = "a committed transaction is not there"
    PAST_THE_END = "a committed offset is past the end"
    COMMIT_FELL = "a committed offset fell"
    START_FELL = "a log start offset fell"
    END_FELL = "a log end offset fell"
    COPIED_TWICE = "a record was copied twice"
    NOT_COPIED = "a record is not copied, though the offset behind it is committed"
    COPIED_AHEAD = "a record is copied, though the offset behind it is not committed"


@dataclass(frozen=True, slots=True)
class Fault:
    """Something wrong: what, and where."""

    kind: Kind
    where: str

    def __str__(self) -> str:
        return f"{self.kind.value}: {self.where}"


def check(history: History) -> list[Fault]:
    """Everything that is wrong with a history."""
    return [fault for checker in CHECKERS for fault in checker(history)]


def summary(faults: list[Fault]) -> list[str]:
    """The faults in words, some of each kind."""
    counts = Counter(fault.kind for fault in faults)
    lines = []
    for kind, count in counts.items():
        lines += [str(fault) for fault in faults if fault.kind is kind][:SHOWN]
        if count > SHOWN:
            lines.append(f"{kind.value}: {count - SHOWN} more")
    return lines


# --- producers ---------------------------------------------------------------------------------------------


def acknowledged_records_are_there(history: History) -> Iterator[Fault]:
    """Each acknowledged record is at its offset, unless its topic's policy let it go."""
    logs = {place: {o: (key, value) for o, key, value in one.records} for place, one in history.log.items()}
    newest: dict[tuple[Place, str | None], int] = {}
    for place, one in history.log.items():
        for offset, key, _ in one.records:
            newest[place, key] = max(offset, newest.get((place, key), -1))
    told: dict[tuple[Place, int], str] = {}
    for acked in history.acked:
        where = f"{acked.value} at {_at(acked.place, acked.offset)}"
        before = told.setdefault((acked.place, acked.offset), acked.value)
        if before != acked.value:
            yield Fault(Kind.OFFSET_TWICE, f"{where}, where {before} is")
        found = logs.get(acked.place, {}).get(acked.offset)
        if found is not None and found[1] != acked.value:
            yield Fault(Kind.MOVED, f"{where}, where {found[1]} is")
        elif found is None and not _may_be_gone(history, acked, newest):
            yield Fault(Kind.LOST, where)


def _may_be_gone(history: History, acked: Acked, newest: dict[tuple[Place, str | None], int]) -> bool:
    policy = history.rule(acked.place[0]).policy
    if policy is Policy.EXPIRE:
        return acked.place in history.log and acked.offset < history.log[acked.place].start
    return policy is Policy.COMPACT and newest.get((acked.place, acked.key), -1) > acked.offset


def records_are_there_once(history: History) -> Iterator[Fault]:
    """Nothing is in the log that was not sent there, and with idempotence nothing twice."""
    found: dict[str, str] = {}
    for place, one in history.log.items():
        for offset, _, value in one.records:
            where = f"{value} at {_at(place, offset)}"
            sent = history.sent.get(value)
            if (sent is None or sent.topic != place[0]) and not _is_copy_of_all(history, place, value):
                yield Fault(Kind.INVENTED, where)
            if value in found and history.rule(place[0]).once:
                yield Fault(Kind.DUPLICATED, f"{where}, and {found[value]}")
            found[value] = _at(place, offset)


def _is_copy_of_all(history: History, place: Place, value: str) -> bool:
    """Whether it is a copy of a record that is there, by one of whom nothing but its copies is known."""
    source = source_of(value)
    if source is None or source[0] not in history.log:
        return False
    (topic, _), offset = source
    one = history.log[source[0]]
    is_due = any(c.group is None and topic in c.sources and place[0] in c.targets for c in history.copies)
    return is_due and one.start <= offset < one.end


def senders_order_is_kept(history: History) -> Iterator[Fault]:
    """In a partition, the records of one producer session are in the order of sending."""
    for place, one in history.log.items():
        if not history.rule(place[0]).once:
            continue
        last: dict[str, int] = {}
        for offset, _, value in one.records:
            sent = history.sent.get(value)
            if sent is None:
                continue
            if sent.number < last.get(sent.sender, 0):
                yield Fault(Kind.REORDERED, f"{value} of {sent.sender} at {_at(place, offset)}")
            last[sent.sender] = sent.number


# --- the log -----------------------------------------------------------------------------------------------


def offsets_are_dense(history: History) -> Iterator[Fault]:
    """Offsets rise, lie within the bounds, and have no hole but where compaction makes them."""
    for place, one in history.log.items():
        due = one.start
        holes = history.rule(place[0]).policy is Policy.COMPACT
        for offset, _, _ in one.records:
            if not one.start <= offset < one.end:
                yield Fault(Kind.OUTSIDE, f"{_at(place, offset)} of [{one.start}, {one.end})")
            elif offset < due:
                yield Fault(Kind.DISORDER, f"{_at(place, offset)} follows {due - 1}")
            elif offset > due and not holes:
                yield Fault(Kind.HOLE, f"{_at(place, due)} to {offset - 1}")
            due = max(due, offset + 1)
        if due < one.end and not holes:
            yield Fault(Kind.HOLE, f"{_at(place, due)} to {one.end - 1}")


def bounds_never_fall(history: History) -> Iterator[Fault]:
    """Start and end of a partition, and a group's offsets, never fall as one observer sees them."""
    last: dict[str, Look] = {}
    looks = [*history.looks]
    end = history.look_at_the_end()
    for look in [*looks, *(Look(by, end.bounds, end.committed) for by in sorted({one.by for one in looks}))]:
        before = last.get(look.by, Look(look.by, {}))
        for place, (start, stop) in look.bounds.items():
            old_start, old_stop = before.bounds.get(place, (0, 0))
            if start < old_start:
                yield Fault(Kind.START_FELL, f"{place} from {old_start} to {start}")
            if stop < old_stop:
                yield Fault(Kind.END_FELL, f"{place} from {old_stop} to {stop}")
        for who, offset in look.committed.items():
            if offset < before.committed.get(who, 0):
                yield Fault(Kind.COMMIT_FELL, f"{who} from {before.committed[who]} to {offset}")
        last[look.by] = Look(look.by, {**before.bounds, **look.bounds}, {**before.committed, **look.committed})


def commits_are_not_past_the_end(history: History) -> Iterator[Fault]:
    """A group's offset is never past the end that is looked up after it."""
    for look in [*history.looks, history.look_at_the_end()]:
        for (group, place), offset in look.committed.items():
            if place in look.bounds and offset > look.bounds[place][1]:
                yield Fault(
                    Kind.PAST_THE_END, f"{group} at {_at(place, offset)}, which ends at {look.bounds[place][1]}"
                )


# --- readers -----------------------------------------------------------------------------------------------


def readers_neither_skip_nor_go_back(history: History) -> Iterator[Fault]:
    """Within an assignment a reader gets every record that is there, in order, as the log has it."""
    for reader, place, offset in history.unassigned:
        yield Fault(Kind.UNASSIGNED, f"{reader}: {_at(place, offset)}")
    offsets = {place: [offset for offset, _, _ in one.records] for place, one in history.log.items()}
    values = {place: {offset: value for offset, _, value in one.records} for place, one in history.log.items()}
    for stretch in history.stretches:
        there, place = offsets.get(stretch.place, []), stretch.place
        keeps = history.rule(place[0]).policy is Policy.KEEP
        last: int | None = None
        for offset, value in stretch.reads:
            where = f"{stretch.reader}: {_at(place, offset)}"
            if last is not None and offset <= last:
                yield Fault(Kind.WENT_BACK, f"{where} after {last}")
            elif last is not None and offset > last + 1:
                next_one = bisect_right(there, last)
                if keeps or (next_one < len(there) and there[next_one] < offset):
                    yield Fault(Kind.SKIPPED, f"{where} after {last}")
            known = values.get(place, {}).get(offset)
            if known is not None and known != value:
                yield Fault(Kind.CHANGED, f"{where} was {value}, and is {known}")
            elif known is None and keeps:
                yield Fault(Kind.CHANGED, f"{where} was {value}, and is not there")
            last = offset if last is None else max(offset, last)


def groups_read_what_they_commit(history: History) -> Iterator[Fault]:
    """Each record below a group's committed offset was read by some member."""
    read: dict[tuple[str, Place], set[int]] = defaultdict(set)
    for stretch in history.stretches:
        read[stretch.group, stretch.place].update(offset for offset, _ in stretch.reads)
    for (group, place), committed in history.committed.items():
        if place not in history.log or history.rule(place[0]).policy is not Policy.KEEP:
            continue
        for offset, _, value in history.log[place].records:
            if offset < committed and offset not in read[group, place]:
                yield Fault(Kind.UNREAD, f"{group}: {value} at {_at(place, offset)}, committed is {committed}")


# --- transactions ------------------------------------------------------------------------------------------


def transactions_are_whole(history: History) -> Iterator[Fault]:
    """A transaction's records are all there or none; none of one that was aborted, or without a request to commit."""
    there = {value for one in history.log.values() for _, _, value in one.records}
    seen = there | {value for stretch in history.stretches for _, value in stretch.reads}
    for one in history.transactions.values():
        shown = sorted(seen.intersection(one.values))
        present = len(there.intersection(one.values))
        if shown and one.told == "aborted":
            yield Fault(Kind.ABORTED_SEEN, f"{one.name}: {shown[0]}")
        elif shown and not one.asked_to_commit:
            yield Fault(Kind.UNFINISHED_SEEN, f"{one.name}: {shown[0]}")
        elif not one.values:
            continue
        elif not present and one.told == "committed":
            yield Fault(Kind.TRANSACTION_LOST, one.name)
        elif _is_torn(history, one, present, bool(shown)):
            yield Fault(Kind.TORN, f"{one.name}: {present} of {len(one.values)} records are there")


def _is_torn(history: History, one: Transaction, present: int, shown: bool) -> bool:
    keeps = all(history.rule(topic).policy is Policy.KEEP for topic in one.values.values())
    return keeps and shown and present < len(one.values)


def copies_are_made_once(history: History) -> Iterator[Fault]:
    """What was read, transformed and produced with the group's offsets is there exactly as far as those say."""
    for copy in history.copies:
        yield from _copied_once(history, copy)


def _copied_once(history: History, copy: Copy) -> Iterator[Fault]:
    copied: dict[tuple[Place, int], str] = {}
    for place, one in history.log.items():
        for offset, _, value in one.records if place[0] in copy.targets else ():
            source = source_of(value)
            if source is None:
                continue
            if source in copied:
                yield Fault(Kind.COPIED_TWICE, f"{_at(*source)} to {copied[source]} and to {_at(place, offset)}")
            copied[source] = _at(place, offset)
    for place, one in history.log.items():
        if place[0] not in copy.sources:
            continue
        if copy.goes_on:
            upto = max((offset + 1 for at, offset in copied if at == place), default=0)
        else:
            upto = one.end if copy.group is None else history.committed.get((copy.group, place), 0)
        for offset, _, _ in one.records:
            if offset < upto and (place, offset) not in copied:
                yield Fault(Kind.NOT_COPIED, f"{_at(place, offset)}, committed is {upto}")
            elif offset >= upto and (place, offset) in copied:
                yield Fault(Kind.COPIED_AHEAD, f"{_at(place, offset)}, committed is {upto}")


def _at(place: Place, offset: int) -> str:
    return f"{place[0]}[{place[1]}]@{offset}"


CHECKERS: tuple[Callable[[History], Iterator[Fault]], ...] = (
    acknowledged_records_are_there,
    records_are_there_once,
    senders_order_is_kept,
    offsets_are_dense,
    bounds_never_fall,
    commits_are_not_past_the_end,
    readers_neither_skip_nor_go_back,
    groups_read_what_they_commit,
    transactions_are_whole,
    copies_are_made_once,
)
