"""Side by side: a case writes to a new topic of Kafka only once its partitions are led."""

import pytest
from leaders import NoLeaderError, await_leaders
from support.logs import FakeClock


class Cluster:
    """Leads one more partition each time it is asked, the last ones first."""

    def __init__(self, partitions: int, led: int = 0) -> None:
        self.unled = set(range(partitions - led))
        self.asked: list[int] = []

    def __call__(self, partitions: object) -> list[int]:
        wanted = list(partitions)  # type: ignore[call-overload]
        self.asked.append(len(wanted))
        found = [p for p in wanted if p in self.unled]
        self.unled.discard(max(self.unled, default=-1))
        return found


def test_those_that_are_not_led_are_asked_for_again() -> None:
    clock, cluster = FakeClock(), Cluster(3, led=1)
    await_leaders(cluster, 3, clock=clock.elapsed_s, sleep=clock.sleep)
    assert not cluster.unled
    assert cluster.asked == [3, 2, 1]


def test_many_are_asked_for_in_several_requests() -> None:
    cluster = Cluster(2_500, led=2_500)
    await_leaders(cluster, 2_500)
    assert cluster.asked == [1_000, 1_000, 500]


def test_the_wait_ends_with_a_reason() -> None:
    clock = FakeClock()
    with pytest.raises(NoLeaderError, match="2 of 8 partitions have no leader after 5 s"):
        await_leaders(lambda asked: [p for p in asked if p > 5], 8, 5.0, clock.elapsed_s, clock.sleep)
