"""The producer's calls and callbacks, one record after another."""

import threading
import time
from typing import Any

import pyarrow as pa
import pytest
from support.logs import read
from support.producers import Delivered, live_lake, producer

from tidelog.clients.producer.producer import Producer
from tidelog.clients.values.errors import KafkaError, KafkaException
from tidelog.log.lake import Lake


def lake_with(partitions: int = 2, **config: str) -> Lake:
    lake, _ = live_lake()
    lake.create_topic("t", partitions, {k.replace("_", "."): v for k, v in config.items()})
    return lake


# --- what lands --------------------------------------------------------------------------------------------


def test_produce_flush_and_the_callback() -> None:
    lake, told = lake_with(1), Delivered()
    with producer(lake) as p:
        p.produce("t", b"v", b"k", callback=told)
        assert told.all == []
        assert p.flush() == 0
    ((error, message),) = told.all
    assert error is None
    assert message.error() is None
    assert (message.topic(), message.partition(), message.offset()) == ("t", 0, 0)
    assert (message.key(), message.value(), message.headers(), len(message)) == (b"k", b"v", None, 1)
    assert 0 <= message.latency() < 30
    assert read(lake, "t") == ["v"]


def test_text_is_utf8_and_null_stays_null() -> None:
    lake = lake_with(1)
    with producer(lake) as p:
        p.produce("t", "wört", key="schlüssel")
        p.produce("t", None, key=b"k")
        p.produce("t", b"")
        p.produce("t")
    (batch,) = lake.topic("t").read(0)
    assert batch.column("value").to_pylist() == ["wört".encode(), None, b"", None]
    assert batch.column("key").to_pylist() == ["schlüssel".encode(), b"k", None, None]


def test_the_arguments_order_is_confluents() -> None:
    lake, told = lake_with(3), Delivered()
    with producer(lake) as p:
        p.produce("t", b"v", b"k", 2, told, None, 1_700_000_000_123, [("h", b"1")])
    ((_, message),) = told.all
    assert (message.partition(), message.timestamp(), message.headers()) == (2, (1, 1_700_000_000_123), [("h", b"1")])
    (batch,) = lake.topic("t").read(2, include_headers=True)
    assert batch.column("timestamp").cast(pa.int64()).to_pylist() == [1_700_000_000_123_000]
    assert batch.column("headers").to_pylist() == [[{"key": "h", "value": b"1"}]]


HEADERS: list[tuple[Any, Any]] = [
    ([("a", b"1"), ("b", None), ("a", "text")], [("a", b"1"), ("b", None), ("a", b"text")]),
    ({"a": b"1", "b": None}, [("a", b"1"), ("b", None)]),
    ([], None),
    ({}, None),
    (None, None),
]


def test_headers_of_some_records() -> None:
    lake, told = lake_with(1), Delivered()
    with producer(lake) as p:
        for given, _ in HEADERS:
            p.produce("t", b"v", headers=given, on_delivery=told)
    assert [m.headers() for _, m in told.all] == [wanted for _, wanted in HEADERS]
    (batch,) = lake.topic("t").read(0, include_headers=True)
    stored = [
        None if found is None else [(h["key"], h["value"]) for h in found]
        for found in batch.column("headers").to_pylist()
    ]
    assert stored == [wanted for _, wanted in HEADERS]


def test_a_record_carries_the_time_when_it_was_produced() -> None:
    lake, told = lake_with(1), Delivered()
    before = lake.clock.now_ms()
    with producer(lake, linger_ms=30) as p:
        p.produce("t", b"a", callback=told)
        produced = lake.clock.now_ms()
    kind, stamp = told.all[0][1].timestamp()
    assert kind == 1
    assert before - 1 <= stamp <= produced + 1


