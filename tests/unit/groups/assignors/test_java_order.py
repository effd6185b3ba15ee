"""The order of names that decides between members with equal rights: Java's, whatever order a caller lists them in."""

import pytest

from tidelog.groups import ASSIGNORS, assign
from tidelog.groups.assignors.java_order import bucket, hash_order, partition_hash, string_hash, table_size, utf16_key
from tidelog.groups.assignors.partition_movements import Movements


@pytest.mark.parametrize(
    ("name", "code"),
    [("", 0), ("a", 97), ("ab", 3105), ("consumer1", 3873962747), ("Aa", 2112), ("BB", 2112), ("é", 233)],
)
def test_string_hash_is_javas(name, code):
    assert string_hash(name) == code


def test_string_hash_counts_utf16_units():
    assert string_hash("𝄞") == 31 * 0xD834 + 0xDD1E


def test_names_sort_by_utf16_units():
    assert sorted(["\ue000", "𝄞", "z"], key=utf16_key) == ["z", "𝄞", "\ue000"]


@pytest.mark.parametrize(
    ("names", "order"),
    [
        (["C0", "C1", "C2", "C3"], ["C3", "C0", "C1", "C2"]),
        (["consumer1", "consumer2", "consumer3"], ["consumer3", "consumer2", "consumer1"]),
        (["BB", "Aa"], ["Aa", "BB"]),
        ([f"C{n}" for n in range(12)], ["C3", "C4", "C11", "C5", "C10", "C6", "C7", "C8", "C9", "C0", "C1", "C2"]),
        ([*(f"C{n}" for n in range(10)), "z", "y", "x"], [*(f"C{n}" for n in range(10)), "x", "y", "z"]),
    ],
)
def test_names_come_as_a_hash_map_walks_them(names, order):
    assert hash_order(names) == order


@pytest.mark.parametrize(("keys", "size"), [(0, 16), (12, 16), (13, 32), (24, 32), (25, 64), (1000, 2048)])
def test_a_hash_map_is_three_quarters_full_at_most(keys, size):
    assert table_size(keys) == size


def test_a_hash_set_that_has_grown_stays_large():
    assert table_size(1, size=64) == 64


def test_the_high_half_of_a_hash_moves_names_too():
    assert [bucket(code, 16) for code in (0x00005, 0x10005, 0x30005)] == [5, 4, 6]


def test_a_partitions_hash_is_javas():
    assert partition_hash(string_hash("t"), 2) == 31 * (31 + 2) + 116


def test_the_walk_decides_who_keeps_one_more():
    topic, owned = {"t": 4}, {"C2": [("t", 0), ("t", 1)], "C3": [("t", 2), ("t", 3)]}
    shared = assign("sticky", {"C1": ["t"], "C2": ["t"], "C3": ["t"]}, topic, owned)
    assert shared == {"C1": [("t", 1)], "C2": [("t", 0)], "C3": [("t", 2), ("t", 3)]}


@pytest.mark.parametrize("strategy", ASSIGNORS)
@pytest.mark.parametrize("others", [["t"], ["t", "u"]])
def test_members_take_turns_by_utf16_units(strategy, others):
    shared = assign(strategy, {"\ue000": others, "𝄞": ["t"]}, {"t": 2})
    assert shared == {"𝄞": [("t", 0)], "\ue000": [("t", 1)]}


# --- moves that cancel out ---------------------------------------------------------------------------------

T0, T1, T2, T20, U0 = ("t", 0), ("t", 1), ("t", 2), ("t", 20), ("u", 0)


@pytest.mark.parametrize(
    ("moves", "wanted", "cheapest"),
    [
        pytest.param([], (T0, "a", "b"), T0, id="nothing has moved"),
        pytest.param([(T0, "b", "a")], (T1, "a", "b"), T0, id="one goes back"),
        pytest.param([(T0, "b", "a")], (U0, "a", "b"), U0, id="another topic"),
        pytest.param([(T0, "b", "a")], (T1, "a", "c"), T1, id="another taker"),
        pytest.param([(T0, "b", "a"), (T0, "a", "b")], (T1, "a", "b"), T1, id="it went back already"),
        pytest.param([(T0, "c", "b"), (T0, "b", "a")], (T1, "a", "c"), T0, id="two moves are one"),
        pytest.param([(T0, "b", "a"), (T1, "a", "c")], (T1, "c", "b"), T0, id="from its first holder, not its last"),
        pytest.param([(T1, "b", "a"), (T2, "b", "a")], (T0, "a", "b"), T2, id="the first of a HashSet"),
        pytest.param([(("t", 14), "b", "a"), (T1, "b", "a")], (T0, "a", "b"), T1, id="by its place there"),
        pytest.param([(("t", n), "b", "a") for n in range(12)], (U0, "a", "b"), U0, id="a full set of another topic"),
        pytest.param([(("t", n), "b", "a") for n in range(12)], (T20, "a", "b"), ("t", 5), id="of a full table of 16"),
        pytest.param([(("t", n), "b", "a") for n in range(13)], (T20, "a", "b"), ("t", 12), id="of a table of 32"),
    ],
)
def test_the_partition_that_is_cheapest_to_move(moves, wanted, cheapest):
    movements = Movements()
    for move in moves:
        movements.record(*move)
    assert movements.cheapest(*wanted) == cheapest
