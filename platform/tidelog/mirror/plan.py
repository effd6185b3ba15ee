"""What a round ships: pure decisions over two lists of heads, and over what entries say of transactions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tidelog.log.delta import layout
from tidelog.log.delta.actions import Action, Txn
from tidelog.mirror.tables import Rank

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


def markers(actions: Iterable[Action]) -> dict[str, int]:
    """The transactions that an entry applies: {transactional id: epoch · 2^32 + number}."""
    prefix = layout.TRANSACTION_PREFIX
    return {a.app_id.removeprefix(prefix): a.version for a in actions if isinstance(a, Txn) if _applies(a)}


def _applies(txn: Txn) -> bool:
    # One with a time is a marker that is retired (it expires from now on), one of -1 is none.
    return txn.app_id.startswith(layout.TRANSACTION_PREFIX) and txn.version >= 0 and txn.last_updated_ms is None


def known_up_to(entries: Sequence[tuple[int, Mapping[str, int]]], decided: Mapping[str, int], to: int) -> int:
    """How far a topic's entries rest on transactions that the follower knows, when it gets them up to `to`.

    `entries`: (version, markers) in order. `decided`: the newest decision of each transactional id at the follower.

    >>> known_up_to([(5, {}), (6, {"t": 7}), (7, {})], {"t": 6}, 7), known_up_to([(5, {}), (6, {"t": 7})], {"t": 7}, 6)
    (5, 6)
    """
    for version, applied in entries:
        if any(number > decided.get(name, -1) for name, number in applied.items()):
            return version - 1
    return to
