"""A broker's memory while records go through it: produced, and read by a consumer that follows."""

import threading

import brokers
import confluent_kafka
from figures import Row
from plan import Plan

import tidelog

_TIMES = 4
_FLAT = 1.25
_PARTITIONS = 8
_AT_ONCE = 125_000
# So small that it is full long before the first look.
_CACHE_BYTES = 16 * 2**20


def run(plan: Plan) -> list[Row]:
    """Its most memory until it has what it needs to work, which takes two million records, and until the end."""
    folder = plan.work / "broker-memory"
    with tidelog.Lake(str(folder)) as lake:
        lake.create_topic("t", partitions=_PARTITIONS)
    records = 2 * plan.task_records
    with brokers.running(folder, cache_bytes=_CACHE_BYTES) as (broker,):
        small, large = _peaks(broker, records)
    millions = records / 1e6
    return [
        Row(
            f"a broker's peak memory, {millions * _TIMES:g} M records through it, against the first {millions:g} M",
            f"flat (≤ {_FLAT}x)",
            f"{large / small:.2f}x ({large:.0f} MiB, {_CACHE_BYTES >> 20} of them its cache)",
            large <= _FLAT * small,
            {"mib": [small, large]},
        )
    ]


def _peaks(broker: brokers.BrokerProcess, records: int) -> tuple[float, float]:
    values, keys = brokers.lettered_records(_AT_ONCE)
    producer = brokers.producer(broker.address, compression_type="zstd")
    follower = threading.Thread(target=_follow, args=(broker.address, records * _TIMES))
    follower.start()
    memory, peaks = 0.0, []
    for number in range(1, records * _TIMES // _AT_ONCE + 1):
        for value, key in zip(values, keys, strict=True):
            producer.produce("t", value, key)
            producer.poll(0)
        brokers.sent(producer)
        memory = max(memory, broker.memory_mib)
        if number * _AT_ONCE in (records, records * _TIMES):
            peaks.append(round(memory, 1))
    follower.join()
    return peaks[0], max(peaks[1], round(broker.memory_mib, 1))


def _follow(address: str, records: int) -> None:
    own = brokers.consumer(address)
    own.assign([confluent_kafka.TopicPartition("t", p, confluent_kafka.OFFSET_BEGINNING) for p in range(_PARTITIONS)])
    while records > 0:
        records -= len(own.consume(10_000, 30))
    own.close()
