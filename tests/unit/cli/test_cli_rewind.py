"""tidelog topic rewind, tidelog lake rewind."""

import pyarrow as pa
import pytest
from support.cli_calls import answer, done, lake_address, open_lake, refused
from support.logs import values

from tidelog.groups.model import CommittedOffset
from tidelog.groups.store.group_log import GroupLog
from tidelog.operations.cuts import create_cut


@pytest.fixture
def address():
    """A lake with a cut `friday`: since then orders got three records, one of deploy 42, and group g read on."""
    address = lake_address()
    headers = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    with open_lake(address) as lake:
        lake.create_topic("orders", 1)
        lake.topic("orders").append(values("a0", "a1"))
        GroupLog(lake).commit_offsets("g", {("orders", 0): CommittedOffset(1)})
        create_cut(lake, "friday")
        of_deploys = pa.array([[("deploy", b"41")], [("deploy", b"42")], None], headers)
        lake.topic("orders").append(values("b0", "b1", "b2", headers=of_deploys))
        GroupLog(lake).commit_offsets("g", {("orders", 0): CommittedOffset(5)})
    return address


def printed(address):
    return done("consume", "orders", "-e", "-q", "--lake", address).stdout.split()


def test_a_rewind_is_shown_and_done_only_when_asked(address):
    shown = done("topic", "rewind", "orders", "--to-cut", "friday", "--groups", "--lake", address)
    assert "Would leave: 3 records." in shown.stdout
    assert ["g", "orders", "0", "5", "1"] in [line.split() for line in shown.stdout.splitlines()]
    assert "add --execute" in shown.stderr
    assert len(printed(address)) == 5
    document = answer("topic", "rewind", "orders", "--to-cut", "friday", "--groups", "--execute", "--lake", address)
    assert (document["executed"], document["records"]) == (True, 3)
    assert printed(address) == ["a0", "a1"]
    with open_lake(address) as lake:
        assert GroupLog(lake).offsets("g")["orders", 0].offset == 1


def test_a_condition_says_which_records_leave(address):
    where = ("--where", "headers['deploy'] = '42'")
    assert done("topic", "rewind", "orders", "--to-cut", "friday", *where, "--execute", "--lake", address).stdout
    assert printed(address) == ["a0", "a1", "b0", "b2"]
    said = refused(2, "topic", "rewind", "orders", "--to-cut", "friday", "--where", "deploy = 42", "--lake", address)
    assert "headers['name']" in said


def test_a_lake_is_rewound(address):
    with open_lake(address) as lake:
        lake.create_topic("later", 1)
        lake.topic("later").append(values("c0"))
    assert answer("lake", "rewind", "--to-cut", "friday", "--lake", address)["records"] == 4
    done("lake", "rewind", "--to-cut", "friday", "--execute", "--lake", address)
    assert printed(address) == ["a0", "a1"]
    assert done("consume", "later", "-e", "-q", "--lake", address).stdout == ""


def test_what_is_not_there(address):
    assert "no cut 'none'" in refused(1, "topic", "rewind", "orders", "--to-cut", "none", "--lake", address)
    assert "'none' does not exist" in refused(1, "topic", "rewind", "none", "--to-cut", "friday", "--lake", address)
