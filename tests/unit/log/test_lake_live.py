"""A lake that is altered while programs have it open: they go by it within 10 s."""

from typing import Any

import pytest
from support.faults import FaultyStorage
from support.logs import memory_lake, open_lake, values
from support.producers import live_lake, producer

from tidelog import KafkaError
from tidelog.log.base.errors import (
    InvalidConfigError,
    RecordTooLargeError,
    StorageUnavailableError,
    UnknownTopicError,
    UnsupportedFormatError,
)
from tidelog.log.config import lake_file
from tidelog.log.config.lake_file import LOOK_EVERY_S
from tidelog.log.config.topics_and_lakes import LakeConfig
from tidelog.log.lake import Lake


@pytest.fixture
def lake() -> Lake:
    return memory_lake()[0]


@pytest.fixture
def other(lake: Lake) -> Lake:
    """Another process's view of the lake, which does the altering."""
    lake.create_topic("t")
    return open_lake(lake.storage, lake.clock)  # type: ignore[arg-type]


def later(lake: Lake) -> None:
    """When the next look is due."""
    lake.clock.sleep(LOOK_EVERY_S)


def takes(name: str, value: str) -> bool:
    try:
        LakeConfig.parse({name: value})
    except InvalidConfigError:
        return False
    return True


def test_a_running_writer_goes_by_it(lake: Lake, other: Lake) -> None:
    topic, large = lake.topic("t"), values("x" * 200)
    topic.append(large)
    other.alter_config({"message.max.bytes": "100"})
    topic.append(large)  # no look is due yet
    later(lake)
    with pytest.raises(RecordTooLargeError):
        topic.append(large)
    assert lake.offsets("t") == {0: (0, 2)}


def test_each_key_of_the_lake_is_seen(lake: Lake, other: Lake) -> None:
    wanted = {
        name: next(
            v
            for v in ("7", "false", "lz4", "compact", "LogAppendTime", "0.25", "20000", "file:///elsewhere")
            if takes(name, v)
        )
        for name in LakeConfig.KEYS
    }
    other.alter_config(wanted)
    later(lake)
    assert lake.config().overrides == other.config().overrides == wanted


def test_a_topic_that_is_created_takes_its_partitions(lake: Lake, other: Lake) -> None:
    other.alter_config({"num.partitions": "5", "auto.create.topics.enable": "true"})
    later(lake)
    lake.topic("u").append(values("a"))
    assert len(lake.offsets("u")) == 5
    other.alter_config({"auto.create.topics.enable": "false"})
    later(lake)
    with pytest.raises(UnknownTopicError):
        lake.topic("v").append(values("a"))


@pytest.mark.parametrize("spoil", ["away", "broken", "gone"])
def test_what_was_known_counts_while_it_can_not_be_read(
    spoil: str, lake: Lake, other: Lake, caplog: pytest.LogCaptureFixture
) -> None:
    other.alter_config({"num.partitions": "5"})
    later(lake)
    assert lake.config().num_partitions == 5
    storage = lake.storage
    assert isinstance(storage, FaultyStorage)
    if spoil == "away":
        storage.hook = fails_reading
    elif spoil == "broken":
        storage.inner.put("__lake.json", lake_file.lake_file({"num.partitions": "0"}))
    else:
        storage.inner.delete("__lake.json")
    later(lake)
    lake.topic("t").append(values("a"))
    assert lake.config().num_partitions == 5
    assert ("could not be read again" in caplog.text) == (spoil != "gone")


def fails_reading(method: str, path: str, phase: str) -> None:
    if (method, path) == ("get", "__lake.json"):
        raise StorageUnavailableError("away")


def test_a_lake_of_a_newer_format_is_left_alone(lake: Lake, other: Lake) -> None:
    lake.storage.put("__lake.json", b'{"format": 99, "config": {}}')
    later(lake)
    with pytest.raises(UnsupportedFormatError, match="Upgrade tidelog"):
        lake.topic("t").append(values("a"))


def test_a_running_producer_goes_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lake_file, "LOOK_EVERY_S", 0.0)
    lake, storage = live_lake()
    told: list[Any] = []
    with producer(lake, on_delivery=lambda error, _: told.append(error)) as sends:
        sends.produce("t", b"x" * 200)
        sends.flush(30)
        Lake(storage.uri, storage=storage).alter_config({"message.max.bytes": "100"})
        sends.produce("t", b"x" * 200)
        sends.flush(30)
    assert told[0] is None
    assert told[1].code() == KafkaError.MSG_SIZE_TOO_LARGE
