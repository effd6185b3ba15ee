"""Idempotent producers over a lake: epochs, expiry, and an unknown outcome that the log itself resolves."""

from typing import Any

import pytest
from support.logs import memory_lake, open_lake, read, values

from tidelog.log.actions import Txn
from tidelog.log.errors import (
    InvalidProducerEpochError,
    OutcomeUnknownError,
    OutOfOrderSequenceError,
    ProducerFencedError,
    StorageUnavailableError,
)
from tidelog.log.lake import Lake
from tidelog.log.sequences import KnownProducer, ProducerBatch, known_producers
from tidelog.log.staging import stage_records
from tidelog.log.state import TopicState

DAY_MS = 86_400_000


def send(lake: Lake, first: int, *texts: str, epoch: int = 0, **more: Any) -> Any:
    """Append records of producer 7 to partition 0."""
    topic = lake.topic("t")
    stager = topic.stager()
    stage_records(stager, values(*texts), "t", topic.config(), "murmur2", 0, lake.clock.now_ms())
    return topic.commit_once(
        stager.finish(), None, producers=[ProducerBatch(7, epoch, {0: (first, len(texts))})], **more
    )


def test_an_older_epoch_is_fenced_and_a_new_one_begins_at_0() -> None:
    lake, _, _ = memory_lake()
    lake.create_topic("t", 1)
    send(lake, 0, "a")
    send(lake, 0, "b", epoch=1)
    with pytest.raises(InvalidProducerEpochError) as refused:
        send(lake, 1, "lost")
    assert isinstance(refused.value, ProducerFencedError)
    assert refused.value.kafka_code == 47
    with pytest.raises(OutOfOrderSequenceError):
        send(lake, 1, "lost", epoch=2)
    send(lake, 0, "c", epoch=2)
    assert read(lake, "t") == ["a", "b", "c"]


def test_whether_records_landed_is_told_by_the_log_to_a_handle_that_was_opened_later() -> None:
    """The put's answer is lost for good, and the process dies: another one with its numbers asks the log."""
    lake, storage, clock = memory_lake()
    lake.create_topic("t", 1)

    def lost(method: str, path: str, phase: str) -> None:
        if (method, phase) == ("put_if_absent", "after") and path.startswith("t/_delta_log"):
            raise StorageUnavailableError("no answer")

    storage.hook = lost
    with pytest.raises(OutcomeUnknownError):
        send(lake, 0, "a", "b", timeout_s=0.0)
    storage.hook = lambda *call: None
    later = open_lake(storage, clock)
    assert send(later, 0, "a", "b") == {}  # it was there
    assert send(later, 2, "c") == {0: (2, 3)}
    assert read(later, "t") == ["a", "b", "c"]


def test_a_producer_that_is_silent_for_the_expiration_is_known_no_more() -> None:
    lake, storage, clock = memory_lake()
    lake.alter_config({"transactional.id.expiration.ms": str(DAY_MS)})
    lake.create_topic("t", 1)
    send(lake, 0, "a", epoch=3)
    clock.pass_s(86_400)
    with pytest.raises(InvalidProducerEpochError):
        send(lake, 5, "lost", epoch=2)
    clock.pass_s(1)
    assert send(lake, 5, "b", epoch=2) == {0: (1, 2)}  # as an unknown one, it may begin anywhere
    assert send(open_lake(storage, clock), 6, "c", epoch=2) == {0: (2, 3)}


def test_the_producers_that_a_topic_remembers_are_told() -> None:
    state = TopicState(
        txns={
            "tidelog/producer/9/1": Txn("tidelog/producer/9/1", 2 * 2**32 + 5, 2_000),
            "tidelog/producer/7/0": Txn("tidelog/producer/7/0", 3, 1_000),
            "tidelog/producer/8/0": Txn("tidelog/producer/8/0", -1, 2_000),  # of an earlier life of the topic
            "tidelog/sink/q": Txn("tidelog/sink/q", 4),
        }
    )
    seven, nine = KnownProducer(0, 7, 0, 3, 1_000), KnownProducer(1, 9, 2, 5, 2_000)
    assert known_producers(state) == [seven, nine]
    assert known_producers(state, since_ms=1_001) == [nine]
    assert known_producers(state, since_ms=1_000) == [seven, nine]


def test_checkpoints_keep_producers_twice_as_long_as_they_are_remembered() -> None:
    lake, _, _ = memory_lake()
    lake.alter_config({"transactional.id.expiration.ms": str(DAY_MS + 1)})
    lake.create_topic("t", 1)
    metadata = lake.topic("t").state().metadata
    assert metadata is not None
    assert metadata.configuration["delta.setTransactionRetentionDuration"] == "interval 3 days"
