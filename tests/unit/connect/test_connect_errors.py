"""What becomes of failed records: tries, pauses, tolerance, and the headers of dead letters."""

import logging

import pytest

from tidelog.connect.data.errors import ConnectError, DataError, RetriableConnectError
from tidelog.connect.runtime.task_figures import TaskFigure
from tidelog.connect.runtime.tolerance import (
    ErrorStage,
    RecordFailedError,
    ToleranceOperator,
    TolerancePolicy,
    dead_letter_headers,
    delay_ms,
)


class Waits:
    """A clock that goes on only by waiting."""

    def __init__(self, stops_after=1000):
        self.s, self.pauses, self.stops_after = 0.0, [], stops_after

    def wait(self, seconds):
        self.s += seconds
        self.pauses.append(seconds)
        return len(self.pauses) >= self.stops_after

    def now(self):
        return self.s


def tried(policy, fails, waits=None, error=RetriableConnectError):
    """How a call ended that fails `fails` times, how often it was made, and the pauses between."""
    waits, calls = waits or Waits(), []
    operator = ToleranceOperator(policy, waits.wait, waits.now, lambda: 0.5)

    def call():
        calls.append(1)
        if len(calls) <= fails:
            raise error("no")
        return "done"

    try:
        return operator.run(ErrorStage.TRANSFORMATION, "X", call), len(calls), waits.pauses
    except RecordFailedError as failed:
        return failed.stage, len(calls), waits.pauses


@pytest.mark.parametrize(
    ("policy", "fails", "error", "ends", "pauses"),
    [
        (TolerancePolicy(), 0, RetriableConnectError, "done", []),
        (TolerancePolicy(), 1, RetriableConnectError, ErrorStage.TRANSFORMATION, []),
        (TolerancePolicy(1000), 2, RetriableConnectError, "done", [0.3, 0.6]),
        (TolerancePolicy(1000), 3, RetriableConnectError, ErrorStage.TRANSFORMATION, [0.3, 0.6]),
        (TolerancePolicy(-1, 500), 4, RetriableConnectError, "done", [0.3, 0.25, 0.25, 0.25]),
        (TolerancePolicy(1000), 1, DataError, ErrorStage.TRANSFORMATION, []),
        (TolerancePolicy(1000), 1, ZeroDivisionError, ErrorStage.TRANSFORMATION, []),
    ],
)
def test_what_may_succeed_later_is_tried_again_within_the_time(policy, fails, error, ends, pauses):
    assert tried(policy, fails, error=error) == (ends, len(pauses) + 1, pauses)


def test_a_task_that_is_to_stop_tries_no_more():
    assert tried(TolerancePolicy(-1), 100, Waits(stops_after=3))[1] == 3


@pytest.mark.parametrize(
    ("attempt", "most", "delay"),
    [(1, 60_000, 300), (2, 60_000, 600), (8, 60_000, 38_400), (9, 60_000, 30_000), (999, 7, 3.5)],
)
def test_pauses_double_and_are_random_above_the_longest(attempt, most, delay):
    assert delay_ms(attempt, most, 0.5) == delay


FAILURE = RecordFailedError(ErrorStage.VALUE_CONVERTER, "JsonConverter", DataError("no JSON"))


def test_a_failure_is_skipped_and_reported_only_where_that_is_tolerated(caplog):
    reported = []
    strict = ToleranceOperator(TolerancePolicy(), lambda _: False, lambda: 0.0, lambda: 0.5)
    with pytest.raises(ConnectError, match=r"Tolerance exceeded in error handler.*no JSON"):
        strict.tolerate(FAILURE, "here", lambda: reported.append(1))
    assert reported == []
    lenient = ToleranceOperator(TolerancePolicy(tolerates_all=True), lambda _: False, lambda: 0.0, lambda: 0.5)
    lenient.tolerate(FAILURE, "here", lambda: reported.append(1))
    assert (reported, lenient.figures.total(TaskFigure.SKIPPED), caplog.records) == ([1], 1, [])


@pytest.mark.parametrize("messages", [False, True])
def test_the_log_says_where_a_record_is_only_if_asked(caplog, messages):
    operator = ToleranceOperator(TolerancePolicy(0, 1, True, True, messages), lambda _: False, lambda: 0.0, lambda: 0.5)
    with caplog.at_level(logging.ERROR, "tidelog.connect"):
        operator.tolerate(FAILURE, "topic=t offset=3")
    assert "stage=VALUE_CONVERTER class=JsonConverter" in caplog.text
    assert ("offset=3" in caplog.text) is messages


def test_dead_letters_have_connects_headers():
    found = dead_letter_headers([("own", b"1")], FAILURE, "sink", 2, ("t", 3, 4))
    said = dict(found)
    assert found[0] == ("own", b"1")
    assert said.pop("__connect.errors.exception.stacktrace").rstrip().endswith(b"DataError: no JSON")
    assert said == {
        "own": b"1",
        "__connect.errors.topic": b"t",
        "__connect.errors.partition": b"3",
        "__connect.errors.offset": b"4",
        "__connect.errors.connector.name": b"sink",
        "__connect.errors.task.id": b"2",
        "__connect.errors.stage": b"VALUE_CONVERTER",
        "__connect.errors.class.name": b"JsonConverter",
        "__connect.errors.exception.class.name": b"tidelog.connect.data.errors.DataError",
        "__connect.errors.exception.message": b"no JSON",
    }
