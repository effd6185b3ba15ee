"""How busy a broker's process is, of late: what waits for company goes by it, and how many brokers lead a topic."""

from collections.abc import Callable, Mapping
from typing import Final

from tidelog.broker.base.meter import TopicMeter

# How often the share is taken, in seconds.
EVERY_S: Final = 0.25


class ProcessLoad:
    """The share of one core that a process takes, 1.0 for all of it; several threads may take more.

    `processor_s()`: the processor time of the process, in seconds. Other time comes with the calls. For the loop's
    thread.
    """

    def __init__(self, processor_s: Callable[[], float], now_s: float) -> None:
        self._processor_s = processor_s
        self._at_s = now_s
        self._used_s = processor_s()
        self._share = 0.0

    def share(self, now_s: float) -> float:
        """The share of late: of the last `EVERY_S` or two, half each."""
        passed_s = now_s - self._at_s
        if passed_s >= EVERY_S:
            used_s = self._processor_s()
            latest = (used_s - self._used_s) / passed_s
            self._share = latest if passed_s >= 2 * EVERY_S else (self._share + latest) / 2
            self._at_s, self._used_s = now_s, used_s
        return self._share


def no_load(now_s: float) -> float:  # noqa: ARG001
    """The share of a process that has nothing to do."""
    return 0.0


# What a topic is known to cost, in microseconds: a batch that is produced, a record and a byte of it; a partition that
# is fetched, and a byte of it.
_BATCH_US: Final = 60.0
_RECORD_US: Final = 0.5
_BYTE_US: Final = 0.001
_FETCH_US: Final = 5.0
_FETCHED_BYTE_US: Final = 0.0004
# What a process takes is its topics', up to this multiple of what they are known to cost: the rest is maintenance.
_DEARER: Final = 4.0
# Less of a core than this is nothing.
_LEAST: Final = 0.001


class TopicShares:
    """The share of one core that each topic takes of a process, roughly.

    What the process takes is divided by what the topics' work is known to cost. `meters()`: what is counted of topics.
    `processor_s()`: the processor time of the process, in seconds. Other time comes with the calls. For one thread.
    """

    def __init__(
        self, processor_s: Callable[[], float], meters: Callable[[], Mapping[str, TopicMeter]], now_s: float
    ) -> None:
        self._processor_s = processor_s
        self._meters = meters
        self._at_s = now_s
        self._used_s = processor_s()
        self._cost_s: Mapping[str, float] = {}
        self.cores = 0.0
        self._shares: Mapping[str, float] = {}

    def look(self, now_s: float) -> Mapping[str, float]:
        """{topic: its share}, half each of the time since the last look and of before; `cores`: of the process."""
        passed_s = max(1e-3, now_s - self._at_s)
        used_s, costs_s = self._processor_s(), {name: known_cost_s(meter) for name, meter in self._meters().items()}
        latest = {name: cost_s - self._cost_s.get(name, 0.0) for name, cost_s in costs_s.items()}
        known_s = sum(latest.values())
        dearer = min(_DEARER, (used_s - self._used_s) / known_s) if known_s > 0 else 0.0
        now = {name: cost_s * dearer / passed_s for name, cost_s in latest.items()}
        shares = {name: (share + self._shares.get(name, 0.0)) / 2 for name, share in now.items()}
        self._shares = {name: share for name, share in shares.items() if share >= _LEAST}
        self.cores = (self.cores + (used_s - self._used_s) / passed_s) / 2
        self._at_s, self._used_s, self._cost_s = now_s, used_s, costs_s
        return self._shares


def known_cost_s(meter: TopicMeter) -> float:
    """What a topic's work has cost, in seconds, where it costs what it did when it was measured."""
    produced = _BATCH_US * meter.produce_requests + _RECORD_US * meter.messages_in + _BYTE_US * meter.bytes_in
    return (produced + _FETCH_US * meter.fetch_requests + _FETCHED_BYTE_US * meter.bytes_out) / 1e6
