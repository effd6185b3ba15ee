"""Configurations of topics and of the lake: described, altered and replaced; what each is refused with."""

import pytest
from support.logs import memory_lake, open_lake

from tidelog.log.base.errors import (
    InvalidConfigError,
    InvalidTopicError,
    LakeFollowsError,
    LakeNotFoundError,
    TidelogError,
    UnknownTopicError,
)
from tidelog.log.config.lake_file import Follows
from tidelog.log.config.overrides import KeyDescription
from tidelog.log.config.topics_and_lakes import LakeConfig, TopicConfig
from tidelog.log.lake import Lake
from tidelog.operations.configs import KeyChange, KeyOperation, alter_config, describe_config, replace_config

SET, DELETE, APPEND, SUBTRACT = KeyOperation
BEFORE = {"cleanup.policy": "compact", "retention.ms": "5"}


@pytest.fixture
def lake() -> Lake:
    lake = memory_lake()[0]
    lake.create_topic("t", config=BEFORE)
    return lake


def described(lake: Lake, topic: str | None) -> dict[str, KeyDescription]:
    return {key.name: key for key in describe_config(lake, topic)}


# --- describing --------------------------------------------------------------------------------------------


def test_a_topics_keys_have_their_values_in_all_places(lake: Lake) -> None:
    lake.alter_config({"log.retention.ms": "7", "log.segment.bytes": "1000"})
    keys = described(lake, "t")
    assert list(keys) == sorted(TopicConfig.KEYS)
    assert keys["retention.ms"].values == (
        ("retention.ms", "5", "topic"),
        ("log.retention.ms", "7", "lake"),
        ("log.retention.ms", "604800000", "default"),
    )
    assert keys["segment.bytes"].values == (
        ("log.segment.bytes", "1000", "lake"),
        ("log.segment.bytes", "1073741824", "default"),
    )
    shown = {name: (keys[name].value, keys[name].source, keys[name].is_default) for name in keys}
    assert shown["retention.ms"] == ("5", "topic", False)
    assert shown["segment.bytes"] == ("1000", "lake", False)
    assert shown["delete.retention.ms"] == ("86400000", "default", True)
    assert keys["retention.ms"].doc == TopicConfig.retention_ms.doc


def test_the_lakes_keys_are_as_they_are_now() -> None:
    lake, storage, clock = memory_lake()
    assert described(lake, None)["num.partitions"].is_default
    open_lake(storage, clock).alter_config({"num.partitions": "6"})
    keys = described(lake, None)
    assert list(keys) == sorted(LakeConfig.KEYS)
    assert keys["num.partitions"].values == (("num.partitions", "6", "lake"), ("num.partitions", "1", "default"))


@pytest.mark.parametrize(
    ("topic", "error"), [("missing", UnknownTopicError), ("bad name", InvalidTopicError), ("", InvalidTopicError)]
)
def test_what_is_no_topic_has_no_configuration(lake: Lake, topic: str, error: type[TidelogError]) -> None:
    with pytest.raises(error):
        describe_config(lake, topic)
    with pytest.raises(error):
        alter_config(lake, topic, [KeyChange("retention.ms", SET, "1")])
    with pytest.raises(error):
        replace_config(lake, topic, {})


@pytest.mark.parametrize("topic", ["t", None])
def test_where_there_is_no_lake_nothing_is_described(topic: str | None) -> None:
    with pytest.raises(LakeNotFoundError):
        describe_config(Lake("memory://no-lake-of-configurations", None), topic)


# --- altering ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("validate_only", [True, False])
@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ([KeyChange("retention.ms", SET, "9")], {"cleanup.policy": "compact", "retention.ms": "9"}),
        ([KeyChange("cleanup.policy", DELETE)], {"retention.ms": "5"}),
        ([KeyChange("cleanup.policy", APPEND, "delete")], {"cleanup.policy": "compact,delete", "retention.ms": "5"}),
        ([KeyChange("cleanup.policy", APPEND, "compact")], BEFORE),
        ([KeyChange("cleanup.policy", SUBTRACT, "compact")], {"cleanup.policy": "", "retention.ms": "5"}),
        ([KeyChange("cleanup.policy", SUBTRACT, " compact , delete")], {"cleanup.policy": "", "retention.ms": "5"}),
        (
            [KeyChange("retention.ms", DELETE), KeyChange("segment.bytes", SET, "99")],
            {"cleanup.policy": "compact", "segment.bytes": "99"},
        ),
        ([KeyChange("flush.ms", DELETE)], BEFORE),  # a refused key has no value
        ([], BEFORE),
    ],
)
def test_keys_of_a_topic_are_changed(
    lake: Lake, changes: list[KeyChange], expected: dict[str, str], validate_only: bool
) -> None:
    alter_config(lake, "t", changes, validate_only=validate_only)
    assert lake.topic_config("t").overrides == (BEFORE if validate_only else expected)


