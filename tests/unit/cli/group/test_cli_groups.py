"""`tidelog group …`: what is shown, what is changed, what is refused."""

import json

import pytest
from support.admin_groups import SESSION_MS, stable_group
from support.cli_calls import answer, cli, done, lake_address, open_lake, refused
from support.logs import values

from tidelog import AdminClient
from tidelog.clients.admin.enums import ConsumerGroupType
from tidelog.groups.config import GroupConfig
from tidelog.groups.member.heartbeats import Leases
from tidelog.groups.model import (
    AssignedPartition,
    CommittedOffset,
    ConsumerGroup,
    ConsumerMember,
    Decision,
    GroupPhase,
    StreamsGroup,
    StreamsMember,
)
from tidelog.groups.store.group_log import GroupLog
from tidelog.groups.topology import StreamsTask, StreamsTopology, Subtopology, Tasks
from tidelog.log.base.clock import SystemClock


@pytest.fixture
def address():
    address = lake_address()
    with open_lake(address) as lake:
        for topic in ("t", "u"):
            lake.create_topic(topic, 2)
            lake.topic(topic).append(values(*"01234", partition=[0, 0, 0, 0, 1]))
        commit(lake, "g", {("t", 0): 1, ("t", 1): 1, ("u", 0): 4})
    return address


def commit(lake, group, offsets):
    GroupLog(lake).commit_offsets(group, {place: CommittedOffset(n) for place, n in offsets.items()})


def committed(address, group="g"):
    with open_lake(address) as lake:
        return {place: found.offset for place, found in GroupLog(lake).offsets(group).items()}


def busy(address):
    """A group `busy` of members m and n."""
    with open_lake(address) as lake:
        stable_group(lake, "busy", {"m": [("t", 0)], "n": [("u", 0), ("u", 1)]})


def rows(result):
    return [line.split() for line in result.stdout.splitlines()]


# --- looking -----------------------------------------------------------------------------------------------


def test_groups_are_listed(address):
    busy(address)
    assert done("group", "list", "--lake", address).stdout.splitlines() == ["busy", "g"]
    assert done("group", "list", "--state", "empty", "--lake", address).stdout.splitlines() == ["g"]
    listed = answer("group", "list", "--lake", address)
    assert [(g["group"], g["state"], g["members"]) for g in listed] == [("busy", "Stable", 2), ("g", "Empty", 0)]
    assert "no state of a group" in refused(2, "group", "list", "--state", "Odd", "--lake", address)
    assert "No groups" not in done("group", "list", "--lake", lake_of_nothing()).stdout


def lake_of_nothing():
    address = lake_address()
    open_lake(address).close()
    return address


def test_a_group_is_described_by_its_offsets(address):
    result = done("group", "describe", "g", "--lake", address)
    assert rows(result) == [
        ["GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID", "HOST", "CLIENT-ID"],
        ["g", "t", "0", "1", "4", "3", "-", "-", "-"],
        ["g", "t", "1", "1", "1", "0", "-", "-", "-"],
        ["g", "u", "0", "4", "4", "0", "-", "-", "-"],
    ]
    assert "no active members" in result.stderr


def test_readers_and_offsets_stand_in_one_row(address):
    busy(address)
    with open_lake(address) as lake:
        lake.delete_topic("u")
    assert rows(done("group", "describe", "--all-groups", "--lake", address))[1:4] == [
        ["busy", "t", "0", "-", "4", "-", "m", "here", "client-of-m"],
        ["busy", "u", "0", "-", "-", "-", "n", "here", "client-of-n"],
        ["busy", "u", "1", "-", "-", "-", "n", "here", "client-of-n"],
    ]
    shown = answer("group", "describe", "g", "--lake", address)[0]["partitions"]
    assert [(one["topic"], one["partition"]) for one in shown] == [("t", 0), ("t", 1)]
    assert shown[0] == {
        "topic": "t",
        "partition": 0,
        "current_offset": 1,
        "log_end_offset": 4,
        "lag": 3,
        "consumer_id": None,
        "host": None,
        "client_id": None,
    }


