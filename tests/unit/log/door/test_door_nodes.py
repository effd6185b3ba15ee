"""A log in a store of several nodes, of which one has just come back and misses what was stored meanwhile."""

import re
from collections.abc import Iterator

import pytest
from support.logs import values
from support.small_s3 import SmallS3, options_of, small_nodes

from tidelog.log.base.errors import TopicExistsError
from tidelog.log.lake import Lake

URI = "s3://bucket/lake"


@pytest.fixture
def nodes() -> Iterator[list[SmallS3]]:
    with small_nodes() as started:
        yield started


def opened(nodes: list[SmallS3]) -> Lake:
    return Lake(URI, options=options_of(nodes))


def behind(lake: Lake, nodes: list[SmallS3], what: str) -> SmallS3:
    """The node that this lake's process asks misses objects of these names."""
    node = nodes[lake.storage._nodes.at]  # type: ignore[attr-defined]
    node.misses = re.compile(what)
    return node


def read(lake: Lake, topic: str) -> list[str]:
    return [value.decode() for batch in lake.topic(topic).read(0) for value in batch["value"].to_pylist()]


def test_an_append_goes_after_entries_that_its_node_misses(nodes: list[SmallS3]):
    with opened(nodes) as one, opened(nodes) as two:
        one.create_topic("t", 1)
        two.topic("t").append(values("a"))
        one.topic("t").append(values("b"))
        one.topic("t").append(values("c"))
        behind(two, nodes, "_delta_log/0")
        assert two.topic("t").append(values("d")) == {0: (3, 4)}
        assert (read(one, "t"), read(two, "t")) == (["a", "b", "c", "d"], ["a", "b", "c", "d"])


def test_readers_see_what_their_node_misses(nodes: list[SmallS3]):
    with opened(nodes) as one, opened(nodes) as two:
        one.create_topic("t", 1)
        two.topic("t").append(values("a"))
        one.topic("t").append(values("b"))
        behind(two, nodes, "")
        assert read(two, "t") == ["a", "b"]
        with opened(nodes) as third:
            assert read(third, "t") == ["a", "b"]
            assert third.topics() == ["t"]


def test_a_refusal_does_not_rest_on_one_node_s_word(nodes: list[SmallS3]):
    """Records that its node does not show can be deleted all the same, and a topic be created but once."""
    with opened(nodes) as one, opened(nodes) as two:
        one.create_topic("t", 1)
        two.topic("t").append(values("a"))
        one.topic("t").append(values("b"))
        behind(two, nodes, "_delta_log/0+2")
        assert two.delete_records("t", {0: 2}) == {0: 2}
        behind(two, nodes, "")
        with pytest.raises(TopicExistsError):
            two.create_topic("t", 1)
        assert read(one, "t") == []


def test_a_node_that_misses_everything_is_no_empty_lake(nodes: list[SmallS3]):
    with opened(nodes) as one:
        one.create_topic("t", 1)
        one.topic("t").append(values("a"))
        for number, node in enumerate(nodes):
            node.misses = re.compile("")
            for at in range(3):
                with opened(nodes) as fresh:
                    fresh.storage._nodes.at = at  # type: ignore[attr-defined]
                    assert read(fresh, "t") == ["a"], (number, at)
            node.misses = None
