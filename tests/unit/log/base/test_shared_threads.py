"""Threads that serve several users go on, whatever one round of theirs raises."""

import logging

import pytest

from tidelog.log.base.errors import StorageUnavailableError
from tidelog.log.base.shared_threads import Rounds


def test_an_error_ends_its_round_alone(caplog):
    pauses, ran = [], 0
    rounds = Rounds(logging.getLogger("test"), "Reading", pauses.append)
    for error in (ValueError("a"), StorageUnavailableError("b"), None, RecursionError("c"), MemoryError()):
        with rounds.round():
            ran += 1
            if error is not None:
                raise error
    assert ran == 5
    assert [(one.levelname, bool(one.exc_info)) for one in caplog.records] == [
        ("ERROR", True),
        ("WARNING", False),
        ("ERROR", True),
        ("ERROR", True),
    ]
    assert pauses == [0.01, 0.02, 0.01, 0.02]


def test_rounds_that_go_on_failing_fill_no_log_and_take_no_processor(caplog):
    pauses = []
    rounds = Rounds(logging.getLogger("test"), "Reading", pauses.append)
    for _ in range(100):
        with rounds.round():
            raise ValueError
    assert len(caplog.records) == 7  # the first, second, fourth … sixty-fourth
    assert "64 times" in caplog.records[-1].getMessage()
    assert pauses[-1] == 1.0
    assert pauses == sorted(pauses)


def test_the_end_of_a_thread_is_no_error():
    rounds = Rounds(logging.getLogger("test"), "Reading")
    with pytest.raises(KeyboardInterrupt), rounds.round():
        raise KeyboardInterrupt
