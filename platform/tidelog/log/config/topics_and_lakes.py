"""Configuration of topics and of lakes: Kafka's names, types, defaults and checks.

A configuration holds only what was set. A topic takes what it does not set from its lake's defaults, and
what neither sets, from Kafka. Every key that is accepted does something; a key of Kafka's that could do nothing
here is refused with the reason (`config_refused`), and an unknown one with the nearest known one.

Source: Kafka 4's `LogConfig`, `TopicConfig`, `ServerTopicConfigSynonyms`, `ConfigDef`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple, Self

from tidelog.log.base.errors import InvalidConfigError
from tidelog.log.base.typed_values import MAX_LONG, Choice, Flag, NameList, Number, Text, names
from tidelog.log.config.broker_keys import BROKER_KEYS
from tidelog.log.config.kafka_brokers import PASSED_OVER, PASSED_OVER_BEGINNINGS
from tidelog.log.config.key_type import Key, RootAddress, int_of, long_of
from tidelog.log.config.overrides import Settings, keys_of
from tidelog.log.config.refused import REFUSED_FOR_TOPICS
from tidelog.log.delta.written_schemas import KINDS

_HOUR_MS: Final = 3_600_000
_DAY_MS: Final = 24 * _HOUR_MS

# Each entry that changes a topic's configuration holds the text.
MOST_SCHEMA_CHARACTERS: Final = 1_000_000

# What a producer may ask for, in Kafka's words and in the order of its numbers.
CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")

# The level that leaves the choice to the codec's library: zlib's default, and LZ4's fast compressor.
_LIBRARY_LEVEL: Final = {"gzip": -1, "lz4": 9}


class Codec(NamedTuple):
    """How a segment is compressed: one of none, gzip, snappy, lz4, zstd, and a level, None for the codec's own."""

    name: str
    level: int | None


class UnaskedCodec(Codec):
    """One that neither topic nor producer asked for: a segment that it gains nothing for does without."""

    __slots__ = ()


