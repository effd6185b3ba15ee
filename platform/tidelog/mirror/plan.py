"""What a round ships: pure decisions over two lists of heads, and over what entries say and bring along."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from tidelog.cuts.rules import decisions, markers
from tidelog.log.delta import layout
from tidelog.log.delta.actions import Add, CommitInfo, Entry, Metadata, Remove, decode_entry
from tidelog.mirror.tables import Rank
from tidelog.transactions.rows import TRANSACTION
from tidelog.transactions.rules import INTENT

# A follower that lacks a table begins it from a checkpoint, if there is one, when it has more entries than this.
MANY_ENTRIES: Final = 300


@dataclass(frozen=True, slots=True)
class SourceHead:
    """A table at the source: the version of its newest entry, and the floor, up to which entries may be gone."""

    version: int
    floor: int = -1


@dataclass(frozen=True, slots=True)
class Ship:
    """Entries (after, to] of a table are shipped, one after another."""

    table: str
    after: int
    to: int


@dataclass(frozen=True, slots=True)
class TableStart:
    """A table is begun from a checkpoint of a version up to `to`: what is before is not kept at the source, or long.

    `again`: the follower has an older part of it, and was away for longer than the source keeps its log.
    """

    table: str
    to: int
    again: bool


@dataclass(frozen=True, slots=True)
class RoundPlan:
    """`starts`, then `ships`, in their order. `atomic`: the follower gets all entries of the round, or none.

    `whole`: the round leaves the follower as the source was at one time.
    """

    starts: tuple[TableStart, ...] = ()
    ships: tuple[Ship, ...] = ()
    atomic: bool = False
    whole: bool = True

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to ship."""
        return not (self.starts or self.ships)


def begins(head: SourceHead, have: int | None) -> bool:
    """Whether a table of which the follower has entries up to `have`, if any, is begun from a checkpoint.

    >>> begins(SourceHead(9, floor=4), 3), begins(SourceHead(9), None), begins(SourceHead(MANY_ENTRIES), None)
    (True, False, True)
    """
    return head.floor > (-1 if have is None else have) or (have is None and head.version >= MANY_ENTRIES)


def plan_round(
    source: Mapping[str, SourceHead], follower: Mapping[str, int], ranks: Mapping[str, Rank], *, stable: bool
) -> RoundPlan:
    """What to ship so that the follower's heads become the source's.

    `follower`: each table's newest version there; a table that it lacks is not in it. `stable`: no transaction was
    decided while the source's heads were read. Else what transactions decide, and offsets that may rest on it, stay for
    another round. A round with decisions of transactions is atomic: their parts are in several tables.

    Example: `orders` is at 7 and the follower has it up to 4; transactions are at 9 and 9: Ship("orders", 4, 7), which
    need not be atomic.
    """
    starts, ships = [], []
    held_back = False
    for table in sorted(source, key=lambda name: (ranks[name], name)):
        head, have = source[table], follower.get(table, -1)
        if head.version <= have:
            continue
        if not stable and ranks[table] >= Rank.GROUPS:
            held_back = True
            continue
        if begins(head, follower.get(table)):
            starts.append(TableStart(table, head.version, again=table in follower))
        else:
            ships.append(Ship(table, have, head.version))
    atomic = any(ranks[s.table] is Rank.TRANSACTIONS for s in ships)
    return RoundPlan(tuple(starts), tuple(ships), atomic, not held_back)


@dataclass(frozen=True, slots=True)
class ShippedEntry:
    """An entry as a mirror sees it. Files by path below the lake's root, with their bytes.

    `adds`: they must be there before it. `removes`: it takes them out. `strange`: an engine other than tidelog wrote
    them; a reader by such an engine may miss them. `intents`: a decided transaction needs them.
    `decided`: the newest decision of transactional ids. `applied`: the decisions that it applies.
    """

    table: str
    version: int
    data: bytes
    info: CommitInfo
    adds: Mapping[str, int]
    removes: frozenset[str]
    strange: Mapping[str, int]
    intents: Mapping[str, int]
    decided: Mapping[str, int]
    applied: Mapping[str, int]
    alters: bool


def read_entry(table: str, version: int, data: bytes, *, decides: bool) -> ShippedEntry:
    """Read an entry of a table; `decides`: it is of the log of transactions. Raises `CorruptLogError`."""
    entry = decode_entry(version, data, f"{table}/{layout.entry_path(version)}")
    adds = {f"{table}/{unquote(a.path)}": a.size for a in entry.actions if isinstance(a, Add)}
    removes = frozenset(f"{table}/{unquote(a.path)}" for a in entry.actions if isinstance(a, Remove))
    touched = () if entry.touched is None else entry.touched.files
    strange = {f"{table}/{unquote(r.path)}": r.size for r in touched}
    return ShippedEntry(
        table,
        version,
        data,
        entry.info,
        adds,
        removes,
        strange,
        intent_files(entry) if decides else {},
        decisions(entry) if decides else {},
        {} if decides else markers(entry.actions),
        any(isinstance(a, Metadata) for a in entry.actions),
    )


def intent_files(entry: Entry) -> dict[str, int]:
    """The staged segments that the intents of an entry commit."""
    files: dict[str, int] = {}
    for row in entry.info.rows:
        if row.get("kind") == TRANSACTION and row.get("event") == INTENT:
            for part in row.get("parts") or ():
                files |= {f"{part['topic']}/{s['path']}": s["size"] for s in part["segments"]}
    return files


def needed_files(entries: Iterable[ShippedEntry]) -> dict[str, int]:
    """The files that entries bring to the follower."""
    files: dict[str, int] = {}
    for entry in entries:
        files |= entry.adds
        files |= entry.strange
        files |= entry.intents
    return files
