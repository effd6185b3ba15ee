"""Unmodified Kafka producers against a broker; other readers of the lake see their records as they were sent."""

import asyncio
import socket
import struct
import threading
from collections import Counter

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, KafkaException, Producer
from deltalake import DeltaTable
from kio.index import load_response_schema
from kio.serial import entity_reader
from support.brokers import running_broker
from support.consumers import consumer
from support.produce_requests import batch, encoded_produce, read_back

from tidelog.broker.wire.apis import ApiKey
from tidelog.log.lake import Lake
from tidelog.log.storage.local_drafts import Drafts

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
WAIT_S = 30
PARTITIONS = 3
# Key, value, headers and timestamp: all that a record may have, or lack. A timestamp in microseconds would be cut.
RECORDS = [
    (b"k", b"v", [("h", b"1"), ("h", b"2"), ("none", None), ("", b"")], 1_700_000_000_001),
    (None, b"no key", [], 1_700_000_000_002),
    (b"no value", None, [], 1_700_000_000_003),
    (None, None, [("only", b"headers")], 1_700_000_000_004),
    (b"", b"", [], 1_700_000_000_005),
    ("ключ".encode(), bytes(range(256)) * 40, [("ü", bytes(300))], 1_700_000_000_000),
    (b"large", b"x" * 600_000, [], 1_700_000_000_007),
]


@pytest.fixture
def lake(tmp_path):
    with Lake(tmp_path / "lake") as lake:
        lake.create_topic("t", PARTITIONS)
        yield lake


@pytest.fixture
def address(lake):
    with running_broker(lake, id=1) as address:
        yield address


class Reports:
    """What a confluent-kafka producer reports of its records."""

    def __init__(self):
        self.landed = []
        self.errors = []

    def __call__(self, error, message):
        if error is None:
            self.landed.append((message.partition(), message.offset(), message.value()))
        else:
            self.errors.append(error)


def seen_by_consumer(lake, count):
    """[(partition, offset, key, value, headers, timestamp)] as the library's own consumer gives them."""
    with consumer(lake) as reader:
        reader.subscribe(["t"])
        messages = reader.consume(count, WAIT_S)
    return sorted(
        (m.partition(), m.offset(), m.key(), m.value(), m.headers() or [], m.timestamp()[1]) for m in messages
    )


def seen_by_deltalake(lake):
    """The same, as another engine reads the table."""
    rows = DeltaTable(f"{lake.uri}/t").to_pyarrow_table().to_pylist()
    return sorted(
        (
            row["partition"],
            row["base_offset"] + row["position"],
            row["key"],
            row["value"],
            [(h["key"], h["value"]) for h in row["headers"] or []],
            round(row["timestamp"].timestamp() * 1000),
        )
        for row in rows
    )


def as_sent(landed):
    """What readers must see of `RECORDS`, by where each of them landed: [(partition, offset, which one)]."""
    expected = []
    for partition, offset, at in landed:
        key, value, headers, timestamp = RECORDS[at]
        expected.append((partition, offset, key, value, headers, timestamp))
    return sorted(expected)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("idempotent", [True, False])
def test_every_reader_sees_what_librdkafka_sent(lake, address, codec, idempotent):
    producer = Producer(
        {"bootstrap.servers": address, "compression.type": codec, "enable.idempotence": idempotent, "linger.ms": 20}
    )
    landed, errors = [], []

    def report(at):
        def told(error, message):
            if error is not None:
                errors.append(error)
            else:
                landed.append((message.partition(), message.offset(), at))

        return told

    for at, (key, value, headers, timestamp) in enumerate(RECORDS):
        producer.produce(
            "t",
            key=key,
            value=value,
            headers=headers,
            timestamp=timestamp,
            partition=at % PARTITIONS,
            on_delivery=report(at),
        )
    assert producer.flush(WAIT_S) == 0
    assert errors == []
    assert len(landed) == len(RECORDS)
    assert seen_by_deltalake(lake) == as_sent(landed)
    assert seen_by_consumer(lake, len(RECORDS)) == as_sent(landed)


@pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("idempotent", [True, False])
def test_every_reader_sees_what_aiokafka_sent(lake, address, codec, idempotent):
    taken = [at for at, (key, value, *_) in enumerate(RECORDS) if key is not None or value is not None]

    async def send():
        async with AIOKafkaProducer(
            bootstrap_servers=address, compression_type=codec, enable_idempotence=idempotent, linger_ms=20
        ) as producer:
            sent = [
                await producer.send(
                    "t", value, key, at % PARTITIONS, timestamp, [(name, text or b"") for name, text in headers]
                )
                for at in taken
                for key, value, headers, timestamp in [RECORDS[at]]
            ]
            return [await one for one in sent]

    landed = [(one.partition, one.offset, at) for at, one in zip(taken, asyncio.run(send()), strict=True)]
    # This client can't send a header without a value, nor a record without key and value.
    expected = [(*row[:4], [(name, text or b"") for name, text in row[4]], row[5]) for row in as_sent(landed)]
    assert seen_by_deltalake(lake) == expected
    assert seen_by_consumer(lake, len(expected)) == expected


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_many_records_keep_their_order_with_any_acks(lake, address, acks):
    producer = Producer({"bootstrap.servers": address, "acks": acks, "linger.ms": 1, "batch.num.messages": 50})
    reports = Reports()
    for at in range(5_000):
        producer.produce("t", b"%d" % at, partition=at % PARTITIONS, on_delivery=reports)
        producer.poll(0)
    assert producer.flush(WAIT_S) == 0
    assert reports.errors == []
    with consumer(lake) as reader:
        reader.subscribe(["t"])
        messages = reader.consume(5_000, WAIT_S)
    found = {p: [int(m.value()) for m in messages if m.partition() == p] for p in range(PARTITIONS)}
    assert found == {p: list(range(p, 5_000, PARTITIONS)) for p in range(PARTITIONS)}
    if acks != "0":
        offsets = {(partition, offset): value for partition, offset, value in reports.landed}
        assert offsets == {(m.partition(), m.offset()): m.value() for m in messages}


def test_the_topics_time_is_in_the_report(lake, address):
    lake.create_topic("stamped", 1, {"message.timestamp.type": "LogAppendTime"})
    producer, reported = Producer({"bootstrap.servers": address}), []
    producer.produce("stamped", b"x", timestamp=1, on_delivery=lambda _, message: reported.append(message.timestamp()))
    assert producer.flush(WAIT_S) == 0
    (records,) = lake.topic("stamped").read(0)
    ((kind, ms),) = reported
    assert kind != TIMESTAMP_NOT_AVAILABLE
    assert ms == round(records.column("timestamp")[0].as_py().timestamp() * 1000)


def test_a_topic_is_made_on_the_way(lake, address):
    producer, reports = Producer({"bootstrap.servers": address}), Reports()
    producer.produce("made", b"x", on_delivery=reports)
    assert producer.flush(WAIT_S) == 0
    assert reports.errors == []
    assert "made" in lake.topics()


