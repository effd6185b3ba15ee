"""Topic configuration: Kafka's names, defaults and checks, and tidelog's own keys."""

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.log.base.errors import InvalidConfigError
from tidelog.log.config.refused import REFUSED_FOR_TOPICS
from tidelog.log.config.topics_and_lakes import LakeConfig, TopicConfig, UnaskedCodec

LONG = 2**63 - 1

# key, attribute, default, another text, its value
KEYS: list[tuple[str, str, Any, str, Any]] = [
    ("cleanup.policy", "cleanup_policy", ("delete",), "compact", ("compact",)),
    ("compression.gzip.level", "compression_gzip_level", -1, "9", 9),
    ("compression.lz4.level", "compression_lz4_level", 9, "17", 17),
    ("compression.type", "compression", "producer", "zstd", "zstd"),
    ("compression.zstd.level", "compression_zstd_level", 3, "-131072", -131072),
    ("delete.retention.ms", "delete_retention_ms", 86_400_000, "0", 0),
    ("file.delete.delay.ms", "file_delete_delay_ms", 60_000, "0", 0),
    ("log.checkpoint.interval", "log_checkpoint_interval", 150, "10", 10),
    ("log.min.age.ms", "log_min_age_ms", 300_000, "10000", 10_000),
    ("max.compaction.lag.ms", "max_compaction_lag_ms", LONG, "1", 1),
    ("max.message.bytes", "max_message_bytes", 1_048_588, "0", 0),
    ("max.record.bytes", "max_record_bytes", 52_428_800, "1", 1),
    ("merge.compression.level", "merge_compression_level", 9, "22", 22),
    ("message.timestamp.after.max.ms", "message_timestamp_after_max_ms", 3_600_000, "0", 0),
    ("message.timestamp.before.max.ms", "message_timestamp_before_max_ms", LONG, "0", 0),
    ("message.timestamp.type", "timestamp_type", 0, "LogAppendTime", 1),
    ("min.cleanable.dirty.ratio", "min_cleanable_dirty_ratio", 0.5, "0.25", 0.25),
    ("min.compaction.lag.ms", "min_compaction_lag_ms", 0, "7", 7),
    ("min.insync.replicas", "min_insync_replicas", 1, "2", 2),
    ("retention.bytes", "retention_bytes", -1, "1000", 1000),
    ("retention.ms", "retention_ms", 604_800_000, "-1", -1),
    ("segment.bytes", "segment_bytes", 1_073_741_824, "14", 14),
    ("segment.ms", "segment_ms", 604_800_000, "1", 1),
    ("topic.validate", "topic_validate", False, "true", True),
    ("value.bytes", "value_bytes", "keep", "derive", "derive"),
    ("value.columns", "value_columns", "none", "avro", "avro"),
    ("value.schema", "value_schema", "", '"long"', '"long"'),
    ("value.schema.subject", "value_schema_subject", "", "orders-value", "orders-value"),
]

