"""From `produce` in one process to `poll` in another, one record at a time."""

import multiprocessing
import random
import time
from collections.abc import Callable
from functools import partial
from multiprocessing.queues import Queue
from typing import Any

from figures import Row, percentile, summary
from plan import Plan

import tidelog
from tidelog.clients.consumer.consumer import Consumer
from tidelog.clients.producer.producer import Producer
from tidelog.clients.values.partitions import TopicPartition

_WARMUP = 100


def run(plan: Plan) -> list[Row]:
    """A record every 10 to 20 ms."""
    uri = str(plan.work / "clients-latency")
    with tidelog.Lake(uri) as lake:
        lake.create_topic("t", partitions=1)
    with Producer({"lake": uri, "linger.ms": 0, "acks": 1}) as producer:
        times_ms = latencies_ms(producer, "t", partial(_reader, uri), 5 * plan.latencies)
    p50, p99 = percentile(times_ms, 50), percentile(times_ms, 99)
    what = "one record, from `produce` (linger.ms=0, acks=1) to `poll` in another process"
    figures = {"ms": summary(times_ms, 2)}
    return [
        Row(f"{what}, p50", "≤ 5 ms", f"{p50:.1f} ms", p50 <= 5, figures),
        Row("the same, p99", "≤ 25 ms", f"{p99:.1f} ms", p99 <= 25, figures),
    ]


def _reader(uri: str) -> Consumer:
    consumer = Consumer({"lake": uri, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition("t", 0)])
    return consumer


def latencies_ms(
    producer: Any, topic: str, reader: Callable[[], Any], count: int, warmup: int = _WARMUP
) -> list[float]:
    """Milliseconds of `count` records' way to `reader`, after some of warming up.

    `reader` makes, in another process, a consumer that is assigned the topic's only partition; it is picklable.
    A record every 10 to 20 ms; both processes read this machine's one monotonic clock.
    """
    context = multiprocessing.get_context("spawn")
    answers: Queue[Any] = context.Queue()
    process = context.Process(target=_read, args=(reader, warmup + count, answers))
    process.start()
    answers.get()
    for _ in range(warmup + count):
        producer.produce(topic, value=repr(time.monotonic()).encode())
        producer.poll(0)
        time.sleep(0.01 + 0.01 * random.random())
    producer.flush()
    times_ms: list[float] = answers.get()[warmup:]
    process.join()
    return times_ms


def _read(reader: Callable[[], Any], count: int, answers: "Queue[Any]") -> None:
    times_ms: list[float] = []
    consumer = reader()
    consumer.poll(0.5)
    answers.put("ready")
    while len(times_ms) < count:
        message = consumer.poll(10)
        if message is not None:
            times_ms.append((time.monotonic() - float(message.value())) * 1e3)
    consumer.close()
    answers.put(times_ms)
