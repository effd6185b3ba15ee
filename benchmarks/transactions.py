"""Transactions of a producer, and opening a topic that remembers many idempotent producers."""

import time

import pyarrow as pa
from figures import Row, percentile, summary
from plan import Plan

import tidelog
from tidelog.clients.producer.producer import Producer
from tidelog.log.appends.joint import JointAppend
from tidelog.log.base.errors import OutOfOrderSequenceError
from tidelog.log.checkpoints.writing import write_checkpoint
from tidelog.log.lake import Lake
from tidelog.log.rules.appends import StagedShare
from tidelog.log.rules.sequences import ProducerBatch
from tidelog.log.segments.staging import stage_records
from tidelog.log.topic import Topic

# A topic's default number of partitions, and more.
_PARTITIONS = (1, 4)
_RECORDS = 1_000
_VALUE = b"v" * 100
_WARMUP = 20
_PRODUCERS = 1_000_000
_PRODUCERS_PER_ENTRY = 10_000
_OPENINGS = 9


def run(plan: Plan) -> list[Row]:
    """Time transactions over two topics from begin to commit, then as many small ones as go; then open the topic."""
    uri = str(plan.work / "transactions")
    with tidelog.Lake(uri) as lake:
        for partitions in _PARTITIONS:
            for topic in _topics(partitions):
                lake.create_topic(topic, partitions=partitions)
        lake.create_topic("small", partitions=1)
    with Producer({"lake": uri, "transactional.id": "t", "acks": "all"}) as producer:
        producer.init_transactions()
        count = _WARMUP + plan.appends // 5
        times_ms = {p: [_transaction_ms(producer, _topics(p)) for _ in range(count)][_WARMUP:] for p in _PARTITIONS}
        small_ms = [_small_ms(producer) for _ in range(_WARMUP + plan.appends)][_WARMUP:]
    written = {topic: count * _RECORDS // 2 for p in _PARTITIONS for topic in _topics(p)}
    with tidelog.Lake(uri, create=False) as lake:
        ends = {topic: sum(end for _, end in lake.offsets(topic).values()) for topic in (*written, "small")}
    if ends != {**written, "small": len(small_ms) + _WARMUP}:
        raise RuntimeError(f"the topics end at {ends}, but {count} transactions were committed to each")
    rate = 1e3 * len(small_ms) / sum(small_ms)
    p50, spread = (percentile(times_ms[partitions], 50) for partitions in _PARTITIONS)
    return [
        Row(
            f"transaction over two topics, {_RECORDS:,} records in all, acks=all, p50",
            "≤ 15 ms",
            f"{p50:.1f} ms (p99 {percentile(times_ms[_PARTITIONS[0]], 99):.1f}; over topics of {_PARTITIONS[1]}"
            f" partitions each: {spread:.1f})",
            p50 <= 15,
            {"ms": {str(partitions): summary(taken) for partitions, taken in times_ms.items()}},
        ),
        Row(
            "transactions of one record, one producer, acks=all",
            "≥ 100/s",
            f"{rate:.0f}/s (p50 {percentile(small_ms, 50):.1f} ms)",
            rate >= 100,
            {"ms": summary(small_ms), "per_s": round(rate, 1)},
        ),
        _opening(plan),
    ]


def _topics(partitions: int) -> tuple[str, str]:
    return f"one-{partitions}", f"other-{partitions}"


def _transaction_ms(producer: Producer, topics: tuple[str, str]) -> float:
    """Half of the records go to each topic, with keys, one by one."""
    began = time.perf_counter()
    producer.begin_transaction()
    for number in range(_RECORDS):
        producer.produce(topics[number % 2], _VALUE, b"key-%d" % number)
    producer.commit_transaction()
    return (time.perf_counter() - began) * 1e3


def _small_ms(producer: Producer) -> float:
    began = time.perf_counter()
    producer.begin_transaction()
    producer.produce("small", _VALUE, b"key")
    producer.commit_transaction()
    return (time.perf_counter() - began) * 1e3


# --- many producers ----------------------------------------------------------------------------------------


def _opening(plan: Plan) -> Row:
    """A topic where every producer has sent a record is opened from its checkpoint, each time in a lake of its own."""
    uri = str(plan.work / "producers")
    with tidelog.Lake(uri) as lake:
        lake.create_topic("t", partitions=1)
        topic = lake.topic("t")
        for first in range(0, _PRODUCERS, _PRODUCERS_PER_ENTRY):
            _append(lake, topic, range(first, first + _PRODUCERS_PER_ENTRY))
        write_checkpoint(lake.storage, topic.folder, topic.state().version, lake.clock.now_ms())
    times_s = []
    for _ in range(_OPENINGS):
        began = time.perf_counter()
        lake = tidelog.Lake(uri, create=False)
        known = lake.topic("t").state()
        times_s.append(time.perf_counter() - began)
        if len(known.producers) != _PRODUCERS:
            raise RuntimeError("the opened topic does not remember its producers")
        _must_refuse_a_gap(lake)
        lake.close()
    p50 = percentile(times_s, 50)
    return Row(
        f"opening a topic that remembers {_PRODUCERS:,} idempotent producers, p50",
        "≤ 1.5 s",
        f"{p50:.2f} s",
        p50 <= 1.5,
        {"s": summary(times_s)},
    )


def _append(lake: Lake, topic: Topic, producers: range, sequence: int = 0) -> None:
    """One record of each producer, in one entry, as a group commit has them."""
    stager = topic.stager()
    records = pa.table({"value": [_VALUE] * len(producers)})
    stage_records(stager, records, "t", topic.config(), "murmur2", 0, lake.clock.now_ms())
    batches = [ProducerBatch(one, 0, {0: (sequence, 1)}) for one in producers]
    share = StagedShare(tuple(stager.finish()), producers=batches)
    JointAppend(topic, lake.clock).commit(share).required()


def _must_refuse_a_gap(lake: Lake) -> None:
    try:
        _append(lake, lake.topic("t"), range(_PRODUCERS - 1, _PRODUCERS), sequence=5)
    except OutOfOrderSequenceError:
        return
    raise RuntimeError("the opened topic takes a producer's record after a gap")
