"""Idempotent producers over a lake: epochs, expiry, and an unknown outcome that the log itself resolves."""

from typing import Any

import pytest
from support.logs import START_MS, apply_all, created, entry, memory_lake, open_lake, read, values
from support.shares import commit_alone

from tidelog.log.base.errors import (
    InvalidProducerEpochError,
    OutcomeUnknownError,
    OutOfOrderSequenceError,
    ProducerFencedError,
    StorageUnavailableError,
)
from tidelog.log.delta.actions import Txn
from tidelog.log.lake import Lake
from tidelog.log.rules.sequences import KnownProducer, ProducerBatch, known_producers
from tidelog.log.segments.staging import stage_records
from tidelog.log.state.topic_state import TopicState

DAY_MS = 86_400_000


def send(lake: Lake, first: int, *texts: str, epoch: int = 0, producer: int = 7, **more: Any) -> Any:
    """Append records of a producer to partition 0."""
    topic = lake.topic("t")
    stager = topic.stager()
    stage_records(stager, values(*texts), "t", topic.config(), "murmur2", 0, lake.clock.now_ms())
    batch = ProducerBatch(producer, epoch, {0: (first, len(texts))})
    return commit_alone(topic, stager.finish(), producers=[batch], **more)


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


def test_a_producer_that_is_silent_while_others_go_on_is_known_no_more() -> None:
    lake, storage, clock = memory_lake()
    lake.alter_config({"producer.id.expiration.ms": str(DAY_MS)})
    lake.create_topic("t", 1)
    send(lake, 0, "a", epoch=3)
    clock.pass_s(86_400)
    send(lake, 0, "other", producer=8)
    with pytest.raises(InvalidProducerEpochError):
        send(lake, 5, "lost", epoch=2)
    clock.pass_s(1)
    send(lake, 1, "other", producer=8)
    assert send(lake, 5, "b", epoch=2) == {0: (3, 4)}  # as an unknown one, it may begin anywhere
    assert send(open_lake(storage, clock), 6, "c", epoch=2) == {0: (4, 5)}


@pytest.mark.parametrize("away_s", [-400 * 86_400, 400 * 86_400])
@pytest.mark.parametrize("whose", ["the same process", "another one"])
def test_a_repeat_by_a_clock_that_is_away_adds_nothing(away_s: int, whose: str) -> None:
    """The wall clock jumps between a record and its repeat, or the repeat comes from a machine whose clock is off."""
    lake, storage, clock = memory_lake()
    lake.create_topic("t", 1)
    send(lake, 0, "a")
    clock.ms += away_s * 1000
    again = lake if whose == "the same process" else open_lake(storage, clock)
    assert send(again, 0, "a") == {}
    assert send(again, 1, "b") == {0: (1, 2)}
    clock.ms -= away_s * 1000
    for one in (lake, open_lake(storage, clock)):
        assert send(one, 1, "b") == {}
    assert read(lake, "t") == ["a", "b"]


def test_a_producer_whose_clock_is_behind_is_remembered_as_long_as_others() -> None:
    lake, _, clock = memory_lake()
    lake.create_topic("t", 1)
    send(lake, 0, "a")
    clock.ms -= 3 * DAY_MS
    send(lake, 0, "b", producer=8)
    assert send(lake, 0, "b", producer=8) == {}
    assert [one.updated_ms for one in known_producers(lake.topic("t").state())] == [START_MS, START_MS]


def test_the_producers_that_a_topic_remembers_are_told() -> None:
    state = apply_all(TopicState(), [created()])
    ids = [
        Txn("tidelog/producer/9/1", 2 * 2**32 + 5, START_MS),
        Txn("tidelog/producer/7/0", 3, START_MS - DAY_MS),
        Txn("tidelog/producer/8/0", -1, START_MS),  # of an earlier incarnation of the topic
        Txn("tidelog/sink/q", 4),
    ]
    state.apply(entry(1, *ids))
    seven, nine = KnownProducer(0, 7, 0, 3, START_MS - DAY_MS), KnownProducer(1, 9, 2, 5, START_MS)
    assert known_producers(state) == [seven, nine]
    state.apply(entry(2, Txn("tidelog/producer/9/1", 2 * 2**32 + 6, START_MS + 1)))
    assert known_producers(state) == [KnownProducer(1, 9, 2, 6, START_MS + 1)]


@pytest.mark.parametrize(("producers", "transactional", "days"), [(1, DAY_MS + 1, 3), (5 * DAY_MS, DAY_MS, 10)])
def test_checkpoints_of_others_keep_ids_twice_as_long_as_any_is_remembered(
    producers: int, transactional: int, days: int
) -> None:
    lake, _, _ = memory_lake()
    lake.alter_config({"producer.id.expiration.ms": str(producers)})
    lake.alter_config({"transactional.id.expiration.ms": str(transactional)})
    lake.create_topic("t", 1)
    metadata = lake.topic("t").state().metadata
    assert metadata is not None
    assert metadata.configuration["delta.setTransactionRetentionDuration"] == f"interval {days} days"
    assert metadata.configuration["tidelog.producer.id.expiration.ms"] == str(producers)
    lake.alter_config({"producer.id.expiration.ms": "77"})
    lake.alter_topic("t")
    assert "tidelog.producer.id.expiration.ms" not in lake.describe_topic("t").config
    state = lake.topic("t").state()
    assert state.metadata is not None
    assert state.metadata.configuration["tidelog.producer.id.expiration.ms"] == "77"
