"""Which partitions a strategy reads; patterns match anywhere in a name, as Java's `find` does."""

import pytest

from tidelog.log.base.errors import InvalidOptionError
from tidelog.sources.offset_json import TopicPartition
from tidelog.sources.strategy import Assign, Subscribe, SubscribePattern, parse_strategy, partitions_of, topics_of
from tidelog.sources.topic_patterns import match_topics

EXISTING = {"orders": 2, "reorders": 1, "clicks-eu": 1, "clicks.us": 1}


@pytest.mark.parametrize(
    ("strategy", "topics", "partitions"),
    [
        (Subscribe(("orders", "gone", "orders")), ["gone", "orders"], ["orders-0", "orders-1"]),
        (SubscribePattern("order"), ["orders", "reorders"], ["orders-0", "orders-1", "reorders-0"]),
        (SubscribePattern("nothing"), [], []),
        (Assign(frozenset({TopicPartition("orders", 1), TopicPartition("orders", 7)})), ["orders"], ["orders-1"]),
    ],
    ids=["named, one of them missing", "pattern", "pattern of nothing", "assigned, one partition missing"],
)
def test_partitions_of_a_strategy(strategy: Subscribe, topics: list[str], partitions: list[str]) -> None:
    assert topics_of(strategy, EXISTING) == topics
    assert sorted(map(str, partitions_of(strategy, EXISTING))) == partitions


def test_a_topic_created_later_and_a_partition_added_later_are_found() -> None:
    grown = {**EXISTING, "orders": 3, "preorders": 1}
    found = partitions_of(SubscribePattern("orders$"), grown) - partitions_of(SubscribePattern("orders$"), EXISTING)
    assert sorted(map(str, found)) == ["orders-2", "preorders-0"]


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        ("ord", "orders reorders"),
        ("^ord", "orders"),
        ("s$", "clicks.us orders reorders"),
        ("order|us", "clicks.us orders reorders"),
        ("clicks.eu", "clicks-eu"),
        (r"clicks\.", "clicks.us"),
        (r"\Qclicks.\E", "clicks.us"),
        (r"clicks[.\-]", "clicks-eu clicks.us"),
        ("(?i)ORDERS", "orders reorders"),
        (r"^\p{Lower}+$", "orders reorders"),
        (r"[\p{Punct}]", "clicks-eu clicks.us"),
        (r"\P{Alnum}", "clicks-eu clicks.us"),
        (r"(?<first>r)e\k<first>", ""),
        (r"(?<first>r)d?e\k<first>", "orders reorders"),
        ("(?<=re)order", "reorders"),
        ("(?<!re)order", "orders"),
        (r"orders\z", "orders reorders"),
        ("clicks[]-]", "clicks-eu"),
        ("[^a-z]", "clicks-eu clicks.us"),
    ],
)
def test_patterns_of_java(pattern: str, matches: str) -> None:
    assert match_topics(pattern, EXISTING) == matches.split()


@pytest.mark.parametrize("pattern", ["(", "*", "[a-z&&[^b]]", "[a[b]]", r"\p{Greek}", r"[\P{Alnum}]", r"\R", "a(?i)b"])
def test_patterns_that_are_refused(pattern: str) -> None:
    with pytest.raises(InvalidOptionError, match="of the option 'subscribePattern' is not valid"):
        parse_strategy({"subscribepattern": pattern})
