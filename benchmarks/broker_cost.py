"""Processor time of a broker for each record: taken in, served from memory, served from segments."""

import statistics

import brokers
import pyarrow as pa
from figures import Row, summary
from plan import Plan

import tidelog

_PARTITIONS = 8
_CODECS = ("none", "zstd")
_SMALL_CACHE = 16 * 2**20
# They fit into a broker's cache as it is, and not into the small one.
_RECORDS = 600_000
_ENTRIES = 10
_IN, _HOT, _COLD = "taken in", "served from memory", "served from segments"
# The best of prototypes, and what catching up costs beside it.
_MUST_US = {_IN: 3.5, _HOT: 0.3, _COLD: 1.4}


def run(plan: Plan) -> list[Row]:
    """Each round, a new topic is produced and read twice, and one that no cache can hold is read from its segments."""
    records = _RECORDS
    values, keys = brokers.lettered_records(records)
    hot_lake, cold_lake = plan.work / "broker-cost-hot", plan.work / "broker-cost-cold"
    table = pa.table({"key": keys, "value": values}).slice(0, records // _ENTRIES)
    with tidelog.Lake(str(hot_lake)) as lake:
        for number in range(plan.rounds + 1):
            for codec in _CODECS:
                lake.create_topic(f"{codec}-{number}", partitions=_PARTITIONS)
    with tidelog.Lake(str(cold_lake)) as lake:
        for codec in _CODECS:
            lake.create_topic(codec, partitions=_PARTITIONS)
            for _ in range(_ENTRIES):
                lake.topic(codec).append(table, compression=codec)
    found: dict[str, list[float]] = {f"{what}, {codec}": [] for what in _MUST_US for codec in _CODECS}
    with brokers.running(hot_lake) as (hot,), brokers.running(cold_lake, cache_bytes=_SMALL_CACHE) as (cold,):
        for number in range(plan.rounds + 1):
            for codec in _CODECS:
                topic = f"{codec}-{number}"
                with _Measured(hot, found[f"{_IN}, {codec}"], records):
                    brokers.produced(hot.address, topic, values, keys, compression_type=codec)
                with _Measured(hot, found[f"{_HOT}, {codec}"], 2 * records):
                    for _ in range(2):
                        brokers.consumed(hot.address, topic, _PARTITIONS, records)
                with _Measured(cold, found[f"{_COLD}, {codec}"], records):
                    brokers.consumed(cold.address, codec, _PARTITIONS, records // _ENTRIES * _ENTRIES)
    return [_row(what, must_us, found) for what, must_us in _MUST_US.items()]


def _row(what: str, must_us: float, found: dict[str, list[float]]) -> Row:
    """The first round has warmed up."""
    costs_us = {codec: statistics.median(found[f"{what}, {codec}"][1:]) for codec in _CODECS}
    told = [f"{costs_us[codec]:.2f} us ({codec})" for codec in _CODECS]
    return Row(
        f"a broker's processor time for each record of 100 B, {what}",
        f"≤ {must_us} us",
        ", ".join(told),
        max(costs_us.values()) <= must_us,
        {"us": {codec: summary(found[f"{what}, {codec}"][1:]) for codec in _CODECS}},
    )


class _Measured:
    """Adds the microseconds of processor time that a broker takes for each record in a block."""

    def __init__(self, broker: brokers.BrokerProcess, into: list[float], records: int) -> None:
        self._broker = broker
        self._into = into
        self._records = records
        self._began_s = 0.0

    def __enter__(self) -> None:
        self._began_s = self._broker.processor_s

    def __exit__(self, *_: object) -> None:
        self._into.append((self._broker.processor_s - self._began_s) * 1e6 / self._records)
