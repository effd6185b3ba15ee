"""A broker that has nothing else to do acknowledges one record at a time, beside appends of one record."""

import time

import brokers
import pyarrow as pa
from figures import Row, percentile, summary
from plan import Plan

import tidelog

_WARMUP = 50
# Between two records, so that the broker is idle before each.
_PAUSE_S = 0.01


def run(plan: Plan) -> list[Row]:
    """In turns on one lake: an append of one record, acks=all, and one that Kafka's client hands to the broker."""
    lake_folder = plan.work / "broker-ack"
    with tidelog.Lake(str(lake_folder)) as lake:
        for topic in ("appended", "produced"):
            lake.create_topic(topic, partitions=1)
        with brokers.running(lake_folder) as (broker,):
            acks_ms, appends_ms = _in_turn(lake.topic("appended"), broker.address, plan.appends // 2)
    p50, append_p50 = percentile(acks_ms, 50), percentile(appends_ms, 50)
    return [
        Row(
            "ack of one record by an idle broker, fsynced, p50, against an append of one record",
            "≤ 1.5x",
            f"{p50 / append_p50:.2f}x ({p50:.2f} ms against {append_p50:.2f}; p99 {percentile(acks_ms, 99):.1f} ms)",
            p50 <= 1.5 * append_p50,
            {"ack_ms": summary(acks_ms), "append_ms": summary(appends_ms)},
        )
    ]


def _in_turn(topic: tidelog.Topic, address: str, count: int) -> tuple[list[float], list[float]]:
    """Milliseconds of each ack, and of each append."""
    producer = brokers.producer(address, linger_ms=0)
    record = pa.table({"value": [b"x"]})
    acked: list[float] = []

    def on_delivery(error: object, _: object) -> None:
        if error is not None:
            raise RuntimeError(str(error))
        acked.append(time.perf_counter())

    acks_ms: list[float] = []
    appends_ms: list[float] = []
    for number in range(-_WARMUP, count):
        began = time.perf_counter()
        topic.append(record)
        appended = time.perf_counter()
        time.sleep(_PAUSE_S)
        sent = time.perf_counter()
        producer.produce("produced", b"x", on_delivery=on_delivery)
        while len(acked) < number + _WARMUP + 1:
            producer.poll(1)
        if number >= 0:
            appends_ms.append((appended - began) * 1e3)
            acks_ms.append((acked[-1] - sent) * 1e3)
        time.sleep(_PAUSE_S)
    return acks_ms, appends_ms