# key, a text it does not take, Kafka's reason
BAD_VALUES = [
    ("cleanup.policy", "keep", "String must be one of: compact, delete"),
    ("cleanup.policy", "delete,", "String must be one of: compact, delete"),
    ("cleanup.policy", "Delete", "String must be one of: compact, delete"),
    ("cleanup.policy", "delete,delete", "Values must not be duplicated"),
    ("compression.gzip.level", "0", "Value must be between 1 and 9 or equal to -1"),
    ("compression.gzip.level", "10", "Value must be between 1 and 9 or equal to -1"),
    ("compression.lz4.level", "0", "Value must be at least 1"),
    ("compression.lz4.level", "18", "Value must be no more than 17"),
    ("compression.type", "none", "String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer"),
    ("compression.type", "ZSTD", "String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer"),
    ("compression.zstd.level", "-131073", "Value must be at least -131072"),
    ("compression.zstd.level", "23", "Value must be no more than 22"),
    ("delete.retention.ms", "-1", "Value must be at least 0"),
    ("file.delete.delay.ms", "-1", "Value must be at least 0"),
    ("log.checkpoint.interval", "9", "Value must be at least 10"),
    ("log.min.age.ms", "9999", "Value must be at least 10000"),
    ("max.compaction.lag.ms", "0", "Value must be at least 1"),
    ("max.message.bytes", "-1", "Value must be at least 0"),
    ("max.message.bytes", "2147483648", "Not a number of type INT"),
    ("max.record.bytes", "-1", "Value must be at least 0"),
    ("merge.compression.level", "0", "Value must be at least 1"),
    ("merge.compression.level", "23", "Value must be no more than 22"),
    ("message.timestamp.after.max.ms", "-1", "Value must be at least 0"),
    ("message.timestamp.before.max.ms", "-1", "Value must be at least 0"),
    ("message.timestamp.type", "createtime", "String must be one of: CreateTime, LogAppendTime"),
    ("min.cleanable.dirty.ratio", "-0.1", "Value must be at least 0"),
    ("min.cleanable.dirty.ratio", "1.1", "Value must be no more than 1"),
    ("min.cleanable.dirty.ratio", "NaN", "Not a number of type DOUBLE"),
    ("min.cleanable.dirty.ratio", "half", "Not a number of type DOUBLE"),
    ("min.compaction.lag.ms", "-1", "Value must be at least 0"),
    ("min.insync.replicas", "0", "Value must be at least 1"),
    ("retention.bytes", "1e6", "Not a number of type LONG"),
    ("retention.ms", "-2", "Value must be at least -1"),
    ("retention.ms", "9223372036854775808", "Not a number of type LONG"),
    ("retention.ms", "", "Not a number of type LONG"),
    ("retention.ms", "1_000", "Not a number of type LONG"),
    ("retention.ms", "٣", "Not a number of type LONG"),
    ("retention.ms", "7 days", "Not a number of type LONG"),
    ("segment.bytes", "13", "Value must be at least 14"),
    ("segment.ms", "0", "Value must be at least 1"),
    ("topic.validate", "yes", "Expected value to be either true or false"),
    ("value.bytes", "drop", "String must be one of: keep, derive"),
    ("value.columns", "AVRO", "String must be one of: none, avro, json, protobuf"),
    ("value.schema", "x" * 1_000_001, "its length is 1000001, and allowed are 0 to 1000000 characters"),
    ("value.schema.subject", "x" * 1_001, "its length is 1001, and allowed are 0 to 1000 characters"),
]


def test_the_tables_here_name_every_key() -> None:
    assert [row[0] for row in KEYS] == sorted(TopicConfig.KEYS)
    assert {row[0] for row in BAD_VALUES} == set(TopicConfig.KEYS)


@pytest.mark.parametrize(("key", "attribute", "default", "text", "value"), KEYS, ids=[row[0] for row in KEYS])
def test_each_key_has_kafkas_default_and_takes_a_value(
    key: str, attribute: str, default: Any, text: str, value: Any
) -> None:
    assert getattr(TopicConfig.parse({}), attribute) == default
    config = TopicConfig.stored({key: f"  {text}\t"})
    assert getattr(config, attribute) == value
    assert config.overrides == {key: text}
    others = [other for _, other, *_ in KEYS if other != attribute]
    assert [getattr(config, other) for other in others] == [getattr(TopicConfig.parse({}), other) for other in others]


@pytest.mark.parametrize(("key", "text", "reason"), BAD_VALUES, ids=lambda text: text[:80])
def test_a_value_that_a_key_does_not_take_is_refused_in_kafkas_words(key: str, text: str, reason: str) -> None:
    with pytest.raises(InvalidConfigError) as error:
        TopicConfig.parse({key: text})
    assert str(error.value).startswith(f"Invalid value {text} for configuration {key}: {reason}. Give ")
    assert "the default is " in str(error.value)


