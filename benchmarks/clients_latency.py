"""From `produce` in one process to `poll` in another, one record at a time."""

import multiprocessing
import random
import time
from multiprocessing.queues import Queue
from typing import Any

from figures import Row, percentile, summary
from plan import Plan

import tidelog
from tidelog.clients.consumer import Consumer
from tidelog.clients.producer import Producer
from tidelog.clients.topic_partition import TopicPartition

_WARMUP = 100


def run(plan: Plan) -> list[Row]:
    """A record every 10 to 20 ms; both processes read this machine's one monotonic clock."""
    uri = str(plan.work / "clients-latency")
    with tidelog.Lake(uri) as lake:
        lake.create_topic("t", partitions=1)
    context = multiprocessing.get_context("spawn")
    answers: Queue[Any] = context.Queue()
    count = _WARMUP + 5 * plan.latencies
    reader = context.Process(target=_read, args=(uri, count, answers))
    reader.start()
    answers.get()
    with Producer({"lake": uri, "linger.ms": 0, "acks": 1}) as producer:
        for _ in range(count):
            producer.produce("t", value=repr(time.monotonic()).encode())
            producer.poll(0)
            time.sleep(0.01 + 0.01 * random.random())
        producer.flush()
    times_ms = answers.get()[_WARMUP:]
    reader.join()
    p50, p99 = percentile(times_ms, 50), percentile(times_ms, 99)
    what = "one record, from `produce` (linger.ms=0, acks=1) to `poll` in another process"
    figures = {"ms": summary(times_ms, 2)}
    return [
        Row(f"{what}, p50", "≤ 5 ms", f"{p50:.1f} ms", p50 <= 5, figures),
        Row("the same, p99", "≤ 25 ms", f"{p99:.1f} ms", p99 <= 25, figures),
    ]


def _read(uri: str, count: int, answers: "Queue[Any]") -> None:
    times_ms: list[float] = []
    with Consumer({"lake": uri, "group.id": "g", "auto.offset.reset": "earliest"}) as consumer:
        consumer.assign([TopicPartition("t", 0)])
        consumer.poll(0.5)
        answers.put("ready")
        while len(times_ms) < count:
            message = consumer.poll(10)
            if message is not None:
                times_ms.append((time.monotonic() - float(message.value())) * 1e3)
    answers.put(times_ms)
