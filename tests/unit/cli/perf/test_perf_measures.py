"""What `tidelog perf` prints, against Kafka's own texts: classes of Kafka 4.1.2 and Java 17 made the numbers."""

import math
import time

import pytest

from tidelog.cli.perf.measures import (
    ConsumerMeasures,
    ConsumerTotal,
    ProducerMeasures,
    check_pattern,
    consumer_header,
    java_date,
    java_float,
    percentiles,
)

# What String.format prints of a double: (value, "%.1f", "%.2f", "%.4f").
JAVA = [
    (0.0, "0.0", "0.00", "0.0000"),
    (0.05, "0.1", "0.05", "0.0500"),
    (0.15, "0.2", "0.15", "0.1500"),
    (0.25, "0.3", "0.25", "0.2500"),
    (0.35, "0.4", "0.35", "0.3500"),
    (0.45, "0.5", "0.45", "0.4500"),
    (1.005, "1.0", "1.01", "1.0050"),
    (2.675, "2.7", "2.68", "2.6750"),
    (1234567.85, "1234567.9", "1234567.85", "1234567.8500"),
    (5.0e-5, "0.0", "0.00", "0.0001"),
    (1.5e-4, "0.0", "0.00", "0.0002"),
    (1.0e7, "10000000.0", "10000000.00", "10000000.0000"),
    (12345678.9, "12345678.9", "12345678.90", "12345678.9000"),
    (1.0e22, "1" + "0" * 22 + ".0", "1" + "0" * 22 + ".00", "1" + "0" * 22 + ".0000"),
    (99.995, "100.0", "100.00", "99.9950"),
    (1 / 3, "0.3", "0.33", "0.3333"),
    (2 / 3, "0.7", "0.67", "0.6667"),
    (math.nan, "NaN", "NaN", "NaN"),
    (math.inf, "Infinity", "Infinity", "Infinity"),
    (-0.04, "-0.0", "-0.04", "-0.0400"),
    (1.0e-7, "0.0", "0.00", "0.0000"),
    (50000.123456789, "50000.1", "50000.12", "50000.1235"),
    (8.125, "8.1", "8.13", "8.1250"),
    (1048575.99995, "1048576.0", "1048576.00", "1048576.0000"),
    (0.049999999999999996, "0.0", "0.05", "0.0500"),
]


@pytest.mark.parametrize(("value", "one", "two", "four"), JAVA)
def test_numbers_are_printed_as_java_does(value: float, one: str, two: str, four: str) -> None:
    assert [java_float(value, digits) for digits in (1, 2, 4)] == [one, two, four]


@pytest.mark.parametrize(
    ("latencies", "expected"),
    [
        ([5], [5, 5, 5, 5]),
        ([3, 1, 2], [2, 3, 3, 3]),
        ([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], [6, 10, 10, 10]),
        ([9, 9, 9, 100], [9, 100, 100, 100]),
        ([i * 7919 % 1000 for i in range(1000)], [500, 950, 990, 999]),
        ([], [0, 0, 0, 0]),
    ],
)
def test_percentiles_are_kafkas(latencies: list[int], expected: list[int]) -> None:
    assert percentiles(latencies) == expected


# --- producer ----------------------------------------------------------------------------------------------


def test_a_producers_last_line() -> None:
    statistics = ProducerMeasures(4, 1_000)
    for latency, at in ((3, 1_010), (5, 1_100), (5, 1_200), (104, 1_500)):
        assert statistics.record(latency, 100, at) == []
    assert statistics.total(2_500).line() == (
        "4 records sent, 2.7 records/sec (0.00 MB/sec), 29.25 ms avg latency, 104.00 ms max latency,"
        " 5 ms 50th, 104 ms 95th, 104 ms 99th, 104 ms 99.9th."
    )


def test_a_line_for_each_five_seconds() -> None:
    """A window ends with the first record that is acknowledged 5 s after its beginning, and has it in."""
    statistics = ProducerMeasures(1_000_000, 0)
    lines = []
    for at in range(0, 12_000, 10):
        lines += [(at, line) for line in statistics.record(at % 30, 1024, at)]
    assert lines == [
        (5_000, "501 records sent, 100.2 records/sec (0.10 MB/sec), 10.0 ms avg latency, 20.0 ms max latency."),
        (10_000, "500 records sent, 100.0 records/sec (0.10 MB/sec), 10.0 ms avg latency, 20.0 ms max latency."),
    ]


