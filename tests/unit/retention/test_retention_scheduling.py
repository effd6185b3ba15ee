"""Jobs that run again and again: how an interval is written, and what ends the loop."""

import pytest

from tidelog.retention.scheduling import parse_interval, run_every


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("100ms", 0.1), ("30s", 30), ("5m", 300), ("5min", 300), (" 1.5h ", 5_400), ("1 d", 86_400), ("366d", 31_622_400)],
)
def test_intervals(text: str, seconds: float) -> None:
    assert parse_interval(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "5", "m", "0s", "-5m", "5 weeks", "1e3s", "367d", "5m5s", "\u0665m"])
def test_what_is_no_interval(text: str) -> None:
    with pytest.raises(ValueError, match="is no interval"):
        parse_interval(text)


@pytest.mark.parametrize("end", [KeyboardInterrupt, ValueError, SystemExit])
def test_a_job_runs_at_once_and_again_until_it_raises(end: type[BaseException]) -> None:
    runs = []

    def job() -> None:
        runs.append(len(runs))
        if len(runs) == 4:
            raise end

    with pytest.raises(end):
        run_every(0.01, job)
    assert runs == [0, 1, 2, 3]


def test_a_first_run_that_raises_is_the_last() -> None:
    with pytest.raises(ZeroDivisionError):
        run_every(0.01, lambda: 1 // 0)
