"""Lake configuration: its own keys, and the defaults that its topics take."""

from typing import Any

import pytest

from tidelog.log.base.errors import InvalidConfigError
from tidelog.log.config.broker_keys import BROKER_KEYS
from tidelog.log.config.kafka_brokers import PASSED_OVER
from tidelog.log.config.topics_and_lakes import LakeConfig, TopicConfig

# topic key -> the broker's name of its default (Kafka's ServerTopicConfigSynonyms; tidelog's own keep their name)
SYNONYMS = {
    "cleanup.policy": "log.cleanup.policy",
    "compression.gzip.level": "compression.gzip.level",
    "compression.lz4.level": "compression.lz4.level",
    "compression.type": "compression.type",
    "compression.zstd.level": "compression.zstd.level",
    "delete.retention.ms": "log.cleaner.delete.retention.ms",
    "file.delete.delay.ms": "log.segment.delete.delay.ms",
    "log.checkpoint.interval": "log.checkpoint.interval",
    "log.min.age.ms": "log.min.age.ms",
    "max.compaction.lag.ms": "log.cleaner.max.compaction.lag.ms",
    "max.message.bytes": "message.max.bytes",
    "max.record.bytes": "max.record.bytes",
    "merge.compression.level": "merge.compression.level",
    "message.timestamp.after.max.ms": "log.message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms": "log.message.timestamp.before.max.ms",
    "message.timestamp.type": "log.message.timestamp.type",
    "min.cleanable.dirty.ratio": "log.cleaner.min.cleanable.ratio",
    "min.compaction.lag.ms": "log.cleaner.min.compaction.lag.ms",
    "min.insync.replicas": "min.insync.replicas",
    "retention.bytes": "log.retention.bytes",
    "retention.ms": "log.retention.ms",
    "segment.bytes": "log.segment.bytes",
    "segment.ms": "log.roll.ms",
}

OTHER_TEXTS = {
    "cleanup.policy": "compact",
    "compression.type": "gzip",
    "message.timestamp.type": "LogAppendTime",
    "min.cleanable.dirty.ratio": "0.25",
    "compression.gzip.level": "5",
    "compression.lz4.level": "5",
    "compression.zstd.level": "5",
    "merge.compression.level": "5",
}


# Each topic has a schema of its own.
OF_TOPICS_ALONE = ["topic.validate", "value.bytes", "value.columns", "value.schema", "value.schema.subject"]


def test_every_topic_key_has_a_default_in_the_lake_but_those_of_typed_topics() -> None:
    assert {*SYNONYMS, *OF_TOPICS_ALONE} == set(TopicConfig.KEYS)


@pytest.mark.parametrize("key", OF_TOPICS_ALONE)
def test_a_lake_has_no_default_of_what_says_how_one_topics_values_look(key: str) -> None:
    with pytest.raises(InvalidConfigError, match=rf"Configuration {key} is no key of a lake.* Each topic sets it for"):
        LakeConfig.parse({key: TopicConfig.KEYS[key].kind.text(TopicConfig.KEYS[key].default)})


@pytest.mark.parametrize(("topic_key", "lake_key"), SYNONYMS.items())
def test_a_topic_takes_what_it_does_not_set_from_its_lake(topic_key: str, lake_key: str) -> None:
    text = OTHER_TEXTS.get(topic_key, "20000")
    lake = LakeConfig.parse({lake_key: text})
    topic = TopicConfig.parse({}, defaults=lake)
    assert topic.overrides == {}
    rows = {row.name: row.value for row in topic.describe()}
    assert rows[topic_key] == text
    assert rows | {topic_key: ""} == {row.name: row.value for row in TopicConfig.parse({}).describe()} | {topic_key: ""}


def test_a_topics_own_value_counts_before_its_lakes() -> None:
    lake = LakeConfig.parse({"log.retention.ms": "5"})
    topic = TopicConfig.parse({"retention.ms": "7"}, defaults=lake)
    assert topic.retention_ms == 7
    assert topic.merged({"retention.ms": None}).retention_ms == 5


def test_defaults() -> None:
    lake = LakeConfig.parse({})
    assert (lake.num_partitions, lake.auto_create_topics_enable, lake.offsets_topic_num_partitions) == (1, True, 1)
    assert lake.overrides == {}


@pytest.mark.parametrize(
    ("key", "text", "attribute", "value"),
    [
        ("num.partitions", "12", "num_partitions", 12),
        ("auto.create.topics.enable", "False", "auto_create_topics_enable", False),
        ("auto.create.topics.enable", "TRUE", "auto_create_topics_enable", True),
        ("offsets.topic.num.partitions", "50", "offsets_topic_num_partitions", 50),
        ("topic.max.partitions", "20", "topic_max_partitions", 20),
    ],
)
def test_the_lakes_own_keys(key: str, text: str, attribute: str, value: Any) -> None:
    lake = LakeConfig.parse({key: text})
    assert getattr(lake, attribute) == value
    assert lake.overrides == {key: text.lower()}


@pytest.mark.parametrize(
    ("key", "text", "reason"),
    [
        ("num.partitions", "0", "Value must be at least 1"),
        ("offsets.topic.num.partitions", "0", "Value must be at least 1"),
        ("topic.max.partitions", "0", "Value must be at least 1"),
        ("auto.create.topics.enable", "yes", "Expected value to be either true or false"),
        ("log.retention.ms", "-2", "Value must be at least -1"),
        ("message.max.bytes", "x", "Not a number of type INT"),
    ],
)
def test_a_value_that_a_key_does_not_take(key: str, text: str, reason: str) -> None:
    with pytest.raises(InvalidConfigError) as error:
        LakeConfig.parse({key: text})
    assert str(error.value).startswith(f"Invalid value {text} for configuration {key}: {reason}. Give ")


