"""What topics take of a process: by what they do, and by what the process takes."""

from collections import defaultdict

import pytest

from tidelog.broker.base.load import TopicShares, known_cost_s
from tidelog.broker.base.meter import TopicMeter


class Process:
    def __init__(self) -> None:
        self.used_s = 0.0
        self.now_s = 100.0
        self.meters: defaultdict[str, TopicMeter] = defaultdict(TopicMeter)
        self.shares = TopicShares(lambda: self.used_s, lambda: self.meters, self.now_s)

    def works(self, seconds: float, cores: float, **records: int) -> dict[str, float]:
        """Let time pass, in which the process takes so much of a core; the shares of late."""
        self.now_s += seconds
        self.used_s += seconds * cores
        for topic, count in records.items():
            meter = self.meters[topic]
            meter.messages_in += count
            meter.bytes_in += 100 * count
            meter.produce_requests += count // 100
        return {topic: round(share, 3) for topic, share in self.shares.look(self.now_s).items()}


def test_what_a_process_takes_is_its_topics_by_what_they_do():
    process = Process()
    for _ in range(12):
        shares = process.works(5, 0.8, busy=3_000_000, calm=1_000_000)
    assert shares == {"busy": 0.6, "calm": 0.2}
    assert process.shares.cores == pytest.approx(0.8, abs=0.01)


def test_a_burst_counts_half_and_fades():
    process = Process()
    assert process.works(5, 0.8, t=4_000_000) == {"t": 0.4}
    assert [process.works(5, 0.0)["t"] for _ in range(3)] == [0.2, 0.1, 0.05]
    for _ in range(10):
        process.works(5, 0.0)
    assert process.works(5, 0.0) == {}


def test_what_else_a_process_does_is_no_topics():
    process = Process()
    shares = [process.works(5, 1.0, t=100_000) for _ in range(12)][-1]
    assert shares["t"] == pytest.approx(4 * known_cost_s(process.meters["t"]) / 60, abs=0.001)
    assert shares["t"] < 0.2


def test_consumers_count_too():
    fetched, produced = TopicMeter(fetch_requests=1_000, bytes_out=10**9), TopicMeter(produce_requests=1_000)
    assert 0 < known_cost_s(produced) < known_cost_s(fetched)
