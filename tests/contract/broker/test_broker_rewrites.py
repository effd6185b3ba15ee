"""What a rewrite took away no consumer of a broker gets any more that had it in memory: librdkafka's."""

from collections.abc import Iterator

import confluent_kafka
import pytest
from support.brokers import running_broker
from support.logs import read_offsets
from support.rewrites import KEYS, SEGMENTS, TAKE_RECORDS_AWAY
from support.waiting import eventually

from tidelog.log.lake import Lake

MIDDLE = 13


@pytest.fixture
def lake(tmp_path) -> Iterator[Lake]:
    with Lake(str(tmp_path)) as lake:
        yield lake


def produce(address: str) -> None:
    """Segments of a record for each of some keys, which the broker then has in its memory; the i-th has value "i"."""
    writer = confluent_kafka.Producer({"bootstrap.servers": address, "linger.ms": 1})
    for at in range(SEGMENTS * KEYS):
        writer.produce("t", b"%d" % at, key=b"k%d" % (at % KEYS))
        if at % KEYS == KEYS - 1:
            assert writer.flush(30) == 0


def read(address: str, offset: int) -> list[tuple[int, str]]:
    """All from an offset on, to the end; from the log start where that has passed the offset."""
    reader = confluent_kafka.Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "g",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
        }
    )
    try:
        reader.assign([confluent_kafka.TopicPartition("t", 0, offset)])
        found = []
        while (message := reader.poll(30)) is not None:
            if message.error() is not None:
                assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF
                return found
            found.append((message.offset(), message.value().decode()))
        raise AssertionError("no end of the partition came")
    finally:
        reader.close()


@pytest.mark.parametrize("kind", TAKE_RECORDS_AWAY)
def test_records_that_a_rewrite_took_away_are_gone_for_consumers_of_a_broker(lake, kind):
    lake.create_topic("t", 1, {"cleanup.policy": "delete", "retention.ms": "-1"})
    with running_broker(lake) as address:
        produce(address)
        before = read(address, 0)
        assert before == read_offsets(lake, "t")
        TAKE_RECORDS_AWAY[kind](lake, "t")
        left = read_offsets(lake, "t")
        assert len(left) < len(before)
        eventually(lambda: read(address, 0) == left, "a new consumer gets what the log holds")
        assert read(address, MIDDLE) == [one for one in left if one[0] >= MIDDLE]