# Keys that not every value of another one goes with.
_RULED = {"min.compaction.lag.ms", "max.compaction.lag.ms", "topic.validate", *(k for k, *_ in KEYS if "value." in k)}
_TYPED = {"value.columns": "avro", "value.schema": '"long"'}


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ({"value.columns": "json"}, r"value\.columns \(json\) without a schema: .*Set value\.schema\.subject .*"),
        (
            _TYPED | {"value.schema.subject": "s"},
            r"value\.schema\.subject \(s\) and value\.schema: .*Set one of the two",
        ),
        (
            _TYPED | {"value.columns": "json", "value.bytes": "derive"},
            r"value\.bytes \(derive\) and value\.columns \(json\)",
        ),
        (
            {"topic.validate": "true"},
            r"topic\.validate without value\.columns: it would do nothing\. Set .*, or reset it",
        ),
        ({"value.bytes": "derive"}, r"value\.bytes=derive without value\.columns"),
        (
            {"value.schema": "x", "topic.validate": "true"},
            r"value\.schema and topic\.validate without .* or reset them",
        ),
        (_TYPED | {"value.columns": "none"}, r"value\.schema without value\.columns"),
        ({"value.schema.subject": "s"}, r"value\.schema\.subject without value\.columns"),
    ],
)
def test_keys_of_typed_topics_that_contradict_one_another_are_refused(keys: dict[str, str], why: str) -> None:
    with pytest.raises(InvalidConfigError, match=f"^conflict topic config setting {why}"):
        TopicConfig.parse(keys)
    with pytest.raises(InvalidConfigError, match=why):
        TopicConfig.parse({}).merged(keys)
    assert TopicConfig.stored(keys).overrides == {key: keys[key] for key in sorted(keys)}  # the log may hold it


@pytest.mark.parametrize(
    "keys",
    [
        _TYPED,
        _TYPED | {"value.bytes": "derive", "topic.validate": "true"},
        {"value.columns": "json", "value.schema.subject": "s", "topic.validate": "true", "value.bytes": "keep"},
        {"value.columns": "none", "value.bytes": "keep", "topic.validate": "false", "value.schema": ""},
    ],
)
def test_keys_of_typed_topics_that_go_together_are_taken(keys: dict[str, str]) -> None:
    assert TopicConfig.parse(keys).overrides == {key: keys[key] for key in sorted(keys)}


@pytest.mark.parametrize("value", [604800000, True, b"1", 0.5])
def test_a_value_that_is_no_string_is_refused(value: Any) -> None:
    with pytest.raises(InvalidConfigError, match=r"values are strings, as in Kafka, not .*Write it in quotes"):
        TopicConfig.parse({"retention.ms": value})


@pytest.mark.parametrize(
    ("text", "canonical", "value"),
    [
        ("delete , compact", "delete,compact", ("delete", "compact")),
        ("compact,delete", "compact,delete", ("compact", "delete")),
        ("", "", ()),
    ],
)
def test_cleanup_policies_are_a_list_that_keeps_its_order(text: str, canonical: str, value: tuple[str, ...]) -> None:
    """In Kafka's way: what sets a configuration compares it with what it reads, and sets it again where they differ."""
    config = TopicConfig.parse({"cleanup.policy": text})
    assert config.cleanup_policy == value
    assert config.overrides == {"cleanup.policy": canonical}


@pytest.mark.parametrize(("text", "canonical"), [("+5", "5"), ("007", "7"), ("-0", "0")])
def test_overrides_are_canonical_texts(text: str, canonical: str) -> None:
    assert TopicConfig.parse({"retention.ms": text}).overrides == {"retention.ms": canonical}


@pytest.mark.parametrize("key", sorted(REFUSED_FOR_TOPICS))
def test_kafkas_keys_that_would_do_nothing_are_refused_with_the_reason(key: str) -> None:
    with pytest.raises(InvalidConfigError) as error:
        TopicConfig.parse({key: "1"})
    message = f"Configuration {key} is refused, because it would do nothing: {REFUSED_FOR_TOPICS[key]}. Leave it out."
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("key", "nearest"),
    [
        ("retention.mss", "retention.ms"),
        ("cleanup-policy", "cleanup.policy"),
        ("min.insync.replica", "min.insync.replicas"),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest_known_one(key: str, nearest: str) -> None:
    with pytest.raises(
        InvalidConfigError, match=f"Unknown topic configuration '{key}'.*nearest known one is '{nearest}'"
    ):
        TopicConfig.parse({key: "1"})


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("log.retention.ms", "It is the lake's default; a topic's own key is retention.ms."),
        ("message.max.bytes", "It is the lake's default; a topic's own key is max.message.bytes."),
        ("num.partitions", "It is a key of the lake."),
    ],
)
def test_a_lakes_key_is_refused_with_the_topics_own(key: str, hint: str) -> None:
    with pytest.raises(InvalidConfigError) as error:
        TopicConfig.parse({key: "1"})
    assert str(error.value).endswith(hint)