@dataclass(frozen=True)
class TopicConfig(Settings):
    """A topic's configuration: `TopicConfig.parse({"retention.ms": "60000"}, defaults=lake_config)`.

    Attributes carry the units of Kafka's names; sizes are bytes. `overrides` holds what the topic itself sets.
    """

    LEVEL = "topic"
    REFUSED = REFUSED_FOR_TOPICS

    cleanup_policy = Key(
        ("delete",),
        NameList(("compact", "delete")),
        "What maintenance does with old records: delete segments by age and size, compact to the newest record of "
        "each key, both, or (empty) nothing.",
        "log.cleanup.policy",
    )
    compression = Key(
        "producer",
        names("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        "Codec of the segments; producer: the one that the producer asks for, zstd when it asks for none.",
        name="compression.type",
    )
    compression_gzip_level = Key(-1, int_of(1, 9, besides=-1), "Level of gzip; -1 is zlib's own.")
    compression_lz4_level = Key(9, int_of(1, 17), "Level of lz4; 9, the default, is the fast compressor, as in Kafka.")
    compression_zstd_level = Key(3, int_of(-131072, 22), "Level of zstd.")
    delete_retention_ms = Key(
        _DAY_MS,
        long_of(0),
        "How long compaction keeps tombstones, so that a reader from the start sees them.",
        "log.cleaner.delete.retention.ms",
    )
    file_delete_delay_ms = Key(
        60_000,
        long_of(0),
        "How long a removed segment's file stays at least before it is deleted.",
        "log.segment.delete.delay.ms",
    )
    log_checkpoint_interval = Key(
        150, int_of(10), "tidelog's own: log entries between two checkpoints of the topic's table."
    )
    log_min_age_ms = Key(
        300_000,
        long_of(10_000),
        "tidelog's own: how long log entries are kept at least; time travel and stream_topic reach back that far.",
    )
    max_compaction_lag_ms = Key(
        MAX_LONG, long_of(1), "How long a record may stay uncompacted at most.", "log.cleaner.max.compaction.lag.ms"
    )
    max_message_bytes = Key(
        1_048_588,
        int_of(0),
        "The largest record that is taken, in bytes; of what comes by a broker, the largest batch as it came, packed.",
        "message.max.bytes",
    )
    max_record_bytes = Key(
        52_428_800,
        int_of(0),
        "tidelog's own: the largest record that brokers take, in bytes unpacked: key, value and headers. A batch that "
        "is small as it came may hold a record that no consumer has the memory for.",
    )
    merge_compression_level = Key(
        9,
        int_of(1, 22),
        "tidelog's own: the least level of zstd in segments that maintenance writes. Level 9 makes JSON 8 % smaller "
        "than level 3, at a fifth of its speed.",
    )
    message_timestamp_after_max_ms = Key(
        _HOUR_MS,
        long_of(0),
        "How far a record's CreateTime may be after the committer's clock.",
        "log.message.timestamp.after.max.ms",
    )
    message_timestamp_before_max_ms = Key(
        MAX_LONG,
        long_of(0),
        "How far a record's CreateTime may be before the committer's clock.",
        "log.message.timestamp.before.max.ms",
    )
    timestamp_type = Key(
        0,
        Choice({"CreateTime": 0, "LogAppendTime": 1}),
        "Whose time records carry: the producer's (CreateTime) or the committer's (LogAppendTime).",
        name="message.timestamp.type",
    )
    min_cleanable_dirty_ratio = Key(
        0.5,
        Number(0, 1),
        "The least share of uncompacted bytes in a partition that makes compaction start.",
        "log.cleaner.min.cleanable.ratio",
    )
    min_compaction_lag_ms = Key(
        0, long_of(0), "How long a record stays uncompacted at least.", "log.cleaner.min.compaction.lag.ms"
    )
    min_insync_replicas = Key(
        1,
        int_of(1),
        "How many brokers have to run for a broker to take records with acks=all; more than the topic's replication "
        "factor counts as that factor. Programs that use the lake themselves take no notice.",
    )
    retention_bytes = Key(
        -1,
        long_of(),
        "How large a partition may grow before its oldest segments are deleted; negative: no limit.",
        "log.retention.bytes",
    )
    retention_ms = Key(
        7 * _DAY_MS,
        long_of(-1),
        "How old a segment's newest record may grow before the segment is deleted; -1: no limit.",
        "log.retention.ms",
    )
    segment_bytes = Key(
        1 << 30,
        # Kafka 4 starts at 1 MiB to spare a broker's open files; here the older bound of 14 stays.
        int_of(14),
        "Size that merging gives segments, in bytes; one of half of it stays as it is.",
        "log.segment.bytes",
    )
    segment_ms = Key(
        7 * _DAY_MS,
        long_of(1),
        "How long a partition's newest segment counts as active, which compaction leaves alone, and how much time a "
        "merged segment spans at most where records expire by time.",
        "log.roll.ms",
    )
    topic_validate = Key(
        False,
        Flag(),
        "tidelog's own: whether records are refused whose value does not fit its schema; needs value.columns.",
        inherits=False,
    )
    value_bytes = Key(
        "keep",
        names("keep", "derive"),
        "tidelog's own: whether a typed topic stores its values' bytes beside their columns (keep), or makes them of"
        " the columns again where that gives exactly the same bytes (derive, for avro).",
        inherits=False,
    )
    value_columns = Key(
        "none",
        names("none", *KINDS),
        "tidelog's own: which kind of schema makes values columns of the topic's table (docs/schemas.md); none: values"
        " are bytes alone.",
        inherits=False,
    )
    value_schema = Key(
        "",
        Text(0, MOST_SCHEMA_CHARACTERS),
        "tidelog's own: the text of the schema, where values are its bare payloads; else value.schema.subject is set.",
        inherits=False,
    )
    value_schema_subject = Key(
        "",
        Text(0, 1_000, in_line=True),
        "tidelog's own: the subject of the lake's registry that values' schemas are versions of; each value names its"
        " own by its prefix or header.",
        inherits=False,
    )

    @classmethod
    def parse(cls, overrides: Mapping[str, str], *, defaults: "LakeConfig | None" = None) -> Self:
        """Return the configuration that sets `overrides` over a lake's defaults.

        Raises InvalidConfigError: an unknown or refused key, a value that its key does not take, or keys that
        contradict one another.
        """
        return cls.stored(overrides, defaults=defaults)._consistent()

    @classmethod
    def stored(cls, overrides: Mapping[str, str], *, defaults: "LakeConfig | None" = None) -> Self:
        """Return `parse` without the rules between keys, for what a topic's log holds.

        A lake's default that was changed later may contradict a topic's own value. That must not keep the topic
        from being opened.
        """
        return cls(cls._parsed(overrides), defaults.topic_values if defaults else {})

    def merged(self, changes: Mapping[str, str | None]) -> Self:
        """Return the configuration after `changes`; None resets a key (Kafka's DELETE). Raises as `parse` does."""
        return type(self)(self._changed(changes), self.inherited)._consistent()

    def codec(self, producer: str | None = None, producer_level: int | None = None) -> Codec:
        """Return how to compress segments of a producer that asks for none, gzip, snappy, lz4 or zstd, or nothing.

        A topic's level counts where the topic names the codec, or where that level is set; else the producer's.
        Raises InvalidConfigError for another codec.
        """
        if producer is not None and producer not in CODECS:
            raise InvalidConfigError(
                f"Invalid value {producer} for configuration compression.type of a producer: no such codec. Give one "
                f"of {', '.join(CODECS)}."
            )
        named = None if self.compression == "producer" else self.compression
        codec = "none" if named == "uncompressed" else named or producer or "zstd"
        key = self.KEYS.get(f"compression.{codec}.level")
        if key is None:
            return Codec(codec, None)
        level: int = self.get(key.name, key.default)
        if not (named or self._is_set(key.name)):
            if producer_level is None or codec != producer:
                return Codec(codec, None) if producer else UnaskedCodec(codec, None)
            level = producer_level
        if level == _LIBRARY_LEVEL.get(codec):
            return Codec(codec, None)
        # liblz4 takes every level above 12 as 12, Arrow refuses it
        return Codec(codec, min(level, 12) if codec == "lz4" else level)

    def _consistent(self) -> Self:
        if self.min_compaction_lag_ms > self.max_compaction_lag_ms:
            raise InvalidConfigError(
                f"conflict topic config setting min.compaction.lag.ms ({self.min_compaction_lag_ms}) > "
                f"max.compaction.lag.ms ({self.max_compaction_lag_ms}): a record can't stay uncompacted longer than "
                "it may. Raise max.compaction.lag.ms or lower min.compaction.lag.ms."
            )
        why = self._why_untyped()
        if why:
            raise InvalidConfigError(f"conflict topic config setting {why}")
        return self

    def _why_untyped(self) -> str:
        """What is wrong with the keys of typed topics together, "" for nothing."""
        kind, subject = self.value_columns, self.value_schema_subject
        named = [
            key for key, value in (("value.schema.subject", subject), ("value.schema", self.value_schema)) if value
        ]
        if kind != "none" and not named:
            return (
                f"value.columns ({kind}) without a schema: nothing says which columns a value has. Set"
                " value.schema.subject to a subject of the lake's registry, or value.schema to the schema's text."
            )
        if len(named) > 1:
            return (
                f"value.schema.subject ({subject}) and value.schema: values are either of a subject's schemas, each"
                " named by its value, or the bare payloads of one. Set one of the two."
            )
        given = named + [
            key
            for key, is_set in (
                ("value.bytes=derive", self.value_bytes == "derive"),
                ("topic.validate", self.topic_validate),
            )
            if is_set
        ]
        if kind == "none" and given:
            return (
                f"{' and '.join(given)} without value.columns: it would do nothing. Set value.columns to one of"
                f" {', '.join(KINDS)}, or reset {'it' if len(given) == 1 else 'them'}, too."
            )
        if self.value_bytes == "derive" and kind != "avro":
            return (
                f"value.bytes (derive) and value.columns ({kind}): only Avro writes a value in one way, so that its"
                " columns give its bytes back. Set value.bytes=keep."
            )
        return ""


TopicConfig.KEYS = keys_of(TopicConfig)


@dataclass(frozen=True)
class LakeConfig(Settings):
    """A lake's configuration: its own keys, and the defaults that topics take, under a broker's names for them."""

    LEVEL = "lake"
    REFUSED = PASSED_OVER
    REFUSED_BEGINNINGS = PASSED_OVER_BEGINNINGS
    ALIASES: ClassVar[Mapping[str, tuple[str, int]]] = {
        "log.message.timestamp.type": ("message.timestamp.type", 1),
        "log.retention.hours": ("log.retention.ms", _HOUR_MS),
        "log.retention.minutes": ("log.retention.ms", 60_000),
        "log.roll.hours": ("log.roll.ms", _HOUR_MS),
    }

    access_root = Key(
        "",
        RootAddress(),
        "tidelog's own: the root where users, ACLs and quotas are kept, so that the store's policy can lock it; the"
        " lake's own unless set. A broker takes it over when it starts.",
    )
    audit_topic = Key(
        "",
        Text(0, 249, in_line=True),
        "tidelog's own: the topic that gets the audit's lines, too: denials and changes over brokers, and changes by"
        " commands. A broker takes it over when it starts.",
    )
    auto_create_topics_enable = Key(
        True,
        Flag(),
        "Whether producing to a topic that is not there creates it; by a broker, as in Kafka, whether asking for its "
        "metadata does.",
    )
    num_partitions = Key(1, int_of(1), "Partitions of a topic that is created without a number of them.")
    offsets_topic_num_partitions = Key(
        1, int_of(1), "Tables that hold consumer groups' offsets; fixed once the first group commits."
    )
    offsets_retention_minutes = Key(
        7 * 24 * 60,
        int_of(1),
        "How long a group's offsets stay after its last member has left, or after their commit when it never had any.",
    )
    topic_max_partitions = Key(
        10_000,
        int_of(1),
        "tidelog's own: partitions that a topic may be created with or grow to. A topic that has more keeps them.",
    )
    transaction_max_timeout_ms = Key(900_000, int_of(1), "The longest transaction.timeout.ms that a producer may have.")
    transactional_id_expiration_ms = Key(
        7 * _DAY_MS, int_of(1), "How long a transactional id that does nothing is remembered."
    )
    producer_id_expiration_ms = Key(
        _DAY_MS,
        int_of(1),
        "How long a topic remembers an idempotent producer that appends nothing there, by the times of those that do. A"
        " topic takes it over when it is made or altered.",
    )

    @classmethod
    def parse(cls, overrides: Mapping[str, str]) -> Self:
        """Return the configuration that sets `overrides`; raises InvalidConfigError as TopicConfig.parse does."""
        return cls(cls._parsed(overrides))._consistent()

    def merged(self, changes: Mapping[str, str | None]) -> Self:
        """Return the configuration after `changes`; None resets a key. Raises as `parse` does."""
        return type(self)(self._changed(changes))._consistent()

    @property
    def topic_values(self) -> dict[str, Any]:
        """The defaults that are set for topics, by the topic's name of the key."""
        inherited = (key for key in TopicConfig.KEYS.values() if key.inherits)
        return {key.name: self.own[key.lake_name] for key in inherited if key.lake_name in self.own}

    def _consistent(self) -> Self:
        if self.num_partitions > self.topic_max_partitions:
            raise InvalidConfigError(
                f"conflict lake config setting num.partitions ({self.num_partitions}) > topic.max.partitions"
                f" ({self.topic_max_partitions}): no topic could be created without a number of partitions. Raise"
                " topic.max.partitions or lower num.partitions."
            )
        TopicConfig.parse({}, defaults=self)
        return self


def _lake_keys() -> dict[str, Key[Any]]:
    defaults = [
        Key(key.default, key.kind, f"Default for topics. {key.doc}", key.lake_name, name=key.lake_name)
        for key in TopicConfig.KEYS.values()
        if key.inherits
    ]
    return keys_of(LakeConfig) | {key.name: key for key in defaults}


LakeConfig.KEYS = _lake_keys()
LakeConfig.ELSEWHERE = {
    key.name: f"The lake's default for its topics is {key.lake_name}."
    if key.inherits
    else "Each topic sets it for itself, as its values have a schema of their own."
    for key in TopicConfig.KEYS.values()
    if key.name not in LakeConfig.KEYS
} | dict.fromkeys(
    BROKER_KEYS,
    "It is a setting of a broker, which takes it at its start: put it into the file of 'tidelog broker start --config'"
    " (docs/brokers.md).",
)
TopicConfig.ELSEWHERE = {
    key.lake_name: f"It is the lake's default; a topic's own key is {key.name}."
    for key in TopicConfig.KEYS.values()
    if key.lake_name not in TopicConfig.KEYS
} | dict.fromkeys(keys_of(LakeConfig), "It is a key of the lake.")
