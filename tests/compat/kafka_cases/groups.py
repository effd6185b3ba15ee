"""The scripts for groups: what members left, and the offsets that operators set for them."""

from compat.kafka_cases.lakes import committed, count
from compat.kafka_scripts import Tools
from support.waiting import eventually


def lists(tools: Tools) -> None:
    """List and describe: offsets, members, state."""
    tools.topic("listed")
    tools.consume("listed", "listed-group", 30)
    assert sum(committed(tools, "listed-group").values()) == 30
    groups = "kafka-consumer-groups"
    assert "listed-group" in tools(groups, "--list").split()
    assert "Empty" in tools(groups, "--list", "--state")
    assert "listed-group" in tools(groups, "--list", "--type", "classic")
    place = ("--describe", "--group", "listed-group")
    assert "listed-group" in tools(groups, *place, "--offsets")
    assert "Empty" in tools(groups, *place, "--state", "--verbose")
    tools(groups, *place, "--members", "--verbose")
    assert "listed-group" in tools(groups, "--describe", "--all-groups")
    shown = tools("kafka-groups", "--list", "--consumer")
    assert ["listed-group", "Classic", "consumer"] in [line.split() for line in shown.splitlines()], shown
    assert "listed-group" not in tools("kafka-groups", "--list", "--share")


def members(tools: Tools) -> None:
    """A member at work is shown with its partitions, and keeps its group from resets and deletion."""
    tools.topic("attended")
    groups, place = "kafka-consumer-groups", ("--group", "attending")
    with tools.started("kafka-console-consumer", "--topic", "attended", *place, "--from-beginning") as run:
        eventually(lambda: len(run.said().split()) == 30, f"30 records in {run.log}", 60.0)
        shown = tools(groups, "--describe", *place, "--members", "--verbose")
        (row,) = [line.split() for line in shown.splitlines() if line.startswith("attending")]
        assert {"console-consumer", "attended:0,1,2"} <= set(row), shown
        state = tools(groups, "--describe", *place, "--state")
        assert "Stable" in state, state
        reset = ("--reset-offsets", *place, "--topic", "attended", "--to-earliest", "--execute")
        assert "inactive" in tools.refused(groups, *reset)
        assert "not empty" in tools.refused(groups, "--delete", *place)


def resets(tools: Tools) -> None:
    """Every form of --reset-offsets, by the lag that it leaves."""
    tools.topic("reset")
    tools.consume("reset", "reset-group", 30)
    group = ("--group", "reset-group", "--reset-offsets")
    place = (*group, "--topic", "reset")
    tools("kafka-consumer-groups", *place, "--to-earliest", "--dry-run")
    assert tools.lag("reset-group") == 0
    plan = tools.file("plan.csv", "reset,0,1\nreset,1,1\nreset,2,1\n")
    for form, lag in (
        ((*place, "--to-earliest"), 30),
        ((*place, "--to-latest"), 0),
        ((*place, "--shift-by", "-2"), 6),
        ((*place, "--to-offset", "1"), 27),
        ((*place, "--to-current"), 27),
        ((*place, "--to-datetime", "2000-01-01T00:00:00.000"), 30),
        ((*place, "--by-duration", "P1D"), 30),
        ((*place, "--to-datetime", "2999-01-01T00:00:00.000"), 0),
        ((*group, "--from-file", str(plan)), 27),
        ((*group, "--all-topics", "--to-earliest"), 30),
    ):
        tools("kafka-consumer-groups", *form, "--execute")
        assert tools.lag("reset-group") == lag, form
        assert count(tools, "reset") - sum(committed(tools, "reset-group").values()) == lag, form
    exported = tools("kafka-consumer-groups", *place, "--to-offset", "2", "--dry-run", "--export")
    assert "reset,0,2" in exported, exported


def deletions(tools: Tools) -> None:
    """--delete-offsets, then --delete."""
    tools.topic("dropped")
    tools.consume("dropped", "dropped-group", 30)
    groups = "kafka-consumer-groups"
    tools(groups, "--delete-offsets", "--group", "dropped-group", "--topic", "dropped:0")
    assert sorted(committed(tools, "dropped-group")) == [("dropped", 1), ("dropped", 2)]
    assert tools.lag("dropped-group") == 0
    shown = tools(groups, "--describe", "--group", "dropped-group")
    assert len([line for line in shown.splitlines() if " dropped " in line]) == 2, shown
    tools(groups, "--delete", "--group", "dropped-group")
    assert "dropped-group" not in tools(groups, "--list").split()
    assert committed(tools, "dropped-group") == {}
    assert "GroupIdNotFound" in tools.refused(groups, "--delete", "--group", "dropped-group")


def streams_reset(tools: Tools) -> None:
    """Offsets of an application's inputs begin again, and its inner topics are deleted."""
    tools.topic("input")
    tools("kafka-topics", "--create", "--topic", "app-counts-changelog")
    tools.consume("input", "app", 30)
    tools("kafka-streams-application-reset", "--application-id", "app", "--input-topics", "input", "--to-earliest")
    assert set(committed(tools, "app").values()) == {0}
    assert "app-counts-changelog" not in tools("kafka-topics", "--list").split()


def share_groups(tools: Tools) -> None:
    """A share group's member reads, and its group is described."""
    tools.topic("shared")
    limits = ("--topic", "shared", "--group", "sharing", "--max-messages", "1", "--timeout-ms", "10000")
    assert len(tools("kafka-console-share-consumer", *limits).split()) == 1
    assert "sharing" in tools("kafka-share-groups", "--list").split()


def streams_groups(tools: Tools) -> None:
    """Groups of Kafka Streams by its own protocol."""
    assert "STREAMS" in tools("kafka-features", "describe").upper(), "brokers have no feature streams.version"
    tools("kafka-streams-groups", "--list")