def test_members_and_states(address):
    busy(address)
    result = done("group", "describe", "busy", "--members", "--lake", address)
    assert rows(result) == [
        ["GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS"],
        ["busy", "m", "here", "client-of-m", "1"],
        ["busy", "n", "here", "client-of-n", "2"],
    ]
    verbose = rows(done("group", "describe", "busy", "--members", "--verbose", "--lake", address))
    assert [row[-1] for row in verbose] == ["ASSIGNMENT", "t(0)", "u(0,1)"]
    state = rows(done("group", "describe", "busy", "--state", "--lake", address))
    assert state == [
        ["GROUP", "COORDINATOR", "(ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS"],
        ["busy", address, "(0)", "range", "Stable", "2"],
    ]
    document = answer("group", "describe", "busy", "--lake", address)[0]
    assert (document["state"], document["assignment_strategy"], document["generation"]) == ("Stable", "range", 1)
    assert document["members"][1]["assignment"] == [{"topic": "u", "partition": 0}, {"topic": "u", "partition": 1}]


def test_a_group_of_the_type_consumer(address):
    with open_lake(address) as lake:
        topic_id = lake.topic("u").id
        first, other = (AssignedPartition(topic_id, "u", number) for number in (0, 1))
        member = ConsumerMember("m", topics=frozenset("u"), epoch=2, assigned=frozenset({first}))
        targets = {"m": frozenset({first, other})}
        group = ConsumerGroup("new", 3, 3, "uniform", 1, {"m": member}, targets)
        GroupLog(lake).decide("new", lambda view: Decision(response=None, group=group))
    listed = {one["group"]: one for one in answer("group", "list", "--lake", address)}
    assert {name: one["type"] for name, one in listed.items()} == {"g": "classic", "new": "consumer"}
    (document,) = answer("group", "describe", "new", "--lake", address)
    assert (document["state"], document["generation"], document["assignment_epoch"]) == ("Reconciling", 3, 3)
    (shown,) = document["members"]
    assert shown["assignment"] == [{"topic": "u", "partition": 0}]
    assert shown["target_assignment"] == [{"topic": "u", "partition": 0}, {"topic": "u", "partition": 1}]
    assert (shown["epoch"], document["assignment_strategy"]) == (2, "uniform")
    assert done("group", "list", "--state", "reconciling", "--lake", address).stdout.splitlines() == ["new"]
    state = rows(done("group", "describe", "new", "--state", "--lake", address))
    assert state[0][-3:] == ["TYPE", "GROUP-EPOCH", "TARGET-EPOCH"]
    assert state[1][-3:] == ["consumer", "3", "3"]
    (_, shown_row) = rows(done("group", "describe", "new", "--members", "--verbose", "--lake", address))
    assert shown_row[-5:] == ["u(0)", "consumer", "2", "3", "u(0,1)"]


def test_a_streams_group(address):
    one, other = StreamsTask("0", 0), StreamsTask("0", 1)
    topology = StreamsTopology(0, (Subtopology("0", sources=("u",)),))
    member = StreamsMember("m", epoch=2, assigned=Tasks(frozenset({one})))
    targets = {"m": Tasks(frozenset({one}), frozenset({other}))}
    group = StreamsGroup("app", 3, 3, topology, ready=True, members={"m": member}, targets=targets)
    with open_lake(address) as lake:
        GroupLog(lake).decide("app", lambda view: Decision(response=None, group=group))
        listed = AdminClient({"lake": address}).list_consumer_groups().result().valid
        assert {found.group_id: found.type for found in listed}["app"] is ConsumerGroupType.UNKNOWN
    (document,) = answer("group", "describe", "app", "--lake", address)
    assert (document["state"], document["type"], document["assignment_epoch"]) == ("Reconciling", "streams", 3)
    (shown,) = document["members"]
    assert shown["assignment"] == [{"topic": "u", "partition": 0}]
    assert (shown["tasks"], shown["target_tasks"]) == ({"active": ["0_0"]}, {"active": ["0_0"], "standby": ["0_1"]})
    (_, shown_row) = rows(done("group", "describe", "app", "--members", "--verbose", "--lake", address))
    assert "streams" in shown_row
    state = rows(done("group", "describe", "app", "--state", "--lake", address))
    assert state[1][-3:] == ["streams", "3", "3"]


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (("describe",), "--all-groups"),
        (("describe", "g", "--all-groups"), "--all-groups"),
        (("describe", "g", "--members", "--state"), "--members and --state"),
        (("describe", "g", "--verbose"), "--members"),
        (("reset-offsets", "g", "--to-earliest"), "--all-topics"),
        (("reset-offsets", "g", "--topic", "t", "--all-topics", "--to-earliest"), "--all-topics"),
        (("reset-offsets", "g", "--all-topics"), "exactly one of"),
        (("reset-offsets", "g", "--all-topics", "--to-earliest", "--to-latest"), "--to-earliest and --to-latest"),
        (("reset-offsets", "g", "--all-topics", "--to-earliest", "--execute", "--dry-run"), "contradict"),
        (("reset-offsets", "g", "--topic", "t:x", "--to-earliest"), "no topic"),
        (("reset-offsets", "g", "--topic", "t", "--by-duration", "1h"), "no duration"),
        (("reset-offsets", "g", "--topic", "t", "--to-offset", "-1"), "--to-offset"),
        (("reset-offsets", "none", "--all-topics", "--to-earliest"), "no committed offsets"),
        (("reset-offsets", "none", "--topic", "t", "--shift-by", "1"), "no committed offset to shift"),
        (("reset-offsets", "g", "--all-topics", "--to-latest", "--export", "--format", "json"), "CSV"),
        (("delete-offsets", "g"), "--all-topics"),
    ],
)
def test_wrong_usage(address, args, why):
    assert why in refused(2, "group", *args, "--lake", address)


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (("describe", "none"), "There is no group 'none'"),
        (("delete", "none"), "There is no group 'none'"),
        (("delete-offsets", "none", "--all-topics"), "There is no group 'none'"),
        (("reset-offsets", "g", "--topic", "v", "--to-latest"), "'v' does not exist"),
        (("reset-offsets", "g", "--topic", "t:9", "--to-latest"), "no partition 9"),
        (("reset-offsets", "g" * 250, "--topic", "t", "--to-latest"), "249"),
    ],
)
def test_what_is_not_there(address, args, why):
    assert why in refused(1, "group", *args, "--lake", address)


