"""Topic names, by Kafka's `Topic` and `TopicTest`."""

import pytest

from tidelog.log.base.errors import InvalidTopicError
from tidelog.log.rules.names import check_new, collides, is_internal, may_be_topic, validate


@pytest.mark.parametrize(
    "name", ["valid", "TEST", "nAmEs", "ar6", "VaL1d", "_0-9_.", "...", "a", "x" * 249, "__consumer_offsets", "_"]
)
def test_names_that_kafka_takes(name: str) -> None:
    validate(name)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "Topic name is invalid: the empty string is not allowed"),
        (".", "Topic name is invalid: '.' is not allowed"),
        ("..", "Topic name is invalid: '..' is not allowed"),
        ("x" * 250, f"Topic name is invalid: the length of '{'x' * 250}' is longer than the max allowed length 249"),
        (
            "foo bar",
            "Topic name is invalid: 'foo bar' contains one or more characters other than ASCII alphanumerics, "
            "'.', '_' and '-'",
        ),
        ("orders\n", "contains one or more characters other than"),
        ("a/b", "contains one or more characters other than"),
        ("größe", "contains one or more characters other than"),
        ("٣", "contains one or more characters other than"),
        (None, "Topic name is invalid: a name is a string, not NoneType"),
        ("__branches", "is taken, because a lake keeps notes of its branches there"),
        ("__mirror", "is taken, because a mirror keeps its leases and its rounds there"),
        ("__lake.json", "is taken, because it is the lake's own configuration file"),
        ("_delta_log", "is taken, because other engines would take the whole lake for one Delta table"),
    ],
)
def test_names_that_are_refused(name: str, reason: str) -> None:
    with pytest.raises(InvalidTopicError) as error:
        validate(name)
    assert reason in str(error.value)
    assert "1 to 249 ASCII letters" in str(error.value)


@pytest.mark.parametrize(("name", "internal"), [("__offsets", True), ("__x", True), ("_x", False), ("x__", False)])
def test_internal_names_start_with_two_underscores(name: str, internal: bool) -> None:
    assert is_internal(name) is internal


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("topic", "topic", False),
        ("topic", "tipoc", False),
        ("a.b", "a_b", True),
        ("_a.b", "._a_b", False),
        ("a.b_c", "a_b.c", True),
        ("a..b", "a_.b", True),
        ("a.b", "a-b", False),
        ("A.b", "a_b", False),
    ],
)
def test_names_collide_when_only_dots_and_underscores_differ(a: str, b: str, expected: bool) -> None:
    assert collides(a, b) is expected
    assert collides(b, a) is expected


def test_a_new_topic_must_not_collide_with_an_existing_one() -> None:
    with pytest.raises(InvalidTopicError, match=r"^Topic 'a\.b' collides with existing topic: a_b\. .*Choose another"):
        check_new("a.b", ["z", "a_b"])
    with pytest.raises(InvalidTopicError, match="Topic name is invalid"):
        check_new("a b", [])


def test_a_topic_of_the_same_name_is_no_collision() -> None:
    check_new("a.b", ["a.b", "a-b"])


@pytest.mark.parametrize(
    ("folder", "may"),
    [
        ("orders", True),
        ("_schemas", True),
        ("__audit", True),
        ("__cuts", False),
        ("__consumer_offsets-3", False),
        ("__mirror", False),
        ("__branches", False),
        ("__tidelog-proof-1", False),
        ("_delta_log", False),
        ("no topic's name", False),
    ],
)
def test_which_folders_of_a_lake_may_be_topics(folder: str, may: bool) -> None:
    assert may_be_topic(folder) is may
