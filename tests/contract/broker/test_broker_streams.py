"""Kafka Streams, unmodified and exactly once, over a broker: killed and started again, it loses and repeats nothing.

`make compat` joins windows, too.
"""

from pathlib import Path

from support.brokers import running_broker
from support.kafka_clients import ACCESS_TOOLS, ready
from support.kafka_programs import STREAMS
from support.kafka_tool_runs import run
from support.streams_runs import word_count

from tidelog.broker.base.settings import GroupSettings
from tidelog.groups.store.group_log import GroupLog
from tidelog.log.lake import Lake

TOOL = "org.apache.kafka.tools.streams.StreamsGroupCommand"
APPLICATION = "own-word-count"
GROUP = ("--group", APPLICATION)
# The tool's own limit counts from when its process begins.
PATIENT = ("--timeout", "60000")


def test_killed_and_started_again(tmp_path: Path) -> None:
    ready(STREAMS)
    quick = GroupSettings(initial_rebalance_delay_ms=0)
    with Lake(str(tmp_path / "lake")) as lake, running_broker(lake, groups=quick) as address:
        word_count(address, tmp_path, 400, 1)


def test_two_members_of_a_streams_group_one_of_which_is_killed(tmp_path: Path) -> None:
    """The group's protocol is that of KIP-1071. kafka-streams-groups.sh looks at its members, then it deletes all."""
    ready(STREAMS)
    ready(ACCESS_TOOLS)
    quick = GroupSettings(streams_session_timeout_ms=10_000, streams_standby_replicas=1)
    with Lake(str(tmp_path / "lake")) as lake, running_broker(lake, groups=quick) as address:
        word_count(address, tmp_path, 200, 1, protocol="streams", at_rest=lambda: _members_are_shown(address))
        group = GroupLog(lake).group(APPLICATION)
        assert group is not None
        assert group.type == "streams"
        inner = {name for name in lake.topics() if name.startswith(APPLICATION)}
        assert {name.rpartition("-")[2] for name in inner} == {"repartition", "changelog"}
        described, listed, reset, deleted = run(
            address,
            (TOOL, "--describe", *GROUP, "--state", *PATIENT),
            (TOOL, "--list", "--state", *PATIENT),
            (TOOL, "--reset-offsets", *GROUP, "--input-topic", "lines", "--to-earliest", "--execute", *PATIENT),
            (TOOL, "--delete", *GROUP, "--delete-all-internal-topics", *PATIENT),
        )
        assert "Empty" in described
        assert [APPLICATION, "Empty"] in _rows(listed)
        assert sorted(row[1:] for row in _rows(reset) if row[0] == APPLICATION) == [
            ["lines", "0", "0"],
            ["lines", "1", "0"],
        ]
        assert "was successful" in deleted
        assert set(lake.topics()) == {"lines", "counts"}
        assert GroupLog(lake).group(APPLICATION) is None


def _members_are_shown(address: str) -> None:
    members, offsets, kept = run(
        address,
        (TOOL, "--describe", *GROUP, "--members", "--verbose", *PATIENT),
        (TOOL, "--describe", *GROUP, "--offsets", "--verbose", *PATIENT),
        (TOOL, "--delete", *GROUP, *PATIENT),
    )
    rows = [row for row in _rows(members) if row[0] == APPLICATION]
    assert {row[4] for row in rows} == {"streams"}, members
    assert " ACTIVE: " in members
    assert " TARGET-ACTIVE: " in members
    # The tool looks up commits of source topics alone.
    lags = {tuple(row[1:]) for row in _rows(offsets) if row[:2] == [APPLICATION, "lines"]}
    assert {(row[1], row[-1]) for row in lags} == {("0", "0"), ("1", "0")}, offsets
    assert "is not EMPTY" in kept


def _rows(shown: str) -> list[list[str]]:
    return [line.split() for line in shown.splitlines() if line.strip()]
