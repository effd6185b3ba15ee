"""`topic.max.partitions`: no entrance makes a topic that has more, and one that has more is used as it is."""

import json
import tracemalloc
from collections.abc import Callable

import pytest
from support.cli_calls import answer, cli, lake_address, open_lake
from support.logs import values

from tidelog.admin import AdminClient, NewPartitions, NewTopic
from tidelog.clients.values.errors import KafkaError, KafkaException
from tidelog.log.base.errors import InvalidConfigError, InvalidPartitionsError
from tidelog.log.config.topics_and_lakes import LakeConfig
from tidelog.log.lake import Lake

HUGE = 99_999_999


@pytest.fixture
def address() -> str:
    """A lake with the topic there, of 2 partitions, and the default limit."""
    address = lake_address()
    with open_lake(address) as lake:
        lake.create_topic("there", 2)
    return address


def by_admin(address: str, ask: Callable[[AdminClient], dict]) -> str:
    with AdminClient({"lake": address}) as admin:
        (future,) = ask(admin).values()
        with pytest.raises(KafkaException) as caught:
            future.result()
    assert caught.value.args[0].code() == KafkaError.INVALID_PARTITIONS
    return str(caught.value)


def by_lake(address: str, ask: Callable[[Lake], object]) -> str:
    with open_lake(address) as lake, pytest.raises(InvalidPartitionsError) as caught:
        ask(lake)
    return str(caught.value)


def by_command(address: str, *words: str) -> str:
    result = cli(*words, "--lake", address)
    assert result.exit_code != 0
    return " ".join(result.stderr.split())


ENTRANCES: dict[str, Callable[[str, int], str]] = {
    "lake, create": lambda at, n: by_lake(at, lambda lake: lake.create_topic("new", n)),
    "lake, alter": lambda at, n: by_lake(at, lambda lake: lake.alter_topic("there", n)),
    "command, create": lambda at, n: by_command(at, "topic", "create", "new", "--partitions", str(n)),
    "command, alter": lambda at, n: by_command(at, "topic", "alter", "there", "--partitions", str(n)),
    **{
        f"admin, create, {dry=}": lambda at, n, dry=dry: by_admin(
            at, lambda admin: admin.create_topics([NewTopic("new", n)], validate_only=dry)
        )
        for dry in (True, False)
    },
    **{
        f"admin, grow, {dry=}": lambda at, n, dry=dry: by_admin(
            at, lambda admin: admin.create_partitions([NewPartitions("there", n)], validate_only=dry)
        )
        for dry in (True, False)
    },
}


@pytest.mark.parametrize("entrance", ENTRANCES)
@pytest.mark.parametrize("limit", [10_000, 3])
def test_no_entrance_goes_beyond_the_limit(address: str, entrance: str, limit: int):
    if limit != 10_000:
        with open_lake(address) as lake:
            lake.alter_config({"topic.max.partitions": str(limit)})
    for count in (limit + 1, HUGE):
        said = ENTRANCES[entrance](address, count)
        assert f"Number of partitions {count} is above the lake's topic.max.partitions, {limit}:" in said
    assert [(t["name"], t["partitions"]) for t in answer("topic", "list", "--lake", address)] == [("there", 2)]


def test_up_to_the_limit_all_is_well(address: str):
    with open_lake(address) as lake:
        lake.alter_config({"topic.max.partitions": "3"})
        assert len(lake.create_topic("new", 3).partitions) == len(lake.alter_topic("there", 3).partitions) == 3


def test_topics_that_are_created_on_their_own_keep_to_it():
    """Producers and Spark create topics of `num.partitions`, which can't be above the limit."""
    for config in ({"num.partitions": "10001"}, {"topic.max.partitions": "4", "num.partitions": "5"}):
        with pytest.raises(InvalidConfigError, match=r"num\.partitions \(\d+\) > topic\.max\.partitions"):
            LakeConfig.parse(config)
    with pytest.raises(InvalidConfigError, match="or lower num"):
        LakeConfig.parse({"num.partitions": "5"}).merged({"topic.max.partitions": "4"})


def test_a_topic_that_has_more_is_listed_written_and_altered(address: str):
    """Listing it must cost nothing for each partition: a description of these would fill the memory."""
    with open_lake(address) as lake:
        lake.alter_config({"topic.max.partitions": "100000"})
        lake.create_topic("wide", 50_000)
        lake.alter_config({"topic.max.partitions": None})
        lake.topic("wide").append(values("a", "b", partition=[7, 49_999]))
        lake.alter_topic("wide", 50_000, {"retention.ms": "5"})
        with pytest.raises(InvalidPartitionsError, match=r"topic\.max\.partitions, 10000"):
            lake.alter_topic("wide", 50_001)
        tracemalloc.start()
        summary = lake.summarize_topic("wide")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 1_000_000, "something is kept for each partition"
        assert (summary.partitions, summary.offsets, summary.segments) == (50_000, 2, 2)
    listed = json.loads(cli("topic", "list", "--format", "json", "--lake", address).stdout)
    assert [t["partitions"] for t in listed] == [2, 50_000]
