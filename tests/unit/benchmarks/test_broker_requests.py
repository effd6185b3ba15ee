"""What the benchmark of many producers sends is a request as brokers take it."""

import os

import broker_many
import brokers

from tidelog.broker.records.batches import require_one, split
from tidelog.broker.wire.apis import ApiKey
from tidelog.broker.wire.frames import LENGTH, header_of
from tidelog.broker.wire.messages import decode


def test_a_producer_sends_one_record_of_100_bytes_with_acks_all():
    frame = memoryview(broker_many.frame("many", 5))
    header = header_of(frame[LENGTH.size :])
    assert (header.key, LENGTH.unpack(frame[:4])) == (ApiKey.PRODUCE, (len(frame) - 4,))
    body = decode(header.key, header.version, frame[LENGTH.size + header.end :])
    (topic,) = body.topic_data
    (partition,) = topic.partition_data
    batch, data = require_one(split(partition.records), header.version)
    assert (body.acks, topic.name, partition.index, batch.count) == (-1, "many", 5, 1)
    assert brokers.VALUE_BYTES < len(data) < 2 * brokers.VALUE_BYTES


def test_the_processor_time_of_a_process_rises():
    before = brokers.processor_s(os.getpid())
    while brokers.processor_s(os.getpid()) <= before:
        sum(range(10_000))
