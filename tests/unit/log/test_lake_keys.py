"""What each key of a topic and of a lake does to the log: ignored, its test fails."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.logs import START_MS, memory_lake, open_lake, values

from tidelog.log.base.errors import (
    InvalidConfigError,
    InvalidRecordError,
    InvalidTimestampError,
    RecordTooLargeError,
    UnknownTopicError,
)
from tidelog.log.lake import Lake


@pytest.fixture
def lake() -> Lake:
    return memory_lake()[0]


# --- keys of a topic that change its log -------------------------------------------------------------------

NOISE = [np.random.default_rng(i).bytes(1000) for i in range(64)]
TEXT = [b"the same words again and again " * 30] * 64


def segment_files(lake: Lake) -> list[pq.ParquetFile]:
    state = lake.topic("t").state()
    return [pq.ParquetFile(lake.storage.open(f"t/{s.path}")) for s in state.all_segments()]


def codec_of(lake: Lake, **producer: str) -> str:
    lake.topic("t").append(pa.table({"value": TEXT}), **producer)
    metadata = segment_files(lake)[-1].metadata
    value = next(i for i in range(metadata.num_columns) if metadata.schema.column(i).path == "value")
    name: str = metadata.row_group(0).column(value).compression
    return name.lower()


@pytest.mark.parametrize(
    ("configured", "asked", "used"),
    [
        (None, None, "zstd"),
        ("producer", None, "zstd"),
        ("producer", "gzip", "gzip"),
        ("producer", "none", "uncompressed"),
        ("gzip", None, "gzip"),
        ("snappy", "gzip", "snappy"),
        ("lz4", None, "lz4"),
        ("uncompressed", "zstd", "uncompressed"),
    ],
)
def test_compression_type(lake: Lake, configured: str | None, asked: str | None, used: str) -> None:
    lake.create_topic("t", config={} if configured is None else {"compression.type": configured})
    assert codec_of(lake, **({} if asked is None else {"compression": asked})) == used


@pytest.mark.parametrize(("codec", "low", "high"), [("zstd", "1", "22"), ("gzip", "1", "9"), ("lz4", "1", "12")])
def test_compression_level(lake: Lake, codec: str, low: str, high: str) -> None:
    rows = [b"%d " % (i * i) * 20 for i in range(3000)]
    sizes = []
    for level in (low, high):
        lake.create_topic(f"t{level}", config={"compression.type": codec, f"compression.{codec}.level": level})
        lake.topic(f"t{level}").append(pa.table({"value": rows}))
        sizes.append(lake.describe_topic(f"t{level}").partitions[0].bytes)
    assert sizes[1] < sizes[0]


def test_max_message_bytes(lake: Lake) -> None:
    lake.create_topic("t", config={"max.message.bytes": "10"})
    lake.topic("t").append(values("x" * 10))
    with pytest.raises(RecordTooLargeError, match=r"Record 1 .*max\.message\.bytes=10"):
        lake.topic("t").append(values("x", "x" * 11))
    assert lake.offsets("t") == {0: (0, 1)}
    lake.alter_topic("t", config={"max.message.bytes": "11"})
    lake.topic("t").append(values("x" * 11))


def test_message_timestamp_keys(lake: Lake) -> None:
    bounds = {"message.timestamp.before.max.ms": "1000", "message.timestamp.after.max.ms": "10"}
    lake.create_topic("t", config=bounds)
    lake.topic("t").append(values("a", timestamp=[START_MS - 1000]))
    for wrong in (START_MS - 1001, START_MS + 11):
        with pytest.raises(InvalidTimestampError):
            lake.topic("t").append(values("a", timestamp=[wrong]))
    lake.alter_topic("t", config={"message.timestamp.type": "LogAppendTime"})
    lake.topic("t").append(values("a", timestamp=[5]))
    (_, batch) = lake.topic("t").read(0)
    assert batch.column("timestampType").to_pylist() == [1]
    assert batch.column("timestamp").cast(pa.int64()).to_pylist() == [START_MS * 1000]


def test_cleanup_policy_compact_wants_keys(lake: Lake) -> None:
    lake.create_topic("t", config={"cleanup.policy": "compact"})
    with pytest.raises(InvalidRecordError, match="without a key"):
        lake.topic("t").append(values("a"))
    assert lake.topic("t").append(values("a", key=[b"k"])) == {0: (0, 1)}


def test_file_delete_delay_and_log_min_age_keep_removed_files_in_checkpoints(lake: Lake) -> None:
    wanted = {
        "t0": ({}, "interval 1 hours"),
        "t1": ({"file.delete.delay.ms": "7200001"}, "interval 3 hours"),
        "t2": ({"log.min.age.ms": "86400000"}, "interval 24 hours"),
    }
    for name, (config, kept) in wanted.items():
        lake.create_topic(name, config=config)
        metadata = lake.topic(name).state().metadata
        assert metadata is not None
        assert metadata.configuration["delta.deletedFileRetentionDuration"] == kept


# --- keys of the lake --------------------------------------------------------------------------------------


def test_num_partitions(lake: Lake) -> None:
    lake.alter_config({"num.partitions": "7"})
    assert len(lake.create_topic("t").partitions) == 7
    lake.topic("auto").append(values("x"))
    assert len(lake.offsets("auto")) == 7
    assert len(lake.create_topic("u", partitions=2).partitions) == 2


def test_auto_create_topics_enable(lake: Lake) -> None:
    lake.topic("t").append(values("x"))
    lake.alter_config({"auto.create.topics.enable": "false"})
    with pytest.raises(UnknownTopicError, match=r"auto\.create\.topics\.enable is false\. Create it"):
        lake.topic("u").append(values("x"))
    assert lake.topics() == ["t"]
    lake.topic("t").append(values("x"))
    lake.delete_topic("t")
    with pytest.raises(UnknownTopicError):
        lake.topic("t").append(values("x"))


# A lake's default -> what a topic that does not set the key itself then refuses or does.
def refuses_large(lake: Lake) -> None:
    with pytest.raises(RecordTooLargeError):
        lake.topic("t").append(values("x" * 11))


def refuses_late(lake: Lake) -> None:
    with pytest.raises(InvalidTimestampError):
        lake.topic("t").append(values("x", timestamp=[START_MS - 11]))


def refuses_early(lake: Lake) -> None:
    with pytest.raises(InvalidTimestampError):
        lake.topic("t").append(values("x", timestamp=[START_MS + 11]))


def stamps(lake: Lake) -> None:
    lake.topic("t").append(values("x", timestamp=[5]))
    (batch,) = lake.topic("t").read(0)
    assert batch.column("timestampType").to_pylist() == [1]


def wants_keys(lake: Lake) -> None:
    with pytest.raises(InvalidRecordError):
        lake.topic("t").append(values("x"))


def uses_gzip(lake: Lake) -> None:
    assert codec_of(lake) == "gzip"


def keeps_files_longer(lake: Lake) -> None:
    metadata = lake.topic("t").state().metadata
    assert metadata is not None
    assert metadata.configuration["delta.deletedFileRetentionDuration"] == "interval 30 hours"


LAKE_DEFAULTS: dict[str, tuple[str, Any]] = {
    "message.max.bytes": ("10", refuses_large),
    "log.message.timestamp.before.max.ms": ("10", refuses_late),
    "log.message.timestamp.after.max.ms": ("10", refuses_early),
    "message.timestamp.type": ("LogAppendTime", stamps),
    "log.message.timestamp.type": ("LogAppendTime", stamps),
    "log.cleanup.policy": ("compact", wants_keys),
    "compression.type": ("gzip", uses_gzip),
    "log.segment.delete.delay.ms": (str(30 * 3_600_000), keeps_files_longer),
}


@pytest.mark.parametrize("key", LAKE_DEFAULTS)
def test_a_lakes_default_counts_for_its_topics(lake: Lake, key: str) -> None:
    value, check = LAKE_DEFAULTS[key]
    lake.alter_config({key: value})
    lake.create_topic("t")
    check(lake)
    assert lake.describe_topic("t").config == {}


@pytest.mark.parametrize("name", ["log.checkpoint.interval", "log.min.age.ms"])
def test_a_lakes_default_counts_for_upkeep(lake: Lake, name: str) -> None:
    lake.alter_config({name: "12345"})
    lake.create_topic("t")
    rules = lake._logs["t"].upkeep._rules()
    assert 12345 in (rules.interval, rules.min_age_ms)


def test_the_lakes_configuration_is_kept() -> None:
    lake, storage, clock = memory_lake()
    lake.alter_config({"num.partitions": "3", "log.retention.ms": "5"})
    lake.alter_config({"log.retention.ms": None})
    again = open_lake(storage, clock)
    assert again.config().overrides == {"num.partitions": "3"}
    storage.inner.lose_power()  # type: ignore[attr-defined]
    assert open_lake(storage, clock).config().num_partitions == 3
    with pytest.raises(InvalidConfigError):
        lake.alter_config({"num.partitions": "0"})
    assert lake.config().num_partitions == 3


def test_segment_bytes(lake: Lake) -> None:
    """What staging makes of it is shown with staging."""
    lake.create_topic("t", config={"segment.bytes": "2000000"})
    assert lake.topic("t").target().segment_bytes == 2_000_000
    lake.alter_config({"log.segment.bytes": "3000000"})
    lake.create_topic("u")
    assert lake.topic("u").target().segment_bytes == 3_000_000


@pytest.mark.parametrize("codec", ["gzip", "lz4", "zstd"])
def test_a_lakes_default_level_counts(lake: Lake, codec: str) -> None:
    lake.alter_config({"compression.type": codec, f"compression.{codec}.level": "2"})
    lake.create_topic("t")
    assert lake.topic("t").target().codec == (codec, 2)
