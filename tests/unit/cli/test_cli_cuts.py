"""tidelog cut, and the options of other commands that name one."""

import pytest
from support.cli_calls import answer, done, lake_address, open_lake, refused
from support.logs import values

from tidelog.groups.model import CommittedOffset
from tidelog.groups.store.group_log import GroupLog
from tidelog.operations.cuts import create_cut


@pytest.fixture
def address():
    """A lake with a cut `friday`, at which orders had two records and group g had read one of them."""
    address = lake_address()
    with open_lake(address) as lake:
        lake.create_topic("orders", 1)
        lake.topic("orders").append(values("a0", "a1"))
        groups = GroupLog(lake)
        groups.commit_offsets("g", {("orders", 0): CommittedOffset(1)})
        create_cut(lake, "friday")
        lake.topic("orders").append(values("a2"))
        lake.create_topic("later", 1)
        lake.topic("later").append(values("b0"))
        groups.commit_offsets("g", {("orders", 0): CommittedOffset(3), ("later", 0): CommittedOffset(1)})
        groups.commit_offsets("other", {("orders", 0): CommittedOffset(3)})
    return address


def committed(address, group="g"):
    with open_lake(address) as lake:
        return {place: one.offset for place, one in GroupLog(lake).offsets(group).items()}


def test_cuts_are_made_listed_described_and_deleted(address):
    made = done("cut", "create", "saturday", "--lake", address).stdout
    assert made == "Made cut saturday: 2 topics with 4 offsets, 2 groups.\n"
    assert done("cut", "list", "--lake", address).stdout.splitlines() == ["friday", "saturday"]
    shown = answer("cut", "describe", "friday", "--lake", address)
    assert shown["tables"]["orders"]["partitions"] == [{"start": 0, "end": 2}]
    assert shown["positions"] == [{"group": "g", "topic": "orders", "partition": 0, "offset": 1}]
    assert (shown["topics"], shown["kept"], "held_bytes" in shown) == (1, False, False)
    said = done("cut", "describe", "friday", "--lake", address).stdout
    assert ["orders", "1", "0", "0", "2"] in [line.split() for line in said.splitlines()]
    assert done("cut", "delete", "friday", "--lake", address).stdout == "Deleted cut friday.\n"
    assert "There is no cut 'friday'" in refused(1, "cut", "describe", "friday", "--lake", address)
    assert "already" in refused(1, "cut", "create", "saturday", "--lake", address)
    assert "can't have the name" in refused(1, "cut", "create", "a b", "--lake", address)


def test_a_kept_cut_says_what_it_costs(address):
    done("cut", "create", "kept", "--keep", "--lake", address)
    shown = answer("cut", "describe", "kept", "--lake", address)
    assert (shown["kept"], shown["held_bytes"]) == (True, 0)
    with open_lake(address) as lake:
        size = sum(segment.size for segment in lake.topic("orders").state().all_segments())
        lake.delete_records("orders", {0: -1})
    assert answer("cut", "describe", "kept", "--lake", address)["held_bytes"] == size
    assert "kept (" in done("cut", "describe", "kept", "--lake", address).stdout


@pytest.mark.parametrize(
    ("group", "args", "expected", "said"),
    [
        ("g", (), {("orders", 0): 1, ("later", 0): 0}, "later [0] was not there at the cut"),
        ("g", ("--topic", "orders"), {("orders", 0): 1}, ""),
        ("other", (), {("orders", 0): 2}, "has no offset of the group in the cut"),
    ],
)
def test_a_group_goes_back_to_a_cut(address, group, args, expected, said):
    before = committed(address, group)
    reset = ("group", "reset-offsets", group, "--to-cut", "friday", *args, "--lake", address)
    assert said in done(*reset).stderr
    assert committed(address, group) == before
    done(*reset, "--execute")
    assert committed(address, group) == before | expected


def test_the_offsets_of_a_topic_that_was_created_again_are_not_those_of_the_cut(address):
    with open_lake(address) as lake:
        lake.delete_topic("orders")
        lake.create_topic("orders", 1)
        lake.topic("orders").append(values("c0", "c1"))
        GroupLog(lake).commit_offsets("g", {("orders", 0): CommittedOffset(2)})
    done("group", "reset-offsets", "g", "--to-cut", "friday", "--topic", "orders", "--execute", "--lake", address)
    assert committed(address)["orders", 0] == 0
    assert "created again" in refused(1, "consume", "orders", "--to-cut", "friday", "--lake", address)


@pytest.mark.parametrize(
    ("args", "lines"),
    [
        (("--to-cut", "friday"), ["a0", "a1"]),
        (("--from-cut", "friday", "-e"), ["a2"]),
        (("--from-cut", "friday", "--to-cut", "friday"), []),
        (("--to-cut", "friday", "-o", "1"), ["a1"]),
        (("--to-cut", "friday", "-o", "end"), []),
        (("--to-cut", "friday", "-e"), ["a0", "a1"]),
    ],
)
def test_records_up_to_a_cut_and_after_it(address, args, lines):
    assert done("consume", "orders", "-q", *args, "--lake", address).stdout.splitlines() == lines


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (("--from-cut", "friday", "-o", "3"), "where to start"),
        (("--to-cut", "friday", "-o", "e@5"), "where to stop"),
        (("--to-cut", "friday", "-G", "g"), "--group"),
    ],
)
def test_wrong_usage(address, args, why):
    assert why in refused(2, "consume", "orders", *args, "--lake", address)


def test_cuts_that_are_not_there(address):
    assert "no topic 'later'" in refused(1, "consume", "later", "--to-cut", "friday", "--lake", address)
    assert "There is no cut 'none'" in refused(1, "consume", "orders", "--to-cut", "none", "--lake", address)
    assert "There is no cut 'none'" in refused(1, "group", "reset-offsets", "g", "--to-cut", "none", "--lake", address)