def test_log_append_time_is_told() -> None:
    lake, told = lake_with(1, message_timestamp_type="LogAppendTime"), Delivered()
    with producer(lake) as p:
        p.produce("t", b"a", callback=told, timestamp=5)
    (batch,) = lake.topic("t").read(0)
    (micros,) = batch.column("timestamp").cast(pa.int64()).to_pylist()
    assert told.all[0][1].timestamp() == (2, micros // 1000)


def test_a_topic_is_created_on_the_way() -> None:
    lake, _ = live_lake()
    lake.alter_config({"num.partitions": "3"})
    with producer(lake) as p:
        p.produce("new", b"v", partition=2)
    assert read(lake, "new", 2) == ["v"]


def test_keys_go_where_every_tidelog_writer_sends_them() -> None:
    lake, other = lake_with(16), lake_with(16)
    keys = [f"key-{i}".encode() for i in range(50)]
    with producer(lake) as p:
        for key in keys:
            p.produce("t", key, key)
    other.topic("t").append(pa.table({"value": keys, "key": keys}))
    assert [read(lake, "t", i) for i in range(16)] == [read(other, "t", i) for i in range(16)]


def test_records_without_a_key_fill_the_partitions_in_turn() -> None:
    lake, told = lake_with(4), Delivered()
    with producer(lake) as p:
        for _ in range(4):
            for _ in range(3):
                p.produce("t", b"v", callback=told)
            p.flush()
    where = [place[0] for place in told.places]
    assert [len(set(where[i : i + 3])) for i in range(0, 12, 3)] == [1] * 4
    assert set(where) == {0, 1, 2, 3}


# --- callbacks ---------------------------------------------------------------------------------------------


def test_callbacks_come_in_order_and_only_from_poll_and_flush() -> None:
    lake, told = lake_with(1), Delivered()
    threads = set()

    def note(error: Any, message: Any) -> None:
        threads.add(threading.current_thread())
        told(error, message)

    with producer(lake, linger_ms=0) as p:
        for i in range(100):
            p.produce("t", str(i), callback=note)
        while len(told.all) < 100:
            assert p.poll(10) > 0
    assert told.places == [(0, i, str(i).encode()) for i in range(100)]
    assert threads == {threading.current_thread()}


def test_a_callback_for_all_and_one_of_its_own() -> None:
    lake, told, own = lake_with(1), Delivered(), Delivered()
    with producer(lake, on_delivery=told) as p:
        p.produce("t", b"a")
        p.produce("t", b"b", callback=own)
    assert (told.places, own.places) == ([(0, 0, b"a")], [(0, 1, b"b")])


def test_callbacks_for_errors_only() -> None:
    lake, told, own = lake_with(1), Delivered(), Delivered()
    with producer(lake, on_delivery=told, delivery_report_only_error=True) as p:
        for partition in (0, 9):
            p.produce("t", b"a", partition=partition)
            p.produce("t", b"b", partition=partition, callback=own)
    assert told.codes == own.codes == [KafkaError._UNKNOWN_PARTITION]


def test_what_a_callback_raises_comes_out_of_poll_and_the_next_ones_are_made_later() -> None:
    lake, told = lake_with(1), Delivered()

    def fails(error: Any, message: Any) -> None:
        told(error, message)
        if message.value() == b"1":
            raise ZeroDivisionError

    p = producer(lake)
    for i in range(3):
        p.produce("t", str(i), callback=fails)
    with pytest.raises(ZeroDivisionError):
        p.flush()
    assert (len(told.all), len(p)) == (2, 1)
    assert p.flush() == 0
    assert len(told.all) == 3
    p.close()


def test_a_callback_may_produce() -> None:
    lake = lake_with(1)
    p = producer(lake)

    def again(error: Any, message: Any) -> None:
        if message.value() != b"2":
            p.produce("t", str(int(message.value()) + 1), callback=again)

    p.produce("t", b"0", callback=again)
    assert p.flush() == 0
    p.close()
    assert read(lake, "t") == ["0", "1", "2"]


def test_poll_counts_what_was_delivered_with_or_without_a_callback() -> None:
    lake = lake_with(1)
    with producer(lake, linger_ms=0) as p:
        assert p.poll(0) == 0
        p.produce("t", b"a")
        assert p.poll() == 1
        assert len(p) == 0
        assert p.poll() == 0  # nothing waits, so there is nothing to wait for


def test_poll_with_a_time_waits_also_while_nothing_is_queued() -> None:
    """As librdkafka's: a thread that does nothing but poll does not spin."""
    with producer(lake_with(1)) as p:
        began_s = time.monotonic()
        assert p.poll(0.05) == 0
        assert time.monotonic() - began_s >= 0.05
        waiting = threading.Thread(target=p.poll, args=(60,))
        waiting.start()
    waiting.join(20)  # the end of the producer ends the wait
    assert not waiting.is_alive()


# --- refused at once ---------------------------------------------------------------------------------------

WRONG: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "value": ({"value": 5}, TypeError, "value must be str, bytes or None, not int: serialize it"),
    "key": ({"key": 1.5}, TypeError, "key must be"),
    "topic": ({"topic": None}, TypeError, "topic must be str"),
    "topic's name": ({"topic": "a/b"}, KafkaException, "a/b"),
    "partition": ({"partition": "1"}, TypeError, "partition must be int"),
    "no partition": ({"partition": 2**31}, KafkaException, "no INT"),
    "timestamp": ({"timestamp": "now"}, TypeError, "timestamp must be int"),
    "headers": ({"headers": "h"}, TypeError, "headers must be a list"),
    "header": ({"headers": [("h",)]}, TypeError, "a header is a tuple of a key"),
    "header's key": ({"headers": [(b"h", b"1")]}, TypeError, "a header is a tuple of a key"),
    "header's value": ({"headers": [("h", 1)]}, TypeError, "a header's value must be"),
    "callback": ({"callback": "f"}, TypeError, "a delivery callback is a callable"),
    "too large": ({"value": b"x" * 1001}, KafkaException, "1001 bytes .* message.max.bytes=1000"),
    "too large with headers": ({"value": b"x" * 990, "headers": {"abc": b"x" * 8}}, KafkaException, "1001 bytes"),
}


