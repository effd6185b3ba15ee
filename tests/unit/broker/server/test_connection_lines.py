"""Log lines of connections that end, by a clock that tests set: one of an address at once, then one a minute."""

import asyncio
import logging

import pytest
from support.broker_connections import Client, FakeClock, connections, settle

from tidelog.broker.base.calls import Peer
from tidelog.broker.server.connection_lines import EVERY_S, ConnectionLines

INFO, WARNING = logging.INFO, logging.WARNING
A, B = Peer("PLAINTEXT", "10.0.0.1"), Peer("PLAINTEXT", "10.0.0.2")


@pytest.fixture(autouse=True)
def _all_levels(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(INFO, "tidelog")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def lines(clock: FakeClock) -> ConnectionLines:
    return ConnectionLines(clock)


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    found = [record.getMessage() for record in caplog.records]
    caplog.clear()
    return found


def test_a_client_that_reconnects_for_ever_gets_a_line_a_minute(
    lines: ConnectionLines, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(480):  # eight a second
        lines.say("closed", A, f"no {number}", WARNING)
        clock.sleep(0.125)
    assert said(caplog) == ["Connection closed: peer=10.0.0.1 listener=PLAINTEXT: no 0"]
    for number in range(480, 1440):
        lines.say("closed", A, f"no {number}", WARNING)
        clock.sleep(0.125)
    counts = said(caplog)
    assert [line.split(": ")[2].split(",")[0] for line in counts] == ["479 more in 60 s", "480 more in 60 s"]
    assert counts[0].endswith("the last one: no 479")
    lines.finish()
    (rest,) = said(caplog)
    assert rest.startswith("Connections closed: peer=10.0.0.1 listener=PLAINTEXT: 480 more in 60 s")


@pytest.mark.parametrize(
    "other",
    [("closed", B, "x", WARNING), ("refused", A, "x", WARNING), ("closed", A, "x", INFO)],
    ids=["another address", "another fate", "another level"],
)
def test_what_differs_is_not_counted_together(
    lines: ConnectionLines, caplog: pytest.LogCaptureFixture, other: tuple[str, Peer, str, int]
) -> None:
    lines.say("closed", A, "x", WARNING)
    lines.say(*other)
    assert len(said(caplog)) == 2
    assert not lines.has_counts


def test_connections_that_end_now_and_then_get_a_line_each(
    lines: ConnectionLines, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        lines.say("closed", A, "idle", INFO)
        clock.sleep(EVERY_S)
    assert said(caplog) == ["Connection closed: peer=10.0.0.1 listener=PLAINTEXT: idle"] * 3


def test_a_count_is_written_when_its_minute_is_over_though_nothing_more_comes(
    lines: ConnectionLines, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    lines.say("closed", A, "first", INFO)
    lines.say("closed", A, "second", INFO)
    clock.sleep(EVERY_S - 0.1)
    lines.look()
    assert len(said(caplog)) == 1
    assert lines.has_counts
    clock.sleep(0.1)
    lines.look()
    assert said(caplog) == [
        "Connections closed: peer=10.0.0.1 listener=PLAINTEXT: 1 more in 60 s, the last one: second"
    ]
    assert not lines.has_counts
    clock.sleep(EVERY_S)
    lines.look()
    assert said(caplog) == []


def test_addresses_that_were_silent_for_a_minute_are_forgotten(lines: ConnectionLines, clock: FakeClock) -> None:
    for number in range(100):
        lines.say("closed", Peer("PLAINTEXT", f"10.0.0.{number}"), "idle", INFO)
    clock.sleep(EVERY_S)
    lines.look()
    assert lines._counted == {}


def test_a_brokers_connections_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        all_ = connections({})
        for _ in range(50):
            Client(all_, host="10.6.6.6").send(b"GET / HTTP/1.1\r\n")
            await settle()
        assert len(said(caplog)) == 1
        all_.clock.now_s += EVERY_S
        all_.look()
        (line,) = said(caplog)
        assert line.startswith("Connections closed: peer=10.6.6.6 listener=PLAINTEXT: 49 more in 60 s, the last one: ")
        Client(all_, host="10.6.6.6").send(b"GET / HTTP/1.1\r\n")
        await settle()
        assert said(caplog) == []
        await all_.drain(1.0)
        assert said(caplog)[0].startswith("Connections closed: peer=10.6.6.6 listener=PLAINTEXT: 1 more in 0 s")

    asyncio.run(scenario())


def test_counts_are_looked_at_while_no_connection_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidelog.broker.server.connections.LOOK_S", 0.0)

    async def scenario() -> None:
        all_ = connections({})
        for _ in range(2):
            Client(all_).send(b"GET / HTTP/1.1\r\n")
        await settle()
        assert len(all_) == 0
        assert all_.lines.has_counts
        all_.clock.now_s += EVERY_S
        async with asyncio.timeout(10):
            while all_.lines.has_counts:
                await asyncio.sleep(0)

    asyncio.run(scenario())