# --- changing ----------------------------------------------------------------------------------------------


def test_a_reset_is_shown_and_done_only_when_asked(address):
    args = ("group", "reset-offsets", "g", "--topic", "t", "--to-earliest", "--lake", address)
    before = committed(address)
    for more in ((), ("--dry-run",)):
        shown = done(*args, *more)
        assert rows(shown) == [
            ["GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"],
            ["g", "t", "0", "0"],
            ["g", "t", "1", "0"],
        ]
        assert "--execute" in shown.stderr
        assert committed(address) == before
    assert "--execute" not in done(*args, "--execute").stderr
    assert committed(address) == {("t", 0): 0, ("t", 1): 0, ("u", 0): 4}


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (("--all-topics", "--to-latest"), {("t", 0): 4, ("t", 1): 1, ("u", 0): 4, ("u", 1): 1}),
        (("--topic", "t:0", "--to-offset", "2"), {("t", 0): 2}),
        (("--topic", "t:0", "--to-offset", "99"), {("t", 0): 4}),
        (("--topic", "t:0", "--topic", "u:0", "--shift-by", "-1"), {("t", 0): 0, ("u", 0): 3}),
        (("--topic", "u", "--to-current"), {("u", 0): 4, ("u", 1): 1}),
        (("--topic", "t", "--to-datetime", "2020-01-01T00:00:00"), {("t", 0): 0, ("t", 1): 0}),
        (("--topic", "t", "--to-datetime", "2099-01-01T00:00:00"), {("t", 0): 4, ("t", 1): 1}),
        (("--topic", "t", "--by-duration", "PT1H"), {("t", 0): 0, ("t", 1): 0}),
        (("--topic", "t", "--by-duration", "PT0S"), {("t", 0): 4, ("t", 1): 1}),
    ],
)
def test_resets(address, args, expected):
    before = committed(address)
    document = answer("group", "reset-offsets", "g", *args, "--execute", "--lake", address)
    assert {(p["topic"], p["partition"]): p["new_offset"] for p in document["partitions"]} == expected
    assert document["executed"]
    assert committed(address) == before | expected


def test_offsets_go_through_a_file(address, tmp_path):
    plan = done("group", "reset-offsets", "g", "--all-topics", "--to-current", "--export", "--lake", address)
    assert plan.stdout == "g,t,0,1\ng,t,1,1\ng,u,0,4\ng,u,1,1\n"
    file = tmp_path / "offsets.csv"
    file.write_text(plan.stdout.replace("g,t,0,1", "g,t,0,3"))
    args = ("group", "reset-offsets", "g", "--from-file", str(file), "--lake", address)
    done(*args, "--topic", "t", "--execute")
    assert committed(address) == {("t", 0): 3, ("t", 1): 1, ("u", 0): 4}
    done(*args, "--execute")
    assert committed(address)["u", 1] == 1
    file.write_text("t,0\n")
    assert "line 1" in refused(2, *args)
    file.unlink()
    assert "No such file" in refused(1, *args)