@pytest.mark.parametrize(("arguments", "error", "says"), WRONG.values(), ids=WRONG)
def test_what_produce_refuses(arguments: dict[str, Any], error: type[Exception], says: str) -> None:
    with producer(lake_with(), message_max_bytes=1000) as p:
        with pytest.raises(error, match=says):
            p.produce(**{"topic": "t", **arguments})
        assert len(p) == 0


def test_too_large_has_confluents_code() -> None:
    with producer(lake_with(), message_max_bytes=1000) as p, pytest.raises(KafkaException) as refused:
        p.produce("t", b"x" * 1001)
    assert refused.value.args[0] == KafkaError.MSG_SIZE_TOO_LARGE


def test_a_closed_producer() -> None:
    lake = lake_with()
    p = producer(lake)
    p.produce("t", b"a", partition=0)
    p.close()
    p.close()
    with pytest.raises(RuntimeError, match="Producer closed"):
        p.produce("t", b"b")
    with pytest.raises(RuntimeError, match="Producer closed"):
        p.produce_table("t", pa.table({"value": [b"b"]}))
    assert (p.flush(), p.poll(0)) == (0, 0)
    assert read(lake, "t") == ["a"]


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        ("init_transactions", ()),
        ("begin_transaction", ()),
        ("send_offsets_to_transaction", ([], None)),
        ("commit_transaction", ()),
        ("abort_transaction", ()),
    ],
)
def test_transactions_need_a_transactional_id(call: str, arguments: tuple[Any, ...]) -> None:
    with producer(lake_with()) as p, pytest.raises(KafkaException) as refused:
        getattr(p, call)(*arguments)
    assert refused.value.args[0] == KafkaError._NOT_CONFIGURED


