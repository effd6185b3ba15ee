"""Stopping when asked: no signal is lost on its way to the thread that waits for it."""

import os
import select
import signal
import threading
from collections.abc import Iterator

import pytest

from tidelog.server.process.stopping import Stop

WAIT_S = 60


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Set when a wait begins."""
    begun, wait = threading.Event(), select.select

    def watched(*args: object) -> object:
        begun.set()
        return wait(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(select, "select", watched)
    yield begun
    monkeypatch.undo()


def test_a_signal_that_another_thread_gets_ends_the_wait(waits: threading.Event) -> None:
    """The kernel chooses which thread takes a signal; Python's handler runs in the main one, which it does not wake."""

    def take() -> None:
        waits.wait(WAIT_S)
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

    with Stop() as stop:
        taking = threading.Thread(target=take)
        taking.start()
        assert stop.within(WAIT_S)
        assert stop.reason == "SIGTERM"
        taking.join(WAIT_S)


def test_a_signal_is_readable_before_python_has_handled_it() -> None:
    """One that comes between the last look and the wait ends that, too."""
    with Stop() as stop:
        signal.signal(signal.SIGTERM, lambda *_: None)
        os.kill(os.getpid(), signal.SIGTERM)
        assert select.select([stop.wakeup], [], [], 0)[0]


def test_another_signal_that_the_process_handles_asks_for_no_stop() -> None:
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    try:
        with Stop() as stop:
            os.kill(os.getpid(), signal.SIGUSR1)
            assert not stop.within(0.0)
            assert not select.select([stop.wakeup], [], [], 0)[0]
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_a_thread_asks_and_the_wait_ends(waits: threading.Event) -> None:
    def ask() -> None:
        waits.wait(WAIT_S)
        stop.ask("its server has ended")

    with Stop() as stop:
        asking = threading.Thread(target=ask)
        asking.start()
        assert stop.within(WAIT_S)
        asking.join(WAIT_S)
    assert (stop.reason, stop.exit_code) == ("its server has ended", 0)


def test_what_was_woken_up_before_is_woken_up_again_afterwards() -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    before = signal.set_wakeup_fd(writing)
    try:
        with Stop():
            pass
        assert signal.set_wakeup_fd(before) == writing
    finally:
        signal.set_wakeup_fd(before)
        os.close(reading)
        os.close(writing)