def test_after_the_warm_up_windows_and_the_sum_are_those_of_the_steady_state() -> None:
    whole, steady = ProducerMeasures(1_500, 0), ProducerMeasures(1_000, 5_000, steady=True)
    whole.mute()
    lines = [line for at in range(5_000, 16_000, 10) for line in whole.record(1, 10, at) + steady.record(1, 10, at)]
    assert lines == [
        "In steady state.",
        "501 records sent, 100.2 records/sec (0.00 MB/sec), 1.0 ms avg latency, 1.0 ms max latency.",
        "500 records sent, 100.0 records/sec (0.00 MB/sec), 1.0 ms avg latency, 1.0 ms max latency.",
    ]
    assert steady.total(16_000).line().startswith("1100 steady state records sent, 100.0 records/sec (0.00 MB/sec)")
    assert whole.total(16_000).line().startswith("1100 records sent, 68.8 records/sec")


@pytest.mark.parametrize(("expected", "kept"), [(1, 10), (500_000, 10), (1_000_000, 5), (5_000_000, 1)])
def test_of_many_latencies_some_are_kept(expected: int, kept: int) -> None:
    statistics = ProducerMeasures(expected, 0)
    for at in range(10):
        statistics.record(at, 1, at)
    assert len(statistics._latencies) == kept


def test_a_run_that_takes_no_time_has_no_rate() -> None:
    statistics = ProducerMeasures(1, 7)
    statistics.record(0, 10, 7)
    assert "1 records sent, Infinity records/sec (Infinity MB/sec), 0.00 ms avg latency" in statistics.total(7).line()
    assert "0 records sent, NaN records/sec (NaN MB/sec), NaN ms avg latency" in ProducerMeasures(1, 7).total(7).line()


# --- consumer ----------------------------------------------------------------------------------------------


def test_the_headers_are_kafkas() -> None:
    rest = (
        "data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, fetch.time.ms, fetch.MB.sec,"
    )
    assert consumer_header(detailed=False) == f"start.time, end.time, {rest} fetch.nMsg.sec"
    assert consumer_header(detailed=True) == f"time, threadId, {rest} fetch.nMsg.sec"


def test_a_consumers_last_line() -> None:
    total = ConsumerTotal(1_000, 3_000, bytes=10 * 1024 * 1024, records=100_000, rebalance_ms=400)
    assert total.line(str) == ("1000, 3000, 10.0000, 5.0000, 100000, 50000.0000, 400, 1600, 6.2500, 62500.0000")


def test_a_consumers_line_for_each_interval() -> None:
    statistics = ConsumerMeasures(0, 1_000, detailed=True)
    statistics.begin(100)
    statistics.assigned([("t", 0), ("t", 1)], 300)
    statistics.assigned([("t", 2)], 350)  # it had some already
    lines = [statistics.record(1024 * 1024, at, str) for at in (600, 1_100, 1_200, 2_200)]
    assert lines == [
        None,
        "1100, 0, 2.0000, 2.0000, 2, 2.0000, 300, 700, 2.8571, 2.8571",
        None,
        "2200, 0, 4.0000, 1.8182, 4, 1.8182, 0, 1100, 1.8182, 1.8182",
    ]


def test_the_time_without_partitions_is_a_rebalance() -> None:
    statistics = ConsumerMeasures(0)
    statistics.assigned([("t", 0), ("t", 1)], 300)
    statistics.revoked([("t", 0)], 1_000)
    statistics.assigned([("t", 2)], 1_500)
    statistics.revoked([("t", 1), ("t", 2)], 2_000)
    statistics.assigned([("t", 0)], 2_050)
    assert statistics.total(3_000).rebalance_ms == 350


def test_an_interval_that_was_all_rebalance_has_no_fetch_rate() -> None:
    statistics = ConsumerMeasures(0, 1_000, detailed=True)
    statistics.assigned([("t", 0)], 1_000)
    line = statistics.record(10, 1_000, str)
    assert line is not None
    assert line.endswith(", 1000, 0, 0.0000, 0.0000")


# --- dates -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("yyyy-MM-dd HH:mm:ss:SSS", "2023-11-14 22:13:20:007"),
        ("H'h'mm", "22h13"),
        ("yy/M/d", "23/11/14"),
        ("''S'' 'it''s' ", "'7' it's "),
    ],
)
def test_dates_are_printed_as_java_does(monkeypatch: pytest.MonkeyPatch, pattern: str, expected: str) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    check_pattern(pattern)
    try:
        assert java_date(pattern, 1_700_000_000_007) == expected
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("pattern", ["EEE", "MMM", "yyyy 'no end", "hh:mm a"])
def test_patterns_that_cant_be_printed_are_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"is no part of a date here|quote that does not end"):
        check_pattern(pattern)
