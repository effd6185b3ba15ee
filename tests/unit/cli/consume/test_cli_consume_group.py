"""`tidelog consume --group`: goes on where the group stands, and commits what it printed."""

import signal
import time

import pytest
from support.cli_calls import done, lake_address, lines_of, open_lake, process, refused
from support.logs import values

from tidelog.cli.consume.follow_as_member import starting_position
from tidelog.groups.model import CommittedOffset
from tidelog.groups.store.group_log import GroupLog
from tidelog.operations.cuts import create_cut


@pytest.fixture
def address():
    address = lake_address()
    with open_lake(address) as lake:
        lake.create_topic("t", 2)
        lake.topic("t").append(values("a0", "a1", "a2", "b0", partition=[0, 0, 0, 1]))
    return address


def committed(address, group="g"):
    with open_lake(address) as lake:
        return {number: found.offset for (_, number), found in GroupLog(lake).offsets(group).items()}


def consumed(address, *args):
    return done("consume", "t", "--group", "g", *args, "--lake", address)


def test_a_group_prints_everything_once(address):
    first = consumed(address, "-e")
    assert sorted(first.stdout.splitlines()) == ["a0", "a1", "a2", "b0"]
    assert "Reached end of topic t [0] at offset 3" in first.stderr
    assert first.stderr.count(": exiting") == 1
    assert committed(address) == {0: 3, 1: 1}
    assert consumed(address, "-e").stdout == ""
    with open_lake(address) as lake:
        lake.topic("t").append(values("b1", partition=[1]))
    assert consumed(address, "-e", "-q").stdout == "b1\n"


def test_a_count_commits_no_more_than_it_prints(address):
    assert len(consumed(address, "-c", "3").stdout.splitlines()) == 3
    assert sum(committed(address).values()) == 3
    assert len(consumed(address, "-c", "1").stdout.splitlines()) == 1
    assert committed(address) == {0: 3, 1: 1}


def test_where_a_new_group_starts(address):
    assert consumed(address, "-e", "-o", "end").stdout == ""
    with open_lake(address) as lake:
        GroupLog(lake).commit_offsets("g", {("t", 0): CommittedOffset(2)})
    assert consumed(address, "-e", "-o", "end").stdout == "a2\n"


def test_the_newest_records_may_be_gone(address):
    with open_lake(address) as lake:
        create_cut(lake, "before")
        lake.topic("t").append(values("a3", "b1", partition=[0, 1]))
        GroupLog(lake).commit_offsets("g", {("t", 0): CommittedOffset(3)})
    done("topic", "rewind", "t", "--to-cut", "before", "--execute", "--lake", address)
    first = consumed(address, "-e")
    assert first.stdout == "b0\n"
    assert "Reached end of topic t [0] at offset 4" in first.stderr
    assert committed(address) == {0: 4, 1: 2}
    with open_lake(address) as lake:
        lake.topic("t").append(values("a4", "b2", partition=[0, 1]))
    assert sorted(consumed(address, "-e", "-q").stdout.splitlines()) == ["a4", "b2"]


@pytest.mark.parametrize(
    ("committed", "reset", "expected"),
    [(-1001, "earliest", 10), (-1001, "latest", 20), (10, "latest", 10), (20, "earliest", 20), (9, "latest", 20)],
)
def test_where_a_partition_that_was_not_read_yet_starts(committed, reset, expected):
    assert starting_position(committed, 10, 20, reset=reset) == expected


def test_headers_keys_and_json(address):
    out = consumed(address, "-e", "-J").stdout
    assert sorted(out.splitlines())[0].startswith("{")
    assert len(out.splitlines()) == 4


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (("-p", "0"), "leave out -p"),
        (("-o", "5"), "reset-offsets"),
        (("-o", "s@1"), "reset-offsets"),
        (("-o", "e@1"), "reset-offsets"),
    ],
)
def test_wrong_usage(address, args, why):
    assert why in refused(2, "consume", "t", "-G", "g", *args, "--lake", address)


@pytest.mark.parametrize(("topic", "group", "why"), [("u", "g", "'u' does not exist"), ("t", "g" * 250, "249")])
def test_what_cannot_be(address, topic, group, why):
    assert why in refused(1, "consume", topic, "-G", group, "-e", "--lake", address)


def test_a_reader_that_goes_away_loses_nothing(tmp_path):
    """What was not printed is not committed: the next member prints it."""
    address = str(tmp_path / "lake")
    with open_lake(address) as lake:
        lake.create_topic("t")
        lake.topic("t").append(values(*(f"{n:06d}" * 20 for n in range(20_000))))
    head = process("consume", "t", "-G", "g", "-q", "--lake", address)
    seen = [head.stdout.readline() for _ in range(3)]
    head.stdout.close()
    assert head.wait(60) == 0
    assert committed(address).get(0, 0) < 20_000
    rest = done("consume", "t", "-G", "g", "-e", "-q", "--lake", address).stdout.splitlines()
    assert len(rest) + committed_before(rest) == 20_000
    assert len(seen) == 3


def committed_before(rest):
    return int(rest[0][:6])


def test_a_stopped_member_has_committed_what_it_printed(tmp_path):
    address = str(tmp_path / "lake")
    with open_lake(address) as lake:
        lake.create_topic("t")
        lake.topic("t").append(values("a", "b"))
    member = process("consume", "t", "-G", "g", "-q", "--lake", address)
    lines = lines_of(member.stdout)
    assert [next(lines), next(lines)] == ["a", "b"]
    member.send_signal(signal.SIGINT)
    assert member.wait(60) == 130
    assert committed(address) == {0: 2}
    with open_lake(address) as lake:
        assert not GroupLog(lake).group("g").members  # it left, so that the next one need not wait for it
    started = time.monotonic()
    assert done("consume", "t", "-G", "g", "-e", "-q", "--lake", address).stdout == ""
    assert time.monotonic() - started < 20
