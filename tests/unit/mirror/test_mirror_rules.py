"""What a mirror decides, as tables: what to ship next, what diverged, which lake may follow which."""

import re

import pytest

from tidelog.cuts.rules import decisions, known_up_to, markers
from tidelog.log.base.errors import CorruptLogError
from tidelog.log.config.lake_file import Follows
from tidelog.log.delta.actions import CommitInfo, Entry, Txn, encode_entry
from tidelog.mirror.divergence import Divergence, first_difference
from tidelog.mirror.follower_setup import NotItsFollowerError, Pair, require_adoptable
from tidelog.mirror.plan import (
    MANY_ENTRIES,
    Ship,
    SourceHead,
    TableStart,
    intent_files,
    plan_round,
)
from tidelog.mirror.round_journal import JournalEntry, decode, encode
from tidelog.mirror.tables import Rank, rank

T, G, S = "__transaction_state", "__consumer_offsets", "_schemas"
RANKS = {"a": Rank.TOPICS, "b": Rank.TOPICS, T: Rank.TRANSACTIONS, G: Rank.GROUPS, S: Rank.SCHEMAS}


@pytest.mark.parametrize(
    ("source", "follower", "stable", "starts", "ships", "atomic", "whole"),
    [
        ({}, {}, True, [], [], False, True),
        ({"a": (7, -1)}, {"a": 7}, True, [], [], False, True),
        ({"a": (7, -1)}, {"a": 4}, True, [], [Ship("a", 4, 7)], False, True),
        ({"a": (7, -1)}, {}, True, [], [Ship("a", -1, 7)], False, True),
        ({"a": (7, 4)}, {"a": 4}, True, [], [Ship("a", 4, 7)], False, True),
        ({"a": (7, 5)}, {"a": 4}, True, [TableStart("a", 7, True)], [], False, True),
        ({"a": (7, 5)}, {}, True, [TableStart("a", 7, False)], [], False, True),
        ({"a": (MANY_ENTRIES, -1)}, {}, True, [TableStart("a", MANY_ENTRIES, False)], [], False, True),
        ({"a": (MANY_ENTRIES, -1)}, {"a": 0}, True, [], [Ship("a", 0, MANY_ENTRIES)], False, True),
        # Schemas before records, groups after them, transactions last; and then all or nothing.
        (
            {T: (3, -1), G: (5, -1), "b": (1, -1), "a": (1, -1), S: (2, -1)},
            {T: 2, G: 4, "b": 0, "a": 0, S: 1},
            True,
            [],
            [Ship(S, 1, 2), Ship("a", 0, 1), Ship("b", 0, 1), Ship(G, 4, 5), Ship(T, 2, 3)],
            True,
            True,
        ),
        ({G: (5, -1), "a": (1, -1)}, {G: 4, "a": 0}, True, [], [Ship("a", 0, 1), Ship(G, 4, 5)], False, True),
        # Transactions went on while the heads were read: they and groups wait.
        ({T: (3, -1), G: (5, -1), "a": (1, -1)}, {T: 2, G: 4, "a": 0}, False, [], [Ship("a", 0, 1)], False, False),
        ({T: (3, -1), "a": (1, -1)}, {T: 3, "a": 0}, False, [], [Ship("a", 0, 1)], False, True),
        # A follower that is ahead gets nothing: that it diverged is found elsewhere.
        ({"a": (7, -1)}, {"a": 9}, True, [], [], False, True),
    ],
)
def test_what_a_round_ships(
    source: dict[str, tuple[int, int]],
    follower: dict[str, int],
    stable: bool,
    starts: list[TableStart],
    ships: list[Ship],
    atomic: bool,
    whole: bool,
) -> None:
    heads = {name: SourceHead(*head) for name, head in source.items()}
    plan = plan_round(heads, follower, RANKS, stable=stable)
    assert (list(plan.starts), list(plan.ships), plan.atomic, plan.whole) == (starts, ships, atomic, whole)


@pytest.mark.parametrize(
    ("txn", "applies"),
    [
        (Txn("tidelog/transaction/x", 7), {"x": 7}),
        (Txn("tidelog/transaction/a/b", 0), {"a/b": 0}),
        (Txn("tidelog/transaction/x", 7, 1_000), {}),  # retired
        (Txn("tidelog/transaction/x", -1), {}),  # none, by a creation again
        (Txn("tidelog/transaction-floor", 7), {}),
        (Txn("tidelog/end/0", 7), {}),
    ],
)
def test_which_transactions_an_entry_applies(txn: Txn, applies: dict[str, int]) -> None:
    assert markers([txn]) == applies