def test_the_compaction_lags_must_not_contradict_one_another() -> None:
    message = r"^conflict topic config setting min.compaction.lag.ms \(5\) > max.compaction.lag.ms \(4\)"
    with pytest.raises(InvalidConfigError, match=message):
        TopicConfig.parse({"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "4"})
    config = TopicConfig.parse({"max.compaction.lag.ms": "4"})
    with pytest.raises(InvalidConfigError, match=message):
        config.merged({"min.compaction.lag.ms": "5"})
    assert config.merged({"min.compaction.lag.ms": "4"}).min_compaction_lag_ms == 4


def test_merging_sets_and_resets_and_leaves_the_original() -> None:
    config = TopicConfig.parse({"retention.ms": "5", "segment.bytes": "100"})
    changed = config.merged({"retention.ms": None, "segment.bytes": "200", "retention.bytes": "7"})
    assert changed.overrides == {"retention.bytes": "7", "segment.bytes": "200"}
    assert changed.retention_ms == 604_800_000
    assert config.overrides == {"retention.ms": "5", "segment.bytes": "100"}
    assert config.merged({"segment.ms": None}) == config
    assert config.merged({"flush.ms": None}) == config  # refused, so it has nothing to be reset


@pytest.mark.parametrize("changes", [{"retention.mss": None}, {"retention.ms": "x"}, {"flush.ms": "1"}])
def test_merging_checks_names_and_values(changes: dict[str, str | None]) -> None:
    with pytest.raises(InvalidConfigError):
        TopicConfig.parse({}).merged(changes)


@pytest.mark.parametrize(
    ("config", "producer", "codec", "level"),
    [
        ({}, None, "zstd", None),
        ({}, "snappy", "snappy", None),
        ({}, "none", "none", None),
        ({"compression.zstd.level": "7"}, None, "zstd", 7),
        ({"compression.zstd.level": "7"}, "gzip", "gzip", None),
        ({"compression.type": "uncompressed"}, "zstd", "none", None),
        ({"compression.type": "snappy"}, "zstd", "snappy", None),
        ({"compression.type": "zstd"}, "gzip", "zstd", 3),
        ({"compression.type": "zstd", "compression.zstd.level": "-5"}, None, "zstd", -5),
        ({"compression.type": "gzip"}, None, "gzip", None),
        ({"compression.type": "gzip", "compression.gzip.level": "1"}, None, "gzip", 1),
        ({"compression.type": "lz4"}, None, "lz4", None),
        ({"compression.type": "lz4", "compression.lz4.level": "4"}, None, "lz4", 4),
        ({"compression.type": "lz4", "compression.lz4.level": "17"}, None, "lz4", 12),
    ],
)
def test_which_codec_and_level_segments_get(
    config: dict[str, str], producer: str | None, codec: str, level: int | None
) -> None:
    found = TopicConfig.parse(config).codec(producer)
    assert found == (codec, level)
    assert isinstance(found, UnaskedCodec) == (not producer and not config)


def test_a_producers_unknown_codec_is_refused() -> None:
    with pytest.raises(InvalidConfigError, match=r"Invalid value brotli .*one of none, gzip, snappy, lz4, zstd"):
        TopicConfig.parse({}).codec("brotli")


def test_describe_lists_every_key_with_its_value_and_whose_it_is() -> None:
    lake = LakeConfig.parse({"log.retention.ms": "5", "log.segment.bytes": "100"})
    rows = {row.name: row for row in TopicConfig.parse({"segment.bytes": "200"}, defaults=lake).describe()}
    assert list(rows) == sorted(TopicConfig.KEYS)
    shown = {name: (rows[name].value, rows[name].is_default, rows[name].source) for name in rows}
    assert shown["segment.bytes"] == ("200", False, "topic")
    assert shown["retention.ms"] == ("5", False, "lake")
    assert shown["message.timestamp.type"] == ("CreateTime", True, "default")
    assert all(row.doc.endswith(".") for row in rows.values())


@given(st.fixed_dictionaries({}, optional={key: st.just(text) for key, _, _, text, _ in KEYS if key not in _RULED}))
def test_overrides_parse_to_the_same_configuration(overrides: dict[str, str]) -> None:
    config = TopicConfig.parse(overrides)
    assert TopicConfig.parse(config.overrides) == config
    assert pickle.loads(pickle.dumps(config)) == config
    assert TopicConfig.parse({}).merged({**overrides}) == config
    assert config.merged(dict.fromkeys(overrides)) == TopicConfig.parse({})
