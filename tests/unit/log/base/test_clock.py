"""The machine's clocks: the one that measures goes on while the machine sleeps."""

import time

import pytest

from tidelog.log.base.clock import SystemClock

BOOT, MONOTONIC = 5_000.25, 100.5


@pytest.fixture
def asleep(monkeypatch):
    """A machine that was suspended: its two clocks have drifted apart. Which clocks exist, a test says."""
    readings = {7: BOOT, 1: MONOTONIC}
    monkeypatch.setattr(time, "clock_gettime", readings.__getitem__)
    monkeypatch.setattr(time, "CLOCK_BOOTTIME", 7, raising=False)
    monkeypatch.setattr(time, "CLOCK_MONOTONIC", 1)


def test_time_that_the_machine_slept_counts(asleep):
    assert SystemClock().elapsed_s() == BOOT


def test_a_machine_without_that_clock_takes_the_monotonic_one(asleep, monkeypatch):
    monkeypatch.delattr(time, "CLOCK_BOOTTIME")
    assert SystemClock().elapsed_s() == MONOTONIC


def test_the_wall_clock_is_in_milliseconds(monkeypatch):
    monkeypatch.setattr(time, "time_ns", lambda: 1_700_000_000_123_456_789)
    assert SystemClock().now_ms() == 1_700_000_000_123
