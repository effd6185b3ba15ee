"""A producer and a consumer that would take all they can get, and their quotas of a broker."""

import time

import brokers
import confluent_kafka
from figures import Row
from plan import Plan

import tidelog
from tidelog.access.access_log import AccessLog
from tidelog.access.quotas import Entity, Quota

_RATE = 4_000_000
_WITHIN = 0.1
# What clients get beyond the rate at first, and what is under way between both: by then it is over.
_SETTLED_S = 3.0
_VALUE = bytes(1_000)
_BATCH = 50_000


def run(plan: Plan) -> list[Row]:
    """Bytes a second of values, of each by itself, against their limit."""
    folder = plan.work / "broker-quotas"
    with tidelog.Lake(str(folder)) as lake:
        lake.create_topic("t", partitions=1)
        access = AccessLog(lake)
        limits = {Quota.PRODUCER_BYTE_RATE: _RATE, Quota.CONSUMER_BYTE_RATE: _RATE}
        access.alter_quotas({Entity(None, "held"): limits})
        access.close()
    with brokers.running(folder) as (broker,):
        produced = _produce(broker.address, plan.racing_s)
        _supply(broker.address, plan.racing_s)
        consumed = _consume(broker.address, plan.racing_s)
    shares = {"producer": produced / _RATE, "consumer": consumed / _RATE}
    told = ", ".join(f"{who} {share * 100:.0f} %" for who, share in shares.items())
    ok = all(abs(share - 1) <= _WITHIN for share in shares.values())
    return [Row(f"clients over a quota of {_RATE:,} bytes/s: their rate", "100 ± 10 %", told, ok, shares)]


def _produce(address: str, seconds: float) -> float:
    """Bytes of values a second that were acknowledged, once the rate has settled."""
    acknowledged = 0

    def count(error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
        nonlocal acknowledged
        if error is None:
            acknowledged += len(message.value() or b"")

    own = brokers.producer(address, client_id="held", batch_size=_BATCH, queue_buffering_max_messages=2_000)
    began_s, before = 0.0, 0
    ends_s = time.monotonic() + _SETTLED_S + seconds
    while (now_s := time.monotonic()) < ends_s:
        if not began_s and now_s >= ends_s - seconds:
            began_s, before = now_s, acknowledged
        try:
            own.produce("t", _VALUE, on_delivery=count)
        except BufferError:
            own.poll(0.05)
        own.poll(0)
    rate = (acknowledged - before) / (time.monotonic() - began_s)
    own.purge()
    own.flush(10)
    return rate


def _supply(address: str, seconds: float) -> None:
    """Produce more than a consumer can take in its time, by a client without a quota."""
    count = int(_RATE * (seconds + 2 * _SETTLED_S) / len(_VALUE))
    brokers.produced(address, "t", [_VALUE] * count, [b""] * count)


def _consume(address: str, seconds: float) -> float:
    """Bytes of values a second that were consumed, once the rate has settled."""
    own = brokers.consumer(address, client_id="held", fetch_message_max_bytes=_BATCH, queued_max_messages_kbytes=1_024)
    own.assign([confluent_kafka.TopicPartition("t", 0, confluent_kafka.OFFSET_BEGINNING)])
    try:
        if not own.consume(1, 30):
            raise RuntimeError("No record was read.")
        began_s, taken = 0.0, 0
        ends_s = time.monotonic() + _SETTLED_S + seconds
        while (now_s := time.monotonic()) < ends_s:
            if not began_s and now_s >= ends_s - seconds:
                began_s, taken = now_s, 0
            for message in own.consume(1_000, 0.05):
                if message.error():
                    raise RuntimeError(str(message.error()))
                taken += len(message.value() or b"")
        return taken / (time.monotonic() - began_s)
    finally:
        own.close()
