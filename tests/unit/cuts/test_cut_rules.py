"""What belongs to a cut, as tables: entries of topics, settled offsets, positions, names."""

import pytest

from tidelog.cuts.model import Cut, CutExistsError, CutTable, InvalidCutNameError, UnknownCutError
from tidelog.cuts.rows import KIND, CutsFold, cut_row, gone_row
from tidelog.cuts.rules import (
    TableAt,
    check_name,
    decide_create,
    decide_delete,
    is_torn,
    known_up_to,
    positions_within,
    settles,
)
from tidelog.log.delta.actions import CommitInfo, Entry, Metadata, Txn
from tidelog.transactions.model import TransactionKey, Verdict

CUT = Cut("friday", "id-1", 1_700_000_000_000, {"a": CutTable(7, "t-1", ((0, 5), (2, 9)))}, {"g": {("a", 1): 9}}, True)


@pytest.mark.parametrize(
    ("applied", "to", "torn"),
    [
        ([], 9, False),
        ([(8, {"x": 1}), (9, {})], 9, False),
        ([(8, {"x": 2}), (9, {})], 7, False),  # decided after the cut
        ([(8, {"y": 0}), (9, {})], 7, False),  # an id that the cut does not know
        ([(8, {"x": 2}), (9, {"x": 1})], 7, True),  # then the cut lacks the part of a transaction that it has
        ([(8, {"x": 1}), (9, {"x": 2})], 8, False),
        ([(8, {"y": 3, "x": 1})], 7, True),  # both in one entry: neither can be had alone
    ],
)
def test_where_a_topic_is_cut(applied: list[tuple[int, dict[str, int]]], to: int, torn: bool) -> None:
    decided = {"x": 1}
    at = known_up_to(applied, decided, 9)
    assert (at, is_torn(applied, decided, at)) == (to, torn)


@pytest.mark.parametrize(
    ("row", "ends"),
    [
        ({"kind": "pending", "deleted": True, "transaction": 2}, True),
        ({"kind": "pending", "deleted": True, "transaction": 1}, False),  # it is part of the cut
        ({"kind": "pending", "transaction": 2}, False),  # it waits
        ({"kind": "offset", "deleted": True}, False),
        ({"kind": "group"}, False),
    ],
)
def test_which_entries_of_groups_settle_what_is_decided_after_the_cut(row: dict[str, object], ends: bool) -> None:
    def verdict(key: TransactionKey) -> Verdict:
        return Verdict.OPEN if key.number > 1 else Verdict.COMMITTED

    assert settles([{"transactional_id": "x", "producer_id": 7, "producer_epoch": 0, **row}], verdict) is ends


@pytest.mark.parametrize(
    ("topic", "partition", "offset", "topic_id", "position"),
    [
        ("a", 0, 3, "t-1", 3),
        ("a", 1, 12, "t-1", 9),  # past the end
        ("a", 0, 3, "", 3),
        ("a", 0, 3, "another life", None),
        ("a", 2, 3, "t-1", None),
        ("b", 0, 3, "t-1", None),
    ],
)
def test_positions_are_within_their_topics(
    topic: str, partition: int, offset: int, topic_id: str, position: int | None
) -> None:
    found = positions_within({"g": {(topic, partition): (offset, topic_id)}}, CUT.tables)
    assert found == ({} if position is None else {"g": {(topic, partition): position}})


def test_a_table_goes_on_by_its_entries() -> None:
    def entry(version: int, *actions: Metadata | Txn) -> Entry:
        return Entry(version, actions, CommitInfo(0, "WRITE", "r"))

    def metadata(topic_id: str, partitions: int, **more: str) -> Metadata:
        facts = {"tidelog.topic.id": topic_id, "tidelog.partitions": str(partitions), **more}
        return Metadata("table", "a", {}, (), facts, 0)

    at = TableAt().after(entry(0, metadata("t-1", 2)))
    at = at.after(entry(1, Txn("tidelog/end/0", 5), Txn("tidelog/end/1", 9), Txn("tidelog/start/1", 2)))
    assert at.after(entry(7, Txn("tidelog/producer/1/0", 3))).in_cut() == CUT.tables["a"]
    gone = at.after(entry(2, metadata("t-1", 2, **{"tidelog.deleted": "true"})))
    assert (at.exists, gone.exists) == (True, False)
    again = gone.after(entry(3, metadata("t-2", 1), Txn("tidelog/end/0", 0)))
    assert again.in_cut() == CutTable(3, "t-2", ((0, 0),))


def test_a_name_means_one_cut() -> None:
    fold = CutsFold()
    fold.take(decide_create(fold, CUT).rows)
    assert decide_create(fold, CUT).rows == ()
    with pytest.raises(CutExistsError):
        decide_create(fold, Cut("friday", "id-2", 0))
    with pytest.raises(UnknownCutError):
        decide_delete(fold, "thursday")
    fold.take(decide_delete(fold, "friday").rows)
    assert fold == CutsFold()


@pytest.mark.parametrize("name", ["", "a b", "é", "a/b", "x" * 101])
def test_names_that_no_cut_has(name: str) -> None:
    with pytest.raises(InvalidCutNameError):
        check_name(name)


def test_rows_say_what_a_cut_is() -> None:
    row = KIND.schema.checked(cut_row(CUT))
    assert KIND.folded([row]).cuts == {"friday": CUT}
    assert KIND.folded([row, gone_row("friday")]).cuts == {}
    assert KIND.schema.from_json(KIND.schema.to_json(row)) == row
    with pytest.raises(ValueError, match="none of 'cuts'"):
        KIND.folded([{"kind": "offset", "group": "g"}])
