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


def test_killed_and_started_again(tmp_path: Path) -> None:
    ready(STREAMS)
    quick = GroupSettings(initial_rebalance_delay_ms=0)
    with Lake(str(tmp_path / "lake")) as lake, running_broker(lake, groups=quick) as address:
        word_count(address, tmp_path, 400, 1)


def test_two_members_of_a_streams_group_one_of_which_is_killed(tmp_path: Path) -> None:
    """The group's protocol is that of KIP-1071; then kafka-streams-groups.sh looks at it."""
    ready(STREAMS)
    ready(ACCESS_TOOLS)
    quick = GroupSettings(streams_session_timeout_ms=10_000, streams_standby_replicas=1)
    with Lake(str(tmp_path / "lake")) as lake, running_broker(lake, groups=quick) as address:
        word_count(address, tmp_path, 200, 1, protocol="streams")
        group = GroupLog(lake).group(APPLICATION)
        assert group is not None
        assert group.type == "streams"
        inner = {name for name in lake.topics() if name.startswith(APPLICATION)}
        assert {name.rpartition("-")[2] for name in inner} == {"repartition", "changelog"}
        # A list has the tool's own 5 s: it comes when the process has begun.
        patient = ("--timeout", "60000")
        described, listed = run(
            address,
            (TOOL, "--describe", "--group", APPLICATION, "--state", *patient),
            (TOOL, "--list", "--state"),
        )
        assert APPLICATION in listed
        assert "Empty" in listed
        assert "Empty" in described