def test_configuration_is_a_dict_or_keywords() -> None:
    lake, told = lake_with(1), Delivered()
    with Producer({"lake": lake}, on_delivery=told) as p:
        p.produce("t", b"a")
    assert told.places == [(0, 0, b"a")]
    with pytest.raises(KafkaException, match="linger"):
        Producer({"lake": lake, "lingerms": 1})


# --- the queue ---------------------------------------------------------------------------------------------


def test_a_full_queue_by_records() -> None:
    lake, told = lake_with(1), Delivered()
    p = producer(lake, queue_buffering_max_messages=10, linger_ms=0)
    for i in range(10):
        p.produce("t", str(i), callback=told)
    with pytest.raises(BufferError, match="Queue full"):
        p.produce("t", b"one too many")
    assert len(p) == 10  # committed or not: callbacks wait
    while p.poll(10) and len(p):
        pass
    p.produce("t", b"10")
    p.close()
    assert read(lake, "t") == [str(i) for i in range(11)]


def test_a_full_queue_by_bytes_ends_the_linger() -> None:
    lake = lake_with(1)
    p = producer(lake, queue_buffering_max_kbytes=1, linger_ms=600_000, delivery_timeout_ms=900_000)
    p.produce("t", b"x" * 1000)
    with pytest.raises(BufferError):
        p.produce("t", b"x" * 25)
    assert p.poll(30) == 1
    p.produce("t", b"x" * 25)
    p.close()


def test_lingering_records_share_an_entry_and_flush_does_not_wait_for_it() -> None:
    lake = lake_with(1)
    before = lake.topic("t").state().version
    p = producer(lake, linger_ms=600_000, delivery_timeout_ms=900_000)
    for i in range(50):
        p.produce("t", str(i))
    assert p.poll(0.05) == 0
    assert (len(p), lake.topic("t").state().version) == (50, before)
    assert p.flush() == 0
    assert lake.topic("t").state().version == before + 1
    p.close()


@pytest.mark.parametrize("enough", [{"batch_num_messages": 5}, {"batch_size": 45}], ids=["records", "bytes"])
def test_enough_records_end_the_linger(enough: dict[str, int]) -> None:
    lake = lake_with(1)
    with producer(lake, linger_ms=600_000, delivery_timeout_ms=900_000, **enough) as p:
        for _ in range(4):
            p.produce("t", b"x" * 10)
        assert p.poll(0.05) == 0
        p.produce("t", b"x" * 10)
        assert p.poll(30) == 5


def test_large_records_make_several_entries_in_order() -> None:
    lake, told = lake_with(1, max_message_bytes="20000000"), Delivered()
    with producer(lake, message_max_bytes=20_000_000, on_delivery=told) as p:
        for i in range(8):
            p.produce("t", bytes([i]) * 12_000_000)
    assert [(place[1], place[2][0]) for place in told.places] == [(i, i) for i in range(8)]
    assert lake.topic("t").state().version >= 3


def test_many_threads_and_topics() -> None:
    lake, told = lake_with(1), Delivered()
    with producer(lake, on_delivery=told) as p:

        def work(who: int) -> None:
            for i in range(500):
                p.produce(f"t{i % 2}", f"{who}-{i}", partition=0)

        threads = [threading.Thread(target=work, args=(who,)) for who in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert p.flush() == 0
        assert len(p) == 0
    assert len(told.all) == 2000
    for topic in (0, 1):
        found = read(lake, f"t{topic}")
        assert len(found) == 1000
        for who in range(4):
            own = [v for v in found if v.startswith(f"{who}-")]
            assert own == [f"{who}-{i}" for i in range(topic, 500, 2)]


def test_list_topics() -> None:
    lake = lake_with(3)
    lake.create_topic("other", 1)
    with producer(lake) as p:
        found = p.list_topics()
        one = p.list_topics("t")
        none = p.list_topics("nope").topics["nope"]
    assert {name: len(topic.partitions) for name, topic in found.topics.items()} == {"t": 3, "other": 1}
    assert list(one.topics) == ["t"]
    assert none.error == KafkaError.UNKNOWN_TOPIC_OR_PART