@pytest.mark.parametrize("key", sorted(PASSED_OVER.keys() - LakeConfig.KEYS))
def test_a_brokers_keys_that_would_do_nothing_are_refused_with_the_reason(key: str) -> None:
    with pytest.raises(InvalidConfigError) as error:
        LakeConfig.parse({key: "1"})
    assert str(error.value).startswith(f"Configuration {key} is refused, because it would do nothing: ")
    assert PASSED_OVER[key] in str(error.value)


@pytest.mark.parametrize("key", sorted(BROKER_KEYS.keys() - LakeConfig.KEYS.keys()))
def test_a_setting_of_brokers_is_named_as_one(key: str) -> None:
    with pytest.raises(InvalidConfigError, match=r"is no key of a lake.*put it into the file of 'tidelog broker start"):
        LakeConfig.parse({key: "1"})


@pytest.mark.parametrize("key", ["zookeeper.connect", "confluent.license.topic", "remote.log.reader.threads"])
def test_families_of_brokers_keys_are_refused_with_their_reason(key: str) -> None:
    with pytest.raises(InvalidConfigError, match="is refused, because it would do nothing: "):
        LakeConfig.parse({key: "1"})


@pytest.mark.parametrize(
    ("key", "text", "found"),
    [
        ("log.retention.hours", "2", {"log.retention.ms": "7200000"}),
        ("log.retention.hours", "-1", {"log.retention.ms": "-1"}),
        ("log.retention.minutes", "3", {"log.retention.ms": "180000"}),
        ("log.roll.hours", "1", {"log.roll.ms": "3600000"}),
    ],
)
def test_other_units_of_a_key_set_it(key: str, text: str, found: dict[str, str]) -> None:
    assert LakeConfig.parse({key: text}).overrides == found
    assert LakeConfig.parse(found).merged({key: None}).overrides == {}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"log.retention.hours": "two"}, "Invalid value two for configuration log.retention.hours: Not a number of"),
        ({"log.roll.hours": "0"}, "Invalid value 0 for configuration log.roll.ms: Value must be at least 1"),
        ({"log.retention.hours": "1", "log.retention.ms": "1"}, "is set twice, under two names"),
    ],
)
def test_other_units_of_a_key_that_it_does_not_take(given: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidConfigError, match=said):
        LakeConfig.parse(given)


def test_other_keys_are_refused_with_the_one_that_is_meant() -> None:
    with pytest.raises(
        InvalidConfigError, match=r"retention.ms is no key of a lake.*default for its topics is log.retention.ms"
    ):
        LakeConfig.parse({"retention.ms": "1"})
    with pytest.raises(InvalidConfigError, match=r"Unknown lake configuration 'num.partition'.*'num.partitions'"):
        LakeConfig.parse({"num.partition": "1"})


def test_the_timestamp_type_has_two_names() -> None:
    both = {"message.timestamp.type": "LogAppendTime", "log.message.timestamp.type": "LogAppendTime"}
    for names in ([*both], ["message.timestamp.type"], ["log.message.timestamp.type"]):
        lake = LakeConfig.parse({name: both[name] for name in names})
        assert lake.overrides == {"message.timestamp.type": "LogAppendTime"}
        assert TopicConfig.parse({}, defaults=lake).timestamp_type == 1
        assert lake.merged({names[-1]: None}).overrides == {}
    with pytest.raises(InvalidConfigError, match=r"message.timestamp.type is set twice"):
        LakeConfig.parse(both | {"message.timestamp.type": "CreateTime"})
    with pytest.raises(InvalidConfigError, match="both set and reset"):
        LakeConfig.parse({}).merged({**both, "message.timestamp.type": None})


def test_merging_sets_and_resets() -> None:
    lake = LakeConfig.parse({"num.partitions": "3", "log.retention.ms": "5"})
    changed = lake.merged({"num.partitions": None, "log.segment.bytes": "100"})
    assert changed.overrides == {"log.retention.ms": "5", "log.segment.bytes": "100"}
    assert lake.num_partitions == 3


def test_contradicting_defaults_are_refused() -> None:
    lake = LakeConfig.parse({"log.cleaner.min.compaction.lag.ms": "5"})
    with pytest.raises(InvalidConfigError, match=r"^conflict topic config setting"):
        lake.merged({"log.cleaner.max.compaction.lag.ms": "4"})


def test_a_lakes_later_default_does_not_keep_a_topic_from_being_opened() -> None:
    own = {"min.compaction.lag.ms": "5"}
    lake = LakeConfig.parse({"log.cleaner.max.compaction.lag.ms": "4"})
    with pytest.raises(InvalidConfigError, match=r"^conflict topic config setting"):
        TopicConfig.parse(own, defaults=lake)
    opened = TopicConfig.stored(own, defaults=lake)
    assert (opened.min_compaction_lag_ms, opened.max_compaction_lag_ms) == (5, 4)
    assert opened.merged({"max.compaction.lag.ms": "5"}).max_compaction_lag_ms == 5


def test_describe_lists_every_key() -> None:
    rows = {row.name: row for row in LakeConfig.parse({"num.partitions": "3"}).describe()}
    assert list(rows) == sorted(LakeConfig.KEYS)
    assert (rows["num.partitions"].value, rows["num.partitions"].source) == ("3", "lake")
    assert (rows["log.retention.ms"].value, rows["log.retention.ms"].is_default) == ("604800000", True)
    assert rows["auto.create.topics.enable"].value == "true"