@pytest.mark.parametrize("validate_only", [True, False])
def test_keys_of_the_lake_are_changed(lake: Lake, validate_only: bool) -> None:
    changes = [KeyChange("num.partitions", SET, "4"), KeyChange("log.cleanup.policy", APPEND, "compact")]
    alter_config(lake, None, changes, validate_only=validate_only)
    expected = {} if validate_only else {"log.cleanup.policy": "delete,compact", "num.partitions": "4"}
    assert lake.reload_config().overrides == expected


@pytest.mark.parametrize("validate_only", [True, False])
@pytest.mark.parametrize(
    ("topic", "change", "words"),
    [
        ("t", KeyChange("retention.ms", SET, "soon"), "Not a number of type LONG"),
        ("t", KeyChange("retention.ms", APPEND, "5"), "Can't APPEND value for key retention.ms: it is no list"),
        ("t", KeyChange("retention.ms", SUBTRACT, "5"), "Can't SUBTRACT value"),
        ("t", KeyChange("cleanup.policy", APPEND, "shred"), "cleanup.policy"),
        ("t", KeyChange("no.such.key", SET, "5"), "Unknown topic configuration"),
        ("t", KeyChange("no.such.key", APPEND, "5"), "Unknown topic configuration"),
        ("t", KeyChange("no.such.key", DELETE), "Unknown topic configuration"),
        ("t", KeyChange("flush.ms", SET, "5"), "is refused"),
        (None, KeyChange("num.partitions", SET, "0"), "num.partitions"),
        (None, KeyChange("no.such.key", SET, "5"), "Unknown lake configuration"),
        (None, KeyChange("num.partitions", APPEND, "5"), "it is no list"),
    ],
)
def test_a_wrong_change_keeps_all_others(
    lake: Lake, topic: str | None, change: KeyChange, words: str, validate_only: bool
) -> None:
    right = KeyChange("retention.ms" if topic else "log.retention.ms", SET, "8")
    with pytest.raises(InvalidConfigError, match=words):
        alter_config(lake, topic, [right, change], validate_only=validate_only)
    assert (lake.topic_config("t").overrides, lake.reload_config().overrides) == (BEFORE, {})


def test_a_follower_is_not_changed(lake: Lake) -> None:
    lake.follow(Follows("memory://source"))
    for topic in ("t", None):
        with pytest.raises(LakeFollowsError):
            alter_config(lake, topic, [KeyChange("retention.ms" if topic else "num.partitions", SET, "8")])
        with pytest.raises(LakeFollowsError):
            replace_config(lake, topic, {"retention.ms" if topic else "num.partitions": "8"})


# --- replacing ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("validate_only", [True, False])
def test_what_is_replaced_is_reset_where_it_is_not_named(lake: Lake, validate_only: bool) -> None:
    lake.alter_config({"num.partitions": "4"})
    replace_config(lake, "t", {"segment.bytes": "1000"}, validate_only=validate_only)
    replace_config(lake, None, {"log.retention.ms": "7"}, validate_only=validate_only)
    found = lake.topic_config("t").overrides, lake.reload_config().overrides
    replaced = {"segment.bytes": "1000"}, {"log.retention.ms": "7"}
    assert found == ((BEFORE, {"num.partitions": "4"}) if validate_only else replaced)


@pytest.mark.parametrize("validate_only", [True, False])
@pytest.mark.parametrize(("topic", "wrong"), [("t", {"retention.ms": "x"}), (None, {"num.partitions": "0"})])
def test_a_wrong_replacement_resets_nothing(
    lake: Lake, topic: str | None, wrong: dict[str, str], validate_only: bool
) -> None:
    with pytest.raises(InvalidConfigError):
        replace_config(lake, topic, wrong, validate_only=validate_only)
    assert lake.topic_config("t").overrides == BEFORE
