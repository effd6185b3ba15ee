"""What three brokers of a cluster cost, and take in, against one alone."""

import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import brokers
from figures import Row
from machine import cores
from plan import Plan

import tidelog

_MANY = 3
# More topics than brokers, so that each broker leads some of them.
_TOPICS, _PARTITIONS = 9, 4
# As many cores as let three brokers and their clients each have one.
_CORES = 2 * _MANY


def run(plan: Plan) -> list[Row]:
    """In turns, both run all the time: topics are produced to and read, by as many clients as there are brokers."""
    records = 20_000 if plan.quick else 50_000
    values, keys = brokers.lettered_records(records)
    folders = {count: plan.work / f"broker-processes-{count}" for count in (1, _MANY)}
    for folder in folders.values():
        with tidelog.Lake(str(folder)) as lake:
            for number in range(_TOPICS * (plan.rounds + 1)):
                lake.create_topic(f"t{number}", partitions=_PARTITIONS)
    rates: dict[int, list[float]] = {1: [], _MANY: []}
    costs_us: dict[int, list[float]] = {1: [], _MANY: []}
    with brokers.running(folders[1]) as one, brokers.running(folders[_MANY], _MANY) as many:
        for number in range(plan.rounds + 1):
            topics = [f"t{number * _TOPICS + at}" for at in range(_TOPICS)]
            for cluster in (one, many) if number % 2 else (many, one):
                rate, cost_us = _round(cluster, topics, values, keys)
                if number:  # the first one warms up
                    rates[len(cluster)].append(rate)
                    costs_us[len(cluster)].append(cost_us)
    return [_row(rates, costs_us)]


def _row(rates: dict[int, list[float]], costs_us: dict[int, list[float]]) -> Row:
    faster = statistics.median(more / less for more, less in zip(rates[_MANY], rates[1], strict=True))
    dearer = statistics.median(more / less for more, less in zip(costs_us[_MANY], costs_us[1], strict=True))
    enough = cores() >= _CORES
    told = [f"{statistics.median(costs_us[count]):.2f} us" for count in (_MANY, 1)]
    return Row(
        f"{_MANY} broker processes against one: records a second"
        if enough
        else f"{_MANY} broker processes against one: processor time a record, produced and consumed",
        "≥ 2x" if enough else "≤ 1.1x",
        f"{faster:.2f}x" if enough else f"{dearer:.2f}x ({told[0]} against {told[1]}; records a second {faster:.2f}x)",
        faster >= 2 if enough else dearer <= 1.1,
        {"records_per_s": rates, "processor_us_per_record": costs_us},
    )


def _round(
    cluster: list[brokers.BrokerProcess], topics: list[str], values: list[bytes], keys: list[bytes]
) -> tuple[float, float]:
    """Records a second, and microseconds of all brokers' processor time for each."""
    records = len(values) * len(topics)
    began_s, began = sum(broker.processor_s for broker in cluster), time.perf_counter()
    _at_once(topics, lambda topic: brokers.produced(cluster[0].address, topic, values, keys, compression_type="zstd"))
    _at_once(topics, lambda topic: brokers.consumed(cluster[0].address, topic, _PARTITIONS, len(values)))
    took = time.perf_counter() - began
    used_s = sum(broker.processor_s for broker in cluster) - began_s
    return records / took, used_s * 1e6 / records


def _at_once(topics: list[str], job: Callable[[str], None]) -> None:
    with ThreadPoolExecutor(_MANY) as threads:
        list(threads.map(job, topics))