def test_records_of_many_producers_share_entries(lake, address):
    producers = [Producer({"bootstrap.servers": address, "linger.ms": 0, "partitioner": "random"}) for _ in range(8)]
    reports = [Reports() for _ in producers]

    def send(producer, report):
        for at in range(200):
            producer.produce("t", b"%d" % at, partition=at % PARTITIONS, on_delivery=report)
            producer.poll(0)
        producer.flush(WAIT_S)

    threads = [threading.Thread(target=send, args=pair) for pair in zip(producers, reports, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    landed = Counter((partition, offset) for report in reports for partition, offset, _ in report.landed)
    assert len(landed) == 8 * 200
    assert set(landed.values()) == {1}
    assert lake.topic("t").state().version < 8 * 200 / 4


def test_a_record_that_is_too_large_is_refused_and_others_are_not(lake, address):
    producer, reports = Producer({"bootstrap.servers": address, "message.max.bytes": 10_000_000}), Reports()
    producer.produce("t", bytes(2_000_000), partition=0, on_delivery=reports)
    producer.produce("t", b"small", partition=1, on_delivery=reports)
    assert producer.flush(WAIT_S) == 0
    assert [error.name() for error in reports.errors] == ["MSG_SIZE_TOO_LARGE"]
    assert read_back(lake) == {0: [], 1: [b"small"], 2: []}


def test_a_partition_that_is_not_there_is_refused(lake, address):
    producer = Producer({"bootstrap.servers": address})
    producer.list_topics("t", WAIT_S)
    with pytest.raises(KafkaException) as raised:
        producer.produce("t", b"x", partition=7)
    assert raised.value.args[0].name() == "_UNKNOWN_PARTITION"


# --- without a client: what no client lets one do ----------------------------------------------------------


def exchange(address, *requests, version=9, answers=None):
    """Send requests over one connection at once; the entities of their answers, in order."""
    host, port = address.split(":")
    found = []
    with socket.create_connection((host, int(port)), WAIT_S) as connection:
        frames = [
            struct.pack(">hhih", ApiKey.PRODUCE, version, at, -1) + b"\0" + request
            for at, request in enumerate(requests)
        ]
        connection.sendall(b"".join(struct.pack(">i", len(frame)) + frame for frame in frames))
        stream = connection.makefile("rb")
        for at in range(len(requests) if answers is None else answers):
            (size,) = struct.unpack(">i", stream.read(4))
            payload = stream.read(size)
            assert struct.unpack(">i", payload[:4]) == (at,)
            found.append(entity_reader(load_response_schema(ApiKey.PRODUCE, version))(payload, 5)[0])
        if answers is not None:
            assert stream.read() == b""
    return found


def outcomes(answers):
    """(error code, base offset) of answers for one partition each."""
    return [
        (int(partition.error_code), partition.base_offset)
        for answer in answers
        for topic in answer.responses
        for partition in topic.partition_responses
    ]


def test_requests_of_one_connection_are_answered_in_their_order(lake, address):
    requests = [encoded_produce(9, {"t": {0: batch(b"%d" % at, producer=(5, 0, at))}}) for at in range(200)]
    assert outcomes(exchange(address, *requests)) == [(0, at) for at in range(200)]
    assert read_back(lake)[0] == [b"%d" % at for at in range(200)]


def test_a_retry_that_meets_another_broker_adds_nothing(lake, address, tmp_path):
    requests = [encoded_produce(9, {"t": {0: batch(b"%d" % at, producer=(5, 0, at))}}) for at in range(5)]
    with Lake(tmp_path / "lake") as same, running_broker(same, id=2) as other:
        assert outcomes(exchange(address, *requests[:4])) == [(0, at) for at in range(4)]
        # As a client does whose connection broke before the answers of the last two came.
        assert outcomes(exchange(other, *requests[2:])) == [(46, -1), (46, -1), (0, 4)]
        assert outcomes(exchange(address, *requests)) == [(0, 0), (0, 1), (0, 2), (0, 3), (46, -1)]
    assert read_back(lake)[0] == [b"%d" % at for at in range(5)]


def test_two_brokers_that_take_the_same_batch_at_once_add_it_once(lake, address, tmp_path):
    with Lake(tmp_path / "lake") as same, running_broker(same, id=2) as other:
        for at in range(20):
            request = encoded_produce(9, {"t": {0: batch(b"%d" % at, producer=(5, 0, at))}})
            found = []

            def send(to, request=request, found=found):
                found.extend(outcomes(exchange(to, request)))

            threads = [threading.Thread(target=send, args=(to,)) for to in (address, other)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(WAIT_S)
            assert sorted(found) in ([(0, at), (46, -1)], [(0, at), (0, at)])
    assert read_back(lake)[0] == [b"%d" % at for at in range(20)]


def test_without_acks_an_error_closes_the_connection(lake, address):
    good, bad = (encoded_produce(9, {"t": {p: batch(b"x")}}, acks=0) for p in (0, 9))
    assert exchange(address, good, bad, answers=0) == []
    assert read_back(lake)[0] == [b"x"]


def test_an_ack_waits_for_nothing_that_only_the_next_entry_needs(lake, address, monkeypatch):
    may_open = threading.Event()
    monkeypatch.setattr(Drafts, "open_ahead", lambda _: may_open.wait(2 * WAIT_S))
    reports = Reports()
    producer = Producer({"bootstrap.servers": address})
    producer.produce("t", b"v", partition=0, on_delivery=reports)
    try:
        assert producer.flush(WAIT_S) == 0
    finally:
        may_open.set()
    assert (reports.landed, reports.errors) == ([(0, 0, b"v")], [])