def test_groups_are_deleted(address):
    with open_lake(address) as lake:
        commit(lake, "h", {("t", 0): 1})
    assert "Deleted group g." in done("group", "delete", "g", "h", "--lake", address).stdout
    assert done("group", "list", "--lake", address).stdout == ""


def test_offsets_are_deleted(address):
    result = done("group", "delete-offsets", "g", "--topic", "t:1", "--topic", "u", "--lake", address)
    assert rows(result) == [["TOPIC", "PARTITION", "STATUS"], ["t", "1", "deleted"], ["u", "0", "deleted"]]
    assert committed(address) == {("t", 0): 1}
    document = answer("group", "delete-offsets", "g", "--all-topics", "--lake", address)
    assert document["partitions"] == [{"topic": "t", "partition": 0, "deleted": True, "error": None}]
    assert committed(address) == {}


# --- members -----------------------------------------------------------------------------------------------


@pytest.fixture
def members_live(address, monkeypatch):
    """Members of `busy` send heartbeats whenever a caller sleeps."""
    beats = iter(range(2, 1 << 30))

    def sleep(clock, seconds):
        with open_lake(address) as lake:
            for member in ("m", "n"):
                lease = Leases(lake.storage).of_member("busy", member)
                lease.count = next(beats)
                lease.renew()

    monkeypatch.setattr(SystemClock, "sleep", sleep)


@pytest.mark.usefixtures("members_live")
def test_a_group_with_living_members_is_left_alone(address):
    busy(address)
    reset = ("group", "reset-offsets", "busy", "--topic", "t", "--to-latest", "--lake", address)
    done(*reset)  # looking is allowed
    assert "has members" in refused(1, *reset, "--execute")
    assert "2 members" in refused(1, "group", "delete", "busy", "--lake", address)
    assert committed(address, "busy") == {}


@pytest.mark.usefixtures("members_live")
def test_offsets_that_members_read_stay(address):
    with open_lake(address) as lake:
        commit(lake, "busy", {("t", 0): 1})
    busy(address)
    result = json.loads(
        cli_out(1, "group", "delete-offsets", "busy", "--topic", "t:0", "--format", "json", "--lake", address)
    )
    assert "subscribe" in result["partitions"][0]["error"]
    assert committed(address, "busy") == {("t", 0): 1}


def cli_out(code, *args):
    result = cli(*args)
    assert result.exit_code == code
    return result.stdout


def test_members_that_died_are_cleared_away_first(address, monkeypatch):
    busy(address)
    passed = [0.0]
    monkeypatch.setattr(SystemClock, "elapsed_s", lambda clock: passed[0])
    monkeypatch.setattr(SystemClock, "sleep", lambda clock, seconds: passed.__setitem__(0, passed[0] + seconds))
    done("group", "reset-offsets", "busy", "--topic", "t:0", "--to-offset", "2", "--execute", "--lake", address)
    assert passed[0] >= SESSION_MS / 1000
    assert committed(address, "busy") == {("t", 0): 2}


def test_help_names_all_states_and_keys():
    listing, altering = (" ".join(done("group", name, "--help").stdout.split()) for name in ("list", "alter"))
    assert [phase for phase in GroupPhase if phase is not GroupPhase.DEAD and phase not in listing] == []
    assert [key for key in GroupConfig.KEYS if key not in altering] == []


# --- configuring -------------------------------------------------------------------------------------------


def test_a_group_is_configured(address):
    asked = ("group", "alter", "later", "--lake", address)
    said = done(*asked, "--config", "consumer.session.timeout.ms=50000").stdout
    assert said == "Altered group later: consumer.session.timeout.ms=50000.\n"
    changed = answer(*asked, "--delete-config", "consumer.session.timeout.ms")
    assert changed == {"group": "later", "config": {}}
    assert "Nothing to change" in refused(2, *asked)
    assert "Unknown group config name: no.such" in refused(1, *asked, "--config", "no.such=1")
    too_short = refused(1, *asked, "--config", "consumer.session.timeout.ms=1")
    assert "greater than or equal to group.consumer.min.session.timeout.ms" in too_short
    assert "later" not in done("group", "list", "--lake", address).stdout
