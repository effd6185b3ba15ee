"""When an application has been silent for too long: frozen processes, also amid a step, are none that don't poll."""

from support.logs import FakeClock

from tidelog.groups.member.polling import PollLimit

SESSION_MS = 10_000


def limit() -> tuple[PollLimit, FakeClock]:
    clock = FakeClock()
    return PollLimit("g", 60_000, clock), clock


def test_it_is_over_once_the_interval_is() -> None:
    polls, clock = limit()
    for _ in range(15):
        assert not polls.is_over()
        clock.pass_s(4)
        polls.stepped(SESSION_MS)
    assert polls.is_over()
    assert "did not poll for 60000 ms" in str(polls.overdue())
    polls.polled()
    assert not polls.is_over()


def test_a_gap_of_over_half_a_session_counts_for_nothing() -> None:
    polls, clock = limit()
    begun_s = polls.at_s
    clock.pass_s(59)
    polls.stepped(SESSION_MS)
    assert polls.at_s == begun_s + 59
    clock.pass_s(5)
    polls.stepped(SESSION_MS)
    assert polls.at_s == begun_s + 59
    clock.pass_s(1_000)
    polls.stepped(SESSION_MS)
    assert not polls.is_over()