@pytest.mark.parametrize(
    ("decided", "to"),
    [({}, 4), ({"x": 1}, 4), ({"x": 2}, 5), ({"x": 2, "y": 9}, 7), ({"x": 3, "y": 9}, 7), ({"y": 9}, 4)],
)
def test_a_topic_waits_before_a_transaction_that_the_follower_does_not_know(decided: dict[str, int], to: int) -> None:
    entries = [(4, {}), (5, {"x": 2}), (6, {"y": 9}), (7, {})]
    assert known_up_to(entries, decided, 7) == to


def test_what_an_intent_names_and_decides() -> None:
    segment = {"path": "partition=0/1-a.parquet", "size": 7}
    intent = {"kind": "transaction", "id": "x", "event": "intent", "epoch": 2, "number": 3}
    rows = (
        {**intent, "parts": [{"topic": "a", "segments": [segment]}]},
        {"kind": "transaction", "id": "y", "event": "done", "epoch": 1, "number": 1},
        {"kind": "transaction", "id": "z", "deleted": True},
        {"kind": "part", "id": "w", "event": "part", "epoch": 0, "parts": [{"topic": "b", "segments": [segment]}]},
    )
    entry = Entry(3, (), CommitInfo(0, "WRITE", "r", rows=rows))
    assert intent_files(entry) == {"a/partition=0/1-a.parquet": 7}
    assert decisions(entry) == {"x": 2 * 2**32 + 3, "y": 2**32 + 1}


@pytest.mark.parametrize("differs", range(1, 20))
def test_the_first_difference_is_found_by_halves(differs: int) -> None:
    asked = []

    def same(version: int) -> bool:
        asked.append(version)
        return version < differs

    assert first_difference(0, 18, same) == differs
    assert len(asked) <= 5
    assert all(0 < version <= 18 for version in asked)


def test_a_divergence_names_both_sides_and_survives_its_json() -> None:
    found = Divergence("t", 7, "WRITE of request a", "WRITE of request b", 2, {0: (4, 9)})
    assert Divergence.from_json(found.to_json()) == found
    assert "request a, the follower WRITE of request b" in str(found)
    assert "partition 0: offsets 4 to 8" in str(found)


EMPTY: dict[str, str | None] = {}


@pytest.mark.parametrize(
    ("pair", "says"),
    [
        (Pair("a", "b", None, None, {"t": "1"}, EMPTY), None),
        (Pair("a", "b", None, None, {"t": "1", "u": "2"}, {"t": "1"}), None),
        (Pair("a", "b", None, Follows("a"), EMPTY, EMPTY), None),
        (Pair("a", "b", Follows("c"), None, EMPTY, EMPTY), None),  # a chain
        (Pair("a", "a", None, None, EMPTY, EMPTY), "can't follow itself"),
        (Pair("a", "b", Follows("b"), None, EMPTY, EMPTY), "follows b itself"),
        (Pair("a", "b", None, Follows("c"), EMPTY, EMPTY), "follows c, not a"),
        (Pair("a", "b", None, Follows("a", promoting=True), EMPTY, EMPTY), "made a lake of its own"),
        (Pair("a", "b", None, None, {"t": "1"}, {"t": "2"}), "tables that are not those of a: t"),
        (Pair("a", "b", None, None, {"t": "1"}, {"u": "1"}), "tables that are not those of a: u"),
        (Pair("a", "b", None, None, {"t": None}, {"t": None}), "tables that are not those of a: t"),
    ],
)
def test_which_lake_may_follow_which(pair: Pair, says: str | None) -> None:
    if says is None:
        require_adoptable(pair)
    else:
        with pytest.raises(NotItsFollowerError, match=says):
            require_adoptable(pair)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("orders", Rank.TOPICS),
        ("payments", None),  # not asked for
        ("_schemas", Rank.SCHEMAS),
        ("__access", Rank.ACCESS),
        ("__consumer_offsets", Rank.GROUPS),
        ("__consumer_offsets-3", Rank.GROUPS),
        ("__transaction_state", Rank.TRANSACTIONS),
        ("__audit", Rank.TOPICS),
        ("__cluster", None),
        ("__mirror", None),
        ("__tidelog-proof-1", None),
        ("_delta_log", None),
        ("no topic's name", None),
    ],
)
def test_which_tables_are_shipped_and_in_which_order(name: str, found: Rank | None) -> None:
    assert rank(name, re.compile("ord.*")) is found


def test_a_journal_is_read_back_or_not_at_all() -> None:
    entries = [
        JournalEntry("a", 1, b"x\ny\n"),
        JournalEntry("b", 2, b""),
        JournalEntry("a", 2, encode_entry((), CommitInfo(0, "W", "r"))),
    ]
    data = encode(entries)
    assert decode(data) == entries
    for cut in range(len(data)):
        with pytest.raises(CorruptLogError):
            decode(data[:cut])
